# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the patrol asks a host over SSH, what it may do there, and how the answer is read. Pure.

Every command is fixed text: nothing of the cluster's goes into it.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import finding, node_policy

# One call, which ends by itself even when the connection is cut. Its input is a credential of the controller's munge.
# The marks keep out what a shell's start-up files print.
LOOK = (
    "exec timeout 10 sh -c '"
    "echo hpcguard:foreign; timeout 2 unmunge 2>&1 >/dev/null && echo accepted; "
    "echo hpcguard:munge; systemctl show munge.service -p LoadState -p ActiveState -p SubState -p Result -p UnitFileState"
    " -p InactiveEnterTimestampMonotonic -p ExecMainStartTimestampMonotonic; "
    "echo hpcguard:slurmd; systemctl show slurmd.service -p LoadState -p ActiveState -p SubState -p Result -p UnitFileState"
    " -p KillMode -p Restart -p Type -p ExecStart -p Job -p Requires -p BindsTo"
    " -p InactiveEnterTimestampMonotonic -p InactiveExitTimestampMonotonic -p ExecMainStartTimestampMonotonic; "
    "echo hpcguard:heartbeat; head -c 2000 /run/hpcguard/health_check.last 2>/dev/null; echo; "
    "echo hpcguard:facts; "
    "munge -n 2>/dev/null | unmunge >/dev/null 2>&1 && echo credential=yes; "
    "test -e /run/hpcguard/hold && echo hold=yes; "
    "read -r up rest </proc/uptime; echo uptime=$up; echo now=$(date +%s); "
    "echo key=$(stat -c %Z /etc/munge/munge.key 2>/dev/null); "
    "echo hpcguard:end'"
)

# Gone at the next boot. systemd takes the drop-ins of a unit in the order of their names.
_DROP_IN = "/run/systemd/system/slurmd.service.d"
_CORRECTION = "[Service]\\nType=simple\\nKillMode=process\\n"
COMMANDS = {
    # the counter of starts is reset only where it may be what stands in the way
    node_policy.START_MUNGE: "timeout 5 systemctl start munge.service || "
    "{ systemctl reset-failed munge.service; timeout 5 systemctl start munge.service; }",
    node_policy.RESTART_MUNGE: "timeout 10 systemctl restart munge.service",
    node_policy.START_SLURMD: "systemctl --no-block start slurmd.service",
    node_policy.CLEAR_SLURMD: "systemctl reset-failed slurmd.service; systemctl --no-block start slurmd.service",
    node_policy.RESTART_SLURMD: "systemctl --no-block restart slurmd.service",
    node_policy.FREE_SLURMD: "systemctl --no-block restart slurmd.service",
    node_policy.CORRECT_SLURMD: "mkdir -p {folder} && printf \"{text}\" >{folder}/zz-hpcguard.conf && systemctl daemon-reload && "
    "systemctl --no-block restart slurmd.service".format(folder=_DROP_IN, text=_CORRECTION),
}

# What ssh says, and what that means.
_SSH_PROBLEMS = (
    ("HOST IDENTIFICATION HAS CHANGED", u"主机密钥已改变", u"its host key changed"),
    ("Host key verification failed", u"主机密钥未知", u"its host key is not known here"),
    ("Permission denied", u"SSH 拒绝登录", u"ssh is not let in"),
    ("Could not resolve", u"无法解析主机名", u"its name cannot be resolved"),
    ("timed out", u"连接超时", u"no answer in time"),
    ("not responding", u"连接超时", u"no answer in time"),
    ("Connection refused", u"SSH 连接被拒绝", u"ssh is refused"),
    ("No route to host", u"网络不可达", u"no route to it"),
)
LATE = (u"未在时限内应答", u"no answer in time")


def parse(done, asked, answered, credential=True):
    """The answer to LOOK, as :func:`node_signs.signs` wants it.

    :param done: result of the call, None where there was no time for it
    :param asked: wall clock of the controller before the call
    :param answered: and after it
    :param credential: whether the controller's munge gave a credential to ask with
    """
    parts = {"munge": {}, "slurmd": {}, "heartbeat": {}, "facts": {}}
    foreign, part, ended = [], None, False
    for line in done.out.splitlines() if done else ():
        if line.startswith("hpcguard:"):
            part = line[len("hpcguard:") :].strip()
            ended = part == "end"
        elif part == "foreign":
            foreign.append(line)
        elif part in parts and "=" in line:
            key, value = line.split("=", 1)
            parts[part][key] = value.strip()
    facts = parts.pop("facts")
    now = _number(facts.get("now"), asked)
    changed = _number(facts.get("key"), None)
    host = {
        "problem": None if ended else ssh_problem(done),
        "hold": facts.get("hold") == "yes",
        "credential": facts.get("credential") == "yes",
        "foreign": last_line("\n".join(foreign)) if credential and ended else None,
        "now": now,
        "uptime": _number(facts.get("uptime"), 0),
        # by its own clock, so that a wrong one does not matter
        "key_age": None if changed is None else now - changed,
        # within the call, any moment is the right one
        "skew": now - answered if now > answered else min(0, now - asked),
    }
    host.update(parts)
    return host


def unseen():
    """A host that was not asked."""
    return parse(None, 0, 0)


def ssh_problem(done):
    """Why a host could not be looked at, in both languages."""
    if done is None or done.timed_out or done.rc == 124:
        return LATE
    for words, chinese, english in _SSH_PROBLEMS:
        if words in done.err:
            return chinese, english
    said = last_line(done.err) or u"status %s" % done.rc
    return said, said


def last_line(text):
    """The last line of what a program said, harmless."""
    return (finding.clean_lines(text, 1) or [u""])[-1][:200]


def _number(text, otherwise):
    try:
        return float(text)
    except (TypeError, ValueError):
        return otherwise
