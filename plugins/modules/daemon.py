#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: daemon
short_description: Restart, start or reconfigure a daemon of Slurm and see that it really works
version_added: 0.1.0
description:
  - A daemon is ready when its unit has been running with the same main process for a while and it answers.
    slurmctld answers C(scontrol ping), slurmdbd C(sacctmgr show cluster), and slurmd is registered with slurmctld
    after this start.
  - slurmd is not restarted while its unit is not C(KillMode=process), since that would end its jobs, and the steps
    that ran before must run after it.
  - When a daemon does not come up within O(timeout), or ends twice, the module fails with what the daemon itself
    logged since.
options:
  name:
    description: The daemon.
    type: str
    choices: [slurmdbd, slurmctld, slurmd]
    required: true
  action:
    description:
      - V(restart) in any case, V(start) unless it runs.
      - V(reconfigure) makes slurmctld read its configuration again and proves O(expect).
    type: str
    choices: [restart, start, reconfigure]
    required: true
  timeout:
    description: Seconds until it must be ready.
    type: int
    default: 120
  settle:
    description: Seconds during which the main process must stay the same.
    type: float
    default: 2
  node_name:
    description: NodeName of this host. The short host name unless given.
    type: str
  expect:
    description: Values of slurm.conf that slurmctld must have loaded afterwards.
    type: dict
    default: {}
  keep_jobs:
    description:
      - Restart slurmd also under a unit that would end its jobs, with C(KillMode=process) set over it for the time of the restart.
      - Without it such a restart is refused.
    type: bool
    default: false
  scontrol:
    description: Path of scontrol. Searched near the daemon unless given.
    type: path
  sacctmgr:
    description: Path of sacctmgr. Searched near the daemon unless given.
    type: path
  conf_path:
    description: The slurm.conf that the client commands use.
    type: path
  log_path:
    description: Log file of the daemon, to be quoted when it fails. What its configuration file says unless given.
    type: path
extends_documentation_fragment:
  - hpcguard.slurm.attributes
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description: Has nothing to show in diff mode.
    support: none
  idempotent:
    description: V(start) does nothing to a daemon that runs, the others act each time.
    support: partial
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Restart slurmd and see it back in service with the same jobs
  hpcguard.slurm.daemon:
    name: slurmd
    action: restart
    node_name: k8s-node-01

- name: Let slurmctld read its file again
  hpcguard.slurm.daemon:
    name: slurmctld
    action: reconfigure
    expect:
      SlurmdTimeout: 300
"""

RETURN = r"""
main_pid:
  description: Main process of the daemon.
  returned: when it is ready
  type: int
seconds:
  description: Time from the request until it was ready.
  returned: when it is ready
  type: float
nodes_missing:
  description: Nodes that were in service before and are not again, half a minute after slurmctld is ready.
  returned: for slurmctld
  type: list
  elements: str
node:
  description: The node as slurmctld sees it.
  returned: for slurmd
  type: dict
steps:
  description: "Steps before and after: C(kept), C(ended) of themselves in that time, C(lost)."
  returned: for slurmd
  type: dict
evidence:
  description: What systemd and the daemon said, source and text.
  returned: failure
  type: list
  elements: dict
"""

import os
import platform
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import (
    daemon_state,
    loaders,
    scontrol_text,
    slurm_layout,
    systemd_unit,
)

KEEP_JOBS = "/run/systemd/system/slurmd.service.d/zz-hpcguard-keep-jobs.conf"
POLL = 0.5
CALL = 15
NODES = 30


def size_of(path):
    """Size of a file, 0 where there is none."""
    return os.path.getsize(path) if path and os.path.exists(path) else 0


class Trouble(Exception):
    """The daemon is not as it has to be."""


class Daemon:
    """The daemon, its unit and the programs that ask it."""

    def __init__(self, params):
        self.params = params
        self.name = params["name"]
        self.unit = self.name + ".service"
        self.deadline = loaders.now() + params["timeout"]
        self.asked_at = time.time()
        self.log_path = params["log_path"] or self._find_log()
        self.log_size = size_of(self.log_path)
        self.last_answer = ""

    def show(self):
        return loaders.systemctl_show(self.unit, daemon_state.PROPERTIES)

    def left(self):
        return self.deadline - loaders.now()

    def wait(self):
        if self.left() <= 0:
            raise Trouble("%s was not ready within %s seconds" % (self.name, self.params["timeout"]))
        time.sleep(min(POLL, max(0.01, self.left())))

    def ask(self, program, *args):
        """Run a client command within the time that is left."""
        path = self.params[program] or self._find(program)
        done = loaders.scontrol(path, args, max(1, min(CALL, self.left())), self.params["conf_path"])
        self.last_answer = "%s %s: rc %s %s" % (program, " ".join(args), done.rc, (done.err or done.out).strip()[:300])
        return done

    def _find(self, program):
        command = systemd_unit.parse_exec(self.show().get("ExecStart", ""))
        for folder in slurm_layout.candidate_dirs([], [call["argv"] for call in command]):
            if os.access(os.path.join(folder, program), os.X_OK):
                self.params[program] = os.path.join(folder, program)
                return self.params[program]
        raise Trouble("%s was not found, name it with the option of that name" % program)

    def _find_log(self):
        """The daemon's log file: the journal misses much of what a daemon before 23.02 has to say."""
        calls = systemd_unit.parse_exec(self.show().get("ExecStart", ""))
        argv = calls[0]["argv"].split() if calls else []
        bin_dir = os.path.join(os.path.dirname(os.path.dirname(calls[0]["path"])), "bin") if calls else None
        given = self.params["conf_path"]
        paths = [given] if given else slurm_layout.candidate_confs(argv, {}, bin_dir) + ["/run/slurm/conf/slurm.conf"]
        host = platform.node().split(".")[0]
        for path in paths:
            if self.name == "slurmdbd":
                path = os.path.join(os.path.dirname(path), "slurmdbd.conf")
            text = loaders.read_text(path) or ""
            found = daemon_state.log_path(text, self.name, host, self.params["node_name"] or host)
            if found:
                return found
        return ""

    # --- readiness

    def settled(self):
        """Wait until a stop under way has ended, then tell how the unit is."""
        show = self.show()
        while show.get("ActiveState") == "deactivating":
            self.wait()
            show = self.show()
        if show.get("LoadState") != "loaded":
            runs = ", but runs: the file of the unit is gone" if show.get("MainPID", "0") != "0" else ""
            raise Trouble("%s is %s%s" % (self.unit, show.get("LoadState", "unknown to systemd"), runs))
        return show

    def come_up(self, before):
        """Wait until the unit has run with one main process for a while and the daemon answers."""
        pid, since, seen = None, 0, set()
        while True:
            show = self.show()
            state = daemon_state.judge(show, before)
            if state == daemon_state.SKIPPED:
                raise Trouble("systemd skipped the start of %s: a Condition of the unit is not met" % self.unit)
            exits = daemon_state.exits(show, before, seen)
            # once may be bad luck; slurmd alone is right to try until its controller answers
            if state == daemon_state.ENDED or (exits > 1 and self.name != "slurmd"):
                raise Trouble(
                    "%s ended with status %s (%s)" % (self.name, show.get("ExecMainStatus"), show.get("Result"))
                )
            if state != daemon_state.UP:
                pid = None
            elif show["MainPID"] != pid:
                pid, since = show["MainPID"], loaders.now()
            elif (
                loaders.now() - since >= self.params["settle"] and self.answers() and self.show().get("MainPID") == pid
            ):
                return int(pid)
            self.wait()

    def answers(self):
        if self.name == "slurmdbd":
            return self.ask("sacctmgr", "-n", "show", "cluster").rc == 0
        if self.name == "slurmctld":
            return self.pings()
        self.node = self.look_at_node()
        return bool(self.node) and self.registered(self.node)

    def pings(self):
        """True when a controller answers and it is not only the other one."""
        done = self.ask("scontrol", "ping")
        here = platform.node().split(".")[0]
        return done.rc == 0 and not any(
            line.rstrip().endswith("DOWN") and here in [word.split(".")[0] for word in line.split()]
            for line in done.out.splitlines()
        )

    def nodes_in_service(self):
        """Names of the nodes that slurmctld has in service, none when it does not answer."""
        done = self.ask("scontrol", "-o", "show", "node")
        nodes = scontrol_text.parse_nodes(done.out) if done.rc == 0 else []
        return {node["name"] for node in nodes if scontrol_text.in_service(node)}

    def nodes_come_back(self, before):
        """Wait for the nodes that were in service: they register anew. Returns those that did not; their own fault."""
        until = min(self.deadline, loaders.now() + NODES)
        while before and loaders.now() < until:
            missing = before - self.nodes_in_service()
            if not missing:
                return []
            time.sleep(POLL)
        return sorted(before - self.nodes_in_service()) if before else []

    def look_at_node(self):
        name = self.params["node_name"] or platform.node().split(".")[0]
        done = self.ask("scontrol", "-o", "show", "node", name)
        nodes = scontrol_text.parse_nodes(done.out) if done.rc == 0 else []
        return nodes[0] if nodes else None

    def registered(self, node):
        """True when slurmctld has heard from this slurmd since it was started."""
        self.last_answer = "slurmctld sees node %s as %s, slurmd started %s" % (
            node["name"],
            node["state"],
            node["slurmd_start_time"],
        )
        if (
            not node["slurmd_start_time"]
            or set(node["flags"]) & {"NOT_RESPONDING", "INVALID_REG"}
            or node["base"] == "UNKNOWN"
        ):
            return False
        started = time.mktime(time.strptime(node["slurmd_start_time"].split(".")[0], "%Y-%m-%dT%H:%M:%S"))
        return started >= int(self.asked_at) or self.params["action"] == "start"

    # --- evidence

    def evidence(self):
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.asked_at))
        show = self.show()
        unit = [
            "%s=%s" % (key, show.get(key, ""))
            for key in ("ActiveState", "SubState", "Result", "ExecMainStatus", "ConditionResult")
        ]
        found = [{"source": "systemctl show " + self.unit, "text": " ".join(unit)}]
        if self.log_path:
            grown = max(0, size_of(self.log_path) - self.log_size)
            tail = loaders.read_tail(self.log_path, min(grown, 1 << 18)) if grown else ""
            found += [{"source": self.log_path, "text": line} for line in daemon_state.excerpt(tail)]
        journal = loaders.run(
            ["journalctl", "--no-pager", "-o", "cat", "-n", "200", "-u", self.unit, "--since", since], CALL
        )
        found += [{"source": "journalctl -u " + self.unit, "text": line} for line in daemon_state.excerpt(journal.out)]
        if self.last_answer:
            found.append({"source": "last question", "text": daemon_state.excerpt(self.last_answer)[-1]})
        return found


def refuse_unsafe(daemon, show):
    """slurmd's jobs are children of its unit: only KillMode=process leaves them alone."""
    if daemon.name != "slurmd":
        return
    if show.get("NeedDaemonReload") == "yes":
        raise Trouble("the unit file of slurmd changed and systemd has not read it: run systemctl daemon-reload first")
    steps = loaders.slurmstepds()
    if show.get("KillMode") == "process":
        return
    names = ", ".join(sorted(step[1] or "pid %s" % pid for pid, step in steps.items())) or "none"
    raise Trouble(
        "KillMode of slurmd is %s, so a restart would end its jobs (steps running: %s)" % (show.get("KillMode"), names)
    )


def keep_jobs_over(daemon):
    """Set KillMode=process over the loaded unit until the next boot or :func:`take_away`."""
    loaders.make_dirs(os.path.dirname(KEEP_JOBS))
    loaders.write_atomic(KEEP_JOBS, b"[Service]\nKillMode=process\n", os.geteuid(), os.getegid())
    loaders.systemctl(["daemon-reload"])
    return daemon.show()


def take_away():
    """Remove what :func:`keep_jobs_over` set, also what a run that was killed left behind."""
    if not os.path.exists(KEEP_JOBS):
        return
    os.unlink(KEEP_JOBS)
    if not os.listdir(os.path.dirname(KEEP_JOBS)):
        os.rmdir(os.path.dirname(KEEP_JOBS))
    loaders.systemctl(["daemon-reload"])


def tell_steps(daemon, before):
    """What became of the steps that ran before the restart."""
    gone = daemon_state.steps_lost(before, loaders.slurmstepds())
    result = {"kept": sorted(step[1] for pid, step in before.items() if pid not in gone), "ended": [], "lost": []}
    for name in sorted(gone.values()):
        records = (
            scontrol_text.parse_records(daemon.ask("scontrol", "-o", "show", "job", name.split(".")[0]).out)
            if name
            else []
        )
        result["ended" if records and daemon_state.ended_by_itself(records[0]) else "lost"].append(name or "unknown")
    return result


def bring_up(module, daemon):
    """Restart or start, as asked."""
    show = daemon.settled()
    restart = module.params["action"] == "restart"
    running = show.get("ActiveState") in ("active", "activating")
    if module.check_mode or (not restart and running and show.get("SubState") == "running"):
        return {"changed": restart or not running}
    if restart and daemon.name == "slurmd" and daemon.params["keep_jobs"] and show.get("KillMode") != "process":
        show = keep_jobs_over(daemon)
    if restart and running:
        refuse_unsafe(daemon, show)
    steps = loaders.slurmstepds()
    nodes = daemon.nodes_in_service() if daemon.name == "slurmctld" and running else set()
    # also the starts that count towards its limit: those of a rollout and its way back are not a daemon's trouble
    loaders.systemctl(["reset-failed", daemon.unit])
    asked = loaders.now()
    # --no-block: with Type=notify systemctl would wait as long as the daemon does
    issued = restart or not running
    if issued:
        done = loaders.systemctl(["--no-block", "restart" if restart else "start", daemon.unit])
        if done.rc != 0:
            raise Trouble("systemctl: " + done.err.strip())
    result = {
        "changed": True,
        "main_pid": daemon.come_up(show if issued else {}),
        "seconds": round(loaders.now() - asked, 2),
    }
    if daemon.name == "slurmctld":
        result["nodes_missing"] = daemon.nodes_come_back(nodes)
    if daemon.name == "slurmd":
        result.update(node=daemon.node, steps=tell_steps(daemon, steps))
        if result["steps"]["lost"]:
            raise Trouble("steps were lost over the restart of slurmd: " + ", ".join(result["steps"]["lost"]))
    return result


def reconfigure(module, daemon):
    """Let slurmctld read its configuration again and see that it has the expected values."""
    if daemon.name != "slurmctld":
        raise Trouble("only slurmctld is reconfigured, it tells the others")
    if module.check_mode:
        return {"changed": True}
    nodes = daemon.nodes_in_service()
    asked = loaders.now()
    done = daemon.ask("scontrol", "reconfigure")
    if done.rc != 0:
        raise Trouble("scontrol reconfigure: " + (done.err or done.out).strip()[:500])
    while True:
        shown = daemon.ask("scontrol", "show", "config")
        differing = scontrol_text.differing_values(scontrol_text.parse_config(shown.out), module.params["expect"])
        if shown.rc == 0 and not differing and daemon.pings():
            seconds = round(loaders.now() - asked, 2)
            missing = daemon.nodes_come_back(nodes)
            pid = int(daemon.show().get("MainPID", 0))
            return {"changed": True, "main_pid": pid, "seconds": seconds, "nodes_missing": missing}
        if shown.rc == 0 and differing:
            daemon.last_answer = "loaded values differ: " + ", ".join(
                "%s is %s, wanted %s" % (key, have, wanted) for key, (have, wanted) in sorted(differing.items())
            )
        daemon.wait()


def main():
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True, "choices": ["slurmdbd", "slurmctld", "slurmd"]},
            "action": {"type": "str", "required": True, "choices": ["restart", "start", "reconfigure"]},
            "timeout": {"type": "int", "default": 120},
            "settle": {"type": "float", "default": 2},
            "node_name": {"type": "str"},
            "expect": {"type": "dict", "default": {}},
            "keep_jobs": {"type": "bool", "default": False},
            "scontrol": {"type": "path"},
            "sacctmgr": {"type": "path"},
            "conf_path": {"type": "path"},
            "log_path": {"type": "path"},
        },
        supports_check_mode=True,
    )
    daemon = Daemon(module.params)
    act = reconfigure if module.params["action"] == "reconfigure" else bring_up
    try:
        result = act(module, daemon)
    except Trouble as error:
        evidence = daemon.evidence()
        told = "\n".join("%s: %s" % (line["source"], line["text"]) for line in evidence)
        module.fail_json(msg="%s\n%s" % (error, told), evidence=evidence)
    finally:
        if daemon.name == "slurmd" and not module.check_mode:
            take_away()
    module.exit_json(**result)


if __name__ == "__main__":
    main()
