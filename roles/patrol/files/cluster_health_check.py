#!/usr/bin/env python3
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Patrol of a Slurm cluster, run on the controller: sees the nodes as slurmctld does, looks at their hosts over SSH.

Without options it looks and reports. --fix starts a dead munge, lets nodes that are well register again by one
reconfigure, and starts or restarts slurmd where that is safe. What somebody meant is left alone, with the reason said.
Exit status: 0 every node that should be in service is, 1 some are not, 2 the patrol itself could not work.
"""

from __future__ import absolute_import, division, print_function

import argparse
import errno
import fcntl
import json
import os
import sys
import threading
import time

# The library of the same prefix: root reads it, so only root may have written it.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "lib", "hpcguard"))
sys.dont_write_bytecode = True

from slurmguard import finding, loaders, node_policy, scontrol_text

# What is asked of a node in one SSH call. Fixed text: nothing of the cluster's goes into it.
LOOK = (
    "systemctl show munge -p LoadState -p ActiveState; echo ==; "
    "systemctl show slurmd -p LoadState -p ActiveState -p SubState -p Result -p UnitFileState -p KillMode; echo ==; "
    "munge -n 2>/dev/null | unmunge >/dev/null 2>&1 && echo credential; "
    "test -e /run/hpcguard/hold && echo hold; true"
)
FIXES = {
    node_policy.START_MUNGE: "systemctl start munge",
    node_policy.START_SLURMD: "systemctl reset-failed slurmd; systemctl --no-block start slurmd",
    node_policy.RESTART_SLURMD: "systemctl --no-block restart slurmd",
}
SSH = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2"]
SSH_LIMIT, CALL_LIMIT, ROUND_LIMIT, FAN_OUT = 15, 15, 60, 32


class Failure(Exception):
    """The patrol itself cannot work."""


class Patrol:
    """One run."""

    def __init__(self, options):
        self.options = options
        self.report = {}

    def scontrol(self, *args):
        return loaders.scontrol(self.options.scontrol, args, CALL_LIMIT)

    def nodes(self):
        done = self.scontrol("-o", "show", "node")
        if done.rc != 0:
            raise Failure("slurmctld does not answer, no node is touched: " + finding.clean_text(done.err, 200).strip())
        return [node for node in scontrol_text.parse_nodes(done.out) if not self.options.node or node["name"] in self.options.node]

    def ssh(self, node, command):
        return loaders.run(SSH + ["--", node["address"], command], SSH_LIMIT)

    def look(self, node):
        done = self.ssh(node, LOOK)
        parts = done.out.split("==\n")
        if done.rc != 0 or len(parts) != 3:
            return {"problem": ssh_problem(done), "hold": False, "munge": {}, "slurmd": {}, "credential": False}
        show = [dict(line.split("=", 1) for line in part.splitlines() if "=" in line) for part in parts[:2]]
        rest = parts[2].split()
        return {"problem": "", "munge": show[0], "slurmd": show[1], "credential": "credential" in rest, "hold": "hold" in rest}

    def look_at(self, nodes):
        """Look at many hosts at once, in bounded time; what does not answer is a problem of its host."""
        seen, waiting = {}, list(nodes)
        deadline = loaders.now() + ROUND_LIMIT

        def work():
            while loaders.now() < deadline:
                try:
                    node = waiting.pop()
                except IndexError:
                    return
                seen[node["name"]] = self.look(node)

        threads = [threading.Thread(target=work) for _number in range(min(FAN_OUT, len(waiting)))]
        for thread in threads:
            thread.daemon = True
            thread.start()
        for thread in threads:
            thread.join(max(0.1, deadline + SSH_LIMIT - loaders.now()))
        late = {"problem": "no answer in time", "hold": False, "munge": {}, "slurmd": {}, "credential": False}
        return {node["name"]: seen.get(node["name"], late) for node in nodes}

    def fix(self, node, action):
        done = self.ssh(node, FIXES[action])
        self.note(node, action, done="ok" if done.rc == 0 else finding.clean_text(done.err, 200).strip())

    def note(self, node, action, chinese="", english="", done=""):
        entry = self.report.setdefault(node["name"], {"state": node["state"], "actions": [], "why": ""})
        if english:
            entry["why"] = english
            entry["zh"] = chinese
        if done:
            entry["actions"].append({"action": action, "result": done})
            say("%s: %s: %s" % (node["name"], action, done))

    def round(self):
        """Look once, and act where it is allowed."""
        nodes = self.nodes()
        acting = self.options.fix and not self.options.dry_run
        # nodes that are well are looked at too: a slurmd without munge counts as responding for a while
        looked = self.look_at([node for node in nodes if not node_policy.meant(node)])
        nobody = {"problem": "", "hold": False, "munge": {}, "slurmd": {}, "credential": True}
        decisions = []
        for node in nodes:
            action, chinese, english = node_policy.decide(node, looked.get(node["name"], nobody))
            self.note(node, action, chinese, english)
            if action != node_policy.NOTHING:
                decisions.append((node, action))
                say("%s (%s): %s / %s -> %s" % (node["name"], node["state"], chinese, english, action))
        if not acting or not decisions:
            return
        chosen = decisions[: self.options.most]
        for node, _action in decisions[len(chosen):]:
            self.note(node, "", "本轮已达上限", "left for the next round, --most is reached")
        for node, action in chosen:
            if action in FIXES:
                self.fix(node, action)
        # one reconfigure a round: nodes that are well, or have just been repaired, register anew
        self.reconfigure([node for node, _action in chosen])
        again = {node["name"]: node for node in self.nodes()}
        for node, action in chosen:
            if action == node_policy.RECONFIGURE:
                late, chinese, english = node_policy.after_reconfigure(again[node["name"]], looked[node["name"]])
                self.note(node, late, chinese, english)
                if late in FIXES:
                    self.fix(node, late)

    def reconfigure(self, nodes):
        done = self.scontrol("reconfigure")
        say("reconfigure: " + ("ok" if done.rc == 0 else finding.clean_text(done.err, 200).strip()))
        names = [node["name"] for node in nodes]
        self.wait(lambda: not [node for node in self.nodes() if node["name"] in names and node_policy.missing(node)], 20)

    def wait(self, condition, seconds):
        deadline = loaders.now() + seconds
        while loaders.now() < deadline:
            if condition():
                return True
            time.sleep(0.5)
        return False

    def bootstrap(self):
        """After a cold start: the controller first, then the nodes."""
        if not self.wait(lambda: self.scontrol("ping").rc == 0, self.options.boot_limit):
            raise Failure("slurmctld did not answer within %s s" % self.options.boot_limit)
        self.wait(lambda: not self.unready(), 30)

    def unready(self):
        return [node for node in self.nodes() if not scontrol_text.in_service(node) and not node_policy.meant(node)]

    def conclude(self):
        nodes = [node for node in self.nodes() if not node_policy.meant(node)]
        ready = [node for node in nodes if scontrol_text.in_service(node)]
        say("%d/%d 节点就绪" % (len(ready), len(nodes)))
        if self.options.json:
            print(json.dumps({"ready": len(ready), "total": len(nodes), "nodes": self.report}, indent=1, sort_keys=True))
        return 0 if len(ready) == len(nodes) else 1


def ssh_problem(done):
    """Why a host could not be looked at, in words."""
    if "HOST IDENTIFICATION HAS CHANGED" in done.err or "Host key verification failed" in done.err:
        return "host key changed or not known"
    if done.timed_out:
        return "no answer in time"
    return finding.clean_text(done.err, 120).strip() or "ssh gave status %s" % done.rc


def say(text):
    """A line for the journal; never a traceback over the terminal's encoding."""
    line = finding.clean_text(text, 500)
    stream = getattr(sys.stderr, "buffer", sys.stderr)
    stream.write(line.encode("utf-8") + b"\n")
    stream.flush()


def only_one(run_dir):
    """Hold the lock that patrol and bootstrap share; None when another run has it."""
    if not os.path.isdir(run_dir):
        os.makedirs(run_dir, 0o755)
    handle = open(os.path.join(run_dir, "patrol.lock"), "w")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (OSError, IOError) as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return None
    return handle


def parse(argv):
    parser = argparse.ArgumentParser(description="Patrol of a Slurm cluster")
    parser.add_argument("--fix", action="store_true", help="act, not only look")
    parser.add_argument("--bootstrap", action="store_true", help="after a cold start: wait for controller and nodes, then act")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--node", action="append", default=[], help="look at this node only (may repeat)")
    parser.add_argument("--dry-run", action="store_true", help="with --fix: say what would be done")
    parser.add_argument("--most", type=int, default=20, help="nodes touched in one round at most")
    parser.add_argument("--boot-limit", type=int, default=180, help="seconds that --bootstrap waits for slurmctld")
    parser.add_argument("--scontrol", default="scontrol", help="path of scontrol")
    parser.add_argument("--run-dir", default="/run/hpcguard", help="directory of the lock")
    return parser.parse_args(argv)


def main(argv=None):
    options = parse(argv)
    lock = only_one(options.run_dir)
    if lock is None:
        say("another patrol is under way")
        return 0
    patrol = Patrol(options)
    try:
        if options.bootstrap:
            options.fix = True
            patrol.bootstrap()
        patrol.round()
        return patrol.conclude()
    except Failure as error:
        say(str(error))
        return 2


if __name__ == "__main__":
    sys.exit(main())
