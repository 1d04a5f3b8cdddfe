# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of the patrol, on a controller: sees the nodes as slurmctld does, looks at their hosts over SSH, acts by the table.

The program ``cluster_health_check.py`` runs it for the timer, the module ``recover`` for a person. What is decided is in
:mod:`node_policy`; here is the order of it, and what it touches.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import fcntl
import os
import platform
import random
import re
import time

from . import (
    fan_out,
    finding,
    host_look,
    ledger,
    loaders,
    node_policy,
    node_signs,
    patrol_memory,
    patrol_metrics,
    rollout_lock,
    scontrol_text,
    systemd_unit,
)

# Never a question, never a connection of somebody else's; the controller's own known hosts count.
SSH = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2"]
SSH += ["-o", "ControlMaster=no", "-o", "ControlPath=none"]
HOST_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9.:_-]*$")

# Seconds. A round takes ROUND and some calls of scontrol at most, whatever hangs.
ROUND, CALL, CONNECTION, LOOKING, FIXING = 60, 10, 13, 15, 15
PING = 25  # it asks every controller, and one that hangs costs it 10
SETTLING = 10  # after a boot nodes register by themselves
FAN_OUT = 128
# A node that booted no longer than this before the controller went down with it.
OUTAGE = 3600
# In the order in which they need one another; slurmdbd may have a host of its own.
ACCOUNTING_DAEMONS = ("munge.service", "slurmdbd.service")
CONTROLLER_DAEMONS = ACCOUNTING_DAEMONS + ("slurmctld.service",)
# A daemon that was started and has run for so long stays.
STAYS = 3


# What a run is told; see the options of cluster_health_check.py. By a person: it was asked for, so neither what earlier rounds
# tried nor how many nodes are gone holds it back, and nodes that are DOWN for an unexpected reboot or for their silence, whenever that
# was, are resumed.
DEFAULTS = {
    "fix": False,
    "bootstrap": False,
    "dry_run": False,
    "by_person": False,
    "node": [],
    "most": 20,
    "most_percent": 33,
    "back_off": patrol_memory.BACK_OFF,
    "stuck_after": node_signs.STUCK_AFTER,
    "wait": 20,
    "boot_limit": 150,
    "scontrol": "scontrol",
    "ssh": "ssh",
    "run_dir": "/run/hpcguard",
    "ledger": ledger.PATH,
    "metrics": None,
    "rollout_lock": rollout_lock.PATH,
}


class Options:
    """:data:`DEFAULTS` with what is given; ``say`` takes a line of what is seen and done."""

    def __init__(self, say, **given):
        self.say = say
        self.__dict__.update(DEFAULTS)
        self.__dict__.update(given)

    def tell(self, text):
        """Say it, harmless."""
        self.say(finding.clean_text(text, 500))


class Failure(Exception):
    """The patrol itself cannot work; ``started`` is what was started until then, or would be."""

    started = ()


class Patrol:
    """One run."""

    def __init__(self, options, acting, planning=False):
        self.options = options
        self.acting = acting
        # a dry run that tells what one that may act would do
        self.planning = planning
        self.memory_path = os.path.join(options.run_dir, "patrol.json")
        past = None if options.by_person else loaders.read_text(self.memory_path)
        self.memory = patrol_memory.Memory(past, options.back_off)
        self.ledger = ledger.loads(loaders.read_text(options.ledger))
        self.since = 0 if options.by_person else loaders.boot_epoch() - OUTAGE if options.bootstrap else None
        self.report = {}
        self.suspected = None
        self.touched = set()
        self.most = 0
        self.started = set()
        self.progress = None
        self.deadline = loaders.now() + ROUND

    def left(self, limit):
        """Seconds that something may take: no more than the round has left."""
        return max(0.2, min(limit, self.deadline - loaders.now()))

    # --- what is remembered ---

    def note(self, name, event, what, why):
        """An entry of the ledger, of layer 2."""
        self.ledger = ledger.note(self.ledger, ledger.entry(time.time(), name, event, 2, what, why))

    def save(self):
        """Only while this run holds the lock: nobody else writes then."""
        write_own(self.memory_path, self.memory.dumps(), 0o644)
        folder = os.path.dirname(self.options.ledger)
        if not os.path.isdir(folder):
            loaders.make_dirs(os.path.dirname(folder))
            os.mkdir(folder, 0o700)
        write_own(self.options.ledger, ledger.dumps(self.ledger), 0o600)

    # --- Slurm ---

    def scontrol(self, *args, **limit):
        done = loaders.scontrol(self.options.scontrol, args, self.left(limit.get("limit", CALL)))
        if done.rc != 0:
            raise Failure(u"scontrol %s: %s" % (" ".join(args), host_look.last_line(done.err) or u"status %s" % done.rc))
        return done.out

    def stands_by_for(self):
        """The controller at work, when that is not this host's: its own patrol acts, under the lock that a rollout leaves there."""
        pinged = scontrol_text.parse_ping(self.scontrol("ping", limit=PING))
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

    def on_hosts(self, nodes, seconds, command_of, stdin=""):
        """Run a command on many hosts at once, in bounded time: {name: result, None where there was no time}."""
        refused = {node["name"]: "%s is no host name" % node["address"] for node in nodes if not HOST_NAME.match(node["address"])}
        commands = [
            (node["name"], [self.options.ssh] + SSH + ["--", node["address"], command_of(node)])
            for node in nodes
            if node["name"] not in refused
        ]
        results = fan_out.run_all(commands, FAN_OUT, CONNECTION, self.left(seconds), stdin)
        results.update({name: loaders.Result(255, err=why) for name, why in refused.items()})
        return results

    def look(self, nodes):
        """What is seen on the hosts, for :func:`node_policy.decide`."""
        # those that answer first; of the others, none is always the last
        nodes = list(nodes)
        random.shuffle(nodes)
        nodes.sort(key=node_policy.missing)
        made = loaders.run(["munge", "-n"], 5)
        credential = made.out if made.rc == 0 else ""
        asked = time.time()
        results = self.on_hosts(nodes, LOOKING, lambda node: host_look.LOOK, credential)
        answered = time.time()
        return {name: host_look.parse(done, asked, answered, bool(credential)) for name, done in results.items()}

    # --- deciding and acting ---

    def judge(self, node, host):
        past = self.memory.of(node["name"], time.time())
        return node_policy.decide(node, host, past, self.since, self.options.stuck_after)

    def decide(self, nodes, hosts):
        """[(node, action, why)] of what is to be done; everything is noted for the report."""
        wanted = []
        for node in nodes:
            name = node["name"]
            action, chinese, english = self.judge(node, hosts.get(name) or host_look.unseen())
            entry = self.report.setdefault(name, {"done": [], "state": finding.clean_text(node["state"])})
            entry.update(action=action, zh=finding.clean_text(chinese), en=finding.clean_text(english))
            if action not in node_policy.PASSIVE:
                wanted.append((node, action, english))
            if action == node_policy.PERSON and self.memory.of(name, time.time())["tries"] and self.acting and self.memory.gives_up(name):
                self.note(name, "gave_up", action, english)
            if action != node_policy.NOTHING:
                self.options.tell(u"%s (%s): %s / %s -> %s" % (name, node["state"], chinese, english, action))
        return wanted

    def may_touch(self, name):
        """Whether this round may touch one more node; then it counts."""
        if name not in self.touched and len(self.touched) >= self.most:
            self.options.tell(u"%s: 本轮已达上限 / left for the next round, at most %d nodes in one" % (name, self.most))
            return False
        self.touched.add(name)
        return True

    def fix(self, wanted, actions):
        """Act on hosts, as many at once as this round may; returns the nodes acted on."""
        wanted = [one for one in wanted if one[1] in actions]
        if not wanted:
            return set()
        # somebody may have drained one since the look
        closed = {node["name"] for node in self.nodes() if node_policy.meant(node)}
        chosen = {}
        for node, action, why in wanted:
            if node["name"] not in closed and self.may_touch(node["name"]):
                self.memory.tried(node["name"], action, why, time.time())
                chosen[node["name"]] = (node, action)
        if not chosen:
            return set()
        # remembered before it is done: whatever happens now, it counts as a try
        self.save()
        nodes = [node for node, _action in chosen.values()]
        results = self.on_hosts(nodes, FIXING, lambda node: host_look.COMMANDS[chosen[node["name"]][1]])
        for name, done in results.items():
            self.say_done(name, chosen[name][1], outcome(done))
        return set(chosen)

    def say_done(self, name, action, said):
        self.report[name]["done"].append({"action": action, "result": said})
        self.options.tell(u"%s: %s: %s" % (name, action, said))

    def open_up(self, wanted, hosts):
        """Resume and undrain, each after another look at what Slurm says of the node just then."""
        wanted = {node["name"]: (action, why) for node, action, why in wanted if action in node_policy.ON_NODE}
        if not wanted:
            return
        for node in self.nodes():
            name = node["name"]
            action, why = wanted.get(name, (None, None))
            if action is None or self.judge(node, hosts[name])[0] != action or not self.may_touch(name):
                continue
            self.memory.tried(name, action, why, time.time())
            try:
                self.scontrol("update", "nodename=" + name, "state=" + action)
                said = u"ok"
                self.note(name, "resumed" if action == node_policy.RESUME else "undrained", action, why)
            except Failure as failure:
                said = failure.args[0]
            self.say_done(name, action, said)
        self.save()

    def round(self):
        """Look once and act where that is allowed: munge, then slurmd, then one reconfigure."""
        # asked before and after the look, so that a primary that only restarts is not taken for a dead one
        elsewhere = self.stands_by_for() if self.acting or self.planning else ""
        nodes = self.nodes()
        self.compare(nodes)
        open_to = [node for node in nodes if not node_policy.meant(node)]
        self.most = node_policy.most_nodes(len(open_to), self.options.most, self.options.most_percent)
        if self.options.by_person:
            self.most = len(open_to)
        hosts = self.look(open_to)
        wanted = self.decide(nodes, hosts)
        self.suspected = node_policy.suspect(open_to, hosts, {name: entry["action"] for name, entry in self.report.items()})
        if self.suspected and not self.options.by_person:
            self.options.tell(u"%s / %s" % self.suspected)
            # a reconfigure touches no daemon, and is what helps nodes that are well and silent
            wanted = [one for one in wanted if one[1] == node_policy.RECONFIGURE]
        if not (self.acting or self.planning) or not wanted:
            return
        elsewhere = elsewhere or self.stands_by_for()
        if elsewhere:
            self.options.tell(u"备用控制器, 只查看 / this controller stands by, its patrol only looks; at work: %s" % elsewhere)
            self.acting = self.planning = False
        if not self.acting:
            return
        started = self.fix(wanted, node_policy.ON_MUNGE)
        if started:
            nodes = self.nodes()
            again = [node for node in nodes if node["name"] in started]
            hosts.update(self.look(again))
            wanted = [one for one in wanted if one[0]["name"] not in started] + self.decide(again, hosts)
        waited = self.fix(wanted, node_policy.ON_SLURMD)
        self.open_up(wanted, hosts)
        unheard = {node["name"]: why for node, action, why in wanted if action == node_policy.RECONFIGURE}
        if unheard:
            self.memory.reconfigured(unheard, u"slurmctld did not hear from it", time.time())
            self.save()
            self.scontrol("reconfigure")
            for name in sorted(unheard):
                self.say_done(name, node_policy.RECONFIGURE, u"ok")
        names = set(unheard) | started | waited
        if names:
            self.wait(lambda: not self.missing(names), self.left(self.options.wait))

    def missing(self, names):
        return {node["name"] for node in self.nodes() if node["name"] in names and node_policy.missing(node)}

    def bootstrap(self):
        """After a cold start: the controller's own daemons, then rounds until all nodes are there or the time is over."""
        until = loaders.now() + self.options.boot_limit
        self.deadline = until + ROUND
        self.wait(self.controller_answers, self.options.boot_limit)
        self.wait(lambda: not self.lacking(), min(SETTLING, max(0, until - loaders.now())))
        while True:
            self.deadline = loaders.now() + ROUND
            self.touched = set()
            self.round()
            if not self.lacking() or not self.acting or loaders.now() >= until:
                return
            self.wait(lambda: not self.lacking(), min(SETTLING, max(0, until - loaders.now())))

    def controller_answers(self):
        """True when slurmctld does; until then the daemons that should run here are started."""
        if self.acting or self.planning:
            start_dead(self.options, CONTROLLER_DAEMONS, self.started, self.acting)
        return bool(self.nodes())

    def lacking(self):
        """Nodes that should be there and are not; says how many are ready. One that its own check drained is there."""
        nodes = [node for node in self.nodes() if not node_policy.meant(node)]
        self.say_ready(nodes)
        return [node for node in nodes if not scontrol_text.in_service(node)]

    def say_ready(self, nodes):
        progress = u"%d/%d 节点就绪" % (len([node for node in nodes if is_ready(node)]), len(nodes))
        if progress != self.progress:
            self.options.tell(progress)
            self.progress = progress

    def conclude(self):
        """Say how many nodes are in service; what somebody meant to be out of it does not count."""
        self.deadline = loaders.now() + CALL
        everyone = self.nodes()
        nodes = [node for node in everyone if not node_policy.meant(node)]
        for node in nodes:
            self.report.setdefault(node["name"], {"done": []}).update(state=finding.clean_text(node["state"]), ready=is_ready(node))
        ready = len([node for node in nodes if is_ready(node)])
        self.progress = None
        self.say_ready(nodes)
        if self.acting:
            self.remember(everyone)
        return {
            "ready": ready,
            "total": len(nodes),
            "nodes": self.report,
            "suspected": list(self.suspected or ()),
            "acting": self.acting,
            "planning": self.planning,
            "started": sorted(self.started),
        }

    def remember(self, nodes):
        now = time.time()
        for node in nodes:
            well = scontrol_text.in_service(node) and not node_policy.meant(node)
            fixed = self.memory.settle(node["name"], well, now)
            if fixed and fixed[0] not in node_policy.ON_NODE:
                self.note(node["name"], "fixed", *fixed)
        self.compare(nodes)
        self.save()

    def compare(self, nodes):
        """What layer 1 did since the last look."""
        drains = {node["name"]: node["reason"] for node in nodes if node_signs.state_of(node) == "our drain"}
        self.ledger = ledger.compare(self.ledger, drains, time.time(), {node["name"] for node in nodes})


def outcome(done):
    """What became of a command, in words."""
    if done is None:
        return u"no time left"
    return u"ok" if done.rc == 0 else host_look.last_line(done.err) or u"status %s" % done.rc


def unit_now(unit):
    """What systemd says of a unit of this host."""
    return systemd_unit.parse_show(loaders.systemctl(["show", unit], CALL).out)


def start_dead(options, units, started, acting):
    """Start what should run on this host and is dead, each once: it is added to ``started``. Not acting, say it would be.

    One that runs or starts is left alone: slurmdbd may be converting its database.
    """
    for unit in units:
        show = unit_now(unit)
        if unit in started or not node_policy.may_start(show):
            continue
        started.add(unit)
        if not acting:
            options.tell(u"%s: 将启动 / would be started (%s)" % (unit, node_signs.unit_words(show)))
            continue
        if node_signs.gave_up(show):
            loaders.systemctl(["reset-failed", unit], CALL)
        done = loaders.systemctl(["--no-block", "start", unit], CALL)
        options.tell(u"%s: 启动 / started: %s" % (unit, u"ok" if done.rc == 0 else host_look.last_line(done.err)))


def accounting(options):
    """A run on a host that has slurmdbd and no slurmctld: {started, remaining}. What was started has to stay."""
    started, since = set(), {}
    start_dead(options, ACCOUNTING_DAEMONS, started, acting=not options.dry_run)
    for unit in ACCOUNTING_DAEMONS:
        if unit not in started:
            show = unit_now(unit)
            dead = show.get("ActiveState") in ("inactive", "failed") and show.get("LoadState") == "loaded"
            kept = u", %s: 不动 / left alone" % show.get("UnitFileState") if dead else u""
            options.tell(u"%s: %s%s" % (unit, node_signs.unit_words(show), kept))
    waiting = set() if options.dry_run else set(started)
    until = loaders.now() + options.boot_limit
    failed = {}
    while waiting:
        for unit in sorted(waiting):
            show = unit_now(unit)
            failed[unit] = u"%s: %s" % (unit, node_signs.unit_words(show))
            process = show.get("MainPID") if show.get("ActiveState") == "active" else None
            if process is None or since.get(unit, (None, 0))[0] != process:
                since[unit] = (process, loaders.now())
            elif loaders.now() - since[unit][1] >= STAYS:
                options.tell(failed.pop(unit))
                waiting.discard(unit)
        if not waiting or loaders.now() >= until:
            break
        time.sleep(0.5)
    return {"started": sorted(started), "remaining": [finding.clean_text(failed[unit]) for unit in sorted(failed)]}


def is_ready(node):
    return scontrol_text.in_service(node) and "DRAIN" not in node["flags"]


def write_own(path, text, mode):
    loaders.write_atomic(path, text.encode("utf-8"), os.geteuid(), os.getegid(), mode)


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


def work(options):
    """The report of one run."""
    acting = options.fix and not options.dry_run
    lock = only_one(options.run_dir) if acting else None
    if acting and lock is None:
        options.tell(u"另一个巡检正在进行, 本次只查看 / another patrol is at work, this one only looks")
    planning = options.fix and options.dry_run
    rollout = rollout_lock.loads(loaders.read_text(options.rollout_lock)) if lock is not None or planning else None
    if rollout_lock.stands(rollout, time.time()):
        who = rollout_lock.describe(rollout, int(time.time()))
        options.tell(u"变更正在进行, 本次只查看 / a rollout is at work, this patrol only looks: %s" % who)
        planning = False
        if lock is not None:
            lock.close()
            lock = None
    patrol = Patrol(options, lock is not None, planning)
    try:
        if options.bootstrap:
            patrol.bootstrap()
        else:
            patrol.round()
        return patrol.conclude()
    except Failure as failure:
        failure.started = sorted(patrol.started)
        raise
    finally:
        if lock is not None:
            lock.close()


def publish(options, report, took):
    """Metrics that cannot be written are said, and change nothing else."""
    try:
        entries = ledger.loads(loaders.read_text(options.ledger))
        write_own(options.metrics, patrol_metrics.render(report, entries, time.time(), took), 0o644)
    except (OSError, IOError) as error:
        options.tell(u"%s: %s" % (options.metrics, error.strerror))
