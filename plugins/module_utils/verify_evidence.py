# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the texts mean that a host has to show for the checklist: of systemd, sacct and the health check. Pure."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import systemd_unit

_DATE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")


def recorded_steps(text, since):
    """Rows of ``sacct -n -P -o JobID,Start,State,MaxRSS`` that prove that memory is sampled.

    A step counts when it began after ``since`` (same notation as sacct's) and has a peak above zero. The
    extern step holds no task of the user.
    """
    rows = []
    for line in text.splitlines():
        fields = line.strip().split("|")
        if len(fields) < 4 or "." not in fields[0] or fields[0].endswith(".extern"):
            continue
        number = re.match(r"^(\d+(?:\.\d+)?)", fields[3])
        if fields[1] >= since and fields[1][:1].isdigit() and fields[2].startswith("COMPLETED") and number and float(number.group(1)) > 0:
            rows.append({"step": fields[0], "max_rss": fields[3]})
    return rows


def heartbeat(text):
    """The health check's ``key=value`` heartbeat as a dictionary; ``epoch`` is a number, 0 when unreadable."""
    values = dict(line.split("=", 1) for line in (text or "").splitlines() if "=" in line)
    epoch = values.get("epoch", "")
    values["epoch"] = float(epoch) if re.match(r"^\d+(\.\d+)?$", epoch) else 0
    return values


def wait_call(show, path):
    """How the wait script ended when slurmd started last: a call of ExecStartPre, None when the unit does not name it.

    Its ``stop`` is empty after a later daemon-reload, which makes systemd forget.
    """
    calls = [call for call in systemd_unit.parse_exec(show.get("ExecStartPre", "")) if call["path"] == path]
    return dict(calls[-1], stop=date_of(calls[-1]["stop"])) if calls else None


def date_of(text):
    """The local time in a time stamp of systemd, empty when there is none. Sorts by time on one host."""
    match = _DATE.search(text)
    return match.group(1) if match else ""


def crash_refusal(show, comm):
    """Why slurmd must not be killed on this host, empty when it may.

    :param show: ``systemctl show`` of slurmd
    :param comm: name of its main process
    """
    if show.get("ActiveState") != "active" or show.get("SubState") != "running" or show.get("MainPID", "0") == "0":
        return "slurmd is %s/%s, not active/running" % (show.get("ActiveState", "unknown"), show.get("SubState", "unknown"))
    if comm != "slurmd":
        return "the main process %s of the unit is %s, not slurmd" % (show["MainPID"], comm or "gone")
    if show.get("KillMode") != "process":
        return "KillMode of slurmd is %s, so its death would take the jobs with it: it was not killed" % show.get("KillMode")
    if show.get("Restart") not in ("always", "on-failure", "on-abnormal", "on-abort"):
        return "Restart of slurmd is %s, so it would stay dead: it was not killed" % show.get("Restart", "unknown")
    return ""


def next_elapse(show, now, uptime, epoch_of):
    """Seconds until a timer elapses next, None when it never will.

    :param show: ``systemctl show`` of the timer
    :param epoch_of: function from ``2026-12-01 10:00:00`` (local time of the host) to seconds since the epoch
    """
    left = []
    monotonic = systemd_unit.parse_usec(show.get("NextElapseUSecMonotonic"))
    if monotonic:
        left.append(monotonic / 1e6 - uptime)
    realtime = show.get("NextElapseUSecRealtime", "")
    if date_of(realtime):
        left.append(epoch_of(date_of(realtime)) - now)
    elif systemd_unit.parse_usec(realtime):  # systemd 219 prints it as a span since 1970
        left.append(systemd_unit.parse_usec(realtime) / 1e6 - now)
    return min(left) if left else None
