#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: drill
short_description: Break something on purpose and see it come back
version_added: 0.1.0
description:
  - One exercise on the host, or the wait on the controller for what others do.
  - Whatever is broken here puts itself right, also when the run that asked for it is killed. Before anything is touched systemd is
    told on the host, by a timer of its own, to remove the test flag or to start the daemons.
options:
  exercise:
    description:
      - V(health_check) makes the health check of this node fail by its test flag, sees the node drained, takes the flag away and sees the
        node opened again. The script is run as slurmd runs it, so that no interval has to be waited for.
      - V(restart) restarts slurmctld and waits until another main process answers C(scontrol ping) and the nodes are in service. Jobs
        that ran have to go on.
      - V(outage) stops O(units) and has systemd start them after O(start_after) seconds, as a boot would. Returns at once.
      - V(recovery) waits until slurmctld answers and every node of O(nodes) is in service.
    type: str
    required: true
    choices: [health_check, restart, outage, recovery]
  node_name:
    description: NodeName of this host in slurm.conf, for V(health_check).
    type: str
  nodes:
    description: NodeNames that have to be in service in the end.
    type: list
    elements: str
    default: []
  units:
    description: Units of the outage, in the order in which they start.
    type: list
    elements: str
    default: []
  start_after:
    description: Seconds until they start.
    type: int
    default: 5
  script:
    description: The health check.
    type: path
    default: /usr/local/bin/slurm_health_check.sh
  undrain_after:
    description:
      - Good runs after which the health check takes its drain back. With V(0) it never does, and V(health_check) is refused, since the
        node would stay closed.
    type: int
    default: 2
  flag:
    description: Its test flag.
    type: path
    default: /run/hpcguard/health_check.force
  scontrol:
    description: Path of scontrol.
    type: path
    default: /usr/bin/scontrol
  conf_path:
    description: The slurm.conf that scontrol reads, where it does not find it by itself.
    type: path
  timeout:
    description: Seconds that the exercise may take; then it has failed, and what was broken is put right.
    type: int
    default: 300
extends_documentation_fragment:
  - hpcguard.slurm.attributes
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description: Has nothing to show in diff mode.
    support: none
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: See the health check drain this node and open it again
  hpcguard.slurm.drill:
    exercise: health_check
    node_name: k8s-node-01
"""

RETURN = r"""
outcome:
  description: V(recovered), V(begun) of an outage, V(failed), V(refused) with nothing touched, or V(not_run) in check mode.
  returned: success
  type: str
reason:
  description: Why it failed or was not run.
  returned: success
  type: str
seconds:
  description: How long each part took.
  returned: success
  type: dict
  sample: {drained: 1.2, opened: 2.9}
jobs:
  description: Jobs that ran over the restart of slurmctld.
  returned: success
  type: int
"""

import os
import platform
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import daemon_state, finding, loaders, scontrol_text

SLURMD = "slurmd.service"
SLURMCTLD = "slurmctld.service"
CALL = 12
PING = 25  # it asks every controller, and one that hangs costs it 10
RUN = 60
POLL = 0.5
# Any check that exists; the flag makes it fail.
CHECK = b"root_writable\n"


class Trouble(Exception):
    """What kept the exercise from its end."""


class Refused(Trouble):
    """Nothing was touched."""


class Exercise:
    """One of them, with a clock."""

    def __init__(self, params):
        self.params = params
        self.begun = loaders.now()
        self.deadline = self.begun + params["timeout"]
        self.seconds = {}
        self.kept = 0

    def lap(self, name):
        self.seconds[name] = round(loaders.now() - self.begun, 1)
        self.begun = loaders.now()

    def nodes(self):
        """{name: node} as slurmctld sees them, empty while it does not answer."""
        done = loaders.scontrol(self.params["scontrol"], ["-o", "show", "node"], CALL, self.params["conf_path"])
        return {node["name"]: node for node in scontrol_text.parse_nodes(done.out)} if done.rc == 0 else {}

    def until(self, condition, what, work=None):
        """Wait for a condition, doing some work between two looks."""
        while not condition():
            if loaders.now() >= self.deadline:
                raise Trouble("not within %d s: %s" % (self.params["timeout"], what))
            if work:
                work()
            else:
                time.sleep(POLL)

    def later(self, name, seconds, argv):
        """Have systemd do something by itself; an earlier promise of that name is kept no longer."""
        loaders.systemctl(["stop", name + ".timer"])
        loaders.systemctl(["reset-failed", name + ".service"])
        done = loaders.run(["systemd-run", "--unit=" + name, "--on-active=%d" % seconds, "--timer-property=AccuracySec=1s"] + argv, CALL)
        if done.rc != 0:
            raise Trouble("systemd did not take the order to put things right: " + done.err.strip()[-200:])

    # --- the exercises ---

    def health_check(self):
        params = self.params
        name = params["node_name"]
        if params["undrain_after"] == 0:
            raise Refused("nobody would open %s again: its health check never takes a drain back (undrain_after is 0)" % name)
        before = self.nodes().get(name)
        if before is None or not scontrol_text.in_service(before) or "DRAIN" in before["flags"]:
            raise Refused("%s is not in service (%s): it was left alone" % (name, before["state"] if before else "no answer"))
        script = ["/usr/bin/env", "-i", "SLURMD_NODENAME=" + name, params["script"]]
        self.later("hpcguard-drill-flag", params["timeout"], ["rm", "-f", params["flag"]])
        try:
            loaders.write_atomic(params["flag"], CHECK)
            self.until(lambda: self.drained(name), "%s drained by its health check" % name, lambda: loaders.run(script, RUN))
            self.lap("drained")
        finally:
            if os.path.exists(params["flag"]):
                os.remove(params["flag"])
            loaders.systemctl(["stop", "hpcguard-drill-flag.timer"])
        self.until(lambda: self.drained(name) is False, "%s opened again by its health check" % name, lambda: loaders.run(script, RUN))
        self.lap("opened")

    def drained(self, name):
        """Whether it is, None while slurmctld does not say."""
        node = self.nodes().get(name)
        if node is None:
            return None
        drained = "DRAIN" in node["flags"]
        if drained and not scontrol_text.is_ours(node["reason"]):
            raise Trouble("%s was drained by somebody else meanwhile: it was left alone" % name)
        return drained

    def restart(self):
        before = self.main_pid()
        jobs = self.jobs()
        if jobs is None:
            raise Refused("slurmctld does not answer: it was not restarted")
        done = loaders.systemctl(["restart", SLURMCTLD], self.params["timeout"])
        if done.rc != 0:
            raise Trouble("slurmctld did not restart: " + done.err.strip()[-200:])
        self.recovery(lambda: self.main_pid() not in ("0", before) and self.pings() and self.nodes())
        running = [name for name, job in jobs.items() if job.get("JobState") == "RUNNING"]
        if not running:
            return
        self.until(lambda: self.jobs() is not None, "slurmctld tells its jobs")
        now = self.jobs() or {}
        lost = sorted(name for name in running if not survived(jobs[name], now.get(name, {})))
        if lost:
            raise Trouble("jobs did not survive: " + finding.some(lost))
        self.kept = len(running)

    def main_pid(self):
        """Of slurmctld here, 0 where it does not run."""
        show = loaders.systemctl_show(SLURMCTLD, ("ActiveState", "MainPID"))
        return show.get("MainPID", "0") if show.get("ActiveState") == "active" else "0"

    def pings(self):
        """Whether this host's slurmctld says that it is up; another controller's word is none."""
        done = loaders.scontrol(self.params["scontrol"], ["ping"], PING, self.params["conf_path"])
        pinged = scontrol_text.parse_ping(done.out)
        here = [answers for name, answers in pinged if name.split(".")[0] == platform.node().split(".")[0]]
        # a SlurmctldHost by another name than the host's: then there is one controller to ask
        return any(here or [answers for _name, answers in pinged])

    def jobs(self):
        """{id: job} as slurmctld knows them, None while it does not answer."""
        done = loaders.scontrol(self.params["scontrol"], ["-o", "show", "job"], CALL, self.params["conf_path"])
        return {job["JobId"]: job for job in scontrol_text.parse_records(done.out) if "JobId" in job} if done.rc == 0 else None

    def outage(self):
        units = self.params["units"]
        # jobs that began since the look would end with a slurmd of another KillMode
        if SLURMD in units and loaders.systemctl_show(SLURMD, ("KillMode",)).get("KillMode") != "process":
            raise Refused("KillMode of %s is not process: its stop would end jobs" % SLURMD)
        # systemd starts them whoever is killed meanwhile
        self.later("hpcguard-drill-start", self.params["start_after"], ["systemctl", "start"] + units)
        done = loaders.systemctl(["stop"] + list(reversed(units)), self.params["timeout"])
        if done.rc != 0:
            raise Trouble("not stopped: " + done.err.strip()[-200:])
        self.lap("stopped")

    def recovery(self, answers=None):
        self.until(answers or self.nodes, "slurmctld answers")
        self.lap("slurmctld answers")
        self.until(self.all_in_service, "every node in service")
        self.lap("every node in service")

    def all_in_service(self):
        nodes = self.nodes()
        return all(name in nodes and scontrol_text.in_service(nodes[name]) for name in self.params["nodes"])


def survived(before, now):
    """Whether a job that ran goes on, or ended by itself: one that was requeued has another start."""
    if now.get("JobState") in ("RUNNING", "COMPLETING"):
        return now.get("StartTime") == before.get("StartTime") and now.get("Restarts") == before.get("Restarts")
    return daemon_state.ended_by_itself(now)


def main():
    module = AnsibleModule(
        argument_spec={
            "exercise": {"type": "str", "required": True, "choices": ["health_check", "restart", "outage", "recovery"]},
            "node_name": {"type": "str"},
            "nodes": {"type": "list", "elements": "str", "default": []},
            "units": {"type": "list", "elements": "str", "default": []},
            "start_after": {"type": "int", "default": 5},
            "script": {"type": "path", "default": "/usr/local/bin/slurm_health_check.sh"},
            "undrain_after": {"type": "int", "default": 2},
            "flag": {"type": "path", "default": "/run/hpcguard/health_check.force"},
            "scontrol": {"type": "path", "default": "/usr/bin/scontrol"},
            "conf_path": {"type": "path"},
            "timeout": {"type": "int", "default": 300},
        },
        required_if=[("exercise", "health_check", ["node_name"]), ("exercise", "outage", ["units"])],
        supports_check_mode=True,
    )
    name = module.params["exercise"]
    if module.check_mode:
        module.exit_json(changed=name != "recovery", outcome="not_run", reason="check mode breaks nothing", seconds={}, jobs=0)
    exercise = Exercise(module.params)
    outcome, reason = ("begun" if name == "outage" else "recovered"), ""
    try:
        getattr(exercise, name)()
    except Refused as refusal:
        outcome, reason = "refused", refusal.args[0]
    except Trouble as trouble:
        outcome, reason = "failed", trouble.args[0]
    changed = name != "recovery" and outcome != "refused"
    module.exit_json(changed=changed, outcome=outcome, reason=reason, seconds=exercise.seconds, jobs=exercise.kept)


if __name__ == "__main__":
    main()
