#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: crash_test
short_description: Kill slurmd on one node and see it come back by itself
version_added: 0.1.0
description:
  - Sends SIGKILL to the main process of C(slurmd.service), and to no other process, then waits until systemd has
    started slurmd again, slurmctld has registered it, and sees that every job step of the node still runs.
  - Kills nothing unless slurmd runs, the process is slurmd, the unit says C(KillMode=process) (or the jobs would die
    with it) and systemd would start it again.
  - When slurmd does not come back in time it is started, so that the node is not left without.
options:
  node_name:
    description: NodeName of this host.
    type: str
    required: true
  scontrol:
    description: Path of scontrol.
    type: path
    required: true
  conf_path:
    description: The slurm.conf that scontrol uses, where there is one on this host.
    type: path
  timeout:
    description: Seconds within which the node must be in service again.
    type: int
    default: 120
extends_documentation_fragment:
  - hpcguard.slurm.attributes
attributes:
  check_mode:
    description: Kills nothing in check mode and says whether it would.
    support: full
  diff_mode:
    description: Has nothing to show in diff mode.
    support: none
  idempotent:
    description: Kills slurmd each time.
    support: none
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Kill slurmd and see it come back
  hpcguard.slurm.crash_test:
    node_name: k8s-node-03
    scontrol: /usr/bin/scontrol
"""

RETURN = r"""
outcome:
  description: V(recovered), V(failed), V(refused) when killing would have been unsafe, V(not_run) in check mode.
  returned: success
  type: str
  sample: recovered
reason:
  description: Why it was refused, not run, or failed.
  returned: unless it recovered
  type: str
seconds:
  description: Time from the kill until the node was in service again.
  returned: when slurmd was killed
  type: float
  sample: 10.7
steps:
  description: Number of job steps before the kill.
  returned: when slurmd was killed
  type: int
kept:
  description: Number of them that ran on, or ended by themselves in that time.
  returned: when slurmd was killed
  type: int
evidence:
  description: What was seen, source and text.
  returned: success
  type: list
  elements: dict
"""

import os
import signal
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import daemon_state, loaders, scontrol_text, verify_evidence

UNIT = "slurmd.service"
PROPERTIES = ("ActiveState", "SubState", "MainPID", "KillMode", "Restart", "RestartUSec", "Result")
POLL = 0.2
CALL = 12


def comm_of(pid):
    """Name of a process, empty when it is gone."""
    return (loaders.read_text("/proc/%s/comm" % pid, 64) or "").strip()


class CrashTest:
    """One kill and what came of it."""

    def __init__(self, params):
        self.params = params
        self.evidence = []

    def note(self, source, text):
        self.evidence.append({"source": source, "text": text})

    def show(self):
        return loaders.systemctl_show(UNIT, PROPERTIES)

    def ask(self, *args):
        return loaders.scontrol(self.params["scontrol"], args, CALL, self.params["conf_path"])

    def node(self):
        """The node as slurmctld sees it, None when it does not say."""
        done = self.ask("-o", "show", "node", self.params["node_name"])
        nodes = scontrol_text.parse_nodes(done.out) if done.rc == 0 else []
        return nodes[0] if nodes else None

    def ready(self):
        """Why the test must not begin, empty when it may."""
        before = self.show()
        self.note("systemctl show slurmd", ", ".join("%s=%s" % (key, before.get(key, "")) for key in PROPERTIES))
        refusal = verify_evidence.crash_refusal(before, comm_of(before.get("MainPID", "0")))
        if refusal:
            return refusal
        self.pid = int(before["MainPID"])
        self.registered = self.node()
        if self.registered is None or not scontrol_text.in_service(self.registered):
            return "slurmctld does not have the node in service (%s): it was not killed" % (
                self.registered["state"] if self.registered else "no answer"
            )
        return ""

    def kill(self):
        self.steps = loaders.slurmstepds()
        self.killed = loaders.now()
        os.kill(self.pid, signal.SIGKILL)
        self.note("kill -9", "main process %d of slurmd" % self.pid)

    def back(self):
        """True once another slurmd runs and slurmctld has heard from it."""
        show = self.show()
        if show.get("SubState") != "running" or show.get("MainPID") in ("0", str(self.pid)) or comm_of(show["MainPID"]) != "slurmd":
            return False
        node = self.node()
        # the state alone proves nothing: slurmctld would miss the old slurmd only minutes later
        if node is None or not scontrol_text.in_service(node) or node["slurmd_start_time"] == self.registered["slurmd_start_time"]:
            return False
        self.note("systemctl show slurmd", "SubState=running, MainPID=%s" % show["MainPID"])
        self.note("scontrol -o show node", "State=%s SlurmdStartTime=%s" % (node["state"], node["slurmd_start_time"]))
        return True

    def wait(self):
        """Wait for slurmd, and help it when systemd did not; returns what is wrong, empty when it came back."""
        deadline = self.killed + self.params["timeout"]
        while not self.back():
            if loaders.now() >= deadline:
                show = self.show()
                loaders.systemctl(["reset-failed", UNIT])
                loaders.systemctl(["--no-block", "start", UNIT])
                state = "%s/%s" % (show.get("ActiveState"), show.get("SubState"))
                return "not back within %d s (slurmd %s); it was told to start" % (self.params["timeout"], state)
            time.sleep(POLL)
        return ""

    def lost(self):
        """Names of steps that are gone without having ended by themselves."""
        names = []
        gone = daemon_state.steps_lost(self.steps, loaders.slurmstepds())
        for name in sorted(gone.values()):
            job = name.split(".")[0]
            records = scontrol_text.parse_records(self.ask("-o", "show", "job", job).out) if job.isdigit() else []
            if not records or not daemon_state.ended_by_itself(records[0]):
                names.append(name or "unknown")
        return names

    def run(self, check_mode):
        refusal = self.ready()
        if refusal:
            return {"changed": False, "outcome": "refused", "reason": refusal}
        if check_mode:
            return {"changed": True, "outcome": "not_run", "reason": "check mode kills nothing"}
        self.kill()
        trouble = self.wait()
        lost = self.lost()
        if lost and not trouble:
            trouble = "slurmd came back, but steps were lost: " + ", ".join(lost)
        return {
            "changed": True,
            "outcome": "failed" if trouble else "recovered",
            "reason": trouble,
            "seconds": round(loaders.now() - self.killed, 1),
            "steps": len(self.steps),
            "kept": len(self.steps) - len(lost),
        }


def main():
    module = AnsibleModule(
        argument_spec={
            "node_name": {"type": "str", "required": True},
            "scontrol": {"type": "path", "required": True},
            "conf_path": {"type": "path"},
            "timeout": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    test = CrashTest(module.params)
    result = test.run(module.check_mode)
    module.exit_json(evidence=test.evidence, **result)


if __name__ == "__main__":
    main()
