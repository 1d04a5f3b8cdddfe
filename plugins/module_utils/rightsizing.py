# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much memory, time and how many CPUs a kind of job needs, from what its runs used. Pure.

A run that ended for want of memory or time says only that more was needed. Without samples of memory there is no advice.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import quantities, sacct_text
from .finding import clean_text, evidence, finding, title

# From so many runs on the 95th percentile counts instead of the largest.
ENOUGH = 5
MEMORY_STEP, TIME_STEP, LITTLE_USE = 256, 900, 0.5
# Of the limit, at so little in the middle of the runs backfill plans with times that mean nothing.
BLIND = 0.1
_RUN_NUMBER = re.compile(r"[0-9]+")


def refusal(config):
    """Why nothing can be said, in both languages; None when it can."""
    if "slurmdbd" not in config.get("AccountingStorageType", ""):
        return title(u"没有记账 (slurmdbd), 无法给出建议", u"no accounting (slurmdbd), so there is no history to go by")
    if config.get("JobAcctGatherType", "") in ("", "(null)", "none", "jobacct_gather/none"):
        return title(
            u"JobAcctGatherType 为 none, 没有内存记录; 先运行 playbooks/deploy.yml",
            u"JobAcctGatherType is none, so no memory is recorded; run playbooks/deploy.yml first",
        )
    return None


def kind_of(job):
    """Runs that are compared: same user, partition and name but for its numbers."""
    return job["user"], job["partition"], _RUN_NUMBER.sub("#", job["name"])


def group(jobs):
    """{kind: [jobs]} of the last attempt of each job."""
    found = {}
    for attempts in jobs:
        found.setdefault(kind_of(attempts[-1]), []).append(attempts[-1])
    return found


def percentile(values, part):
    """The smallest value that is not below so large a part of all."""
    ordered = sorted(values)
    return ordered[max(0, int(-(-len(ordered) * part // 1)) - 1)]


def up(number, step):
    return int(-(-number // step) * step)


def memory(jobs, most=None):
    """{wanted, asked, runs, floor, clamped, peak} in MB a node, None without a sample.

    :param most: what no node or partition is above
    """
    ran = [job for job in jobs if job["state"] == "COMPLETED"]
    peaks = [peak for peak in (sacct_text.peak_mb(job)[0] for job in ran) if peak]
    short = [job["memory"] for job in jobs if job["state"] == "OUT_OF_MEMORY" and job["memory"]]
    floor = max(short) if short else 0
    if not peaks and not floor:
        return None
    wanted = 0
    if len(peaks) >= ENOUGH:
        wanted = max(percentile(peaks, 0.95) * 1.2, max(peaks) * 1.1)
    elif peaks:
        wanted = max(peaks) * 1.2
    # what was not enough once is no advice, however small the other runs were
    wanted = up(max(wanted, floor * 1.2 if floor else 0), MEMORY_STEP)
    clamped = bool(most and wanted > most)
    asked = [job["memory"] for job in ran if job["memory"]]
    return {
        "wanted": int(most) if clamped else wanted,
        "asked": max(asked) if asked else None,
        "runs": len(peaks),
        "short": len(short),
        "floor": floor,
        "peak": max(peaks) if peaks else None,
        "clamped": clamped,
    }


def time(jobs, most=None):
    """{wanted, asked, runs, clamped, longest} in seconds, None without a run that ended by itself."""
    ran = [job["elapsed"] for job in jobs if job["state"] == "COMPLETED" and job["elapsed"]]
    short = [job["limit"] for job in jobs if job["state"] == "TIMEOUT" and job["limit"]]
    floor = max(short) if short else 0
    if not ran and not floor:
        return None
    wanted = percentile(ran, 0.95) * 1.25 if ran else 0
    wanted = up(max(wanted, floor * 1.25), TIME_STEP)
    clamped = bool(most and wanted > most)
    asked = [job["limit"] for job in jobs if job["limit"] and job["limit"] < quantities.INFINITE]
    return {
        "wanted": int(most) if clamped else wanted, "asked": max(asked) if asked else None, "runs": len(ran),
        "longest": max(ran) if ran else None, "clamped": clamped,
    }  # fmt: skip


def cpus(jobs):
    """{wanted, asked, use} where less than half of the CPUs was used, else None."""
    used = [
        (job["cpu_seconds"] / float(job["elapsed"]), job["cpus"])
        for job in jobs
        if job["state"] == "COMPLETED" and job["cpu_seconds"] and job["elapsed"] and job["cpus"]
    ]
    if not used:
        return None
    busy, asked = max(busy for busy, _asked in used), max(number for _busy, number in used)
    if busy >= LITTLE_USE * asked:
        return None
    return {"wanted": max(1, int(-(-busy // 1))), "asked": asked, "use": busy / asked}


def saving(jobs, wanted):
    """GB-hours of memory that the completed runs asked for beyond what is wanted a node (MB)."""
    unused = [
        (job["memory"] - wanted) * (job["nodes"] or 1) * job["elapsed"]
        for job in jobs if job["state"] == "COMPLETED" and job["memory"] and job["memory"] > wanted and job["elapsed"]
    ]  # fmt: skip
    return sum(unused) / 1024.0 / 3600


def time_use(jobs):
    """(median of elapsed over limit, runs) of what ended by itself under a limit; (None, runs) with too few."""
    used = [
        job["elapsed"] / float(job["limit"])
        for job in jobs if job["state"] == "COMPLETED" and job["elapsed"] and job["limit"] and job["limit"] < quantities.INFINITE
    ]  # fmt: skip
    return (percentile(used, 0.5) if len(used) >= ENOUGH else None), len(used)


def _blind(jobs):
    """What backfill cannot know while limits are far beyond what jobs take."""
    use, runs = time_use([attempts[-1] for attempts in jobs])
    if use is None or use >= BLIND:
        return []
    return [finding(
        "time_limits_loose", "info", "cluster",
        title(u"时间上限远大于实际运行时间, 回填无法规划", u"time limits are far beyond what jobs take, so backfill cannot plan with them"),
        title(u"回填按 --time 而不是实际时间安排作业", u"backfill goes by --time, not by what a job will really take"),
        title(u"按下面的建议写 --time; 管理员可设分区 DefaultTime (撤销: 删去该键)",
              u"ask for --time as advised below; an admin may set DefaultTime of the partition (undo: remove the key)"),
        [evidence("sacct", u"half of %d completed runs took at most %d%% of their limit" % (runs, round(use * 100)))],
        who="user, admin", confidence="probable",
    )]  # fmt: skip


def advise(jobs, config, partitions=None):
    """Findings with the options to ask for, one for each kind of job."""
    refused = refusal(config)
    if refused:
        return [finding(
            "rightsizing_refused", "warning", "cluster", refused, title(u"没有可用的历史", u"there is no history to go by"),
            title(u"启用记账后再试", u"try again once accounting is on"),
            [evidence("scontrol show config", u"%s=%s" % (key, config.get(key, u"?")))
             for key in ("AccountingStorageType", "JobAcctGatherType")],
            who="admin", confidence="certain",
        )]  # fmt: skip
    found = _blind(jobs)
    for (user, name, job_name), members in sorted(group(jobs).items()):
        part = (partitions or {}).get(name)
        largest = min(part.memory_per_node, max([node["memory"] for node in part.members] or [quantities.INFINITE])) if part else None
        size = memory(members, largest)
        saved = saving(members, size["wanted"]) if size else 0
        advice = _options(size, saved, time(members, part.max_time if part else None), cpus(members))
        if advice["options"]:
            found.append(finding(
                "rightsizing", "info", clean_text(u"%s %s %s" % (user, name, job_name), 80),
                title(u"建议的申请: %s" % u" ".join(advice["options"]), u"what to ask for: %s" % u" ".join(advice["options"])),
                title(u"来自 %d 次运行" % len(members), u"from %d runs" % len(members)), title(advice["zh"], advice["en"]),
                [evidence("sacct", line) for line in advice["lines"]], who="user",
                confidence="probable" if len(members) >= ENOUGH else "open",
            ))  # fmt: skip
    return found


def _options(size, saved, length, number):
    options, lines, zh, en = [], [], [], []
    if size:
        options.append(u"--mem=%s" % quantities.option_mb(size["wanted"]))
        seen = (quantities.show_mb(size["peak"]), size["runs"], quantities.show_mb(size["asked"]))
        lines.append(u"memory: peak %s in %d runs, asked %s" % seen)
        if size["short"]:
            lines.append(u"memory: %d runs ended for want of it at %s" % (size["short"], quantities.show_mb(size["floor"])))
        if saved >= 1:
            lines.append(u"memory: these runs held %.0f GB-hours more than that" % saved)
        if size["clamped"]:
            zh.append(u"已达节点或分区的上限, 须分到更多节点")
            en.append(u"no node has more: spread it over more nodes")
    if length and length["wanted"] < quantities.INFINITE:
        options.append(u"--time=%s" % quantities.show_seconds(length["wanted"]))
        seen = (quantities.show_seconds(length["longest"]), length["runs"], quantities.show_seconds(length["asked"]))
        lines.append(u"time: longest %s in %d runs, asked %s" % seen)
    if number:
        options.append(u"--cpus-per-task=%d" % number["wanted"])
        lines.append(u"CPUs: %d%% of %d used" % (round(number["use"] * 100), number["asked"]))
        zh.append(u"CPU 数须与程序的线程数一致")
        en.append(u"as many CPUs as the program has threads")
    return {
        "options": options, "lines": lines,
        "zh": u"; ".join(zh) or u"写入作业脚本", "en": u"; ".join(en) or u"write it into the job script",
    }  # fmt: skip
