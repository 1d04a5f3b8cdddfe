# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a daemon that was told to start is up, on its way, or will not come. Pure.

Type=simple counts as active the moment it is forked, and a start skipped by a Condition is no error to
systemctl: neither says that a daemon works.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from .finding import clean_text

PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "MainPID",
    "KillMode",
    "NeedDaemonReload",
    "Job",
    "ExecStart",
    "ExecMainStartTimestampMonotonic",
    "ExecMainExitTimestampMonotonic",
    "ExecMainStatus",
    "ConditionResult",
    "ConditionTimestampMonotonic",
)

STARTING, UP, SKIPPED, ENDED = "starting", "up", "skipped", "ended"

_TROUBLE = re.compile(r"\b(error|fatal|failed|failure|cannot|can't|unable|invalid)\b", re.IGNORECASE)


def stamp(show, name):
    """A monotonic time stamp of ``systemctl show`` in microseconds, 0 when it is not set."""
    value = show.get(name, "")
    return int(value) if value.isdigit() else 0


def judge(show, before):
    """State of a start that was asked for when the unit looked like ``before``."""
    if (
        stamp(show, "ConditionTimestampMonotonic") > stamp(before, "ConditionTimestampMonotonic")
        and show.get("ConditionResult") == "no"
    ):
        return SKIPPED
    # a job still waiting or running: stopping, ExecStartPre, a notify daemon that is not ready
    if show.get("Job", "0") not in ("", "0"):
        return STARTING
    started = stamp(show, "ExecMainStartTimestampMonotonic") > stamp(before, "ExecMainStartTimestampMonotonic")
    if show.get("ActiveState") == "active" and show.get("SubState") == "running" and show.get("MainPID", "0") != "0":
        return UP if started else STARTING
    if show.get("ActiveState") in ("failed", "inactive"):
        return ENDED
    return STARTING


def exits(show, before, seen):
    """Add the daemon's last exit after the start was asked for to ``seen`` (a set); returns how many there were."""
    last = stamp(show, "ExecMainExitTimestampMonotonic")
    started = stamp(show, "ExecMainStartTimestampMonotonic")
    # the exit of the process that the restart itself ended does not count
    if last and stamp(before, "ExecMainStartTimestampMonotonic") < started <= last:
        seen.add(last)
    return len(seen)


def steps_lost(before, after):
    """Steps that are gone: {pid: name}. A pid used again by another process counts as gone."""
    return {pid: step[1] for pid, step in before.items() if after.get(pid, (None,))[0] != step[0]}


def ended_by_itself(record):
    """True when the job of a step that is gone shows no sign of having been killed.

    :param record: job from ``scontrol -o show job``
    """
    state = record.get("JobState", "")
    if state == "FAILED":
        return record.get("ExitCode", "").split(":")[-1] not in ("9", "15")
    # a job that was killed with its node's slurmd is NODE_FAIL or waits again
    return state in (
        "RUNNING",
        "COMPLETING",
        "COMPLETED",
        "CANCELLED",
        "TIMEOUT",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "DEADLINE",
    )


def log_path(text, name, host, node):
    """Log file that a configuration file names for a daemon, empty when it names none.

    :param text: slurm.conf, or slurmdbd.conf for slurmdbd
    """
    key = {"slurmd": "SlurmdLogFile", "slurmctld": "SlurmctldLogFile", "slurmdbd": "LogFile"}[name]
    found = re.findall(r"(?im)^[ \t]*%s[ \t]*=[ \t]*([^\s#]+)" % key, text)
    return found[-1].replace("%h", host).replace("%n", node) if found else ""


def excerpt(text, limit=20, width=300):
    """The last lines of a log that tell of trouble, each once, safe to print; when none does, the last lines."""
    lines = []
    for line in text.splitlines():
        # with -D the journal has each line from stderr, under the daemon's name, and from syslog
        line = re.sub(r"^slurm(?:ctld|dbd|d): ", "", clean_text(line, width).strip())
        if line and line not in lines:
            lines.append(line)
    return [told for told in lines if _TROUBLE.search(told)][-limit:] or lines[-5:]
