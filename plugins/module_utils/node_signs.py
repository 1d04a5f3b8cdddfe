# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node and its host look like, in the words of the table :mod:`node_policy`. Pure.

A column of that table is a sign; the values that each may have are in ``SIGNS``.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re
import time

from . import scontrol_text

# deploy.yml closes nodes under this one for some seconds, and opens them itself.
ROLLOUT_REASON = scontrol_text.REASON_TAG + " rollout in progress"

# Whose word a reason is, by its beginning; every other reason is somebody's.
NOT_RESPONDING, REBOOTED, NO_GRES, MISCONFIGURED = "not responding", "rebooted", "no gres", "misconfigured"
PROCESSES_LEFT, PROLOG, ROLLOUT, OURS, SOMEBODY = "processes left", "prolog", "rollout", "ours", "somebody"
_REASONS = (
    (re.compile(r"not responding", re.I), NOT_RESPONDING),
    (re.compile(r"node unexpectedly rebooted", re.I), REBOOTED),
    # none of them: the driver was not loaded yet when slurmd started
    (re.compile(r"gres/\S+ count .*\(0 < \d+\)", re.I), NO_GRES),
    (re.compile(r"low (realmemory|tmpdisk|cpus|socket)|gres/\S+ count|node configuration differs", re.I), MISCONFIGURED),
    (re.compile(r"kill task failed", re.I), PROCESSES_LEFT),
    (re.compile(r"(prolog|epilog)( error|.*failed)", re.I), PROLOG),
    (re.compile(re.escape(ROLLOUT_REASON) + "$"), ROLLOUT),
    (re.compile(re.escape(scontrol_text.REASON_TAG)), OURS),
)

# (state, base, beginning of a flag, reasons): from the top, the first line that fits; empty fits everything.
_STATES = (
    ("future", "FUTURE", "", ()),
    ("powered", "", "POWER", ()),
    ("reboot", "", "REBOOT", ()),
    ("maintenance", "", "MAINT", ()),
    ("fail", "", "FAIL", ()),
    ("rollout", "", "DRAIN", (ROLLOUT,)),
    ("our drain", "", "DRAIN", (OURS,)),
    ("processes left", "", "DRAIN", (PROCESSES_LEFT,)),
    ("prolog", "", "DRAIN", (PROLOG,)),
    ("no gres", "", "INVALID_REG", (NO_GRES,)),
    ("misconfigured", "", "INVALID_REG", ()),
    ("drained", "", "DRAIN", ()),
    ("misconfigured", "DOWN", "", (MISCONFIGURED, NO_GRES)),
    ("rebooted", "DOWN", "", (REBOOTED,)),
    ("missed", "DOWN", "", (NOT_RESPONDING,)),
    ("set down", "DOWN", "", (SOMEBODY, PROCESSES_LEFT, PROLOG)),
    ("open", "", "", ()),
)

SIGNS = (
    ("state", ("future", "powered", "reboot", "maintenance", "fail", "rollout", "our drain", "processes left", "prolog")
     + ("no gres", "misconfigured", "drained", "rebooted", "missed", "set down", "open")),
    ("host", ("seen", "unseen", "hold")),
    ("clock", ("right", "wrong")),
    ("munge", ("well", "absent", "disabled", "busy", "dead", "old key", "other key", "refused")),
    ("slurmd", ("running", "running, disabled", "absent", "disabled", "stopped", "wrong type", "stuck", "busy", "start limit")
     + ("failed", "never started", "stopped with munge")),
    ("jobs", ("kept", "killed")),  # by a restart of slurmd: its KillMode
    ("heard", ("yes", "late", "lost", "down")),  # late: silent but not DOWN yet; down: answers, but is DOWN
    ("reconfigured", ("no", "yes")),
    ("restarted", ("no", "yes")),
    ("outage", ("no", "fits")),
    ("health", ("not yet", "good")),
)  # fmt: skip

# munged takes a credential for so long; older or from the future, it is refused.
MOST_SKEW = 300
# A health check older than two of its usual intervals says nothing.
FRESH = 720
# slurmd that starts for longer than this while slurmctld answers is stuck.
STUCK_AFTER = 180
# Two units stopped this close together (microseconds) were stopped by one command.
_TOGETHER = 5000000

_FOREGROUND = re.compile(r"argv\[\]=[^;]*\s(-D|--systemd)(\s|$)")
# What unmunge says of a credential that was made with another key.
_OTHER_KEY = re.compile(r"invalid credential", re.I)
# One munged reads a credential once, so nodes that share a host see it replayed; it was good.
_TAKEN = re.compile(r"^accepted$|replayed credential", re.I)


def reason_class(node):
    """Whose word the node's reason is: one of the classes above, empty where none is given."""
    if not node["reason"]:
        return ""
    for pattern, kind in _REASONS:
        if pattern.match(node["reason"]):
            return kind
    return SOMEBODY


def state_of(node):
    """The sign ``state``."""
    reason = reason_class(node)
    for state, base, flag, reasons in _STATES:
        flagged = not flag or [one for one in node["flags"] if one.startswith(flag)]
        if flagged and base in ("", node["base"]) and (not reasons or reason in reasons):
            return state
    raise ValueError("the table of states has no last line")


def heard(node):
    """The sign ``heard``: whether slurmctld hears from the node."""
    silent = "NOT_RESPONDING" in node["flags"]
    if node["base"] == "DOWN":
        return "lost" if silent else "down"
    return "late" if silent or node["base"] == "UNKNOWN" else "yes"


def signs(node, host, past, since, stuck_after=STUCK_AFTER):
    """({sign: value}, {name: text for the table's sentences}).

    :param node: as :func:`scontrol_text.parse_nodes` gives it
    :param host: as :func:`host_look.parse` gives it
    :param past: as :func:`patrol_memory.Memory.of` gives it
    :param since: the outage that a bootstrap cleans up after began after this time; None where there was none
    """
    munge, slurmd = host["munge"], host["slurmd"]
    problem = host["problem"] or (u"", u"")
    found = {
        "state": state_of(node),
        "host": "unseen" if host["problem"] else ("hold" if host["hold"] else "seen"),
        "clock": "wrong" if abs(host["skew"]) > MOST_SKEW else "right",
        "munge": _munge(host),
        "slurmd": _slurmd(host, stuck_after),
        "jobs": "kept" if slurmd.get("KillMode") == "process" else "killed",
        "heard": heard(node),
        "reconfigured": "yes" if past["reconfigured"] else "no",
        "restarted": "yes" if past["restarted"] else "no",
        "outage": "fits" if since is not None and _epoch(node["boot_time"]) >= since else "no",
        "health": _health(host),
    }
    details = {
        "problem_zh": problem[0],
        "problem_en": problem[1],
        "munge": unit_words(munge),
        "slurmd": unit_words(slurmd),
        "foreign": host["foreign"] or "",
        "skew": u"%+d s" % host["skew"],
        "reason": node["reason"],
    }
    return found, details


def unit_words(show):
    """How a unit is, in words."""
    if show.get("LoadState") != "loaded":
        return show.get("LoadState", "unknown")
    words = "/".join(word for word in (show.get("ActiveState", "?"), show.get("SubState")) if word)
    return words + (" (%s)" % show["Result"] if show.get("Result", "success") != "success" else "")


def _munge(host):
    munge = host["munge"]
    if munge.get("LoadState") != "loaded":
        return "absent"
    if not host["credential"]:
        if munge.get("ActiveState") not in ("inactive", "failed"):
            return "busy"
        return "disabled" if munge.get("UnitFileState") == "disabled" else "dead"
    if host["foreign"] is None or _TAKEN.search(host["foreign"]):
        return "well"
    if not _OTHER_KEY.search(host["foreign"]):
        return "refused"
    # munged reads its key when it starts
    started = host["uptime"] - _usec(munge, "ExecMainStartTimestampMonotonic") / 1e6
    return "old key" if host["key_age"] is not None and host["key_age"] < started else "other key"


def _slurmd(host, stuck_after):
    slurmd = host["slurmd"]
    active, sub = slurmd.get("ActiveState"), slurmd.get("SubState")
    disabled = slurmd.get("UnitFileState") == "disabled"
    if slurmd.get("LoadState") != "loaded":
        return "absent"
    if active == "active" and sub == "running":
        return "running, disabled" if disabled else "running"
    if disabled:
        return "disabled"
    if active != "inactive" and sub != "start-pre" and slurmd.get("Type") == "forking" and _FOREGROUND.search(slurmd.get("ExecStart", "")):
        return "wrong type"
    starting = host["uptime"] - _usec(slurmd, "InactiveExitTimestampMonotonic") / 1e6
    if active == "activating" and sub != "auto-restart" and starting > stuck_after:
        return "stuck"
    if active not in ("failed", "inactive") or slurmd.get("Job", "0") not in ("", "0"):
        return "busy"
    if active == "failed":
        return "start limit" if gave_up(slurmd) else "failed"
    if not _usec(slurmd, "ExecMainStartTimestampMonotonic") and not _usec(slurmd, "InactiveEnterTimestampMonotonic"):
        return "never started"
    return "stopped with munge" if _stopped_with_munge(host) else "stopped"


def gave_up(show):
    """Whether systemd will not start a failed unit again for its start limit.

    Result= tells it only where nothing had failed before; else the unit has failed though systemd was told to restart it.
    """
    limited = show.get("Result", "").startswith("start-limit") or show.get("Restart", "no") != "no"
    return show.get("ActiveState") == "failed" and limited


def _stopped_with_munge(host):
    """A unit that requires another is stopped with it, and not started with it again."""
    needs = host["slurmd"].get("Requires", "").split() + host["slurmd"].get("BindsTo", "").split()
    ended = [_usec(host[name], "InactiveEnterTimestampMonotonic") for name in ("munge", "slurmd")]
    return "munge.service" in needs and all(ended) and abs(ended[0] - ended[1]) <= _TOGETHER


def _health(host):
    """Whether the node's own check has been good as often, and as lately, as it asks itself for."""
    beat = host["heartbeat"]
    try:
        wanted, good, age = int(beat["undrain_after"]), int(beat["good_runs"]), host["now"] - int(beat["epoch"])
    except (KeyError, ValueError):
        return "not yet"
    return "good" if beat.get("verdict") == "pass" and 0 < wanted <= good and -60 <= age <= FRESH else "not yet"


def _usec(show, key):
    value = show.get(key, "")
    return int(value) if value.isdigit() else 0


def _epoch(text):
    """A time as scontrol prints it; it is told in the zone of the host that prints."""
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        return 0
