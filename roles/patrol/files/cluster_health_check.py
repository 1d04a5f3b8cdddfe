#!/usr/bin/env python3
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Patrol of a Slurm cluster, run on the controller: sees the nodes as slurmctld does, looks at their hosts over SSH.

Without options it looks and reports. --fix starts a dead munge, lets nodes that are well register again by one
reconfigure, and starts or restarts slurmd where that is safe. What somebody meant is left alone, with the reason said.
On a backup controller that stands by it only looks.
Exit status: 0 every node that should be in service is, 1 some are not, 2 the patrol itself could not work.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import argparse
import errno
import fcntl
import json
import os
import platform
import re
import sys
import threading
import time
import traceback

# The library of the same prefix: root reads it, so only root may have written it.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "lib", "hpcguard"))
sys.dont_write_bytecode = True

from slurmguard import finding, loaders, node_policy, rollout_lock, scontrol_text

# What is asked of a host in one call. Fixed text, nothing of the cluster's goes into it; it ends by itself even
# when the connection is cut. The marks keep out what a shell's start-up files print.
LOOK = (
    "exec timeout 10 sh -c '"
    "echo hpcguard:munge; systemctl show munge.service"
    " -p LoadState -p ActiveState -p UnitFileState -p InactiveEnterTimestampMonotonic; "
    "echo hpcguard:slurmd; systemctl show slurmd.service"
    " -p LoadState -p ActiveState -p SubState -p Result -p UnitFileState -p KillMode -p Job"
    " -p Requires -p BindsTo -p InactiveEnterTimestampMonotonic -p ExecMainStartTimestampMonotonic; "
    "echo hpcguard:facts; "
    "munge -n 2>/dev/null | unmunge >/dev/null 2>&1 && echo credential; "
    "test -e /run/hpcguard/hold && echo hold; "
    "echo hpcguard:end'"
)
FIXES = {
    node_policy.START_MUNGE: "systemctl reset-failed munge.service; timeout 10 systemctl start munge.service",
    node_policy.START_SLURMD: "systemctl reset-failed slurmd.service; systemctl --no-block start slurmd.service",
    node_policy.RESTART_SLURMD: "systemctl --no-block restart slurmd.service",
}
# Never a question, never a connection of somebody else's; the controller's own known hosts count.
SSH = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2"]
SSH += ["-o", "ControlMaster=no", "-o", "ControlPath=none"]
HOST_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9.:_-]*$")

# Seconds. A round takes ROUND and two calls of scontrol at most, whatever hangs.
ROUND, CALL, CONNECTION, LOOKING, FIXING = 60, 10, 14, 40, 20
PING = 25  # it asks every controller, and one that hangs costs it 10
SETTLING = 10  # after a boot nodes register by themselves
FAN_OUT = 64
MEMORY = 3600

# What ssh says, and what that means.
SSH_PROBLEMS = (
    ("HOST IDENTIFICATION HAS CHANGED", u"主机密钥已改变", u"its host key changed"),
    ("Host key verification failed", u"主机密钥未知", u"its host key is not known here"),
    ("Permission denied", u"SSH 拒绝登录", u"ssh is not let in"),
    ("Could not resolve", u"无法解析主机名", u"its name cannot be resolved"),
    ("timed out", u"连接超时", u"no answer in time"),
    ("not responding", u"连接超时", u"no answer in time"),
    ("Connection refused", u"SSH 连接被拒绝", u"ssh is refused"),
    ("No route to host", u"网络不可达", u"no route to it"),
)
LATE = (u"未在时限内应答", u"no answer in time")


class Failure(Exception):
    """The patrol itself cannot work."""


class Memory:
    """What earlier rounds did: {node: {reconfigured: epoch, tries: {action: [epochs]}}}, forgotten after an hour."""

    def __init__(self, path):
        self.path = path
        try:
            self.nodes = json.loads(loaders.read_text(path) or "{}")
            self._forget()
        except (AttributeError, TypeError, ValueError):
            self.nodes = {}

    def _forget(self):
        now = time.time()
        for node in list(self.nodes.values()):
            node["tries"] = {action: [when for when in tries if 0 <= now - when < MEMORY] for action, tries in node["tries"].items()}
            if not 0 <= now - node["reconfigured"] < MEMORY:
                node["reconfigured"] = 0

    def of(self, name):
        known = self.nodes.get(name, {"reconfigured": 0, "tries": {}})
        return {
            "reconfigured": bool(known["reconfigured"]),
            "tries": {action: len(tries) for action, tries in known["tries"].items()},
        }

    def tried(self, name, action):
        self.nodes.setdefault(name, {"reconfigured": 0, "tries": {}})["tries"].setdefault(action, []).append(time.time())

    def reconfigured(self, names, still_missing):
        """Remember who did not come back by this round's reconfigure."""
        for name in names:
            node = self.nodes.setdefault(name, {"reconfigured": 0, "tries": {}})
            node["reconfigured"] = time.time() if name in still_missing else 0

    def save(self):
        loaders.write_atomic(self.path, json.dumps(self.nodes, sort_keys=True).encode("ascii"), os.geteuid(), os.getegid())


class Patrol:
    """One run."""

    def __init__(self, options, acting):
        self.options = options
        self.acting = acting
        self.memory = Memory(os.path.join(options.run_dir, "patrol.json"))
        self.report = {}
        self.touched = set()
        self.deadline = loaders.now() + ROUND

    def left(self, limit):
        """Seconds that something may take: no more than the round has left."""
        return max(0.2, min(limit, self.deadline - loaders.now()))

    # --- Slurm ---

    def scontrol(self, *args, **limit):
        done = loaders.scontrol(self.options.scontrol, args, limit.get("limit", CALL))
        if done.rc != 0:
            raise Failure(u"scontrol %s: %s" % (" ".join(args), last_line(done.err) or u"status %s" % done.rc))
        return done.out

    def stands_by_for(self):
        """The controller at work, when that is not this host's: its own patrol acts, under the lock that a rollout leaves there."""
        pinged = scontrol_text.parse_ping(self.scontrol("ping", limit=self.left(PING)))
        return scontrol_text.stands_by_for(pinged, platform.node())

    def nodes(self):
        nodes = scontrol_text.parse_nodes(self.scontrol("-o", "show", "node"))
        if self.options.node:
            nodes = [node for node in nodes if node["name"] in self.options.node]
            unknown = sorted(set(self.options.node) - {node["name"] for node in nodes})
            if unknown:
                raise Failure(u"no such node: " + u", ".join(unknown))
        return nodes

    def wait(self, condition, seconds):
        """Ask until it is so; a controller that does not answer meanwhile (it may be re-reading) is asked again."""
        deadline = loaders.now() + seconds
        while True:
            try:
                if condition():
                    return True
                problem = u""
            except Failure as failure:
                problem = failure.args[0]
            if loaders.now() >= deadline:
                if problem:
                    raise Failure(problem)
                return False
            time.sleep(0.5)

    # --- hosts ---

    def ssh(self, node, command, seconds):
        if not HOST_NAME.match(node["address"]):
            return loaders.Result(255, err="%s is no host name" % node["address"])
        return loaders.run([self.options.ssh] + SSH + ["--", node["address"], command], min(seconds, CONNECTION))

    def on_hosts(self, nodes, seconds, command_of):
        """Run a command on many hosts at once, in bounded time: {name: result, None where there was no time}."""
        deadline = loaders.now() + self.left(seconds)
        waiting, results = list(reversed(nodes)), {}

        def work():
            while waiting and loaders.now() < deadline:
                try:
                    node = waiting.pop()
                except IndexError:
                    return
                results[node["name"]] = self.ssh(node, command_of(node), max(0.2, deadline - loaders.now()))

        threads = [threading.Thread(target=work) for _number in range(min(FAN_OUT, len(nodes)))]
        for thread in threads:
            thread.daemon = True
            thread.start()
        for thread in threads:
            thread.join(max(0.1, deadline + 3 - loaders.now()))
        return {node["name"]: results.get(node["name"]) for node in nodes}

    def look(self, nodes):
        """What is seen on the hosts, for :func:`node_policy.decide`."""
        results = self.on_hosts(nodes, LOOKING, lambda node: LOOK)
        return {name: read_look(done) for name, done in results.items()}

    # --- deciding and acting ---

    def decide(self, nodes, hosts):
        """[(node, action)] of what is to be done; everything is noted for the report."""
        wanted = []
        for node in nodes:
            action, chinese, english = node_policy.decide(node, hosts.get(node["name"]), self.memory.of(node["name"]))
            entry = self.report.setdefault(node["name"], {"done": [], "state": finding.clean_text(node["state"])})
            entry.update(action=action, zh=finding.clean_text(chinese), en=finding.clean_text(english))
            if action != node_policy.NOTHING:
                wanted.append((node, action))
            if action != node_policy.NOTHING or node_policy.missing(node):
                say(u"%s (%s): %s / %s -> %s" % (node["name"], node["state"], chinese, english, action))
        return wanted

    def fix(self, wanted, actions, most):
        """Act on hosts, as many at once as this round may; returns the nodes acted on."""
        chosen = []
        for node, action in wanted:
            if action not in actions:
                continue
            if node["name"] not in self.touched and len(self.touched) >= most:
                say(u"%s: 本轮已达上限 / left for the next round, at most %d nodes in one" % (node["name"], most))
                continue
            self.touched.add(node["name"])
            self.memory.tried(node["name"], action)
            chosen.append((node, action))
        if not chosen:
            return []
        # remembered before it is done: whatever happens now, it counts as a try
        self.memory.save()
        action_of = {node["name"]: action for node, action in chosen}
        results = self.on_hosts([node for node, _action in chosen], FIXING, lambda node: FIXES[action_of[node["name"]]])
        for name, done in results.items():
            said = u"no time left" if done is None else (u"ok" if done.rc == 0 else last_line(done.err) or u"status %s" % done.rc)
            self.report[name]["done"].append({"action": action_of[name], "result": said})
            say(u"%s: %s: %s" % (name, action_of[name], said))
        return [node for node, _action in chosen]

    def round(self):
        """Look once and act where that is allowed: munge, then slurmd, then one reconfigure."""
        # asked before and after the look, so that a primary that only restarts is not taken for a dead one
        elsewhere = self.stands_by_for() if self.acting else ""
        nodes = self.nodes()
        open_to = [node for node in nodes if not node_policy.meant(node)]
        most = node_policy.most_nodes(len(open_to), self.options.most)
        hosts = self.look(open_to)
        wanted = self.decide(nodes, hosts)
        if not self.acting or not wanted:
            return
        elsewhere = elsewhere or self.stands_by_for()
        if elsewhere:
            say(u"备用控制器, 只查看 / this controller stands by, its patrol only looks; at work: %s" % elsewhere)
            return
        started = {node["name"] for node in self.fix(wanted, (node_policy.START_MUNGE,), most)}
        if started:
            nodes = self.nodes()
            again = [node for node in nodes if node["name"] in started]
            hosts.update(self.look(again))
            wanted = [one for one in wanted if one[0]["name"] not in started] + self.decide(again, hosts)
        waited = self.fix(wanted, (node_policy.START_SLURMD, node_policy.RESTART_SLURMD), most)
        unheard = {node["name"] for node, action in wanted if action == node_policy.RECONFIGURE}
        if unheard:
            self.scontrol("reconfigure")
            say(u"scontrol reconfigure: %s" % u", ".join(sorted(unheard)))
        names = unheard | started | {node["name"] for node in waited}
        if names:
            self.wait(lambda: not self.missing(names), self.left(self.options.wait))
        if unheard:
            self.memory.reconfigured(unheard, self.missing(unheard))
            self.memory.save()

    def missing(self, names):
        return {node["name"] for node in self.nodes() if node["name"] in names and node_policy.missing(node)}

    def bootstrap(self):
        """After a cold start: the controller first, then what registers by itself."""
        self.wait(self.nodes, self.options.boot_limit)
        self.wait(lambda: not unready(self.nodes()), SETTLING)
        self.deadline = loaders.now() + ROUND

    def conclude(self):
        """Say how many nodes are in service; what somebody meant to be out of it does not count."""
        nodes = [node for node in self.nodes() if not node_policy.meant(node)]
        lacking = unready(nodes)
        for node in nodes:
            self.report.setdefault(node["name"], {"done": []}).update(state=finding.clean_text(node["state"]), ready=node not in lacking)
        ready = len(nodes) - len(lacking)
        say(u"%d/%d 节点就绪" % (ready, len(nodes)))
        return {"ready": ready, "total": len(nodes), "nodes": self.report}


def unready(nodes):
    return [node for node in nodes if not scontrol_text.in_service(node) and not node_policy.meant(node)]


def last_line(text):
    return (finding.clean_lines(text, 1) or [u""])[-1][:200]


def read_look(done):
    """The answer to LOOK."""
    host = {"problem": None, "hold": False, "credential": False, "munge": {}, "slurmd": {}}
    part, ended = None, False
    for line in done.out.splitlines() if done else ():
        if line.startswith("hpcguard:"):
            part = line[len("hpcguard:") :].strip()
            ended = part == "end"
        elif part in ("munge", "slurmd") and "=" in line:
            key, value = line.split("=", 1)
            host[part][key] = value
        elif part == "facts" and line.strip() in ("hold", "credential"):
            host[line.strip()] = True
    if not ended:
        host["problem"] = ssh_problem(done)
    return host


def ssh_problem(done):
    """Why a host could not be looked at, in both languages."""
    if done is None or done.timed_out or done.rc == 124:
        return LATE
    for words, chinese, english in SSH_PROBLEMS:
        if words in done.err:
            return chinese, english
    said = last_line(done.err) or u"status %s" % done.rc
    return said, said


def say(text):
    """A line for the journal; never a traceback over the terminal's encoding."""
    stream = getattr(sys.stderr, "buffer", sys.stderr)
    stream.write(finding.clean_text(text, 500).encode("utf-8") + b"\n")
    stream.flush()


def only_one(run_dir):
    """Hold the lock that patrol and bootstrap share; None when another run has it."""
    if not os.path.isdir(run_dir):
        loaders.make_dirs(run_dir)
    handle = open(os.path.join(run_dir, "patrol.lock"), "a")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (OSError, IOError) as error:
        handle.close()
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
    parser.add_argument("--dry-run", action="store_true", help="with --fix or --bootstrap: say what would be done")
    parser.add_argument("--most", type=int, default=20, help="nodes touched in one round at most")
    parser.add_argument("--wait", type=int, default=20, help="seconds until the nodes acted on have to be back")
    parser.add_argument("--boot-limit", type=int, default=150, help="seconds that --bootstrap waits for slurmctld")
    parser.add_argument("--scontrol", default="scontrol", help="path of scontrol")
    parser.add_argument("--ssh", default="ssh", help="path of ssh")
    parser.add_argument("--run-dir", default="/run/hpcguard", help="directory of the lock and of what was done before")
    parser.add_argument("--rollout-lock", default=rollout_lock.PATH, help="lock of a rollout, which the patrol stays away from")
    options = parser.parse_args(argv)
    options.fix = options.fix or options.bootstrap
    return options


def work(options):
    """The report of one run."""
    acting = options.fix and not options.dry_run
    lock = only_one(options.run_dir) if acting else None
    if acting and lock is None:
        say(u"另一个巡检正在进行, 本次只查看 / another patrol is at work, this one only looks")
    rollout = rollout_lock.loads(loaders.read_text(options.rollout_lock)) if lock is not None else None
    if rollout_lock.stands(rollout, time.time()):
        who = rollout_lock.describe(rollout, int(time.time()))
        say(u"变更正在进行, 本次只查看 / a rollout is at work, this patrol only looks: %s" % who)
        lock.close()
        lock = None
    patrol = Patrol(options, acting=lock is not None)
    try:
        if options.bootstrap:
            patrol.bootstrap()
        patrol.round()
        return patrol.conclude()
    finally:
        if lock is not None:
            lock.close()


def main(argv=None):
    options = parse(argv)
    try:
        report = work(options)
    except Failure as failure:
        report = {"fault": finding.clean_text(failure.args[0])}
        say(u"不动任何节点 / no node is touched any further: %s" % report["fault"])
    except Exception:  # whatever else goes wrong is the patrol's fault, not a node's
        report = {"fault": finding.clean_text(traceback.format_exc().splitlines()[-1])}
        say(report["fault"])
    if options.json:
        print(json.dumps(report, indent=1, sort_keys=True))
    if "fault" in report:
        return 2
    return 0 if report["ready"] == report["total"] else 1


if __name__ == "__main__":
    sys.exit(main())
