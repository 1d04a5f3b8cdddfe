#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: step_probe
short_description: Run a job of a few seconds and see its memory recorded
version_added: 0.1.0
description:
  - Submits one small job that sleeps longer than its own sampling interval of one second, and looks its step up in
    sacct. A step whose MaxRSS is above zero proves that JobAcctGatherType is loaded and works.
  - Never waits long for a free node. A job that does not start in time is cancelled, and nothing is concluded.
options:
  scontrol:
    description: Path of scontrol. sbatch, scancel and sacct are taken from the same directory.
    type: path
    required: true
  conf_path:
    description: The slurm.conf that the client commands use.
    type: path
  partition:
    description: Partition to run in. The default partition unless given.
    type: str
    default: ""
  start_within:
    description: Seconds within which the job must start.
    type: int
    default: 15
  record_within:
    description: Seconds after the job's start within which sacct must show the record.
    type: int
    default: 60
extends_documentation_fragment:
  - hpcguard.slurm.attributes
attributes:
  check_mode:
    description: Submits nothing in check mode.
    support: full
  diff_mode:
    description: Has nothing to show in diff mode.
    support: none
  idempotent:
    description: Submits a job each time.
    support: none
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: See the memory of a step recorded
  hpcguard.slurm.step_probe:
    scontrol: /usr/bin/scontrol
"""

RETURN = r"""
outcome:
  description: V(recorded), V(not_recorded), or V(not_run) when no job could run.
  returned: success
  type: str
  sample: recorded
reason:
  description: Why it was not run or not recorded.
  returned: unless it was recorded
  type: str
job:
  description: Id of the job.
  returned: when it was submitted
  type: str
node:
  description: Node on which it ran.
  returned: when it ran
  type: str
rows:
  description: Steps with their peak memory.
  returned: success
  type: list
  elements: dict
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders, scontrol_text, verify_evidence

JOB = "#!/bin/sh\nexec sleep 2\n"
OPTIONS = (
    "--parsable", "--job-name=hpcguard-verify", "--nodes=1", "--ntasks=1", "--cpus-per-task=1", "--mem=64", "--time=1",
    "--acctg-freq=task=1", "--no-requeue", "--chdir=/", "--input=/dev/null", "--output=/dev/null", "--error=/dev/null",
)  # fmt: skip
WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "")
ENDING = ("RUNNING", "COMPLETING", "SUSPENDED")
POLL = 0.5
CALL = 20


class Probe:
    """One job and what sacct knows of it."""

    def __init__(self, params):
        self.params = params
        self.job = None
        self.record = {}

    def ask(self, program, args, stdin=None):
        path = os.path.join(os.path.dirname(self.params["scontrol"]), program)
        env = {"SLURM_CONF": self.params["conf_path"]} if self.params["conf_path"] else None
        return loaders.run([path] + list(args), CALL, env=env, stdin=stdin)

    def submit(self):
        """Submit the job; returns why Slurm refused it, empty when it did not."""
        where = ["--partition=" + self.params["partition"]] if self.params["partition"] else []
        done = self.ask("sbatch", list(OPTIONS) + where, stdin=JOB)
        words = done.out.strip().split(";")[0].split()
        if done.rc != 0 or not words or not words[-1].isdigit():
            return "no probe job could be submitted (a site may forbid jobs of root): %s" % (done.err or done.out).strip()[:300]
        self.job = words[-1]
        return ""

    def state(self):
        done = self.ask("scontrol", ["-o", "show", "job", self.job])
        records = scontrol_text.parse_records(done.out) if done.rc == 0 else []
        self.record = records[0] if records else self.record
        return self.record.get("JobState", "")

    def wait_while(self, states, seconds):
        """The job's first state that is none of these, or its last one when the time is up."""
        deadline = loaders.now() + seconds
        while True:
            state = self.state()
            if state not in states or loaders.now() >= deadline:
                return state
            time.sleep(POLL)

    def rows(self, seconds):
        """The job's steps with their peak memory; sacct may know them a little later than slurmctld."""
        deadline = loaders.now() + seconds
        while True:
            done = self.ask("sacct", ["-n", "-P", "-j", self.job, "-o", "JobID,Start,State,MaxRSS"])
            rows = verify_evidence.recorded_steps(done.out, "")
            if rows or loaders.now() >= deadline:
                return rows
            time.sleep(POLL)

    def run(self):
        refused = self.submit()
        if refused:
            return {"outcome": "not_run", "reason": refused}
        if self.wait_while(WAITING, self.params["start_within"]) in WAITING:
            waiting_for = self.record.get("Reason", "no reason")
            return {"outcome": "not_run", "reason": "no node was free within %d s (%s)" % (self.params["start_within"], waiting_for)}
        begun = loaders.now()
        state = self.wait_while(ENDING, self.params["record_within"])
        if state != "COMPLETED":
            return {"outcome": "not_recorded", "reason": "the probe job %s ended %s" % (self.job, state)}
        rows = self.rows(self.params["record_within"] - (loaders.now() - begun))
        if rows:
            return {"outcome": "recorded", "rows": rows}
        return {"outcome": "not_recorded", "reason": "job %s ended COMPLETED, but sacct shows no MaxRSS for its step" % self.job}

    def tidy(self):
        """Leave no job behind that could still start or run."""
        if self.job and self.state() in WAITING + ENDING:
            self.ask("scancel", [self.job])


def main():
    module = AnsibleModule(
        argument_spec={
            "scontrol": {"type": "path", "required": True},
            "conf_path": {"type": "path"},
            "partition": {"type": "str", "default": ""},
            "start_within": {"type": "int", "default": 15},
            "record_within": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    if module.check_mode:
        module.exit_json(changed=True, outcome="not_run", reason="check mode runs no probe step", rows=[])
    probe = Probe(module.params)
    try:
        result = probe.run()
    finally:
        probe.tidy()
    result.setdefault("rows", [])
    module.exit_json(changed=probe.job is not None, job=probe.job, node=probe.record.get("BatchHost"), **result)


if __name__ == "__main__":
    main()
