# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of jobs, and what each means for whoever asks. Pure.

Slurm prints a base state or a flag as one word (the same from 20.11 to 26.05). sacct may cut it ("OUT_OF_ME+") and adds who
cancelled ("CANCELLED by 1001").
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

WAITING, LIVE, GOOD, BAD, UNKNOWN = "waiting", "live", "good", "bad", "unknown"

# state -> (what kind of state, Chinese, English)
STATES = {
    "PENDING": (WAITING, u"排队等待", u"waiting in the queue"),
    "REQUEUED": (WAITING, u"已重新排队", u"put back into the queue"),
    "REQUEUE_HOLD": (WAITING, u"重新排队并被挂起", u"put back into the queue and held"),
    "SPECIAL_EXIT": (WAITING, u"以特殊退出码重新排队并被挂起", u"put back and held after a special exit code"),
    "RESV_DEL_HOLD": (WAITING, u"预留被删除而挂起", u"held because its reservation was deleted"),
    "REQUEUE_FED": (WAITING, u"在联邦中重新排队", u"put back into the queue of the federation"),
    "CONFIGURING": (LIVE, u"节点准备中", u"its nodes are made ready"),
    "POWER_UP_NODE": (LIVE, u"节点开机中", u"its nodes power up"),
    "RUNNING": (LIVE, u"运行中", u"running"),
    "SUSPENDED": (LIVE, u"已暂停", u"suspended"),
    "STOPPED": (LIVE, u"已停止但仍占用资源", u"stopped, its resources kept"),
    "SIGNALING": (LIVE, u"正在发送信号", u"being signalled"),
    "RESIZING": (LIVE, u"正在改变规模", u"changing its size"),
    "STAGE_OUT": (LIVE, u"正在导出数据", u"staging its data out"),
    "COMPLETING": (LIVE, u"收尾中", u"being tidied up"),
    "EXPEDITING": (LIVE, u"加急处理中", u"being expedited"),
    "COMPLETED": (GOOD, u"正常结束", u"ended with exit status 0"),
    "FAILED": (BAD, u"失败", u"failed"),
    "CANCELLED": (BAD, u"被取消", u"cancelled"),
    "TIMEOUT": (BAD, u"超过时间上限", u"ran into its time limit"),
    "DEADLINE": (BAD, u"无法在截止时间前完成", u"its deadline could not be kept"),
    "OUT_OF_MEMORY": (BAD, u"内存不足", u"out of memory"),
    "NODE_FAIL": (BAD, u"节点故障", u"a node failed"),
    "BOOT_FAIL": (BAD, u"节点启动失败", u"its nodes did not boot"),
    "LAUNCH_FAILED": (BAD, u"启动失败", u"could not be launched"),
    "RECONFIG_FAIL": (BAD, u"节点重新配置失败", u"its nodes could not be reconfigured"),
    "PREEMPTED": (BAD, u"被抢占", u"preempted"),
    "REVOKED": (GOOD, u"由联邦中的另一集群运行", u"run by another cluster of the federation"),
}

# What squeue and sacct print short, and the cut forms that a narrow column leaves.
_SHORT = {
    "PD": "PENDING", "R": "RUNNING", "S": "SUSPENDED", "CD": "COMPLETED", "CA": "CANCELLED", "F": "FAILED", "TO": "TIMEOUT",
    "NF": "NODE_FAIL", "PR": "PREEMPTED", "BF": "BOOT_FAIL", "DL": "DEADLINE", "OOM": "OUT_OF_MEMORY", "CF": "CONFIGURING",
    "CG": "COMPLETING", "RQ": "REQUEUED", "RS": "RESIZING", "RV": "REVOKED", "SI": "SIGNALING", "SE": "SPECIAL_EXIT",
    "SO": "STAGE_OUT", "ST": "STOPPED", "RH": "REQUEUE_HOLD", "RD": "RESV_DEL_HOLD", "RF": "REQUEUE_FED", "LF": "LAUNCH_FAILED",
}  # fmt: skip
_BY = re.compile(r"\bby\s+([0-9]+|[A-Za-z_][A-Za-z0-9_.-]*)")


def parse(text):
    """A state as (word, who cancelled or ""): the word is as Slurm spells it in full, whatever was cut off.

    >>> parse("CANCELLED by 1001")
    ('CANCELLED', '1001')
    """
    by = _BY.search(text)
    word = re.split(r"[\s,]", text.strip(), maxsplit=1)[0].upper()
    if word.endswith("+"):
        return _whole(word[:-1]), by.group(1) if by else ""
    # scontrol joins base and flags: the flag says more, but for one that is only being tidied up after
    words = [part for part in word.split("+") if part]
    known = [part for part in words if part in STATES] or words
    word = known[0] if known else ""
    return _SHORT.get(word, word) or "UNKNOWN", by.group(1) if by else ""


def _whole(cut):
    """The only state that begins so; the cut word itself where there are several or none."""
    found = [state for state in STATES if cut and state.startswith(cut)]
    return found[0] if len(found) == 1 else cut or "UNKNOWN"


def kind(state):
    """Whether a job in this state waits, lives, ended well or ended badly; an unknown word is "unknown"."""
    return STATES.get(state, (UNKNOWN,))[0]


def meaning(state):
    """(Chinese, English) of a state."""
    return STATES.get(state, (UNKNOWN, u"未知状态 %s" % state, u"unknown state %s" % state))[1:]
