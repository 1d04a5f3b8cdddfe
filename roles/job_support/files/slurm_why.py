#!/usr/bin/env python3
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Says why a job ended, or has not begun. For any user, on any host that has Slurm's commands; changes nothing.

Exit status: 0 there is a verdict, 1 nothing was found about the job, 2 the question or a source was no good.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import argparse
import fcntl
import json
import os
import struct
import sys
import termios

# The library of the same prefix.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "lib", "hpcguard"))
sys.dont_write_bytecode = True

from slurmguard import diagnosis_text, finding, job_diagnosis, job_evidence, queue_diagnosis, sacct_text

COLORS = {"error": "31", "warning": "33", "info": "36"}
NO_TERMINAL = 100


def parse(argv):
    marks = "ID: 101, 101_3 (array), 101+1 (het), 101.batch (step)"
    parser = argparse.ArgumentParser(prog="slurm-why", description="Says why a job failed, or why it waits", epilog=marks)
    parser.add_argument("job", nargs="?", metavar="ID", help="the job")
    parser.add_argument("--queue", action="store_true", help="why the pending jobs wait")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--lang", choices=("zh", "en"), help="one language instead of both")
    parser.add_argument("--bin", default="", metavar="DIR", help="directory of Slurm's commands")
    options = parser.parse_args(argv)
    if options.queue == bool(options.job):
        parser.error("say a job's ID or --queue")
    if options.job and not sacct_text.parse_id(options.job):
        parser.error("%r is no job id" % options.job)
    return options


def width():
    """Columns of the terminal; a pipe has none."""
    if not sys.stdout.isatty():
        return NO_TERMINAL
    try:
        return struct.unpack("HHHH", fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, b"\0" * 8))[1] or NO_TERMINAL
    except (IOError, OSError):
        return NO_TERMINAL


def show(text):
    """Print in UTF-8, whatever the locale says."""
    stream = getattr(sys.stdout, "buffer", sys.stdout)
    stream.write(text.encode("utf-8", "replace") + b"\n")


def paint(text, severity):
    return u"\x1b[%sm%s\x1b[0m" % (COLORS[severity], text)


def main(argv=None):
    options = parse(argv)
    look = job_evidence.Look(options.bin, budget=30.0)
    if options.queue:
        report = queue_diagnosis.report(look.site())
        findings = report["findings"]
        for one in findings:
            one["missing"] = [source for source in look.sources if source["why"]]
    else:
        findings = job_diagnosis.diagnose(options.job, look.job(options.job))
    if options.json:
        show(finding.to_text(json.dumps({"findings": findings, "sources": look.sources}, indent=1, sort_keys=True)))
    else:
        words = dict(job_diagnosis.SURE)
        words.update(job_diagnosis.WHO)
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        for line in diagnosis_text.report(findings, width(), options.lang, words, paint if color else None):
            show(line)
    if not findings:
        return 0
    return 1 if findings[0]["id"] == "job_unknown" and not findings[0]["evidence"] else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (IOError, KeyboardInterrupt):  # whoever reads has gone
        sys.exit(2)
