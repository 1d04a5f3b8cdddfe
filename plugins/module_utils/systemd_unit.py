# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd says about units, and what unit files say. Pure: text in, values out.

Everything here holds for systemd 219 and newer.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# Read for the cluster fact. A systemd that does not know one leaves it out of its answer.
SHOW_PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "UnitFileState",
    "FragmentPath",
    "DropInPaths",
    "MainPID",
    "Type",
    "Restart",
    "RestartUSec",
    "KillMode",
    "Delegate",
    "NeedDaemonReload",
    "ConditionResult",
    "ExecMainStartTimestampMonotonic",
    "ExecMainStatus",
    "ExecMainCode",
    "ExecStart",
    "ExecStartPre",
    "StartLimitInterval",
    "StartLimitIntervalUSec",
    "StartLimitIntervalSec",
    "TimeoutStartUSec",
    "RemainAfterExit",
    "After",
    "Wants",
    "Environment",
    "EnvironmentFile",
    "EnvironmentFiles",
    "User",
    "Group",
)

_EXEC = re.compile(r"\{ path=(.*?) ; argv\[\]=(.*?) ; (?:ignore_errors|flags)=(.*?)\}(?=\s*(?:\{|$|\n))", re.DOTALL)
_USEC = re.compile(r"(\d+(?:\.\d+)?)\s*(y|month|w|d|h|min|ms|us|s)\b")
_USEC_UNIT = {
    "us": 1,
    "ms": 1000,
    "s": 1000000,
    "min": 60000000,
    "h": 3600000000,
    "d": 86400000000,
    "w": 604800000000,
    "month": 2629800000000,
    "y": 31557600000000,
}


def parse_show(text):
    """``systemctl show`` of one unit as {property: value}; a property that repeats keeps every line."""
    values = {}
    for line in text.splitlines():
        key, separator, value = line.partition("=")
        if not separator:
            continue
        values[key] = values[key] + "\n" + value if key in values else value
    return values


def parse_show_many(text):
    """``systemctl show UNIT...``: one dictionary a unit, in the order asked for."""
    return [parse_show(block) for block in re.split(r"\n\s*\n", text) if block.strip()]


def parse_exec(value):
    """An Exec property of ``systemctl show`` as a list of {path, argv, code, status, start, stop}."""
    calls = []
    for path, argv, rest in _EXEC.findall(value):
        fields = dict(part.split("=", 1) for part in rest.split(" ; ") if "=" in part)
        calls.append(
            {
                "path": path,
                "argv": argv,
                "code": fields.get("code", "").strip(),
                "status": fields.get("status", "").strip(),
                "start": fields.get("start_time", "").strip("[] "),
                "stop": fields.get("stop_time", "").strip("[] "),
            }
        )
    return calls


def parse_usec(value):
    """A time span as ``systemctl show`` prints it (``1min 30s``) in microseconds, None for infinity."""
    value = (value or "").strip()
    if value in ("", "infinity"):
        return None
    if value.isdigit():
        return int(value)
    return int(sum(float(number) * _USEC_UNIT[unit] for number, unit in _USEC.findall(value)))


def style(fragment_path):
    """Who owns the unit: a package (a drop-in is added), the site (the whole unit is replaced), or nobody."""
    if not fragment_path:
        return "none"
    return "own" if fragment_path.startswith("/etc/") else "package"


def unit_fact(show, text=None, drop_ins=(), boot_epoch=0.0):
    """A unit in the shape of the cluster fact.

    :param show: properties from :func:`parse_show`
    :param text: content of the unit file
    :param drop_ins: list of {path, text}
    :param boot_epoch: wall clock time at which the monotonic clock was zero
    """
    started = int(show.get("ExecMainStartTimestampMonotonic") or 0)
    exec_start = parse_exec(show.get("ExecStart", ""))
    fragment = show.get("FragmentPath", "")
    return {
        "load_state": show.get("LoadState", "not-found"),
        "active_state": show.get("ActiveState", "inactive"),
        "sub_state": show.get("SubState", "dead"),
        "result": show.get("Result", ""),
        "unit_file_state": show.get("UnitFileState", ""),
        "fragment_path": fragment,
        "drop_in_paths": show.get("DropInPaths", "").split(),
        "drop_ins": list(drop_ins),
        "main_pid": int(show.get("MainPID") or 0),
        "type": show.get("Type", ""),
        "restart": show.get("Restart", ""),
        "restart_usec": parse_usec(show.get("RestartUSec")),
        "kill_mode": show.get("KillMode", ""),
        "delegate": show.get("Delegate", ""),
        "need_daemon_reload": show.get("NeedDaemonReload", "no") == "yes",
        "condition_result": show.get("ConditionResult", ""),
        "exec_main_start": boot_epoch + started / 1e6 if started else 0,
        "exec_start": exec_start[0]["argv"] if exec_start else "",
        "exec_start_pre": parse_exec(show.get("ExecStartPre", "")),
        "style": style(fragment),
        "text": text,
    }


# --- unit files ---------------------------------------------------------------------------------


def parse_unit(text):
    """A unit file as a list of (section, key, value) in its own order.

    Comments go, continued lines are joined with a blank, as systemd.syntax(7) says.
    """
    return [entry[1:] for entry in numbered_entries(text)]


def numbered_entries(text):
    """A unit file as a list of (number of the line where it begins, section, key, value), see :func:`parse_unit`."""
    entries = []
    section = ""
    pending = ""
    first = 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        bare = line.strip()
        if bare.startswith(("#", ";")) or (not bare and not pending):
            continue
        first = first if pending else number
        bare = pending + bare
        if bare.endswith("\\"):
            pending = bare[:-1].rstrip() + " "
            continue
        pending = ""
        if bare.startswith("[") and bare.endswith("]"):
            section = bare[1:-1]
            continue
        key, separator, value = bare.partition("=")
        if separator:
            entries.append((first, section, key.strip(), value.strip()))
    return entries


def render_unit(entries, comment="", remarks=None):
    """The text of a unit file; sections in the order Unit, (others), Install.

    :param remarks: {(section, key): comment above the key}
    """
    remarks = remarks or {}
    sections = []
    for section, _key, _value in entries:
        if section not in sections:
            sections.append(section)
    sections.sort(key=lambda name: {"Unit": 0, "Install": 2}.get(name, 1))
    lines = ["# " + line for line in comment.splitlines()]
    for section in sections:
        lines += ["", "[%s]" % section] if lines else ["[%s]" % section]
        previous = None
        for key, value in [entry[1:] for entry in entries if entry[0] == section]:
            if remarks.get((section, key)) and key != previous:
                lines.append("# " + remarks[section, key])
            lines.append("%s=%s" % (key, value))
            previous = key
    return "\n".join(lines) + "\n"


def unit_of(path):
    """The unit that a file is about: of a unit file its name, of a drop-in the name of its directory, else empty."""
    if "/systemd/system/" not in path:
        return ""
    folder, name = path.rsplit("/", 2)[-2:]
    return folder[:-2] if folder.endswith(".d") else name
