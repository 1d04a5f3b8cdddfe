#!/usr/bin/env python3
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Patrol of a Slurm cluster, run on the controller: sees the nodes as slurmctld does, looks at their hosts over SSH.

Without options it looks and reports. --fix does what the table of --explain says: it brings munge and slurmd back, lets
nodes that are well register again by one reconfigure, and opens what only we or the outage closed. What somebody meant
is left alone, with the reason said. On a backup controller that stands by it only looks.
Exit status: 0 every node that should be in service is, 1 some are not, 2 the patrol itself could not work.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import argparse
import json
import os
import sys
import traceback

# The library of the same prefix: root reads it, so only root may have written it.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "lib", "hpcguard"))
sys.dont_write_bytecode = True

from slurmguard import finding, loaders, node_policy, patrol


def print_text(text, stream):
    """Never a traceback over the terminal's encoding."""
    stream = getattr(stream, "buffer", stream)
    stream.write(text.encode("utf-8") + b"\n")
    stream.flush()


def say(text):
    """A line for the journal."""
    print_text(text, sys.stderr)


def whole_number(text):
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("%s is negative" % text)
    return number


def parse(argv):
    """The options; what is not given has its value of patrol.DEFAULTS."""
    parser = argparse.ArgumentParser(description="Patrol of a Slurm cluster")
    parser.add_argument("--explain", action="store_true", help="print the table of decisions; needs no cluster")
    parser.add_argument("--fix", action="store_true", help="act, not only look")
    parser.add_argument("--bootstrap", action="store_true", help="after a cold start: wait for controller and nodes, then act")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--node", action="append", help="look at this node only (may repeat)")
    parser.add_argument("--dry-run", action="store_true", help="with --fix or --bootstrap: say what would be done")
    parser.add_argument("--most", type=whole_number, help="nodes touched in one round at most")
    parser.add_argument("--most-percent", type=whole_number, help="percent of the nodes touched in one round at most")
    parser.add_argument("--back-off", type=whole_number, help="seconds until the same is tried again")
    parser.add_argument("--stuck-after", type=whole_number, help="seconds that a start of slurmd may take")
    parser.add_argument("--wait", type=whole_number, help="seconds until the nodes acted on have to be back")
    parser.add_argument("--boot-limit", type=whole_number, help="seconds that --bootstrap goes on for")
    parser.add_argument("--scontrol", help="path of scontrol")
    parser.add_argument("--ssh", help="path of ssh")
    parser.add_argument("--run-dir", help="directory of the lock and of what was done before")
    parser.add_argument("--ledger", help="file of what was done to nodes")
    parser.add_argument("--metrics", help="file for node_exporter's textfile collector")
    parser.add_argument("--rollout-lock", help="lock of a rollout, which the patrol stays away from")
    # a value that is there is not replaced by a default
    options = parser.parse_args(argv, namespace=patrol.Options(say))
    options.fix = options.fix or options.bootstrap
    return options


def main(argv=None):
    options = parse(argv)
    if options.explain:
        print_text(u"\n".join(node_policy.explain()), sys.stdout)
        return 0
    begun = loaders.now()
    try:
        report = patrol.work(options)
    except patrol.Failure as failure:
        report = {"fault": finding.clean_text(failure.args[0])}
        options.tell(u"不动任何节点 / no node is touched any further: %s" % report["fault"])
    except Exception:  # whatever else goes wrong is the patrol's fault, not a node's
        report = {"fault": finding.clean_text(traceback.format_exc().splitlines()[-1])}
        options.tell(report["fault"])
    if options.metrics:
        patrol.publish(options, report, loaders.now() - begun)
    if options.json:
        print_text(json.dumps(report, indent=1, sort_keys=True), sys.stdout)
    if "fault" in report:
        return 2
    return 0 if report["ready"] == report["total"] else 1


if __name__ == "__main__":
    sys.exit(main())
