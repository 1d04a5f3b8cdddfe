# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What earlier rounds of the patrol did to each node, so that none is helped over and over. Pure.

Forgotten after the node has been well for ``STABLE`` seconds; that it did not come back by a reconfigure, after as many at all.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

from . import node_policy

STABLE = 3600
# Seconds until the same action may be tried again on the same node; doubled after each try.
BACK_OFF = 600


class Memory:
    """{node: {tries: {action: [number, epoch of the last]}, reconfigured: epoch, well: epoch, pending: [action, why], given_up}}."""

    def __init__(self, text, back_off=BACK_OFF):
        self.back_off = back_off
        try:
            self.nodes = {name: _checked(node) for name, node in json.loads(text or "{}").items()}
        except (AttributeError, KeyError, TypeError, ValueError):
            self.nodes = {}

    def dumps(self):
        """As text."""
        return json.dumps({name: node for name, node in self.nodes.items() if node != _nothing()}, sort_keys=True)

    def of(self, name, now):
        """What :func:`node_policy.decide` wants to know: {reconfigured, restarted, tries: {action: (number, seconds until the next)}}."""
        node = self.nodes.get(name, _nothing())
        tries = {action: (number, self._left(number, last, now)) for action, (number, last) in node["tries"].items()}
        return {
            "reconfigured": bool(node["reconfigured"]) and 0 <= now - node["reconfigured"] < STABLE,
            "restarted": node_policy.RESTART_SLURMD in node["tries"],
            "tries": tries,
        }

    def _left(self, number, last, now):
        wait = self.back_off * 2 ** (number - 1)
        # a clock that was set back must not hold a node off for ever
        return min(wait, max(0, last + wait - now))

    def _node(self, name):
        return self.nodes.setdefault(name, _nothing())

    def tried(self, name, action, why, now):
        """It is about to be done: whatever happens then, it counts."""
        node = self._node(name)
        number = node["tries"].get(action, [0, 0])[0]
        node["tries"][action] = [number + 1, now]
        node["pending"] = [action, why]

    def reconfigured(self, names, why, now):
        """A reconfigure for these nodes."""
        for name in names:
            node = self._node(name)
            node["reconfigured"] = now
            # it completes what was done to the host before
            node["pending"] = node["pending"] or [node_policy.RECONFIGURE, why]

    def settle(self, name, ready, now):
        """How the node is at the end of a round: (action, why) of what brought it back, or None."""
        node = self._node(name)
        if not ready:
            node["well"] = 0
            return None
        fixed, node["pending"], node["reconfigured"] = node["pending"], [], 0
        node["well"] = min(node["well"], now) or now
        if now - node["well"] >= STABLE:
            self.nodes[name] = _nothing()
            self.nodes[name]["well"] = node["well"]
        return tuple(fixed) or None

    def gives_up(self, name):
        """True the first time that it is asked since the node was last well for long."""
        node = self._node(name)
        first, node["given_up"] = not node["given_up"], True
        return first


def _nothing():
    return {"tries": {}, "reconfigured": 0, "well": 0, "pending": [], "given_up": False}


def _checked(node):
    tries = {action: [int(number), float(last)] for action, (number, last) in node["tries"].items()}
    pending = [u"%s" % word for word in node["pending"]]
    if len(pending) not in (0, 2) or min([number for number, _last in tries.values()] or [1]) < 1:
        raise ValueError("no memory of ours")
    return {
        "tries": {action: [min(number, 20), last] for action, (number, last) in tries.items()},
        "reconfigured": float(node["reconfigured"]),
        "well": float(node["well"]),
        "pending": pending,
        "given_up": bool(node["given_up"]),
    }
