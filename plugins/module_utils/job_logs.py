# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lines of logs and of a job's own output say about why it ended. Pure.

Each sign has the sources whose word counts for it: a program may print anything, so what Slurm or the kernel would have to
know is believed of them alone.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# Where a line was read.
CONTROLLER, NODE, KERNEL, OUTPUT = "slurmctld.log", "slurmd.log", "kernel", "output"
_SLURM = (CONTROLLER, NODE, OUTPUT)

# sign -> (sources, pattern); the order is that of the evidence
_SIGNS = (
    ("oom", _SLURM, r"[Dd]etected \d+ oom[-_]kill event|OOM failure|OOM Killed|oom-kill event"),
    ("oom", (KERNEL,), r"Memory cgroup out of memory|oom-kill:.*CONSTRAINT_MEMCG"),
    ("oom_polling", _SLURM, r"[Ee]xceeded (job|step) memory limit|exceeded memory limit \(.*\), being killed"),
    ("oom_node", (KERNEL,), r"(?<!cgroup )[Oo]ut of memory: Kill|oom-kill:.*CONSTRAINT_NONE"),
    ("time_limit", _SLURM, r"DUE TO TIME LIMIT|Time limit exhausted for JobId"),
    ("preempted", _SLURM, r"DUE TO PREEMPTION|[Pp]reempted JobId|preempted job"),
    ("node_failure", _SLURM, r"DUE TO NODE FAILURE|NODE_FAIL|[Kk]illing JobId=\S+ on (failed|DOWN)"),
    ("requeued", _SLURM, r"DUE TO JOB REQUEUE|[Rr]equeu(ing|e) JobId"),
    ("task_failure", _SLURM, r"DUE TO TASK FAILURE"),
    ("scancel", (CONTROLLER,), r"REQUEST_KILL_JOB|REQUEST_CANCEL_JOB|_slurm_rpc_kill_job"),
    ("prolog", (CONTROLLER, NODE), r"[Pp]rolog.*(fail|error|status)|error:.*[Pp]rolog"),
    ("launch", (CONTROLLER, NODE), r"batch job complete failure|[Ll]aunch.*fail|Could not launch job|user env retrieval failed"),
    ("unkillable", (CONTROLLER, NODE, OUTPUT), r"Kill task failed|NOT ENDING WITH SIGNALS"),
    ("no_output", (NODE, OUTPUT, CONTROLLER),
     r"Could not open std(out|err|in) file|IO setup failed|open_output_file|could not open.*output"),
    ("slurmd_restart", (NODE,), r"Slurmd shutdown completing|slurmd started on|slurmd version \S+ started"),
    ("library", (OUTPUT,), r"error while loading shared libraries: \S+|cannot open shared object file|version `\S+' not found"),
    ("missing", (OUTPUT,), r"command not found|execve\(\): .*No such file|: not found$|bad interpreter|No such file or directory"),
    ("not_executable", (OUTPUT,), r"execve\(\): .*(Permission denied|Exec format error)|cannot execute|: Permission denied$"),
    ("segfault", (OUTPUT,), r"[Ss]egmentation fault"),
    ("segfault", (KERNEL,), r"segfault at|general protection"),
    ("storage", (OUTPUT, NODE),
     r"No space left on device|Disk quota exceeded|Read-only file system|Input/output error|Stale (NFS )?file handle"),
    ("network", (OUTPUT,), (
        r"[Cc]onnection refused|error: connect|Unable to connect|Connection timed out|No route to host|PMIx? ?(ERROR|error)|PMIX ERROR"
        r"|ORTE (has lost|was unable)|UCX +ERROR|ibv_\w+.*(fail|error)|NCCL WARN|MPI_Init.*fail|Connection reset by peer"
    )),
    ("python_memory", (OUTPUT,), r"MemoryError|std::bad_alloc|Cannot allocate memory|java\.lang\.OutOfMemoryError"),
    ("killed", (OUTPUT,), r"\bKilled\b"),
    ("abort", (OUTPUT,), r"\bAborted\b"),
    ("bus_error", (OUTPUT,), r"\bBus error\b"),
    ("ended", (CONTROLLER,), r"_job_complete: \S+ (WEXITSTATUS|WTERMSIG)"),
)  # fmt: skip
SIGNS = [(sign, sources, re.compile(pattern)) for sign, sources, pattern in _SIGNS]

_STAMP = re.compile(r"^\[?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")
# A log of which no stamp can be read is not searched by time.
STAMP_BYTES = re.compile(br"^\[?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")


def stamp(line):
    """The time of a log line in Slurm's default format (iso8601), empty in any other."""
    match = _STAMP.match(line)
    return match.group(1) if match else ""


def names_job(job):
    """A pattern (bytes) for the lines of a log that name this job.

    A bare number counts only where Slurm's words stand before it, or it would be found in times and sizes.
    """
    words = br"(?:[Jj]ob(?:Id|id|_id)?[= ]|StepId=|JOB |STEP |job_)"
    return re.compile(words + re.escape(str(job)).encode("ascii") + br"(?![0-9])")


def sign_of(source, text):
    """The first sign that a line from such a source is, empty of none."""
    for sign, sources, pattern in SIGNS:
        if source in sources and pattern.search(text):
            return sign
    return ""


def signs(lines):
    """{sign: [lines]} of lines {source, text, kind}."""
    found = {}
    for line in lines:
        sign = sign_of(line["kind"], line["text"])
        if sign:
            found.setdefault(sign, []).append(line)
    return found


_ENDS = (
    ("OUT_OF_MEMORY", re.compile(r"JobId=\S+ .*OOM failure|OOM failure")),
    ("TIMEOUT", re.compile(r"Time limit exhausted for JobId=")),
    ("CANCELLED", re.compile(r"REQUEST_KILL_JOB JobId=\S+ uid (\d+)")),
    ("FAILED", re.compile(r"_job_complete: JobId=\S+ WEXITSTATUS ([1-9]\d*)")),
    ("FAILED", re.compile(r"_job_complete: JobId=\S+ WTERMSIG (\d+)")),
    ("COMPLETED", re.compile(r"_job_complete: JobId=\S+ WEXITSTATUS 0\b")),
)
_WHERE = re.compile(r"NodeList=(\S+)")


def outcome(lines):
    """What slurmctld.log alone says of a job: {state, by, exit, node_list, start, end}, None when it says no end."""
    found = None
    where, begun = "", ""
    for line in lines:
        if line["kind"] != CONTROLLER:
            continue
        place = _WHERE.search(line["text"])
        if place and "llocate" in line["text"]:
            where, begun = place.group(1), stamp(line["text"])
        for state, pattern in _ENDS:
            match = pattern.search(line["text"])
            # what comes after is how the end was tidied up
            if match and not (found and found["state"] in ("OUT_OF_MEMORY", "TIMEOUT", "CANCELLED")):
                told = match.group(1) if match.groups() else "0"
                found = {"state": state, "by": told if state == "CANCELLED" else "", "exit": "0:0", "end": stamp(line["text"])}
                if state == "FAILED":
                    found["exit"] = "0:%s" % told if "WTERMSIG" in match.group(0) else "%s:0" % told
                break
    return dict(found, node_list=where, start=begun) if found else None
