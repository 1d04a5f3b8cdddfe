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

from . import scontrol_text

NOTHING, START_MUNGE, RECONFIGURE, START_SLURMD, RESTART_SLURMD = (
    "nothing",
    "start munge",
    "reconfigure",
    "start slurmd",
    "restart slurmd",
)
ACTIONS = (NOTHING, START_MUNGE, RECONFIGURE, START_SLURMD, RESTART_SLURMD)

# Flags by which somebody, or Slurm on somebody's behalf, says that the node is meant to be as it is.
_MEANT = (
    (("POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP"), "已由 Slurm 断电", "powered down by Slurm"),
    (("REBOOT_REQUESTED", "REBOOT_ISSUED", "REBOOT"), "正在重启", "a reboot is under way"),
    (("MAINT", "MAINTENANCE"), "处于维护预约", "under maintenance"),
    (("DRAIN", "FAIL"), "已被排空", "drained"),
)


def meant(node):
    """Why the node is left alone whatever its host looks like, as (zh, en); None when it may be looked at."""
    if node["base"] == "FUTURE":
        return "尚未启用", "not in use yet"
    for flags, chinese, english in _MEANT:
        if set(flags) & set(node["flags"]):
            return chinese, english
    if node["base"] == "DOWN" and node["reason_user"] not in ("", "slurm") and not scontrol_text.is_ours(node["reason"]):
        return "管理员置为 DOWN", "set DOWN by an administrator"
    return None


def missing(node):
    """True when slurmctld does not hear from the node."""
    return node["base"] in ("DOWN", "UNKNOWN") or "NOT_RESPONDING" in node["flags"]


def decide(node, host):
    """What to do about a node.

    :param node: entry of the cluster fact's nodes
    :param host: {problem, hold, munge: {active}, credential, slurmd: properties of systemctl show}; problem is a text
        when the host could not be looked at
    :returns: (action, zh, en)
    """
    reason = meant(node)
    if reason:
        return (NOTHING,) + reason
    if host["problem"]:
        return NOTHING, "无法登录: " + host["problem"], "cannot be looked at: " + host["problem"]
    if host["hold"]:
        return NOTHING, "存在保留文件", "a hold file is there"
    munge, slurmd = host["munge"], host["slurmd"]
    if munge.get("LoadState") == "masked" or slurmd.get("LoadState") == "masked":
        return NOTHING, "单元已被屏蔽", "a unit is masked"
    if not host["credential"]:
        if munge.get("ActiveState") == "active":
            return NOTHING, "munge 在运行但凭证无效(密钥或时钟)", "munge runs but its credential is refused (key or clock)"
        return START_MUNGE, "munge 未运行", "munge does not run"
    return _decide_slurmd(node, slurmd)


def _decide_slurmd(node, slurmd):
    active, sub = slurmd.get("ActiveState"), slurmd.get("SubState")
    if slurmd.get("UnitFileState") == "disabled" and active != "active":
        return NOTHING, "slurmd 已被禁用", "slurmd is disabled"
    if active == "failed":
        return START_SLURMD, "slurmd 已失败", "slurmd has failed (%s)" % slurmd.get("Result", "")
    if active == "inactive":
        # ended with exit status 0: somebody stopped it
        return NOTHING, "slurmd 被人为停止", "slurmd was stopped on purpose"
    if active == "activating":
        return NOTHING, "slurmd 正在启动", "slurmd is being started (%s)" % sub
    if not missing(node):
        return NOTHING, "正常", "well"
    if active == "active" and sub == "running":
        return RECONFIGURE, "slurmd 与 munge 正常但未注册", "slurmd and munge are well, but slurmctld does not hear from it"
    return NOTHING, "slurmd 状态不明", "slurmd is %s/%s" % (active, sub)


def after_reconfigure(node, host):
    """What to do about a node that was well on its host and still is not heard of after a reconfigure."""
    if not missing(node):
        return NOTHING, "已恢复", "back in service"
    if host["slurmd"].get("KillMode") != "process":
        return NOTHING, "KillMode 不是 process, 重启会杀死作业", "KillMode is not process: a restart would end its jobs"
    return RESTART_SLURMD, "重新配置后仍未注册", "still not heard of after a reconfigure"
