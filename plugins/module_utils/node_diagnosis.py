# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a node takes no jobs, who acts, and whether it is safe to resume. Pure.

A node is isolated by DRAIN, never by DOWN, which ends its jobs.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import quantities, scontrol_text
from .finding import clean_text, evidence, finding, some, title

# (how the reason begins, in lower case; cause; who acts; safe to resume; Chinese, English; next step in Chinese, in English)
REASONS = (
    ("not responding", "not_responding", "admin", False, u"slurmd 没有应答", u"slurmd does not answer",
     u"查网络, slurmd, munge 与时钟; 修好后自动恢复, 或 scontrol reconfigure",
     u"look at the network, slurmd, munge and the clock; it returns by itself, or by scontrol reconfigure"),
    ("node unexpectedly rebooted", "rebooted", "admin", True, u"节点意外重启", u"the node rebooted unasked",
     u"查内核日志与电源, 无硬件问题后 resume", u"look at the kernel log and the power; resume when nothing is wrong"),
    ("kill task failed", "kill_task", "admin", False, u"进程在 SIGKILL 后仍未结束", u"a process did not end on SIGKILL",
     u"查 D 状态进程与挂起的 NFS/GPU; 进程消失之前不要 resume",
     u"look for processes in state D, hung NFS or GPU; do not resume while they are there"),
    ("prolog", "prolog_epilog", "admin", False, u"prolog 失败", u"the prolog failed",
     u"先修 prolog, 再 resume 节点, 最后 release 作业", u"mend the prolog first, then resume the node, then release the jobs"),
    ("epilog", "prolog_epilog", "admin", False, u"epilog 失败", u"the epilog failed",
     u"先修 epilog, 再 resume", u"mend the epilog first, then resume"),
    ("job env setup error", "prolog_epilog", "admin", False, u"无法建立作业环境", u"a job's environment could not be set up",
     u"在节点上检查 su - USER", u"see su - USER on the node"),
    ("batch job complete failure", "launch", "admin", False, u"作业启动或收尾失败", u"a job could not be launched or ended",
     u"查 slurmd.log 与 SlurmdSpoolDir 空间", u"look at slurmd.log and at the space in SlurmdSpoolDir"),
    ("duplicate jobid", "launch", "admin", False, u"作业号重复", u"a job number came twice",
     u"检查节点上残留的作业, 再 resume", u"look for left-over jobs on the node, then resume"),
    ("low ", "config_or_hardware", "admin", False, u"硬件少于配置", u"it has less than is configured",
     u"比较 slurmd -C 与 slurm.conf: 内存条, CPU 或配置", u"compare slurmd -C with slurm.conf: a lost DIMM, a CPU or the file"),
    ("gres/", "config_or_hardware", "admin", False, u"GRES 数量与配置不符", u"its GRES differ from what is configured",
     u"0 个: 驱动晚于 slurmd, 重启 slurmd; 少几个: 硬件; 其他: gres.conf",
     u"none: the driver came later than slurmd, restart slurmd; some less: hardware; else: gres.conf"),
    ("resumetimeout reached", "power", "admin", False, u"节点未在 ResumeTimeout 内启动", u"it did not come up within ResumeTimeout",
     u"查电源脚本", u"look at the power scripts"),
    ("reboot", "power", "admin", False, u"按要求重启中", u"a reboot was asked for", u"等待重启完成", u"wait until it is over"),
    ("no network address found", "dns", "admin", False, u"无法解析节点地址", u"its address cannot be resolved",
     u"查 DNS 或 hosts", u"look at DNS or hosts"),
    ("slurmdspooldir is full", "disk", "admin", False, u"SlurmdSpoolDir 已满", u"SlurmdSpoolDir is full",
     u"清理后 resume", u"make room, then resume"),
    ("hc:", "health_check", "admin", False, u"健康检查隔离了它", u"the health check drained it",
     u"修好后由健康检查自己恢复", u"mend it; the health check takes it back by itself"),
    ("nhc:", "health_check", "admin", False, u"NHC 隔离了它", u"NHC drained it", u"修好后由 NHC 恢复", u"mend it; NHC takes it back"),
)  # fmt: skip
# Flags that say more than a reason, in this order.
FLAGS = (
    ("INVALID_REG", "invalid", u"注册信息与配置不符", u"its registration does not go with the configuration",
     u"重启 slurmd 使其按新配置注册", u"restart slurmd, so that it registers under the new configuration"),
    ("POWERED_DOWN", "powered_down", u"由 Slurm 关机节能", u"powered down by Slurm", u"无需处理", u"nothing to do"),
    ("POWERING_DOWN", "powered_down", u"正在关机", u"being powered down", u"无需处理", u"nothing to do"),
    ("POWERING_UP", "powered_down", u"正在开机", u"being powered up", u"等待", u"wait"),
    ("MAINT", "maintenance", u"维护预留中", u"in a maintenance reservation", u"无需处理", u"nothing to do"),
    ("REBOOT_ISSUED", "power", u"正在重启", u"being rebooted", u"等待", u"wait"),
    ("REBOOT_REQUESTED", "power", u"等待重启", u"to be rebooted", u"等待", u"wait"),
)  # fmt: skip
# A node on which so many users' jobs end so soon, in so many seconds.
USERS, SOON, WITHIN = 3, 60, 1800


def explain(node):
    """A finding about a node of ``scontrol_text.parse_nodes``, None when it takes jobs."""
    reason = node["reason"].lower()
    ill = not scontrol_text.in_service(node) or "DRAIN" in node["flags"]
    if not ill and "MAINT" not in node["flags"]:
        return None
    for flag, cause, zh, en, next_zh, next_en in FLAGS:
        if flag in node["flags"]:
            return _finding(node, cause, "admin" if cause == "invalid" else "nobody", False, (zh, en), (next_zh, next_en))
    for start, cause, who, safe, zh, en, next_zh, next_en in REASONS:
        # several reasons may stand in one, the first one first
        if reason.startswith(start):
            return _finding(node, cause, who, safe, (zh, en), (next_zh, next_en))
    if node["base"] == "FUTURE":
        return _finding(node, "future", "nobody", False, (u"尚未建成 (FUTURE)", u"not there yet (FUTURE)"), (u"无需处理", u"nothing to do"))
    if node["base"] == "DOWN" or "NOT_RESPONDING" in node["flags"]:
        start = REASONS[0] if not node["reason"] else None
        if start:
            return _finding(node, start[1], start[2], start[3], start[4:6], start[6:8])
    words = (u"由人隔离", u"taken out by a person") if node["reason"] else (u"被隔离, 未写原因", u"taken out without a reason")
    asked = (node["reason_user"] or u"管理员", node["reason_user"] or u"an admin")
    step = (u"询问 %s; 不要自动恢复" % asked[0], u"ask %s; never resume it by routine" % asked[1])
    return _finding(node, "by_a_person", "admin", False, words, step)


def _finding(node, cause, who, safe, words, step):
    told = u"%s reason=%s [%s@%s]" % (node["state"], node["reason"] or u"-", node["reason_user"] or u"-", node["reason_time"] or u"-")
    resume = title(u"可以 resume", u"safe to resume") if safe else title(u"不要直接 resume", u"not to be resumed as it is")
    return finding(
        "node_" + cause, "info" if who == "nobody" else "warning", clean_text(node["name"], 80), title(*words), resume, title(*step),
        [evidence("scontrol show node", told)], who=who, confidence="certain",
    )  # fmt: skip


def black_holes(jobs):
    """Nodes on which jobs of several users end badly within a minute: the node, not the jobs."""
    by_node = {}
    for job in jobs:
        ended = quantities.epoch(job["end"])
        soon = job["elapsed"] is not None and job["elapsed"] < SOON
        if job["state"] in ("FAILED", "NODE_FAIL", "LAUNCH_FAILED") and soon and ended is not None:
            by_node.setdefault(job["node_list"], []).append((ended, job))
    found = []
    for name, ended in sorted(by_node.items()):
        ended.sort(key=lambda pair: pair[0])
        for begun, _job in ended:
            members = [job for when, job in ended if begun <= when <= begun + WITHIN]
            users = {job["user"] for job in members}
            if name and len(users) >= USERS:
                drain = u"scontrol update nodename=%s state=drain reason=..." % clean_text(name, 60)
                found.append(finding(
                    "node_black_hole", "error", clean_text(name, 80),
                    title(u"多个用户的作业在此节点上立即失败", u"jobs of several users fail at once on this node"),
                    title(u"原因在节点, 不在作业", u"the cause is the node, not the jobs"),
                    title(u"%s, 再查 slurmd.log, 挂载与驱动" % drain, u"%s, then look at slurmd.log, mounts and drivers" % drain),
                    [evidence("sacct", u"%d jobs of %d users within %d min: %s" % (
                        len(members), len(users), WITHIN // 60, some([job["id"] for job in members])))],
                    who="admin", confidence="probable",
                ))  # fmt: skip
                break
    return found
