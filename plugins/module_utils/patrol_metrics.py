# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The patrol's report as metrics for node_exporter's textfile collector. Pure."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import collections

from . import ledger, node_policy


def render(report, entries, now, duration):
    """The text of the metrics file.

    :param report: what the patrol prints with --json; with a fault it has no nodes, and says nothing of them
    :param entries: of the ledger
    """
    families = [
        ("timestamp_seconds", "When the patrol ended.", "gauge", [("", "%d" % now)]),
        ("duration_seconds", "How long it took.", "gauge", [("", "%.2f" % duration)]),
        ("fault", "Whether the patrol itself could not work.", "gauge", [("", "%d" % ("fault" in report))]),
        (
            "events",
            "Entries of the ledger by event; it is bounded, so old ones go.",
            "gauge",
            [('{event="%s"}' % event, "%d" % len([one for one in entries if one["event"] == event])) for event in ledger.EVENTS],
        ),
    ]
    if "fault" not in report:
        counted = collections.Counter(node.get("action", node_policy.NOTHING) for node in report["nodes"].values())
        families += [
            ("nodes_ready", "Nodes in service.", "gauge", [("", "%d" % report["ready"])]),
            ("nodes_total", "Nodes that should be.", "gauge", [("", "%d" % report["total"])]),
            ("suspects", "Whether controller or network are suspected.", "gauge", [("", "%d" % bool(report["suspected"]))]),
            (
                "nodes",
                "Nodes by what was decided about them.",
                "gauge",
                [('{decision="%s"}' % action, "%d" % counted[action]) for action in node_policy.ACTIONS],
            ),
        ]
    lines = []
    for name, words, kind, values in families:
        lines += ["# HELP hpcguard_patrol_%s %s" % (name, words), "# TYPE hpcguard_patrol_%s %s" % (name, kind)]
        lines += ["hpcguard_patrol_%s%s %s" % (name, labels, value) for labels, value in values]
    return "\n".join(lines) + "\n"
