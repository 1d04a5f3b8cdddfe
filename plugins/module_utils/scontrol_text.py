# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``scontrol`` and ``squeue`` print, as values. Pure: text in, values out.

Understands the output of Slurm 20.11 to 26.05, old notations of node states included.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# Every reason that we write to Slurm starts with this; nothing else is ever undone by us.
REASON_TAG = "HC:"

# A job name may hold anything, so it comes last.
SQUEUE_FORMAT = "%i|%T|%u|%N|%j"

# One-letter marks behind a node state (sinfo(1), NODE STATE CODES).
_MARKS = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINT",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}

# Flags under the names that older releases gave them.
_OLD_FLAGS = {"POWER": "POWERED_DOWN", "REBOOT": "REBOOT_REQUESTED", "NO_RESPOND": "NOT_RESPONDING"}

# Words that mean a base state and a flag at once.
_COMPOUND = {
    "DRAINED": ("IDLE", "DRAIN"),
    "DRAINING": ("ALLOCATED", "DRAIN"),
    "COMPLETING": ("ALLOCATED", "COMPLETING"),
    "RESERVED": ("IDLE", "RESERVED"),
    "MAINT": ("IDLE", "MAINT"),
    "INVAL": ("DOWN", "INVALID_REG"),
}

_UNIT = re.compile(r"^(-?\d+) (?:sec|secs|min|mins|hours|days|MB|%)$")
_KEY = re.compile(r"(?:^|\s)([A-Z][A-Za-z0-9_:/-]*)=")
_REASON_TAIL = re.compile(r"^(.*?)(?: \[([^\[\]@]+)@([0-9T:.+-]+)\])(?=\s|$)", re.DOTALL)
_NOTHING = ("(null)", "None", "N/A", "Unknown")
_PING = re.compile(r"^Slurmctld\([^)]*\) at (\S+) is (UP|DOWN)\s*$")


def parse_config(text):
    """``scontrol show config`` as {Key: value}; only the part about Slurm itself, units kept."""
    values = {}
    for line in text.splitlines():
        if not line.strip() and values:
            break
        key, separator, value = line.partition("=")
        if separator:
            values[key.strip()] = value.strip()
    return values


def plain_value(value):
    """A value of :func:`parse_config` as it stands in slurm.conf: ``300 sec`` is ``300``."""
    value = value.strip()
    match = _UNIT.match(value)
    if match:
        return match.group(1)
    return "" if value == "(null)" else value


def differing_values(config, wanted):
    """{Key: (present, wanted)} where the loaded configuration is not as wanted. Keys in any case."""
    present = {key.lower(): plain_value(value) for key, value in config.items()}
    differing = {}
    for key, value in wanted.items():
        have = present.get(key.lower())
        if have is None or have.lower() != plain_value(str(value)).lower():
            differing[key] = (have, str(value))
    return differing


def parse_ping(text):
    """``scontrol ping`` as [(controller, whether it answers)], in the order in which they take over."""
    found = [_PING.match(line) for line in text.splitlines()]
    return [(match.group(1), match.group(2) == "UP") for match in found if match]


def stands_by_for(pinged, host):
    """The controller that is at work while the one on this host stands by, empty when this host's is (or there is no other).

    A standby answers a ping like any other; the first in the list that answers is the one at work. Slurm itself
    compares names with what the host calls itself, whole or up to the first dot (controller.c _controller_index()).
    """
    if len(pinged) < 2:
        return ""
    leader = next((name for name, answers in pinged if answers), "none")
    return "" if leader in (host, host.split(".")[0]) else leader


def parse_records(text):
    """Output of ``scontrol -o show ...``: one dictionary a line.

    A key counts where it appears first: free text (reasons, comments) comes behind the keys
    that Slurm itself fills, so text that looks like a key cannot overwrite one.
    """
    return [_parse_record(line) for line in text.splitlines() if _KEY.match(line)]


def _parse_record(line):
    record = {}
    hits = list(_KEY.finditer(line))
    for index, hit in enumerate(hits):
        end = hits[index + 1].start() if index + 1 < len(hits) else len(line)
        record.setdefault(hit.group(1), line[hit.end() : end].strip())
    if "Reason" in record and record.get("NodeName"):
        record["Reason"] = line[line.index(" Reason=") + len(" Reason=") :].strip()
    return record


def split_reason(text):
    """``text [user@time]`` as (text, user, time); user and time are empty where they are missing."""
    match = _REASON_TAIL.match(text)
    reason, user, when = match.groups() if match else (text, "", "")
    return ("" if reason.strip().lower() in ("none", "(null)", "") else reason.strip()), user, when


def is_ours(reason):
    """True for a reason that we wrote."""
    return reason.startswith(REASON_TAG)


def parse_state(text):
    """A node state in any notation as (base, sorted list of flags).

    >>> parse_state("IDLE*+DRAIN")
    ('IDLE', ['DRAIN', 'NOT_RESPONDING'])
    """
    words = text.strip().upper().split("+")
    flags = set()
    bases = []
    for word in words:
        while word and word[-1] in _MARKS:
            flags.add(_MARKS[word[-1]])
            word = word[:-1]
        if not word:
            continue
        if not bases:
            base, flag = _COMPOUND.get(word, (word, None))
            bases.append(base)
            if flag:
                flags.add(flag)
        else:
            flags.add(_OLD_FLAGS.get(word, word))
    return (bases or ["UNKNOWN"])[0], sorted(flags)


def parse_nodes(text):
    """Nodes of ``scontrol -o show node`` in the shape of the cluster fact."""
    nodes = []
    for record in parse_records(text):
        if "NodeName" not in record:
            continue
        base, flags = parse_state(record.get("State", ""))
        reason, user, when = split_reason(record.get("Reason", ""))
        nodes.append(
            {
                "name": record["NodeName"],
                "state": record.get("State", ""),
                "base": base,
                "flags": flags,
                "reason": reason,
                "reason_user": user,
                "reason_time": when,
                "boot_time": _known(record.get("BootTime")),
                "slurmd_start_time": _known(record.get("SlurmdStartTime")),
                "address": record.get("NodeAddr", record["NodeName"]),
                "hostname": record.get("NodeHostName", record["NodeName"]),
                "version": record.get("Version", ""),
            }
        )
    return nodes


def _known(value):
    return "" if value is None or value in _NOTHING else value


def in_service(node):
    """True when slurmd of this node is registered and answers, whether or not someone drained it."""
    unwell = ("NOT_RESPONDING", "INVALID_REG", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP")
    return node["base"] in ("IDLE", "MIXED", "ALLOCATED") and not set(node["flags"]).intersection(unwell)


def parse_jobs(text):
    """Output of ``squeue --noheader --format=SQUEUE_FORMAT`` in the shape of the cluster fact."""
    jobs = []
    for line in text.splitlines():
        fields = line.split("|", 4)
        if len(fields) == 5 and fields[0][:1].isdigit() and fields[1].isupper():
            jobs.append(dict(zip(("id", "state", "user", "nodes", "name"), fields)))
    return jobs


def fell_ill(node, excused=None):
    """Whether a node that was in service is so no longer by a fault: not by a person's drain, nor under the excused reason.

    INVALID_REG is no fault yet: it stands between slurmctld's restart under a new node definition and slurmd's, which clears
    it (sinfo(1)). A slurmd that has been restarted is not ready while it stands.
    """
    if "DRAIN" in node["flags"] and is_ours(node["reason"]) and node["reason"] != excused:
        return True
    waits_for_slurmd = "INVALID_REG" in node["flags"] and "NOT_RESPONDING" not in node["flags"]
    return not waits_for_slurmd and not in_service(node)


def may_change(node, state, reason=None):
    """Whether a node is to be brought to ``drain``, ``undrain`` or ``resume`` under the rule of the tag.

    Only nodes that nobody drained are drained; only what carries our tag, and the given reason, is taken back.
    """
    if state == "drain":
        # draining a node that is DOWN would overwrite the reason that says why
        told_down = node["base"] == "DOWN" and node["reason"] and not is_ours(node["reason"])
        return "DRAIN" not in node["flags"] and not told_down
    held = "DRAIN" in node["flags"] or (state == "resume" and node["base"] == "DOWN")
    return held and is_ours(node["reason"]) and (reason is None or node["reason"] == reason)
