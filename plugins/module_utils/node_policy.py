# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the patrol may do about a node, by its state in Slurm and what was seen on the host. Pure.

The tables are read from the top, the first line that fits counts. Sources: SOP chapters 4 and 5, scontrol(1) on node
states, and, for the reconfigure before any restart, ``ping_nodes.c``: a node that is DOWN and not responding is not
pinged any more, but registers at a reconfigure.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

NOTHING, START_MUNGE, RECONFIGURE, START_SLURMD, RESTART_SLURMD = (
    "nothing",
    "start munge",
    "reconfigure",
    "start slurmd",
    "restart slurmd",
)
ACTIONS = (NOTHING, START_MUNGE, RECONFIGURE, START_SLURMD, RESTART_SLURMD)
ON_HOST = (START_MUNGE, START_SLURMD, RESTART_SLURMD)

# The same action on the same node, within an hour; after that a person has to look.
MOST_TRIES = 2
# In a cluster this small, every node may be touched at once.
SMALL = 3

# Beginnings of flags by which somebody, or Slurm on somebody's behalf, says that the node is meant to be as it is.
_MEANT = (
    ("POWER", u"已由 Slurm 断电", u"powered down by Slurm"),
    ("REBOOT", u"正在重启", u"a reboot is under way"),
    ("MAINT", u"处于维护预约", u"under maintenance"),
    ("DRAIN", u"已被排空", u"drained"),
    ("FAIL", u"已被标为 FAIL", u"marked FAIL"),
)

# Why Slurm itself set a node DOWN, by the beginning of the reason; every other reason is somebody's.
NOT_RESPONDING, REBOOTED, MISCONFIGURED, SOMEBODY = "not responding", "rebooted", "misconfigured", "somebody"
_REASONS = (
    (re.compile(r"not responding", re.I), NOT_RESPONDING),
    (re.compile(r"node unexpectedly rebooted", re.I), REBOOTED),
    (re.compile(r"low (realmemory|tmpdisk|cpus|socket)|gres/\S+ count|node configuration differs", re.I), MISCONFIGURED),
)

# Two units stopped this close together (microseconds) were stopped by one command.
_TOGETHER = 5000000


def reason_class(node):
    """Whose word keeps the node DOWN: one of the classes above, empty where no reason is given."""
    if "INVALID_REG" in node["flags"]:
        return MISCONFIGURED
    if not node["reason"]:
        return ""
    for pattern, kind in _REASONS:
        if pattern.match(node["reason"]):
            return kind
    return SOMEBODY


def meant(node):
    """Why the node is left alone whatever its host looks like, as (zh, en); None when it may be looked at."""
    if node["base"] == "FUTURE":
        return u"尚未启用", u"not in use yet"
    for beginning, chinese, english in _MEANT:
        if [flag for flag in node["flags"] if flag.startswith(beginning)]:
            return chinese, english
    if node["base"] == "DOWN" and reason_class(node) == SOMEBODY:
        return u"有人置为 DOWN", u"set DOWN by somebody"
    return None


def missing(node):
    """True when slurmctld does not hear from the node."""
    return node["base"] in ("DOWN", "UNKNOWN") or "NOT_RESPONDING" in node["flags"]


def most_nodes(total, most):
    """How many hosts may be touched in one round: few of many, so that a shared cause is not made worse."""
    return total if total <= SMALL else min(most, max(SMALL, total // 3))


def decide(node, host, past=None):
    """What to do about a node.

    :param node: as :func:`scontrol_text.parse_nodes` gives it
    :param host: {problem, hold, credential, munge, slurmd}: problem is (zh, en) when the host could not be looked at,
        munge and slurmd are properties of ``systemctl show``
    :param past: {reconfigured: the node did not come back by an earlier reconfigure, tries: {action: number}}
    :returns: (action, zh, en)
    """
    past = past or {"reconfigured": False, "tries": {}}
    action, chinese, english = _decide(node, host, past)
    if action in ON_HOST and past["tries"].get(action, 0) >= MOST_TRIES:
        return NOTHING, chinese + u"; 已多次处理, 需人工检查", english + u"; tried often enough, a person has to look"
    return action, chinese, english


def _decide(node, host, past):
    reason = meant(node)
    if reason:
        return (NOTHING,) + reason
    if host["problem"]:
        return NOTHING, u"无法检查: " + host["problem"][0], u"cannot be looked at: " + host["problem"][1]
    if host["hold"]:
        return NOTHING, u"存在保留文件", u"a hold file is there"
    for name in ("munge", "slurmd"):
        if host[name].get("LoadState") != "loaded":
            loaded = host[name].get("LoadState", "unknown")
            return NOTHING, u"%s 单元为 %s" % (name, loaded), u"%s.service is %s" % (name, loaded)
    return _decide_munge(host) or _decide_slurmd(host) or _decide_registration(node, host, past)


def _decide_munge(host):
    if host["credential"]:
        return None
    active = host["munge"].get("ActiveState")
    if active in ("active", "activating", "reloading"):
        return NOTHING, u"munge 在运行但凭证无效", u"munge is %s, but its credential is refused" % active
    if host["munge"].get("UnitFileState") == "disabled":
        return NOTHING, u"munge 已被禁用", u"munge is disabled"
    return START_MUNGE, u"munge 未运行", u"munge does not run"


def _decide_slurmd(host):
    slurmd = host["slurmd"]
    active, sub = slurmd.get("ActiveState"), slurmd.get("SubState")
    if active == "active" and sub == "running":
        return None
    if slurmd.get("UnitFileState") == "disabled":
        return NOTHING, u"slurmd 已被禁用", u"slurmd is disabled"
    if slurmd.get("Job", "0") not in ("", "0"):
        return NOTHING, u"systemd 正在处理 slurmd", u"systemd is at work on slurmd"
    if active == "failed":
        return START_SLURMD, u"slurmd 已失败", u"slurmd has failed (%s)" % slurmd.get("Result", "")
    if active == "inactive":
        if slurmd.get("ExecMainStartTimestampMonotonic") == "0":
            return START_SLURMD, u"slurmd 开机后从未启动", u"slurmd was never started since the boot"
        if _stopped_with_munge(host):
            return START_SLURMD, u"slurmd 随 munge 一起停止", u"slurmd was stopped because munge was"
        return NOTHING, u"slurmd 被人为停止", u"slurmd was stopped on purpose"
    # a start that is under way would only begin anew
    return NOTHING, u"slurmd 处于 %s/%s" % (active, sub), u"slurmd is %s/%s" % (active, sub)


def _stopped_with_munge(host):
    """A unit that requires another is stopped with it, and not started with it again."""
    needs = host["slurmd"].get("Requires", "").split() + host["slurmd"].get("BindsTo", "").split()
    ended = [int(host[name].get("InactiveEnterTimestampMonotonic") or 0) for name in ("munge", "slurmd")]
    return "munge.service" in needs and all(ended) and abs(ended[0] - ended[1]) <= _TOGETHER


def _decide_registration(node, host, past):
    """Both daemons are well; does slurmctld think so?"""
    kind = reason_class(node)
    if kind == MISCONFIGURED:
        return NOTHING, u"配置与硬件不符", u"what it has is not what slurm.conf says"
    if not missing(node):
        return NOTHING, u"正常", u"well"
    if kind == REBOOTED:
        return NOTHING, u"意外重启, 等待人工 resume", u"it rebooted unexpectedly and waits for a resume"
    if not past["reconfigured"]:
        return RECONFIGURE, u"slurmd 与 munge 正常但未注册", u"slurmd and munge are well, but slurmctld does not hear from it"
    if node["base"] != "DOWN" or "NOT_RESPONDING" not in node["flags"]:
        return NOTHING, u"重新配置后仍未恢复", u"not back in service after a reconfigure"
    if host["slurmd"].get("KillMode") != "process":
        return NOTHING, u"KillMode 不是 process, 重启会杀死作业", u"KillMode is not process: a restart would end its jobs"
    return RESTART_SLURMD, u"重新配置后仍未注册", u"still not heard of after a reconfigure"
