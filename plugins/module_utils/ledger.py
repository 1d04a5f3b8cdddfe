# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What layer 1 and layer 2 did to nodes, when and why: one JSON object a line. Pure.

    {"time": epoch, "node": name, "event": one of EVENTS, "layer": 1 or 2, "what": action or check, "why": text}

A node that flaps is one entry: a drain that comes back within ``STABLE`` seconds goes on, its end is taken out again.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

from . import finding

PATH = "/var/lib/hpcguard/ledger.jsonl"
EVENTS = ("drained", "undrained", "fixed", "resumed", "gave_up")
MOST_ENTRIES = 2000
MOST_BYTES = 1 << 20
# A drain that comes back sooner than this after its end never really ended.
STABLE = 3600


def entry(time, node, event, layer, what, why):
    """One entry; its texts are made harmless."""
    return {
        "time": int(time),
        "node": finding.clean_text(node, 100),
        "event": event,
        "layer": int(layer),
        "what": finding.clean_text(what, 100),
        "why": finding.clean_text(why, 300),
    }


def loads(text):
    """The entries in a text, oldest first; lines that are damaged are left out."""
    entries = []
    for line in (text or "").splitlines()[-MOST_ENTRIES:]:
        try:
            one = json.loads(line)
            if one["event"] in EVENTS:
                entries.append(entry(one["time"], one["node"], one["event"], one["layer"], one["what"], one["why"]))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            continue
    return entries


def dumps(entries):
    """Their text, without the oldest where there are too many."""
    lines, size = [], 0
    for one in reversed(entries[-MOST_ENTRIES:]):
        line = json.dumps(one, sort_keys=True) + "\n"
        size += len(line)
        if size > MOST_BYTES:
            break
        lines.append(line)
    return "".join(reversed(lines))


def drained(entries):
    """{node: the entry of its drain} of nodes that are drained as far as the ledger knows."""
    last = {one["node"]: one for one in entries if one["event"] in ("drained", "undrained")}
    return {node: one for node, one in last.items() if one["event"] == "drained"}


def note(entries, one):
    """The entries with one more."""
    if one["event"] == "drained":
        for index in range(len(entries) - 1, -1, -1):
            before = entries[index]
            if before["node"] == one["node"] and before["event"] in ("drained", "undrained"):
                if before["event"] == "undrained" and one["time"] - before["time"] < STABLE:
                    return entries[:index] + entries[index + 1 :]
                break
    return entries + [one]


def compare(entries, drains, now, known):
    """The entries with what layer 1 did since they were written.

    :param drains: {node: reason} of the nodes that are drained under our tag now
    :param known: nodes that Slurm told about; of others nothing is known, so they are not called undrained
    """
    open_drains = drained(entries)
    for node in sorted(set(drains) - set(open_drains)):
        entries = note(entries, entry(now, node, "drained", 1, _check(drains[node]), drains[node]))
    for node in sorted(set(open_drains).intersection(known) - set(drains)):
        entries = note(entries, entry(now, node, "undrained", 1, open_drains[node]["what"], u"no longer drained under our tag"))
    return entries


def _check(reason):
    """The check that a reason of ours names: ``HC: disk at 90% /`` is of ``disk``."""
    words = reason.split(":", 1)[-1].split()
    return words[0] if words else ""
