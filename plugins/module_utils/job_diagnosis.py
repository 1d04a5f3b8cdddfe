# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a job ended, or has not begun: verdict, how sure it is, who acts, evidence and next step. Pure.

What Slurm recorded counts before what logs say, and that before what the program printed. Where a source that could
contradict the verdict was not read, it is less sure, and never "all is well".
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import exit_status, job_logs, job_reasons, job_states, quantities, queue_diagnosis, sacct_text
from .finding import clean_text, evidence, finding, some, title

CERTAIN, PROBABLE, OPEN = "certain", "probable", "open"
SURE = {
    CERTAIN: (u"确定", u"certain"),
    PROBABLE: (u"很可能", u"probable"),
    OPEN: (u"未定", u"open"),
}
WHO = {
    "user": (u"用户", u"the user"),
    "admin": (u"管理员", u"an admin"),
    "user, admin": (u"用户与管理员", u"the user and an admin"),
    "nobody": (u"无需处理", u"nobody"),
}

# cause -> (severity, who acts, Chinese, English)
CAUSES = {
    "oom": ("error", "user", u"内存超出申请, 进程被内核终止", u"it used more memory than it asked for, and the kernel ended it"),
    "oom_polling": ("error", "user", u"内存超出申请, 被 Slurm 轮询终止", u"it used more memory than it asked for, so Slurm cancelled it"),
    "oom_node": ("error", "admin", u"节点整体内存耗尽, 不是作业超出申请", u"the whole node ran out of memory, the job kept to its request"),
    "oom_likely": ("error", "user", u"被 SIGKILL 终止, 峰值接近申请的内存", u"ended by SIGKILL, its peak near the memory it asked for"),
    "time_limit": ("error", "user", u"超过时间上限被终止", u"ended at its time limit"),
    "deadline": ("error", "user", u"无法在 --deadline 之前完成", u"its --deadline could not be kept"),
    "preempted": ("warning", "nobody", u"被更高优先级的作业抢占", u"preempted by a job of higher priority"),
    "node_fail": ("error", "admin", u"运行它的节点发生故障", u"a node that it ran on failed"),
    "boot_fail": ("error", "admin", u"分配的节点未能启动", u"the nodes given to it did not boot"),
    "launch_failed": ("error", "admin", u"作业在节点上启动失败", u"it could not be launched on its node"),
    "cancelled_by_owner": ("info", "user", u"被用户自己取消", u"cancelled by its own user"),
    "cancelled_by_root": ("warning", "admin", u"被 root 或 Slurm 取消", u"cancelled by root or by Slurm"),
    "cancelled_by_other": ("warning", "user, admin", u"被另一用户取消", u"cancelled by another user"),
    "cancelled_before_start": ("info", "user", u"在开始之前被取消", u"cancelled before it began"),
    "cancelled": ("warning", "user", u"被取消, 未记录是谁", u"cancelled, by whom is not recorded"),
    "output": ("error", "user", u"无法打开输出或输入文件, 程序没有运行", u"its output or input file could not be opened, so nothing ran"),
    "refused": ("error", "user", u"提交即被拒绝: 没有节点满足申请", u"refused at submission: no node can ever meet the request"),
    "missing_command": ("error", "user", u"找不到命令", u"a command was not found"),
    "not_executable": ("error", "user", u"命令存在但无法执行", u"a command was found and cannot be executed"),
    "missing_library": ("error", "user, admin", u"缺少动态库", u"a shared library is missing"),
    "segfault": ("error", "user", u"程序崩溃 (非法内存访问)", u"the program crashed (a memory fault)"),
    "abort": ("error", "user", u"程序自行中止 (SIGABRT)", u"the program aborted itself (SIGABRT)"),
    "bus_error": ("error", "user, admin", u"程序崩溃 (SIGBUS): /dev/shm 已满或文件被截断",
                  u"the program crashed (SIGBUS): /dev/shm full or a file cut off"),
    "killed": ("error", "user, admin", u"被 SIGKILL 终止, 原因未定", u"ended by SIGKILL, by whom is open"),
    "slurmd_restart": ("error", "admin", u"slurmd 重启时作业被一起终止", u"ended together with a restart of slurmd"),
    "terminated": ("error", "user, admin", u"被 SIGTERM 终止, 由谁未定", u"ended by SIGTERM, by whom is open"),
    "signal": ("error", "user", u"程序被信号终止", u"the program was ended by a signal"),
    "network": ("error", "user, admin", u"进程间通信失败 (MPI 或网络)", u"its processes could not talk to one another (MPI or network)"),
    "storage": ("error", "user, admin", u"存储错误", u"the storage failed it"),
    "program_memory": ("error", "user", u"程序自己报告内存不足", u"the program itself ran out of memory"),
    "exit_code": ("error", "user", u"程序以非零退出码结束", u"the program ended with a non-zero exit status"),
    "step_failed": ("warning", "user", u"作业成功结束, 但其中有步骤失败", u"it ended well, but a step of it failed"),
    "completed": ("info", "nobody", u"正常结束", u"it ended well"),
    "live": ("info", "nobody", u"仍在运行", u"it is still at work"),
    "waiting": ("info", "nobody", u"排队等待", u"it waits"),
    "requeued": ("warning", "nobody", u"被重新排队, 从头开始", u"put back into the queue, to begin anew"),
    "unknown": ("warning", "admin", u"证据不足, 无法判断", u"too little evidence for a verdict"),
}  # fmt: skip

_BY_STATE = {
    "TIMEOUT": "time_limit", "DEADLINE": "deadline", "PREEMPTED": "preempted", "NODE_FAIL": "node_fail", "BOOT_FAIL": "boot_fail",
    "LAUNCH_FAILED": "launch_failed", "RECONFIG_FAIL": "launch_failed", "REQUEUED": "requeued",
}  # fmt: skip
# What programs die of, where an exit status may stand for 128 + N; also the sign that shows it.
_DEADLY = {6: "abort", 7: "bus_error", 9: "killed", 11: "segfault"}
NEAR = 0.9  # of the memory asked for
MORE = 1.2  # what is advised over a peak or a limit
SHOWN, TAIL = 4, 3


class Case:
    """One attempt of a job, with everything known about it."""

    def __init__(self, job, seen):
        self.job = job
        self.seen = seen
        self.rows = [job] + job["steps"]
        self.steps = sacct_text.failed_steps(job)
        self.read = {one["name"] for one in seen["sources"] if not one["why"]}
        self.missing = [one for one in seen["sources"] if one["why"]]
        numbers = {job["job"], job["raw"], job["id"]}
        self.lines = [line for line in seen["lines"] if not line.get("job") or line["job"] in numbers]
        self.signs = job_logs.signs(self.lines)
        # sacct prints 128 + N as N (sacct/print.c); slurmctld and its log say it whole
        told = job_logs.outcome(self.lines)
        if told and told["state"] == "FAILED" == job["state"]:
            self.job = dict(job, exit=told["exit"], whole=True)
        code = exit_status.parse(self.job["exit"])
        cut = seen["from"] == "sacct" and job["state"] == "FAILED" and not self.job.get("whole") and code and not code[1]
        self.maybe_signal = code[0] if cut and code[0] in _DEADLY else 0

    def exits(self):
        """What the exit statuses say, the job's own first."""
        texts = [self.job["exit"], self.job["derived"]] + [step["exit"] for step in self.job["steps"]]
        return [exit_status.decode(text) for text in texts if text]

    def kinds(self):
        return {said["kind"] for said in self.exits()}

    def signals(self):
        """Signals of the job, or of its steps where it has none of its own."""
        return [said["signal"] for said in self.exits() if said["signal"]]

    def has(self, *signs):
        return any(sign in self.signs for sign in signs)


# --- the verdict --------------------------------------------------------------------------------


def judge(case):
    """(cause, how sure, what was not read that could tell otherwise)."""
    job, state = case.job, case.job["state"]
    kind = job_states.kind(state)
    if kind == job_states.WAITING and state != "REQUEUED":
        return "waiting", CERTAIN, ()
    if any(row["state"] == "OUT_OF_MEMORY" for row in case.rows) or exit_status.MEMORY in case.kinds() or job["reason"] == "OutOfMemory":
        return "oom", CERTAIN, ()
    if case.has("oom"):
        return "oom", CERTAIN if state != "COMPLETED" else PROBABLE, ()
    if case.has("oom_polling"):
        return "oom_polling", CERTAIN, ()
    if state in _BY_STATE:
        return _BY_STATE[state], CERTAIN, (job_logs.CONTROLLER,) if state == "PREEMPTED" else ()
    if state == "CANCELLED":
        return _cancelled(case)
    if kind == job_states.GOOD:
        return ("step_failed", CERTAIN, ()) if case.steps else ("completed", CERTAIN, ("sacct",))
    if kind == job_states.LIVE:
        return "live", CERTAIN, ()
    if state == "FAILED":
        return _failed(case)
    return "unknown", OPEN, ()


def _cancelled(case):
    job = case.job
    if case.has("time_limit"):
        return "time_limit", PROBABLE, ()
    if not job["start"] and not job["elapsed"]:
        return "cancelled_before_start", CERTAIN, ()
    if not job["by"]:
        return "cancelled", OPEN, (job_logs.CONTROLLER,)
    if job["by"] == "0" or job["by"] == "root":
        return "cancelled_by_root", CERTAIN, (job_logs.CONTROLLER,)
    if job["by"] in (job["uid"], job["user"]) and job["by"]:
        return "cancelled_by_owner", CERTAIN, ()
    # without the owner's uid a number cannot be told from another user's
    return "cancelled_by_other", CERTAIN if job["uid"] or not job["by"].isdigit() else OPEN, ()


def _failed(case):
    kinds, signals, job = case.kinds(), case.signals(), case.job
    words = (job_logs.OUTPUT,)
    if exit_status.OUTPUT in kinds or job["reason"].startswith("RaisedSignal:53"):
        return "output", CERTAIN, ()
    if job["reason"] == "BadConstraints" or (job["reason"] == "Resources" and not job["start"]):
        return "refused", CERTAIN, ()
    # before 23.02 a script that a signal ended had that reason, too (job_mgr.c job_complete())
    not_launched = job["reason"] in ("JobLaunchFailure", "SystemFailure", "BurstBufferOperation") and not signals
    if not_launched or case.has("launch", "prolog"):
        return "launch_failed", CERTAIN if not_launched else PROBABLE, (job_logs.NODE,)
    if case.has("library"):
        return "missing_library", CERTAIN, ()
    if exit_status.MISSING in kinds:
        return "missing_command", CERTAIN if case.has("missing") else PROBABLE, words
    if exit_status.NOT_EXECUTABLE in kinds:
        return "not_executable", CERTAIN if case.has("not_executable") else PROBABLE, words
    if case.maybe_signal and case.has(_DEADLY[case.maybe_signal]):
        return _sigkill(case) if case.maybe_signal == 9 else (_DEADLY[case.maybe_signal], PROBABLE, ())
    if 9 in signals or (case.maybe_signal == 9 and _near_limit(case)):
        return _sigkill(case)
    if 15 in signals:
        if case.has("slurmd_restart"):
            return "slurmd_restart", PROBABLE, ()
        return "terminated", OPEN, (job_logs.CONTROLLER, job_logs.NODE)
    for numbers, cause in (((11,), "segfault"), ((6,), "abort"), ((7,), "bus_error")):
        if set(numbers) & set(signals):
            if case.has("network") and cause == "abort":
                return "network", PROBABLE, ()
            return cause, CERTAIN, ()
    if signals:
        return "signal", CERTAIN, words
    if case.has("segfault") and exit_status.CODE in kinds:
        return "segfault", PROBABLE, ()
    for sign, cause in (("storage", "storage"), ("network", "network"), ("python_memory", "program_memory")):
        if case.has(sign):
            return cause, PROBABLE, ()
    if job["exit"] or job["derived"]:
        return "exit_code", PROBABLE, words
    return "unknown", OPEN, ()


def _sigkill(case):
    """137 and 0:9 say who pulled the trigger as little as each other; memory and the kernel's words do."""
    if case.has("oom_node"):
        return "oom_node", PROBABLE, ()
    if _near_limit(case):
        return "oom_likely", PROBABLE, ()
    return "killed", OPEN, (job_logs.KERNEL, job_logs.CONTROLLER)


def _near_limit(case):
    peak = sacct_text.peak_mb(case.job)[0]
    return bool(peak and case.job["memory"] and peak >= NEAR * case.job["memory"])


def less_sure(sure, unread):
    """A verdict for which a source was missing that could say otherwise."""
    if not unread:
        return sure
    return {CERTAIN: PROBABLE, PROBABLE: OPEN}.get(sure, OPEN)


# --- the next step, with numbers ----------------------------------------------------------------


# What is to be done, where no number of the job goes into it.
_ADVICE = {
    "deadline": (u"放宽 --deadline 或缩短 --time", u"a later --deadline or a shorter --time"),
    "preempted": (u"等待重新排队, 或换不会被抢占的 QOS", u"wait for the requeue, or use a QOS that is not preempted; write checkpoints"),
    "boot_fail": (
        u"管理员查看电源脚本与节点原因 (sinfo -R); 用户重新提交",
        u"an admin looks at the power scripts and sinfo -R; the user submits again",
    ),
    "launch_failed": (
        u"管理员先修复节点上的 prolog 或启动故障 (slurmd.log), 再释放节点, 最后 scontrol release/requeue {id}",
        u"an admin mends the prolog or launch fault on the node (slurmd.log), then the node, then releases or requeues {id}",
    ),
    "cancelled_by_owner": (
        u"若非本意, 检查脚本中的 scancel 与 dependency",
        u"if it was not meant, look for scancel and dependencies in scripts",
    ),
    "cancelled_by_root": (
        u"询问管理员; 管理员: 在 slurmctld.log 中查 JobId={job}",
        u"ask an admin, who finds it in slurmctld.log as JobId={job}",
    ),
    "cancelled_by_other": (u"询问 UID {by} (作业属于 {user})", u"ask UID {by} (the job is {user}'s)"),
    "cancelled_before_start": (u"从未运行; 若非本意, 重新提交", u"it never ran; submit again if it was not meant"),
    "cancelled": (u"管理员: 在 slurmctld.log 中查 JobId={job}", u"an admin finds it in slurmctld.log as JobId={job}"),
    "refused": (
        u"减小 --mem, --cpus-per-task, --gres 或换分区 (scontrol show node)",
        u"lower --mem, --cpus-per-task, --gres or change the partition (scontrol show node)",
    ),
    "missing_command": (
        u"检查拼写, PATH 与 module load; 在该节点上 which 命令",
        u"check the spelling, PATH and module load; run which on that node",
    ),
    "not_executable": (
        u"chmod +x, 检查脚本首行与程序的架构, 挂载是否 noexec",
        u"chmod +x, look at the script's first line, the program's architecture, a noexec mount",
    ),
    "missing_library": (
        u"在该节点与登录节点上各运行 ldd 程序 并比较; 加载模块或由管理员装入镜像",
        u"run ldd on that node and on a login node and compare; load the module, or an admin adds it to the image",
    ),
    "segfault": (
        u"用调试信息重新编译, ulimit -c unlimited 后以 gdb 查看 core; 检查数组越界与栈大小",
        u"build with debug information, ulimit -c unlimited, look at the core with gdb; array bounds, stack size",
    ),
    "abort": (u"查看输出最后几行中的断言或异常", u"read the assertion or exception in the last lines of the output"),
    "bus_error": (u"在节点上 df /dev/shm 与数据所在文件系统", u"look at df /dev/shm and at the file system of the data on the node"),
    "killed": (
        u"管理员: 在节点上查内核日志与 slurmctld.log (是否 scancel --signal=KILL); 用户: 若怀疑内存, 加大 --mem 重试",
        u"an admin reads the node's kernel log and slurmctld.log (scancel --signal=KILL?); the user may try a larger --mem",
    ),
    "slurmd_restart": (
        u"管理员: 单元须 KillMode=process (playbooks/deploy.yml); 用户重新提交",
        u"an admin sets KillMode=process (playbooks/deploy.yml); the user submits again",
    ),
    "terminated": (u"查 slurmctld.log 与该时刻的 slurmd 重启", u"look in slurmctld.log and for a restart of slurmd at that time"),
    "signal": (u"查看程序输出; 检查 ulimit 与 --signal", u"read the program's output; look at ulimit and --signal"),
    "network": (
        u"在涉及的两个节点间测试端口 (SlurmdPort, SrunPortRange), 防火墙与链路",
        u"test the ports (SlurmdPort, SrunPortRange), the firewall and the link between the two nodes",
    ),
    "storage": (
        u"df -h, df -i, quota 查看作业目录; 管理员查挂载",
        u"look at df -h, df -i and quota of the job's directories; an admin looks at the mount",
    ),
    "program_memory": (u"加大 --mem, 或减小问题规模", u"a larger --mem, or a smaller problem"),
    "exit_code": (u"查看程序自己的最后几行输出", u"read the last lines of the program's own output"),
    "step_failed": (
        u"查看失败步骤的输出; 在脚本中 set -e 使作业随之失败",
        u"read the output of the step that failed; set -e in the script makes the job fail with it",
    ),
    "requeued": (u"等待; 检查每次尝试的原因", u"wait; look at why each attempt ended"),
    "oom_node": (
        u"管理员: 为系统保留内存 (MemSpecLimit) 并限制作业 (ConstrainRAMSpace=yes)",
        u"an admin keeps memory for the system (MemSpecLimit) and confines jobs (ConstrainRAMSpace=yes)",
    ),
}


def next_step(cause, case):
    """(Chinese, English)."""
    job = case.job
    make = _STEPS.get(cause)
    if make:
        return make(case)
    who = {"id": job["id"], "job": job["job"], "by": job["by"], "user": job["user"] or job["uid"]}
    zh, en = _ADVICE.get(cause, (u"", u""))
    return zh.format(**who), en.format(**who)


def _more_memory(case):
    job = case.job
    peak, exact = sacct_text.peak_mb(job)
    if not job["memory"]:
        return u"提高 --mem (记录中没有申请的数值)", u"raise --mem (the record does not say what was asked for)"
    base = max(job["memory"], peak or 0)
    wanted = quantities.option_mb(base * MORE)
    if peak and peak >= NEAR * job["memory"]:
        seen_zh = u"峰值 %s / 申请 %s" % (quantities.show_mb(peak), quantities.show_mb(job["memory"]))
        seen_en = u"peak %s of %s" % (quantities.show_mb(peak), quantities.show_mb(job["memory"]))
        if not exact:
            seen_zh, seen_en = seen_zh + u" (上界)", seen_en + u" (an upper bound)"
    else:
        # a run that was cut off says only that more was needed
        asked = quantities.show_mb(job["memory"])
        seen_zh, seen_en = u"需要超过 %s; 没有采样到峰值" % asked, u"it needs more than %s; no peak was sampled" % asked
        if peak:
            sample = quantities.show_mb(peak)
            seen_zh = u"需要超过 %s; 采样到的峰值 %s 不可信, 采样之间的增长看不到" % (asked, sample)
            seen_en = u"it needs more than %s; the sampled peak (%s) misses what grew between two samples" % (asked, sample)
    largest = max([node["memory"] for node in case.seen.get("node_sizes", {}).values()] or [0])
    beyond_zh, beyond_en = u"", u""
    if largest and base * MORE > largest:
        beyond_zh = u"; 最大的节点只有 %s, 须分到更多节点" % quantities.show_mb(largest)
        beyond_en = u"; the largest node has %s, so spread it over more nodes" % quantities.show_mb(largest)
    return u"--mem=%s: %s, ×1.2%s" % (wanted, seen_zh, beyond_zh), u"--mem=%s: %s, x 1.2%s" % (wanted, seen_en, beyond_en)


def _more_time(case):
    job = case.job
    if not job["limit"] or job["limit"] == quantities.INFINITE:
        return u"加大 --time 或设检查点", u"raise --time or write checkpoints"
    part = case.seen.get("partitions", {}).get(job["partition"])
    default = part is not None and part.default_time == job["limit"]
    wanted = job["limit"] * 1.5
    capped = part is not None and wanted > part.max_time
    if capped:
        wanted = part.max_time
    limit = quantities.show_seconds(job["limit"])
    ran = quantities.show_seconds(job["elapsed"]) if job["elapsed"] is not None else u"?"
    zh = u"--time=%s: 运行 %s, 上限 %s" % (quantities.show_seconds(wanted), ran, limit)
    en = u"--time=%s: it ran %s of %s" % (quantities.show_seconds(wanted), ran, limit)
    if default:
        zh, en = zh + u", 即分区默认值 (未写 --time)", en + u", which is the partition's default (no --time was given)"
    if capped:
        zh, en = zh + u"; 分区 MaxTime 为 %s" % quantities.show_seconds(wanted), en + u"; MaxTime of the partition is the most"
    return zh + u"; 或写检查点", en + u"; or write checkpoints"


def _node_failed(case):
    job = case.job
    name = job["failed_node"] or job["node_list"] or u"?"
    restarted = case.seen["restarted"] or job["restarts"]
    zh = u"管理员: 查节点 %s 的原因 (sinfo -R, slurmd.log)" % clean_text(name, 100)
    en = u"an admin finds out why %s failed (sinfo -R, slurmd.log)" % clean_text(name, 100)
    if restarted:
        return zh + u"; Slurm 已将作业重新排队", en + u"; Slurm has put the job back into the queue"
    return zh + u"; 用户重新提交 (--requeue 可自动重排)", en + u"; the user submits again (--requeue does it by itself)"


def _output_path(case):
    paths = [path for path in (case.job["stdout"], case.job["stderr"]) if path] or ([case.job["work_dir"]] if case.job["work_dir"] else [])
    where = clean_text(some(paths), 200) if paths else u"--output"
    return (
        u"在节点 %s 上检查目录是否存在且可写: %s" % (case.job["node_list"] or u"?", where),
        u"see on %s that the directory is there and writable: %s" % (case.job["node_list"] or u"?", where),
    )


_STEPS = {
    "oom": _more_memory, "oom_polling": _more_memory, "oom_likely": _more_memory, "time_limit": _more_time, "node_fail": _node_failed,
    "output": _output_path,
}  # fmt: skip


# --- evidence -----------------------------------------------------------------------------------


def _row_text(row):
    told = [row["id"], row["state"] + (u" by %s" % row["by"] if row["by"] else u""), row["exit"]]
    if row["derived"] and row["derived"] not in ("0:0", row["exit"]):
        told.append(u"derived %s" % row["derived"])
    if row["elapsed"] is not None and row["state"] != "PENDING" and not row["step"]:
        told.append(u"%s of %s" % (quantities.show_seconds(row["elapsed"]), quantities.show_seconds(row["limit"])))
    if row["node_list"] not in ("", "None assigned") and not row["step"]:
        told.append(u"on %s" % row["node_list"])
    if row["memory"] and not row["step"]:
        told.append(u"asked %s a node" % quantities.show_mb(row["memory"]))
    if row["peak"]:
        told.append(u"peak %s" % quantities.show_mb(row["peak"]))
    if row["reason"] not in ("", "None"):
        told.append(u"reason %s" % row["reason"])
    return clean_text(u", ".join(one for one in told if one))


def _evidence(case, cause):
    """In the order scheduler, node, application."""
    job = case.job
    lines = [evidence(case.seen["from"], _row_text(job))]
    lines += [evidence(case.seen["from"], _row_text(step)) for step in case.steps[:SHOWN]]
    for text in [job["exit"]] if job["exit"] not in ("", "0:0") else []:
        lines.append(evidence("exit status", exit_status.describe(text)[1]))
    if case.maybe_signal:
        whole = 128 + case.maybe_signal
        lines.append(evidence("exit status", u"sacct prints 128+N as N: it may be %s" % exit_status.describe(u"%d:0" % whole)[1]))
    told = [line for found in case.signs.values() for line in found]
    for kind in (job_logs.CONTROLLER, job_logs.NODE, job_logs.KERNEL, job_logs.OUTPUT):
        of_kind = [line for line in case.lines if line["kind"] == kind]
        strong = [line for line in of_kind if line in told][:SHOWN]
        last = [line for line in of_kind[-TAIL:] if line not in strong] if kind in (job_logs.CONTROLLER, job_logs.OUTPUT) else []
        if kind == job_logs.CONTROLLER:
            # how it ended is the last line of it
            last = last[-1:]
        lines += [evidence(line["source"], line["text"]) for line in strong + last]
        if kind == job_logs.CONTROLLER and cause in ("node_fail", "boot_fail", "launch_failed", "killed", "oom_node"):
            lines += _node_lines(case)
    return lines


def _node_lines(case):
    named = quantities.hosts(case.job["failed_node"] or case.job["node_list"])
    return [
        evidence("scontrol show node", u"%s %s %s" % (node["name"], node["state"], node["reason"]))
        for node in case.seen.get("nodes", []) if node["name"] in named and (node["reason"] or node["base"] == "DOWN")
    ][:SHOWN]  # fmt: skip


# --- from records to findings -------------------------------------------------------------------


def seen(rows=(), records=(), lines=(), sources=(), nodes=(), node_sizes=None, partitions=None, site=None):
    """What is known, in the one shape that :func:`diagnose` takes.

    :param rows: each job's attempts (``sacct_text.Jobs.jobs``)
    :param records: ``scontrol show job`` as records
    :param lines: lines of logs and output: {kind, source, text, job}
    :param sources: {name, why}: every source there could be, and why it was not read (empty when it was)
    """
    return {
        "rows": list(rows), "records": list(records), "lines": list(lines), "sources": list(sources), "nodes": list(nodes),
        "node_sizes": node_sizes or {}, "partitions": partitions or {}, "site": site or queue_diagnosis.Site(),
        "from": "sacct" if rows else "scontrol",
    }  # fmt: skip


def row_of_record(record):
    """A job of ``scontrol show job`` in the shape of a job of sacct, for when there is no accounting."""
    user = re.match(r"^(.*)\((\d+)\)$", record.get("UserId", ""))
    asked = queue_diagnosis.job_of_record(record)
    job, task = record.get("ArrayJobId") or record.get("HetJobId") or record.get("JobId", ""), record.get("ArrayTaskId", "")
    part = record.get("HetJobOffset", "")
    begun, ended = quantities.epoch(record.get("StartTime", "")), quantities.epoch(record.get("EndTime", ""))
    row = dict.fromkeys(("peak", "total", "tasks", "cpu_seconds"))
    nothing = ("(null)", "None", "N/A")
    row.update({
        "id": job + ("_" + task if task else "") + ("+" + part if part else ""), "raw": record.get("JobId", ""), "job": job, "task": task,
        "part": part, "step": "", "by": "", "state": job_states.parse(record.get("JobState", ""))[0],
        "exit": record.get("ExitCode", ""), "derived": record.get("DerivedExitCode", ""), "uid": user.group(2) if user else "",
        "user": user.group(1) if user else "", "account": asked["account"], "partition": asked["partition"], "qos": asked["qos"],
        "submit": asked["submit"], "start": asked["start"], "end": quantities.stamp(record.get("EndTime", "")),
        "elapsed": max(0, ended - begun) if begun is not None and ended is not None else quantities.seconds(record.get("RunTime", "")),
        "limit": asked["limit"], "memory": asked["memory"], "cpus": asked["cpus"], "nodes": asked["nodes"],
        "node_list": "" if record.get("NodeList", "") in nothing else record.get("NodeList", ""),
        "failed_node": record.get("FailedNode", ""), "reason": record.get("Reason", ""),
        "restarts": quantities.whole(record.get("Restarts", "")) or 0,
        "stdout": record.get("StdOut", ""), "stderr": record.get("StdErr", ""),
        "work_dir": record.get("WorkDir", ""), "name": record.get("JobName", ""), "command": "", "steps": [],
    })  # fmt: skip
    return row


def row_of_outcome(ident, told):
    """A job of which only slurmctld.log tells."""
    row = row_of_record({"JobId": ident, "JobState": told["state"], "ExitCode": told["exit"], "NodeList": told["node_list"]})
    row.update(start=told["start"] or told["end"], end=told["end"], by=told["by"])
    return row


def diagnose(asked, known):
    """Findings about a job, the worst first; jobs of an array with the same verdict together."""
    attempts = known["rows"] or [[row_of_record(record)] for record in known["records"]]
    if not attempts:
        told = job_logs.outcome(known["lines"])
        attempts = [[row_of_outcome(asked, told)]] if told else []
        known = dict(known, **{"from": "slurmctld.log"})
    if not attempts:
        return [_nothing(asked, known)]
    groups, order = {}, []
    for tries in attempts:
        # scontrol knows of the present what sacct may know only later
        tries = [merged(job, known) if job is tries[-1] else job for job in tries]
        tries += begun_anew(tries[-1], known)
        earlier = [job for job in tries[:-1] if job_states.kind(job["state"]) != job_states.GOOD]
        for job in [tries[-1]] + earlier:
            case = Case(job, dict(known, restarted=job is not tries[-1], again=len(tries) > 1))
            verdict = judge(case)
            key = (verdict[0], job["exit"], job["reason"], job is tries[-1])
            if key not in groups:
                order.append(key)
            groups.setdefault(key, []).append((case, verdict))
    found = [_finding(groups[one], one[3]) for one in order]
    weight = {"error": 0, "warning": 1, "info": 2}
    if any(case.job["part"] for members in groups.values() for case, _verdict in members):
        return sorted(found, key=lambda one: (one["followed"], weight[one["severity"]]))
    return sorted(found, key=lambda one: (not one["last"], weight[one["severity"]]))


def begun_anew(job, known):
    """The attempt that slurmctld already has in its queue while sacct still shows how the one before ended."""
    if job_states.kind(job["state"]) != job_states.BAD:
        return []
    fresh = [row_of_record(record) for record in known["records"] if record.get("JobId") == job["raw"]]
    return [row for row in fresh if job_states.kind(row["state"]) in (job_states.WAITING, job_states.LIVE)]


def merged(job, known):
    """A job of sacct with what slurmctld still knows about it: paths, the reason it waits for, the node that failed."""
    for record in known["records"]:
        if record.get("JobId") in (job["raw"], job["id"]) and job["step"] == "":
            fresh = row_of_record(record)
            merged = dict(job)
            for name in ("stdout", "stderr", "work_dir", "failed_node", "node_list", "memory"):
                merged[name] = job[name] or fresh[name]
            if job_states.kind(fresh["state"]) in (job_states.WAITING, job_states.LIVE) or job["reason"] in ("", "None"):
                merged["reason"] = fresh["reason"]
            if fresh["state"] != job["state"] and job_states.kind(job["state"]) != job_states.BAD:
                merged.update(state=fresh["state"], exit=fresh["exit"], end=fresh["end"])
            if fresh["state"] == job["state"] and exit_status.parse(fresh["exit"]):
                merged.update(exit=fresh["exit"], whole=True)
            merged["restarts"] = max(job["restarts"], fresh["restarts"])
            return merged
    return job


def _finding(members, last):
    case, (cause, sure, could_tell) = members[0]
    severity, who, zh, en = CAUSES[cause]
    unread = [one for one in case.missing if one["name"] in could_tell]
    lines = _evidence(case, cause)
    step = next_step(cause, case)
    if cause == "waiting":
        zh, en, who, step, more = _waiting(case, members)
        lines += more
    if cause == "live":
        zh, en = job_states.meaning(case.job["state"])
    if cause == "exit_code":
        code = (exit_status.parse(case.job["exit"]) or (0, 0))[0]
        zh, en = zh + u" %d" % code, en + u" %d" % code
    if len(members) > 1:
        ids = some([one.job["id"] for one, _verdict in members])
        zh, en = zh + u" (共 %d 个: %s)" % (len(members), ids), en + u" (%d of them: %s)" % (len(members), ids)
        nodes = {one.job["node_list"] for one, _verdict in members if one.job["node_list"]}
        if len(nodes) == 1:
            lines.append(evidence(case.seen["from"], u"all of them on %s" % nodes.pop()))
    if not last:
        zh, en = u"之前的一次尝试: " + zh, u"an earlier attempt: " + en
    # without accounting the number of what was lost is not known
    cause_said = title(job_states.meaning(case.job["state"])[0], job_states.meaning(case.job["state"])[1])
    followed = case.job["part"] != "" and cause in ("cancelled_by_root", "cancelled", "cancelled_by_owner", "completed")
    return finding(
        "job_" + cause, severity, clean_text(case.job["id"], 60), title(zh, en), cause_said, title(step[0], step[1]), lines,
        who=who, confidence=less_sure(sure, unread), missing=case.missing, last=last, followed=followed, number=len(members),
    )  # fmt: skip


def _waiting(case, members):
    """(Chinese, English, who acts, next step, evidence) of a job that waits."""
    record = next((one for one in case.seen["records"] if one.get("JobId") in (case.job["raw"], case.job["id"])), None)
    wanted = queue_diagnosis.job_of_record(record) if record else dict(case.job, gres={}, features="", dependency="", most_nodes=None)
    wanted.update(reason=case.job["reason"] or "None", cpus=wanted["cpus"] or 1, nodes=wanted["nodes"] or 1)
    said = queue_diagnosis.explain(wanted, case.seen["site"])
    zh, en = u"排队: " + said["zh"], u"it waits: " + said["en"]
    step_zh, step_en = said["next_zh"].replace("ID", case.job["id"]), said["next_en"].replace("ID", case.job["id"])
    lines = [evidence("scontrol", u"reason %s" % said["reason"])] + [evidence("limits", pair) for pair in said["pairs"]]
    if said["fits"]:
        names = some(said["fits"])
        step_zh, step_en = step_zh + u"; 可用分区: %s" % names, step_en + u"; partitions that would take it: %s" % names
    hosts = {one.job["raw"]: one for one, _verdict in members}
    batch = {record.get("BatchHost") for record in case.seen["records"] if record.get("JobId") in hosts and record.get("BatchHost")}
    if len(batch) == 1:
        host = batch.pop()
        lines.append(evidence("scontrol", u"BatchHost of all of them: %s" % host))
        if said["class"] == job_reasons.ADMIN:
            step_zh, step_en = u"先查节点 %s. " % host + step_zh, u"look at node %s first. " % host + step_en
    if said["reason"].startswith("BeginTime") and (case.job["restarts"] or case.seen["again"]):
        zh, en = u"排队: 重新排队后的间隔", u"it waits: the pause after a requeue"
    return zh, en, said["who"], (step_zh, step_en), lines


def _nothing(asked, known):
    return finding(
        "job_unknown", "warning", clean_text(asked, 60), title(u"找不到这个作业", u"no trace of this job was found"),
        title(u"已读的来源中没有它; 没有记录不等于一切正常", u"it is in none of the sources that were read; no record is not good news"),
        title(u"检查作业号; 提交时被拒绝的作业没有记录 (看 sbatch 的输出)",
              u"check the number; a job refused at submission leaves no record (see what sbatch printed)"),
        [], who="user", confidence=OPEN, missing=[one for one in known["sources"] if one["why"]], last=True, followed=False, number=1,
    )  # fmt: skip
