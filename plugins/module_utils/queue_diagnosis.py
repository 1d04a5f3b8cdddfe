# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why each job of the queue waits, in one class each, and what the queue as a whole suffers from. Pure."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import job_reasons, partition_room, quantities
from .finding import clean_text, evidence, finding, some, title

DELIMITER = "\x1f"
_COLUMNS = (
    ("id", "%i"), ("partition", "%P"), ("user", "%u"), ("account", "%a"), ("qos", "%q"), ("priority", "%Q"), ("state", "%T"),
    ("cpus", "%C"), ("nodes", "%D"), ("memory", "%m"), ("cpus_per_node", "%c"), ("tmp", "%d"), ("limit", "%l"), ("submit", "%V"),
    ("start", "%S"), ("dependency", "%E"), ("gres", "%b"), ("reservation", "%v"), ("features", "%f"), ("reason", "%r"),
)  # fmt: skip
# Without the job's name, which may hold anything.
SQUEUE_FORMAT = DELIMITER.join(letter for _name, letter in _COLUMNS)

# Limits by what they count, for whom and how: the columns of sacctmgr. {QOS, then association}
_COLUMNS_OF = {
    ("jobs", "grp", ""): ("GrpJobs",), ("jobs", "max", "User"): ("MaxJobsPU",), ("jobs", "max", "Account"): ("MaxJobsPA",),
    ("jobs", "max", ""): ("MaxJobs",),
    ("submit", "grp", ""): ("GrpSubmit", "GrpSubmitJobs"), ("submit", "max", "User"): ("MaxSubmitPU", "MaxSubmitJobsPU"),
    ("submit", "max", "Account"): ("MaxSubmitPA", "MaxSubmitJobsPA"), ("submit", "max", ""): ("MaxSubmit", "MaxSubmitJobs"),
    ("wall", "grp", ""): ("GrpWall",), ("wall", "max", "Job"): ("MaxWall", "MaxWallDurationPerJob"),
}  # fmt: skip
_TRES_COLUMNS = {
    ("grp", "", ""): ("GrpTRES",), ("grp", "", "minutes"): ("GrpTRESMins",),
    ("grp", "", "run_minutes"): ("GrpTRESRunMins", "GrpTRESRunMin"),
    ("max", "Job", ""): ("MaxTRES", "MaxTRESPerJob"), ("max", "Job", "minutes"): ("MaxTRESMins", "MaxTRESMinsPerJob"),
    ("max", "Node", ""): ("MaxTRESPerNode",), ("max", "User", ""): ("MaxTRESPU", "MaxTRESPerUser"),
    ("max", "Account", ""): ("MaxTRESPA", "MaxTRESPerAccount"), ("min", "", ""): ("MinTRES", "MinTRESPerJob"),
    ("max", "User", "run_minutes"): ("MaxTRESRunMinsPU",), ("max", "Account", "run_minutes"): ("MaxTRESRunMinsPA",),
}  # fmt: skip
QOS_FORMAT = (
    "Name,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,"
    "MaxSubmitPU,MaxTRESPA,MaxJobsPA,MaxSubmitPA,MinTRES"
)
ASSOC_FORMAT = (
    "Account,User,Partition,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,"
    "MaxJobs,MaxSubmit"
)

# What is worth a finding.
LONG_WAIT, OVERTAKEN, BIG_SHARE, MANY_PENDING = 24 * 3600, 5, 50, 20
MOST_STARVING = 200
SPIKE, SPIKE_TIMES = 20, 5
_DEPENDENCY = re.compile(r"\b(?:after\w*|singleton):?([0-9_+:,]*)")


def parse_jobs(text):
    """Output of ``squeue --noheader --format=SQUEUE_FORMAT``."""
    jobs = []
    for line in text.split("\n"):
        values = line.split(DELIMITER)
        if len(values) == len(_COLUMNS) and values[0][:1].isdigit():
            jobs.append(_tidy({name: value.strip() for (name, _letter), value in zip(_COLUMNS, values)}))
    return jobs


def _tidy(row):
    memory = quantities.memory_mb(row["memory"])[0]
    row.update(
        priority=quantities.whole(row["priority"]) or 0,
        cpus=quantities.whole(row["cpus"]) or 1,
        nodes=quantities.whole(row["nodes"]) or 1,
        most_nodes=None,
        # squeue does not say whether it is meant for a node or a cpu; for a node it is the least that can be meant
        memory=memory if memory and memory < quantities.INFINITE else None,
        cpus_per_node=quantities.whole(row["cpus_per_node"]) or 1,
        tmp=quantities.memory_mb(row["tmp"])[0] or 0,
        limit=quantities.seconds(row["limit"]),
        submit=quantities.stamp(row["submit"]),
        start=quantities.stamp(row["start"]),
        gres=partition_room.gres(row["gres"]) if row["gres"] != "N/A" else {},
        features="" if row["features"] == "(null)" else row["features"],
        reason=row["reason"] or "None",
    )
    return row


def job_of_record(record):
    """A job of ``scontrol show job`` in the shape of :func:`parse_jobs`; it says more exactly what was asked for."""
    nodes = record.get("NumNodes", "1").split("-")
    cpus = quantities.whole(record.get("NumCPUs", "")) or 1
    memory = quantities.memory_mb(record.get("MinMemoryNode", ""))[0]
    if not memory:
        each = quantities.memory_mb(record.get("MinMemoryCPU", ""))[0]
        memory = each * (quantities.whole(record.get("MinCPUsNode", "")) or 1) if each else None
    return {
        "id": record.get("JobId", ""),
        "partition": record.get("Partition", ""),
        "user": record.get("UserId", "").split("(")[0],
        "account": record.get("Account", ""),
        "qos": record.get("QOS", ""),
        "priority": quantities.whole(record.get("Priority", "")) or 0,
        "state": record.get("JobState", ""),
        "cpus": cpus,
        "nodes": quantities.whole(nodes[0]) or 1,
        "most_nodes": quantities.whole(nodes[1]) if len(nodes) > 1 else None,
        "memory": memory,
        "cpus_per_node": quantities.whole(record.get("MinCPUsNode", "")) or 1,
        "tmp": quantities.memory_mb(record.get("MinTmpDiskNode", ""))[0] or 0,
        "limit": quantities.seconds(record.get("TimeLimit", "")),
        "submit": quantities.stamp(record.get("SubmitTime", "")),
        "start": quantities.stamp(record.get("StartTime", "")),
        "dependency": record.get("Dependency", ""),
        "gres": partition_room.gres(record.get("TresPerNode", "")),
        "reservation": record.get("Reservation", ""),
        "features": "" if record.get("Features", "(null)") == "(null)" else record["Features"],
        "reason": record.get("Reason", "None"),
    }


def parse_table(text):
    """Output of ``sacctmgr -P show``: rows by the names in its first line."""
    lines = [line for line in text.splitlines() if line.strip()]
    heads = lines[0].split("|") if lines else []
    rows = [line.split("|") for line in lines[1:]]
    return [dict(zip(heads, row)) for row in rows if len(row) == len(heads)]


def parse_sdiag(text):
    """``sdiag`` as {section: {label: value}}; what stands before the first section is in ""."""
    found, section = {"": {}}, ""
    for line in text.splitlines():
        label, colon, value = line.strip().partition(":")
        if label and not label.startswith("*") and (not colon or (not value.strip() and line[:1].strip())):
            section = label
        elif colon:
            found.setdefault(section, {})[label.strip()] = value.strip()
    return found


class Site:
    """What is known of a cluster at one moment."""

    def __init__(self, jobs=(), partitions=None, nodes=None, config=None, qos=(), assocs=(), sdiag=None, now=""):
        self.jobs = list(jobs)
        self.partitions = partitions or {}
        self.nodes = nodes or {}
        self.config = config or {}
        self.qos = list(qos)
        self.assocs = list(assocs)
        self.sdiag = sdiag or {}
        self.now = now
        self.pending = [job for job in self.jobs if job["state"] == "PENDING"]
        self.running = [job for job in self.jobs if job["state"] not in ("PENDING", "REQUEUED")]
        self._fits = {}
        self._together = {}

    def together(self, limit, job, running=True):
        """Jobs that count against the same limit, looked up once for jobs of one user, account and QOS."""
        key = (limit["scope"], limit["kind"], limit["per"], job["qos"], job["account"], job["user"], running)
        if key not in self._together:
            self._together[key] = [one for one in (self.running if running else self.jobs) if _counts_together(limit, one, job)]
        return self._together[key]

    def obstacles(self, job, name, only_up=False):
        """What stands between a job and a partition, looked up once for jobs that ask for the same."""
        wanted = ("cpus", "nodes", "most_nodes", "memory", "cpus_per_node", "tmp", "limit", "account", "qos", "features")
        asked = tuple(job.get(key) for key in wanted) + (tuple(sorted(job.get("gres", {}).items())), name, only_up)
        if asked not in self._fits:
            self._fits[asked] = self.partitions[name].obstacles(job, only_up)
        return self._fits[asked]


def explain(job, site):
    """Why a job waits: what job_reasons says of its reason, with ``pairs`` (of numbers) and ``fits`` (other partitions)."""
    said = dict(job_reasons.look_up(job["reason"]), pairs=[], fits=[])
    names = [name for name in job["partition"].split(",") if name in site.partitions]
    against = [(name, what) for name in names for what in site.obstacles(job, name)]
    stuck = bool(names) and all(site.obstacles(job, name) for name in names)
    counts_for = ("queue", "none", "request-vs-partition", "nodes")
    if stuck and (said["family"] in counts_for or (said["family"] == "sentence" and said["class"] == job_reasons.ADMIN)):
        said["pairs"] = [_pair(what, u"partition %s" % name) for name, what in against]
        said["fits"] = [name for name in sorted(site.partitions) if name not in names and _would_take(job, site, name)]
        _turn(said, job_reasons.CHANGE)
        if said["family"] != "request-vs-partition":
            said.update(
                zh=u"申请超出分区的范围, 永远不会开始", en=u"the request is beyond the partition, so it never starts",
                next_zh=u"修改申请或换分区", next_en=u"change the request or the partition",
            )  # fmt: skip
    elif said["family"] in ("queue", "none") and names and all(site.obstacles(job, name, True) for name in names):
        said["pairs"] = [_pair(what, u"partition %s" % name) for name in names for what in site.obstacles(job, name, True)]
        down = [name for one in names for name, node in zip(site.partitions[one].names, site.partitions[one].members) if not node["up"]]
        _turn(said, job_reasons.ADMIN)
        said.update(
            zh=u"所需节点不在服务中: %s" % some(down), en=u"nodes that it needs are out of service: %s" % some(down),
            next_zh=u"sinfo -R 查看原因, 修好后恢复", next_en=u"see sinfo -R, mend them, take them back",
        )  # fmt: skip
    _against_limits(said, job, site)
    if job["reason"].startswith("Dependency") and job["dependency"] not in ("", "(null)"):
        said["pairs"].append(u"dependency %s" % clean_text(job["dependency"], 120))
    return said


def _turn(said, kind):
    said.update({"class": kind, "who": job_reasons.WHO[kind]})


def _pair(what, where):
    return u"%s: %s asked, %s (%s)" % (what[0], clean_text(what[1], 80), clean_text(what[2], 120), clean_text(where, 80))


def _would_take(job, site, name):
    return site.partitions[name].state == "UP" and not site.obstacles(job, name) and not site.obstacles(job, name, True)


def _against_limits(said, job, site):
    """The number of a limit beside what is used and asked for; what alone is more than the limit can never start."""
    name = re.split(r"[\s,:(]", job["reason"], maxsplit=1)[0]
    limit = job_reasons.limit(name)
    if not limit:
        return
    for where, row in _limit_rows(limit, job, site):
        for column in _columns_of(limit):
            found = _numbers(limit, row.get(column, ""), job, site)
            for text, beyond in found:
                said["pairs"].append(u"%s: %s=%s" % (where, column, text))
                if beyond and limit["kind"] != "min":
                    _turn(said, job_reasons.CHANGE)
            if found:
                return


def _limit_rows(limit, job, site):
    if limit["scope"] == "qos":
        names = [job["qos"]] + [site.partitions[name].qos for name in job["partition"].split(",") if name in site.partitions]
        return [(u"QOS %s" % row["Name"], row) for name in names for row in site.qos if name and row.get("Name") == name]
    rows = [row for row in site.assocs if row.get("Account") == job["account"] and row.get("User", "") in (job["user"], "")]
    rows.sort(key=lambda row: row.get("User", "") == "")
    return [(u"association %s %s" % (row.get("Account"), row.get("User") or u"(account)"), row) for row in rows]


def _columns_of(limit):
    if limit["counted"] in ("jobs", "submit", "wall"):
        return _COLUMNS_OF.get((limit["counted"], limit["kind"], limit["per"]), ())
    return _TRES_COLUMNS.get((limit["kind"], limit["per"], limit["over"]), ())


def _numbers(limit, text, job, site):
    """[(text, whether the job alone is beyond it)] of a limit's value."""
    if not text:
        return []
    if limit["counted"] == "wall":
        most = quantities.seconds(text)
        return [(u"%s, %s asked" % (text, quantities.show_seconds(job["limit"])), bool(most is not None and (job["limit"] or 0) > most))]
    used = site.together(limit, job)
    if limit["counted"] == "jobs":
        return [(u"%s, %d running" % (clean_text(text, 40), len(used)), False)]
    if limit["counted"] == "submit":
        return [(u"%s, %d submitted" % (clean_text(text, 40), len(site.together(limit, job, False))), False)]
    found = []
    for key, most in sorted(quantities.tres(text).items()):
        if key.split("/")[0] != limit["counted"]:
            continue
        asked = _asked(job, key)
        numbers = quantities.show_mb if key == "mem" else u"{0:g}".format
        told = u"%s %s" % (key, numbers(most))
        if asked is not None and limit["over"] == "":
            told += u", %s asked" % numbers(asked)
            if limit["per"] in ("User", "Account", "") and limit["kind"] != "min":
                told += u", %s in use" % numbers(sum(_asked(one, key) or 0 for one in used))
        found.append((told, bool(limit["over"] == "" and asked is not None and asked > most)))
    return found


def _counts_together(limit, one, job):
    same = one["qos"] == job["qos"] if limit["scope"] == "qos" else one["account"] == job["account"]
    if limit["per"] == "User" or (limit["scope"] == "assoc" and limit["kind"] == "max"):
        same = same and one["user"] == job["user"]
    return same and (limit["per"] != "Account" or one["account"] == job["account"])


def _asked(job, key):
    if key == "cpu":
        return job["cpus"]
    if key == "node":
        return job["nodes"]
    if key == "mem":
        return job["memory"] * job["nodes"] if job["memory"] else None
    if key.startswith("gres/"):
        return job.get("gres", {}).get(key[5:].split(":")[0], 0) * job["nodes"]
    return None


# --- the whole queue ----------------------------------------------------------------------------


def report(site):
    """{classes: {class: number}, jobs: [{id, class, reason}], findings}: each pending job in exactly one class."""
    groups, jobs = {}, []
    classes = dict.fromkeys(job_reasons.CLASSES, 0)
    for job in site.pending:
        said = explain(job, site)
        classes[said["class"]] += 1
        jobs.append({"id": job["id"], "class": said["class"], "reason": clean_text(job["reason"], 120)})
        key = (said["class"], said["zh"], said["en"], job["partition"], tuple(said["pairs"]), tuple(said["fits"]))
        groups.setdefault(key, (said, []))[1].append(job)
    findings = [_group(alike, members) for alike, members in groups.values()]
    findings += shares(site) + starving(site) + backfill_advice(site)
    order = {"error": 0, "warning": 1, "info": 2}
    findings.sort(key=lambda one: (order[one["severity"]], -one.get("jobs", 0)))
    return {"classes": classes, "jobs": jobs, "findings": findings}


def _group(said, members):
    """Jobs that wait for the same thing as one finding."""
    severity = {job_reasons.WAIT: "info", job_reasons.OWN: "info"}.get(said["class"], "warning")
    lines = [evidence("squeue", u"%d jobs: %s" % (len(members), some([job["id"] for job in members])))]
    lines += [evidence("squeue", u"users: %s" % some([job["user"] for job in members]))]
    lines += [evidence("limits", pair) for pair in said["pairs"]]
    fits_zh, fits_en = _fits(said)
    return finding(
        "queue_" + said["class"], severity, u"%s: %s" % (clean_text(members[0]["partition"], 60), clean_text(said["reason"], 80)),
        title(said["zh"], said["en"]), title(*job_reasons.CLASSES[said["class"]]),
        title(said["next_zh"] + fits_zh, said["next_en"] + fits_en),
        lines, who=said["who"], confidence="certain" if said["known"] else "open", jobs=len(members),
    )  # fmt: skip


def _fits(said):
    if not said["pairs"] or said["class"] != job_reasons.CHANGE:
        return u"", u""
    if said["fits"]:
        names = some(said["fits"])
        return u"; 可用分区: %s" % names, u"; partitions that would take it: %s" % names
    return u"", u""


def shares(site):
    """Users who hold most of the queue."""
    pending = site.pending
    counted = {}
    for job in pending:
        counted[job["user"]] = counted.get(job["user"], 0) + 1
    found = []
    for user, number in sorted(counted.items(), key=lambda pair: -pair[1]):
        if len(pending) >= MANY_PENDING and number * 100 > BIG_SHARE * len(pending):
            found.append(finding(
                "queue_share", "info", clean_text(user, 60),
                title(u"一个用户占排队作业的 %d%%" % (number * 100 // len(pending)),
                      u"one user has %d%% of the pending jobs" % (number * 100 // len(pending))),
                title(u"大量作业使调度器检查不到其他作业", u"many jobs of one user keep the scheduler from looking at others"),
                title(u"用户: 改用作业数组 (%N); 管理员: MaxJobsPU 或 bf_max_job_user (撤销: 去掉该限制)",
                      u"the user: an array with %N; an admin: MaxJobsPU or bf_max_job_user (to undo it: remove the limit)"),
                [evidence("squeue", u"%d of %d pending jobs" % (number, len(pending)))], who="user", confidence="certain",
            ))  # fmt: skip
    return found


def starving(site):
    """Large jobs that wait for long while many of lower priority began."""
    found = []
    now = quantities.epoch(site.now)
    waiting = [job for job in site.pending if job["reason"].split(",")[0] in ("Resources", "Priority")]
    # whoever starves has come to the front
    for job in sorted(waiting, key=lambda one: -one["priority"])[:MOST_STARVING]:
        begun = quantities.epoch(job["submit"])
        if now is None or begun is None or now - begun < LONG_WAIT:
            continue
        where = set(job["partition"].split(","))
        over = [
            one for one in site.running
            if one["priority"] < job["priority"] and one["start"] > job["submit"] and one["cpus"] < job["cpus"]
            and where.intersection(one["partition"].split(","))
        ]  # fmt: skip
        if len(over) >= OVERTAKEN:
            before = 1 + max(one["priority"] for one in waiting)
            found.append(finding(
                "queue_starving", "warning", clean_text(job["id"], 60),
                title(u"大作业长时间等待, 而更小的作业不断开始", u"a large job waits for long while smaller ones begin"),
                title(u"回填没有为它保留节点", u"backfill keeps no nodes for it"),
                # scontrol(1): a priority set by hand stays as it is until the job was held and released
                title(u"见回填建议 (bf_window, 时间上限); 临时: scontrol update JobId=%s Priority=%d; 撤销: scontrol hold, 再 release"
                      % (clean_text(job["id"], 60), before),
                      u"see the advice on backfill (bf_window, time limits); at once: scontrol update JobId=%s Priority=%d; to undo it: "
                      u"scontrol hold, then release" % (clean_text(job["id"], 60), before)),
                [evidence("squeue", u"waits %s, asks %d CPUs on %d nodes, priority %d"
                          % (quantities.show_seconds(now - begun), job["cpus"], job["nodes"], job["priority"])),
                 evidence("squeue", u"%d jobs of lower priority began since: %s" % (len(over), some([one["id"] for one in over])))],
                who="admin", confidence="probable",
            ))  # fmt: skip
    return found[:10]


def cancelled_spikes(rows):
    """Hours in which far more jobs were cancelled than is usual. Rows: {end, state, by, user}."""
    hours = {}
    for row in rows:
        if row["state"] == "CANCELLED" and row["end"]:
            hours.setdefault(row["end"][:13], []).append(row)
    counts = sorted(len(members) for members in hours.values())
    usual = counts[(len(counts) - 1) // 2] if counts else 0
    found = []
    for hour in sorted(hours):
        members = hours[hour]
        if len(members) < SPIKE or (len(hours) > 1 and len(members) < SPIKE_TIMES * usual):
            continue
        by = {}
        for row in members:
            by[row["by"] or u"?"] = by.get(row["by"] or u"?", 0) + 1
        first = sorted(by.items(), key=lambda pair: -pair[1])[0]
        found.append(finding(
            "queue_cancelled", "warning", hour,
            title(u"一小时内大量作业被取消", u"many jobs were cancelled within an hour"),
            title(u"Slurm 没有排队时间上限: 有人 (scancel) 或依赖失效取消了它们",
                  u"Slurm has no longest time in the queue: somebody (scancel) or a failed dependency cancelled them"),
            title(u"询问 UID %s; 若为依赖, 查父作业" % first[0], u"ask UID %s; of a dependency, look at the parent job" % first[0]),
            [evidence("sacct", u"%d cancelled from %s:00, usual are %d an hour" % (len(members), hour, usual)),
             evidence("sacct", u"%d by UID %s; users: %s" % (first[1], first[0], some([row["user"] for row in members])))],
            who="admin", confidence="probable",
        ))  # fmt: skip
    return found


# --- backfill -----------------------------------------------------------------------------------


def parameters(config):
    """SchedulerParameters as {name: value}; a word without a value is ""."""
    words = [word.strip() for word in config.get("SchedulerParameters", "").split(",") if word.strip() not in ("", "(null)")]
    return dict(word.partition("=")[::2] for word in words)


def _release(config):
    match = re.match(r"^(\d+)\.(\d+)", config.get("SLURM_VERSION", ""))
    return (int(match.group(1)), int(match.group(2))) if match else (0, 0)


def backfill_advice(site):
    """What the evidence says for changing backfill: present and proposed value, its cost, the way back. Never applied."""
    if "backfill" not in site.config.get("SchedulerType", ""):
        return []
    given = parameters(site.config)
    stats = site.sdiag.get("Backfilling stats", {})
    found = []
    limits = [part.max_time for part in site.partitions.values() if part.max_time < quantities.INFINITE]
    window = quantities.whole(given.get("bf_window", "")) or 1440
    longest = max(limits or [0]) // 60
    if longest > window and site.pending:
        resolution = max(60, longest * 60 // 1440)
        found.append(_advice(
            "bf_window", "%d" % window, "%d" % longest,
            u"最长 MaxTime 为 %d 分钟, 回填只看 %d 分钟" % (longest, window),
            u"the longest MaxTime is %d min, backfill looks %d min ahead" % (longest, window),
            u"bf_resolution 须同时提高到 %d, 否则每轮更久" % resolution,
            u"raise bf_resolution to %d with it, or cycles take longer" % resolution,
            [evidence("scontrol show partition", u"MaxTime %s" % quantities.show_seconds(longest * 60))], given,
        ))  # fmt: skip
    depth = quantities.whole(given.get("bf_max_job_test", "")) or (500 if _release(site.config) >= (21, 8) else 100)
    tried, length = [quantities.whole(stats.get(key, "")) or 0 for key in ("Last depth cycle (try sched)", "Last queue length")]
    # from 23.11 on sdiag says how cycles ended
    ends = [(label, number) for section in site.sdiag.values() for label, number in section.items()]
    stopped = any(label.startswith(("Hit bf_max_job_test", "Timeout (bf_max")) and quantities.whole(number) for label, number in ends)
    if (tried >= depth and length > depth) or stopped:
        found.append(_advice(
            "bf_max_job_test", "%d" % depth, "%d" % max(depth * 2, min(length, 5000)),
            u"每轮只检查 %d 个作业, 队列有 %d 个" % (tried, length), u"each cycle tries %d jobs of a queue of %d" % (tried, length),
            u"每轮更久", u"cycles take longer",
            [evidence("sdiag", u"Last depth cycle (try sched) %d, Last queue length %d" % (tried, length))], given,
        ))  # fmt: skip
    cycle = quantities.whole(stats.get("Last cycle", "")) or 0
    if "bf_continue" not in given and cycle > 2000000 and length > 100:
        found.append(_advice(
            "bf_continue", "unset", "set",
            u"一轮 %.1f 秒, 中断后从头开始" % (cycle / 1e6), u"a cycle takes %.1f s and begins anew after each pause" % (cycle / 1e6),
            u"决定可能基于稍旧的状态", u"decisions may rest on a slightly older state",
            [evidence("sdiag", u"Last cycle %d us" % cycle)], given,
        ))  # fmt: skip
    for name in ("bf_job_part_count_reserve", "bf_min_prio_reserve", "bf_min_age_reserve"):
        if (quantities.whole(given.get(name, "")) or 0) > 0 and starving(site):
            found.append(_advice(
                name, given[name], "0", u"部分大作业得不到预留", u"some large jobs get no reservation",
                u"预留变多, 回填变少", u"more is kept, less is backfilled",
                [evidence("scontrol show config", u"%s=%s" % (name, clean_text(given[name], 40)))], given,
            ))  # fmt: skip
    asked = [(job["limit"], job) for job in site.running if job["limit"] and job["limit"] < quantities.INFINITE]
    endless = [job for job in site.jobs if job["limit"] == quantities.INFINITE or job["limit"] is None]
    if len(site.jobs) >= MANY_PENDING and len(endless) * 2 > len(asked) + len(endless):
        found.append(_advice(
            "DefaultTime", "NONE", "a limit of the site's", u"多数作业没有时间上限, 回填无从判断",
            u"most jobs have no time limit, so backfill cannot tell when they end",
            u"未写 --time 的作业会在此时间被结束", u"jobs without --time end at it",
            [evidence("squeue", u"%d of %d jobs without a limit" % (len(endless), len(site.jobs)))], given,
        ))  # fmt: skip
    return found


def _advice(name, now, proposed, zh, en, cost_zh, cost_en, lines, given):
    where = u"SchedulerParameters" if name.startswith("bf_") else u"PartitionName"
    back = u"%s=%s" % (name, given[name]) if given.get(name) else name
    undo = (u"恢复 %s" % back, u"set %s again" % back) if name in given else (u"去掉它", u"remove it")
    return finding(
        "backfill_" + name, "info", name, title(zh, en),
        title(u"当前 %s, 建议 %s; 代价: %s" % (now, proposed, cost_zh), u"now %s, proposed %s; cost: %s" % (now, proposed, cost_en)),
        title(u"在 slurm.conf 的 %s 中设 %s, 再 scontrol reconfigure; 撤销: %s" % (where, name, undo[0]),
              u"set %s in %s of slurm.conf, then scontrol reconfigure; to undo it: %s" % (name, where, undo[1])),
        lines, who="admin", confidence="probable",
    )  # fmt: skip
