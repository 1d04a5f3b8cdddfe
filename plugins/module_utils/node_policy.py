# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the patrol may do about a node: one table, by its state in Slurm and what was seen on the host. Pure.

The table is read from the top, the first row that fits decides. That a reconfigure comes before any restart is because a
node that is DOWN and not responding is not pinged any more, but registers at a reconfigure.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import node_signs

NOTHING, LEAVE, WAIT, PERSON = "nothing", "leave alone", "wait", "needs a person"
START_MUNGE, RESTART_MUNGE, RECONFIGURE = "start munge", "restart munge", "reconfigure"
START_SLURMD, RESTART_SLURMD, FREE_SLURMD, CORRECT_SLURMD = "start slurmd", "restart slurmd", "free slurmd", "correct slurmd's type"
CLEAR_SLURMD, RESUME, UNDRAIN = "clear start limit and start slurmd", "resume", "undrain"

PASSIVE = (NOTHING, LEAVE, WAIT, PERSON)
ON_MUNGE = (START_MUNGE, RESTART_MUNGE)
ON_SLURMD = (START_SLURMD, CLEAR_SLURMD, RESTART_SLURMD, FREE_SLURMD, CORRECT_SLURMD)
ON_HOST = ON_MUNGE + ON_SLURMD
ON_NODE = (RESUME, UNDRAIN)
ACTIONS = PASSIVE + ON_HOST + (RECONFIGURE,) + ON_NODE

# The same action on the same node; then a person has to look.
MOST_TRIES = 3
# In a cluster this small, every node may be touched at once, and that all are gone says nothing of the network.
SMALL = 3


class Row:
    """One decision: the signs under which it holds (all of them), the action, why in both languages, and where that is from."""

    def __init__(self, when, action, chinese, english, source):
        self.when = {sign: values if isinstance(values, tuple) else (values,) for sign, values in when.items()}
        self.action = action
        self.chinese = chinese
        self.english = english
        self.source = source

    def fits(self, signs):
        """Whether this row holds for these signs."""
        return all(signs[sign] in values for sign, values in self.when.items())


TABLE = (
    # --- what somebody meant, or Slurm on somebody's behalf: the host is not even looked at
    Row({"state": "future"}, LEAVE, u"尚未启用", u"not in use yet", "slurm.conf(5) FUTURE"),
    Row({"state": "powered"}, LEAVE, u"已由 Slurm 断电", u"powered down by Slurm", "case 64"),
    Row({"state": "reboot"}, LEAVE, u"正在重启", u"a reboot is under way", "case 39"),
    Row({"state": "maintenance"}, LEAVE, u"处于维护预约", u"under maintenance", "case 72"),
    Row({"state": "fail"}, LEAVE, u"已被标为 FAIL", u"marked FAIL", "scontrol(1)"),
    Row({"state": "rollout"}, LEAVE, u"变更流程已关闭该节点", u"a rollout has closed it", "S43"),
    Row({"state": "processes left"}, PERSON, u"作业进程未能清除, 处理后由人工 resume",
        u"processes of a job could not be ended; a person resumes it once they are gone", "scontrol(1), Kill task failed"),
    Row({"state": "prolog"}, PERSON, u"Prolog/Epilog 出错: 先修脚本, 再 resume 节点, 最后 release 作业",
        u"its prolog fails: mend that, then resume the node, then release the jobs", "case 70"),
    Row({"state": "misconfigured"}, PERSON, u"配置与硬件不符", u"what it has is not what slurm.conf says", "case 68"),
    Row({"state": "drained"}, LEAVE, u"已被排空: {reason}", u"drained: {reason}", "case 74"),
    Row({"state": "set down"}, LEAVE, u"有人置为 DOWN: {reason}", u"set DOWN by somebody: {reason}", "S7"),
    # --- what the host says of somebody's wish
    Row({"host": "unseen"}, WAIT, u"无法检查: {problem_zh}", u"cannot be looked at: {problem_en}", "case 101"),
    Row({"host": "hold"}, LEAVE, u"存在保留文件", u"a hold file is there", "case 74"),
    Row({"munge": "absent"}, LEAVE, u"munge 单元为 {munge}", u"munge.service is {munge}", "case 74"),
    Row({"slurmd": "absent"}, LEAVE, u"slurmd 单元为 {slurmd}", u"slurmd.service is {slurmd}", "case 74"),
    Row({"munge": "disabled"}, LEAVE, u"munge 已被禁用", u"munge is disabled", "case 74"),
    Row({"slurmd": "disabled"}, LEAVE, u"slurmd 已被禁用", u"slurmd is disabled", "case 74"),
    Row({"slurmd": "stopped"}, LEAVE, u"slurmd 被人为停止", u"slurmd was stopped on purpose", "case 74"),
    Row({"slurmd": "running, disabled", "heard": ("late", "lost", "down")}, LEAVE, u"slurmd 已被禁用",
        u"slurmd is disabled", "case 74"),
    # --- munge first: without it slurmd hears and says nothing
    Row({"clock": "wrong"}, PERSON, u"时钟偏差 {skew}, munge 拒绝凭证: 请修复 NTP",
        u"its clock is off by {skew}, so munge refuses its credentials: mend its time service", "munge(7)"),
    Row({"munge": "busy"}, WAIT, u"munge 为 {munge}, 但凭证无效", u"munge is {munge}, but gives no good credential", "S15"),
    Row({"munge": "dead"}, START_MUNGE, u"munge 未运行: {munge}", u"munge does not run: {munge}", "S15"),
    Row({"munge": "old key", "jobs": "kept"}, RESTART_MUNGE, u"munge 仍在使用旧密钥", u"munge has an old key in use", "case 28"),
    Row({"munge": "old key"}, PERSON, u"munge 仍在使用旧密钥; 重启它可能连带重启 slurmd 并杀死作业 (KillMode 不是 process)",
        u"munge has an old key in use; its restart may restart slurmd, whose KillMode would end the jobs", "case 28, S25"),
    Row({"munge": "other key"}, PERSON, u"munge 密钥与控制节点不同", u"its munge key is another than the controller's", "case 28"),
    Row({"munge": "refused"}, PERSON, u"拒绝控制节点的 munge 凭证: {foreign}", u"it refuses the controller's munge credential: {foreign}",
        "case 28"),
    # --- slurmd
    Row({"slurmd": "wrong type"}, CORRECT_SLURMD, u"slurmd 单元 Type=forking 但以前台运行, 永远无法就绪; 临时修正, 单元文件需人工修改",
        u"the unit says Type=forking of a slurmd in the foreground, so it never gets ready; corrected until the next boot,"
        u" a person has to correct the unit", "5.3.1, S40, S67"),
    Row({"slurmd": "stuck", "jobs": "kept"}, FREE_SLURMD, u"slurmd 启动卡住: {slurmd}", u"slurmd is stuck in its start: {slurmd}",
        "6.5, S61"),
    Row({"slurmd": "stuck"}, PERSON, u"slurmd 启动卡住; KillMode 不是 process, 重启会杀死作业",
        u"slurmd is stuck in its start; KillMode is not process: a restart would end its jobs", "S25"),
    Row({"slurmd": "busy"}, WAIT, u"systemd 正在处理 slurmd: {slurmd}", u"systemd is at work on slurmd: {slurmd}", "case 105"),
    Row({"slurmd": "start limit"}, CLEAR_SLURMD, u"slurmd 达到启动次数上限: {slurmd}", u"slurmd ran into its start limit: {slurmd}",
        "case 20"),
    Row({"slurmd": "failed"}, START_SLURMD, u"slurmd 已失败: {slurmd}", u"slurmd has failed: {slurmd}", "case 74"),
    Row({"slurmd": "never started"}, START_SLURMD, u"slurmd 开机后从未启动", u"slurmd was never started since the boot", "2B.6"),
    Row({"slurmd": "stopped with munge"}, START_SLURMD, u"slurmd 随 munge 一起停止", u"slurmd was stopped because munge was",
        "systemd.unit(5)"),
    # --- both run; does slurmctld think so?
    Row({"state": "no gres", "jobs": "kept", "restarted": "no"}, RESTART_SLURMD, u"slurmd 启动时未见 GRES; 仅重启一次",
        u"slurmd saw none of its gres when it started; restarted once", "case 68"),
    Row({"state": "no gres"}, PERSON, u"GRES 缺失, 需检查驱动或硬件", u"its gres is missing: driver or hardware", "case 68"),
    Row({"state": "rebooted", "heard": "down", "outage": "fits"}, RESUME, u"随本次断电重启, 现已正常",
        u"it rebooted in this outage and is well", "case 66"),
    Row({"state": "rebooted", "heard": "down"}, PERSON, u"意外重启, 等待人工 resume", u"it rebooted unexpectedly and waits for a resume",
        "case 66"),
    Row({"state": "our drain", "heard": "yes", "health": "good"}, UNDRAIN, u"健康检查已恢复: {reason}",
        u"its health check is good again: {reason}", "2.1"),
    Row({"state": "our drain", "heard": "yes"}, WAIT, u"健康检查排空, 等待恢复: {reason}",
        u"drained by its health check, which opens it again: {reason}", "2.1"),
    Row({"heard": "yes"}, NOTHING, u"正常", u"well", "scontrol(1)"),
    Row({"reconfigured": "no"}, RECONFIGURE, u"slurmd 与 munge 正常但未注册",
        u"slurmd and munge are well, but slurmctld does not hear from it", "S9"),
    Row({"state": "missed", "heard": "down", "outage": "fits"}, RESUME, u"曾失联, 现已正常, 但仍为 DOWN (ReturnToService)",
        u"it did not respond, is well now, and ReturnToService leaves it DOWN", "6.6"),
    Row({"heard": "lost", "jobs": "kept"}, RESTART_SLURMD, u"重新配置后仍未注册", u"still not heard of after a reconfigure", "S9"),
    Row({"heard": "lost"}, PERSON, u"重新配置后仍未注册; KillMode 不是 process, 重启会杀死作业",
        u"still not heard of after a reconfigure; KillMode is not process: a restart would end its jobs", "S25"),
    Row({"heard": "late"}, WAIT, u"重新配置后尚未恢复", u"not back in service after a reconfigure yet", "S10"),
    Row({}, PERSON, u"重新配置后仍为 DOWN", u"still DOWN after a reconfigure, though it answers", "S7"),
)  # fmt: skip

UNKNOWN_PAST = {"reconfigured": False, "restarted": False, "tries": {}}


def row_of(signs):
    """The row that decides."""
    return next(row for row in TABLE if row.fits(signs))


def meant(node):
    """Why the node is left alone whatever its host looks like, as (zh, en); None when it may be looked at."""
    row = _meant(node)
    return row and (row.chinese.format(reason=node["reason"]), row.english.format(reason=node["reason"]))


def _meant(node):
    """The row that decides without a look at the host; these come first in the table."""
    state = node_signs.state_of(node)
    for row in TABLE:
        if list(row.when) != ["state"]:
            return None
        if state in row.when["state"]:
            return row
    return None


def missing(node):
    """True when slurmctld does not hear from the node, or does and has it DOWN."""
    return node_signs.heard(node) != "yes"


def decide(node, host, past=None, since=None, stuck_after=node_signs.STUCK_AFTER):
    """What to do about a node: (action, zh, en). The parameters are those of :func:`node_signs.signs`."""
    past = past or UNKNOWN_PAST
    row = _meant(node)
    if row:
        return (row.action,) + meant(node)
    signs, details = node_signs.signs(node, host, past, since, stuck_after)
    row = row_of(signs)
    chinese, english = row.chinese.format(**details), row.english.format(**details)
    done, left = past["tries"].get(row.action, (0, 0))
    if row.action in PASSIVE or row.action == RECONFIGURE or not done:
        return row.action, chinese, english
    if done >= MOST_TRIES:
        return PERSON, chinese + u"; 已处理 %d 次, 需人工检查" % done, english + u"; tried %d times, a person has to look" % done
    if left > 0:
        return WAIT, chinese + u"; %d 秒后再试" % left, english + u"; tried before, again in %d s" % left
    return row.action, chinese, english


def most_nodes(total, most, percent):
    """How many hosts may be touched in one round: few of many, so that a shared cause is not made worse."""
    return total if total <= SMALL else min(most, max(SMALL, total * percent // 100))


def suspect(nodes, hosts, decisions):
    """Why the controller or the network is the likelier culprit, as (zh, en); None when it is not.

    More than a third cannot be seen, or are silent with both daemons well.

    :param nodes: those that may be looked at
    :param hosts: {name: what was seen there}
    :param decisions: {name: action}
    """
    lost = [
        node["name"]
        for node in nodes
        if hosts[node["name"]]["problem"] or (missing(node) and decisions[node["name"]] in (RECONFIGURE, RESTART_SLURMD))
    ]
    if len(nodes) <= SMALL or len(lost) * 3 <= len(nodes):
        return None
    numbers = {"lost": len(lost), "total": len(nodes)}
    return (
        u"{lost}/{total} 个节点同时失联: 更可能是控制节点或网络故障, 不动任何节点".format(**numbers),
        u"{lost} of {total} nodes are gone at once: rather the controller or network, so none is touched".format(**numbers),
    )


def may_start(show):
    """Whether a daemon of the controller is to be started after a boot: enabled, and neither at work nor masked."""
    return (
        show.get("LoadState") == "loaded"
        and show.get("UnitFileState") == "enabled"
        and show.get("ActiveState") in ("inactive", "failed")
        and show.get("Job", "0") in ("", "0")
    )


def explain():
    """The table as lines of text."""
    rows = [("#", u"signs", u"action", u"why", u"source")]
    for number, row in enumerate(TABLE, 1):
        signs = u", ".join(u"%s=%s" % (sign, u"|".join(row.when[sign])) for sign, _values in node_signs.SIGNS if sign in row.when)
        rows.append((u"%d" % number, signs or u"else", row.action, u"%s / %s" % (row.english, row.chinese), row.source))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [u"  ".join(cell.ljust(width) for cell, width in zip(row, widths)) + u"  %s  [%s]" % row[3:] for row in rows]
