# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gathers what is to be known about a job or a queue: the same for the module and for slurm-why.

Touches the host through loaders and log_reader only. Every call is bounded, and a source that was not read says why.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import re
import time

from . import (
    job_diagnosis,
    job_logs,
    job_states,
    loaders,
    log_reader,
    partition_room,
    quantities,
    queue_diagnosis,
    sacct_text,
    scontrol_text,
    slurm_conf,
    slurm_layout,
)

CALL = 20
# Seconds before a job's submission and after its end in which its lines stand.
BEFORE, AFTER = 5, 300
# Jobs of an array whose logs are looked at, nodes of a job that are asked about.
MOST_LOOKED_AT, MOST_NODES = 8, 20
TAIL_LINES = 30
_NODE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
# where slurmd of a configless node keeps what slurmctld handed out
_CACHED = "/run/slurm/conf/slurm.conf"
_KERNEL = re.compile(r"oom-kill|[Oo]ut of memory|segfault at|general protection")
_CGROUP_OOM = re.compile(r"Memory cgroup out of memory|CONSTRAINT_MEMCG")


def last_line(text):
    """The last line that says something."""
    told = [line for line in text.splitlines() if line.strip()]
    return told[-1].strip() if told else ""


class Look:
    """One look at a cluster from one host."""

    def __init__(self, bin_dir="", conf=None, budget=60.0):
        self.bin_dir = bin_dir
        self.conf = conf
        self.env = {"SLURM_CONF": conf} if conf else None
        self.deadline = loaders.now() + budget
        self.sources = []
        self.lines = []
        self.config = {}

    # --- calls ---

    def path(self, name):
        return os.path.join(self.bin_dir, name) if self.bin_dir else name

    def left(self, limit=CALL):
        return max(0.2, min(limit, self.deadline - loaders.now()))

    def call(self, name, *args):
        return loaders.run([self.path(name)] + list(args), self.left(), env=self.env, max_bytes=loaders.CLUSTER_BYTES)

    def listing(self, name, args, take):
        return loaders.lines([self.path(name)] + list(args), self.left(), take, env=self.env)

    def source(self, name, why=""):
        """Note that a source was read, or why not; read once is read."""
        for one in self.sources:
            if one["name"] == name:
                one["why"] = one["why"] and why
                return
        self.sources.append({"name": name, "why": why})

    def unread(self, findings):
        """The findings, each with the sources that were not read for it."""
        missing = [one for one in self.sources if one["why"]]
        for one in findings:
            one.setdefault("missing", missing)
        return findings

    def read_config(self):
        done = self.call("scontrol", "show", "config")
        self.config = scontrol_text.parse_config(done.out) if done.rc == 0 else {}
        if not self.config:
            self.source("scontrol", last_line(done.err) or "no answer")
            self.config = self.config_of_file()
        return self.config

    def config_of_file(self):
        """What slurm.conf of this host says, for when no slurmctld answers: where the logs are, whether there is accounting."""
        given = self.conf or os.environ.get("SLURM_CONF")
        for path in [given] if given else slurm_layout.candidate_confs([], {}, self.bin_dir) + [_CACHED]:
            try:
                conf = slurm_conf.parse(path, loaders.read_bytes, ())
            except (IOError, OSError):
                continue
            if conf.files:
                self.source(path)
                return conf.effective()
        return {}

    # --- accounting ---

    def sacct_fields(self):
        done = self.call("sacct", "--helpformat")
        return sacct_text.fields_of(done.out if done.rc == 0 else "")

    def accounting(self, args):
        """Jobs of sacct, an empty :class:`Jobs` where it does not answer."""
        fields = self.sacct_fields()
        found = sacct_text.Jobs(fields)
        if self.config and "slurmdbd" not in self.config.get("AccountingStorageType", ""):
            self.source("sacct", "accounting is off (AccountingStorageType)")
            return found
        options = ["-n", "-P", "--noconvert", "--delimiter=" + sacct_text.DELIMITER, "-o", ",".join(fields)]
        done = self.listing("sacct", options + args, found.add)
        if done.rc != 0:
            self.source("sacct", last_line(done.err) or "exit status %d" % done.rc)
        else:
            self.source("sacct")
        return found

    # --- one job ---

    def job(self, asked, lines=(), sources=()):
        """What is known about a job; see ``job_diagnosis.seen``.

        :param lines: what other hosts have of it, and ``sources`` what they could not read (see :meth:`look_at_node`)
        """
        where = sacct_text.parse_id(asked)
        number = where["job"] + ("_" + where["task"] if where["task"] else "")
        self.read_config()
        rows = self.accounting(["-D", "-j", number]).jobs
        rows = [tries for tries in rows if where["job"] in (tries[0]["job"], tries[0]["raw"])]
        if where["part"]:
            rows = [tries for tries in rows if tries[0]["part"] == where["part"]] or rows
        records = self.records(number)
        heads = self._heads(rows, records)
        nodes = self._nodes(heads)
        waits = any(job_states.kind(job["state"]) == job_states.WAITING for job in heads)
        site = self.site() if waits else queue_diagnosis.Site(config=self.config, partitions=self.partitions({}))
        # for a job that ended well the logs have nothing to add
        ill = (job_states.BAD, job_states.UNKNOWN)
        trouble = [job for job in heads if job_states.kind(job["state"]) in ill or sacct_text.failed_steps(job)]
        if trouble or not heads:
            self.search_controller_log(asked, trouble)
        if not heads:
            told = job_logs.outcome(self.lines)
            trouble = [job for job in [job_diagnosis.row_of_outcome(asked, told)] if job_states.kind(job["state"]) in ill] if told else []
        owner = self.owner(number) if trouble else ""
        for one in sources:
            self.source(one["name"], one["why"])
        self.lines += lines
        if trouble and not sources:
            self.look_from_here(trouble, owner, nodes)
        known = job_diagnosis.seen(rows, records, self.lines, self.sources, nodes, site.nodes, site.partitions, site)
        known.update(trouble=trouble[:MOST_LOOKED_AT], owner=owner)
        return known

    @staticmethod
    def _heads(rows, records):
        """The last attempt of each job, of sacct or else of slurmctld."""
        if rows:
            # slurmctld knows where the output is, before 21.08 it alone
            known = {"records": records}
            return [(job_diagnosis.begun_anew(tries[-1], known) or [job_diagnosis.merged(tries[-1], known)])[-1] for tries in rows]
        return [job_diagnosis.row_of_record(record) for record in records]

    def records(self, number):
        done = self.call("scontrol", "-o", "show", "job", number)
        if done.rc == 0:
            self.source("scontrol")
            return [record for record in scontrol_text.parse_records(done.out) if record.get("JobId")]
        self.source("scontrol", "slurmctld no longer knows the job" if "nvalid job id" in done.err else last_line(done.err) or "no answer")
        return []

    def owner(self, number):
        """The uid of a job's user, of listings that hold nothing which the user could have written; empty where they differ.

        Root only on slurmctld's word: for some seconds after a job's end sacct may show uid 0 for anybody's.
        """
        for name, args in (("sacct", ["-X", "-n", "-P", "-o", "UID"]), ("squeue", ["-h", "-t", "all", "-o", "%U"])):
            done = self.call(name, *(args + ["-j", number]))
            told = set(done.out.split()) if done.rc == 0 else set()
            if len(told) == 1 and all(one.isdigit() for one in told) and (name == "squeue" or told != {"0"}):
                return told.pop()
        return ""

    def _nodes(self, jobs):
        names = []
        for job in jobs[:MOST_LOOKED_AT]:
            names += quantities.hosts(job["failed_node"] or job["node_list"])[:MOST_NODES]
        names = [name for name in sorted(set(names)) if _NODE.match(name) and name.lower() not in ("none", "unknown")][:MOST_NODES]
        if not names:
            return []
        done = self.call("scontrol", "-o", "show", "node", ",".join(names))
        return scontrol_text.parse_nodes(done.out)

    def partitions(self, nodes=None):
        """Partitions with their nodes; with all nodes unless the caller knows them."""
        if nodes is None:
            nodes = partition_room.nodes_of(self.call("scontrol", "-o", "show", "node").out)
        done = self.call("scontrol", "-o", "show", "partition")
        return partition_room.partitions_of(done.out, nodes) if done.rc == 0 else {}

    # --- logs ---

    def search_controller_log(self, asked, jobs):
        """Lines of slurmctld.log that name the job."""
        begin, end = _span(jobs)
        self._search(job_logs.CONTROLLER, self.config.get("SlurmctldLogFile", ""), asked, jobs, begin, end)

    def _search(self, kind, path, asked, jobs, begin, end):
        if path in ("", "(null)"):
            self.source(kind, "it goes to syslog" if self.config else "the configuration is not known")
            return
        names = {job["id"]: job_logs.names_job(job["raw"] or job["job"]) for job in jobs[:MOST_LOOKED_AT]}
        if not names:
            number = sacct_text.parse_id(asked)
            names = {number["job"]: job_logs.names_job(number["job"])}
        for job in jobs[:MOST_LOOKED_AT]:
            # arrays and components are logged under what they are part of: JobId=101_3(104)
            if job["task"] or job["part"]:
                names[job["id"] + " "] = job_logs.names_job(job["id"])
        pattern = re.compile(b"|".join(one.pattern for one in names.values()))
        if kind == job_logs.NODE:
            pattern = re.compile(pattern.pattern + b"|slurmd started on|Slurmd shutdown completing")
        try:
            found, note = log_reader.search(path, pattern, begin, end, (_epoch(begin), _epoch(end)), self.left(5))
        except log_reader.Unread as why:
            self.source(kind, why.args[0])
            return
        self.source(kind)
        if note:
            self.source(kind + " (part)", note)
        for line in found:
            raw = line.encode("utf-8")
            ident = next((name.strip() for name, one in names.items() if one.search(raw)), "")
            self.lines.append({"kind": kind, "source": path, "text": line, "job": ident})

    def look_from_here(self, jobs, uid, nodes):
        """What this host has of jobs that may have run on others: the output where it is shared, the logs only of its own node."""
        own = [node["name"] for node in nodes if node["hostname"].split(".")[0] == os.uname()[1].split(".")[0]]
        ran_here = [job for job in jobs if set(own) & set(quantities.hosts(job["node_list"]))]
        if ran_here:
            self.look_at_node(ran_here, own[0])
        else:
            where = ", ".join(sorted({job["node_list"] for job in jobs if job["node_list"]})) or "a compute node"
            for kind in (job_logs.NODE, job_logs.KERNEL):
                self.source(kind, "on %s, not on this host" % where)
        self.read_output(jobs, uid)

    def look_at_node(self, jobs, name):
        """What this host, the node of that name, has of jobs that ran on it: slurmd.log and the kernel's log."""
        begin, end = _span(jobs)
        path = self.config.get("SlurmdLogFile", "").replace("%h", os.uname()[1].split(".")[0]).replace("%n", name)
        self._search(job_logs.NODE, path, jobs[0]["id"], jobs, begin, end)
        near = quantities.later(end, -AFTER - 30)
        # a restart of slurmd matters where a job ended
        self.lines = [
            line for line in self.lines
            if line["kind"] != job_logs.NODE or line["job"] or (near and job_logs.stamp(line["text"]) >= near)
        ]  # fmt: skip
        self._kernel(jobs, begin, end)

    def _kernel(self, jobs, begin, end):
        since, until = begin.replace("T", " "), end.replace("T", " ")
        if not since:
            self.source(job_logs.KERNEL, "the job's time is not known")
            return
        command = ["journalctl", "-k", "-q", "--no-pager", "-o", "short-iso", "--since", since] + (["--until", until] if until else [])
        done = loaders.run(command, self.left(8), max_bytes=8 << 20)
        text = done.out if done.rc == 0 else ""
        if not text.strip():
            other = loaders.run(["dmesg", "--time-format", "iso"], self.left(5), max_bytes=8 << 20)
            text = "\n".join(line for line in other.out.splitlines() if begin <= line[:19] <= (end or "9"))
            # without rights journalctl may show nothing and call it success
            if other.rc != 0:
                self.source(job_logs.KERNEL, last_line(other.err) or last_line(done.err) or "not readable")
                return
        self.source(job_logs.KERNEL)
        numbers = [job["raw"] or job["job"] for job in jobs[:MOST_LOOKED_AT]]
        for line in text.splitlines():
            if not _KERNEL.search(line):
                continue
            named = next((number for number in numbers if re.search(r"job_%s\b" % re.escape(number), line)), "")
            # another job's cgroup is another story
            if named or not _CGROUP_OOM.search(line):
                self.lines.append({"kind": job_logs.KERNEL, "source": "kernel", "text": line, "job": named})

    def read_output(self, jobs, uid):
        """The last lines of what the jobs printed, as far as the files are the user's own."""
        if not uid:
            self.source(job_logs.OUTPUT, "the job's user is not known")
            return
        for job in jobs[:MOST_LOOKED_AT]:
            for path in output_paths(job):
                answer = log_reader.apart(lambda path=path: log_reader.owned_tail(path, uid), self.left(3))
                text, why = answer if answer else ("", "%s: no answer in time (a hung mount?)" % path)
                if why:
                    self.source(job_logs.OUTPUT, why)
                    continue
                self.source(job_logs.OUTPUT)
                for line in [one for one in text.splitlines() if one.strip()][-TAIL_LINES:]:
                    self.lines.append({"kind": job_logs.OUTPUT, "source": path, "text": line, "job": job["id"]})

    # --- the queue ---

    def site(self, with_limits=True):
        """The queue and what it waits for; parts that do not answer are sources that were not read."""
        config = self.config or self.read_config()
        answers = {}
        calls = [
            ("squeue", "squeue", ["-h", "-a", "-o", queue_diagnosis.SQUEUE_FORMAT]),
            ("nodes", "scontrol", ["-o", "show", "node"]),
            ("sdiag", "sdiag", []),
        ]
        if with_limits and "slurmdbd" in config.get("AccountingStorageType", ""):
            calls += [
                ("qos", "sacctmgr", ["-P", "show", "qos", "format=" + queue_diagnosis.QOS_FORMAT]),
                ("assoc", "sacctmgr", ["-P", "show", "assoc", "format=" + queue_diagnosis.ASSOC_FORMAT]),
            ]
        for name, program, args in calls:
            done = self.call(program, *args)
            answers[name] = done.out if done.rc == 0 else ""
            self.source(name, "" if done.rc == 0 else last_line(done.err) or "exit status %d" % done.rc)
        nodes = partition_room.nodes_of(answers["nodes"])
        return queue_diagnosis.Site(
            queue_diagnosis.parse_jobs(answers["squeue"]), self.partitions(nodes), nodes, config,
            queue_diagnosis.parse_table(answers.get("qos", "")), queue_diagnosis.parse_table(answers.get("assoc", "")),
            queue_diagnosis.parse_sdiag(answers["sdiag"]), time.strftime("%Y-%m-%dT%H:%M:%S"),
        )  # fmt: skip


def _span(jobs):
    """The time in which lines about the jobs may stand, as two stamps; empty where it is not known."""
    begun = [job["submit"] or job["start"] for job in jobs if job["submit"] or job["start"]]
    ended = [job["end"] for job in jobs if job["end"]]
    begin = quantities.later(min(begun), -BEFORE) if begun else ""
    return begin, quantities.later(max(ended), AFTER) if ended and len(ended) == len(jobs) else ""


def _epoch(stamp):
    """Seconds since 1970 of a local time, None of what is none."""
    try:
        return time.mktime(time.strptime(stamp, "%Y-%m-%dT%H:%M:%S")) if stamp else None
    except (ValueError, OverflowError):
        return None


def output_paths(job):
    """Where a job's output went: as Slurm says, as its command line says, else where sbatch puts it by default."""
    given = [one for one in (job["stdout"], job["stderr"]) if one.startswith("/") and one != "/dev/null"]
    if job["stdout"] == "/dev/null" and not given:
        return []
    if not given and job["work_dir"].startswith("/"):
        argv = slurm_layout.words(job["command"])
        named = [slurm_layout.option(argv, short, name) for short, name in (("o", "output"), ("e", "error"))]
        default = "slurm-%A_%a.out" if job["task"] else "slurm-%j.out"
        given = [os.path.join(job["work_dir"], name) for name in named if name] or [os.path.join(job["work_dir"], default)]
    paths = []
    for path in given:
        path = expand(path, job)
        if path not in paths and path != "/dev/null":
            paths.append(path)
    return paths


def expand(path, job):
    """The marks of a file name of sbatch that are known afterwards."""
    known = {"j": job["raw"] or job["job"], "J": job["raw"] or job["job"], "A": job["job"], "a": job["task"], "x": job["name"],
             "u": job["user"], "N": (quantities.hosts(job["node_list"]) or [""])[0].split(".")[0], "%": "%"}  # fmt: skip

    def fill(match):
        value = known.get(match.group(2))
        if value is None:
            return match.group(0)
        return value.zfill(min(int(match.group(1) or 0), 10)) if value.isdigit() else value.replace("/", "_")

    return re.sub(r"%([0-9]*)([A-Za-z%])", fill, path)
