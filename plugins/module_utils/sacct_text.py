# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``sacct -P -n`` prints, as jobs with their steps. Pure.

Rows are read one by one, and of an array only what went wrong is kept whole: two hundred thousand tasks must fit into memory.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import collections
import re

from . import exit_status, job_states, quantities

# Stands in no job name; sacct takes any text as a delimiter.
DELIMITER = "\x1f"

# Asked for where this sacct has them. JobName and SubmitLine are the user's own words, so they come last.
FIELDS = (
    "JobID", "JobIDRaw", "State", "ExitCode", "DerivedExitCode", "UID", "User", "Account", "Partition", "QOS", "Submit", "Eligible",
    "Start", "End", "ElapsedRaw", "TimelimitRaw", "ReqMem", "MaxRSS", "TRESUsageInTot", "ReqTRES", "AllocTRES", "ReqCPUS", "NCPUS",
    "NNodes", "NTasks", "NodeList", "FailedNode", "Reason", "TotalCPU", "Restarts", "StdOut", "StdErr", "WorkDir", "JobName",
    "SubmitLine",
)  # fmt: skip
# Without these there is nothing to judge.
NEEDED = ("JobID", "State", "ExitCode")

# Jobs kept whole; the others are counted.
MOST_JOBS = 2000

_ID = re.compile(
    r"^(?P<job>[0-9]+)(?:_(?P<task>[0-9]+|\[[0-9,:%+*-]*(?:\.\.\.)?\]?))?(?:\+(?P<part>[0-9]+))?(?:\.(?P<step>[A-Za-z0-9_+-]+))?$"
)
_NO_STEP = ("extern",)
# A name, list or time that may stand in a command line: it starts with no dash, and holds nothing but this.
_WORD = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._:\[\],T+-]*\Z")
_LIMIT_LESS = {"UNLIMITED": quantities.INFINITE, "INFINITE": quantities.INFINITE}


def parse_id(text):
    """A job's id in any spelling as {job, task, part, step}, None of what is none.

    >>> parse_id("118+1.batch")["step"]
    'batch'
    """
    match = _ID.match(text.strip())
    return {name: value or "" for name, value in match.groupdict().items()} if match else None


def is_word(text):
    """True for what can be a user, a list of nodes or a time, and cannot be an option.

    >>> [is_word(text) for text in ("n[1-3]", "now-7days", "-a", "a b")]
    [True, True, False, False]
    """
    return bool(_WORD.match(text))


def fields_of(helpformat):
    """The fields to ask for, of those that ``sacct --helpformat`` lists; all where it lists nothing."""
    offered = {word.lower() for word in helpformat.split()}
    return [name for name in FIELDS if not offered or name.lower() in offered]


def _number(text):
    return int(text) if re.match(r"^[0-9]{1,18}$", text.strip()) else None


def tidy(row):
    """A row with its texts as values, under names in our own spelling; what is missing is None or empty."""
    where = parse_id(row["JobID"])
    state, by = job_states.parse(row.get("State", ""))
    nodes = quantities.whole(row.get("NNodes", "")) or None
    cpus = quantities.whole(row.get("NCPUS", "")) or quantities.whole(row.get("ReqCPUS", "")) or None
    limit = row.get("TimelimitRaw", "").strip()
    return {
        "id": row["JobID"].strip(),
        "raw": row.get("JobIDRaw", "").strip(),
        "job": where["job"],
        "task": where["task"],
        "part": where["part"],
        "step": where["step"],
        "state": state,
        "by": by,
        "exit": row.get("ExitCode", "").strip(),
        "derived": row.get("DerivedExitCode", "").strip(),
        "uid": row.get("UID", "").strip(),
        "user": row.get("User", "").strip(),
        "account": row.get("Account", "").strip(),
        "partition": row.get("Partition", "").strip(),
        "qos": row.get("QOS", "").strip(),
        "submit": quantities.stamp(row.get("Submit", "")),
        "start": quantities.stamp(row.get("Start", "")),
        "end": quantities.stamp(row.get("End", "")),
        "elapsed": _number(row.get("ElapsedRaw", "")),
        "limit": _LIMIT_LESS.get(limit.upper(), (_number(limit) or 0) * 60 or None),
        "memory": _requested(row, cpus, nodes),
        "peak": _peak(row),
        "total": quantities.tres(row.get("TRESUsageInTot", "")).get("mem"),
        "tasks": quantities.whole(row.get("NTasks", "")) or None,
        "cpus": cpus,
        "nodes": nodes,
        "node_list": row.get("NodeList", "").strip(),
        "failed_node": row.get("FailedNode", "").strip(),
        "reason": row.get("Reason", "").strip(),
        "cpu_seconds": quantities.seconds(row.get("TotalCPU", "")),
        "restarts": _number(row.get("Restarts", "")) or 0,
        "stdout": row.get("StdOut", "").strip(),
        "stderr": row.get("StdErr", "").strip(),
        "work_dir": row.get("WorkDir", "").strip(),
        "name": row.get("JobName", "").strip(),
        "command": row.get("SubmitLine", "").strip(),
    }


def _requested(row, cpus, nodes):
    """MB asked for on each node. ReqMem is the job's sum from 21.08 on; before, it says for what it is meant."""
    size, each = quantities.memory_mb(row.get("ReqMem", ""))
    if not size:
        return None
    if each == "n":
        return size
    if each == "c":
        return size * (cpus or 1) / float(nodes or 1)
    return size / float(nodes or 1)


def _peak(row):
    """MB of the largest task. What --noconvert prints are bytes, which a unit may follow all the same."""
    return quantities.memory_mb(row.get("MaxRSS", ""), "B")[0]


def key_of(row):
    """What a row belongs to: one job, task of an array, or component of a het job."""
    text = row["job"]
    if row["task"]:
        text += "_" + row["task"]
    return text + ("+" + row["part"] if row["part"] else "")


class Jobs:
    """Jobs of a listing: ``add`` each line, then read ``jobs`` and ``counted``."""

    def __init__(self, fields, most=MOST_JOBS):
        self.fields = list(fields)
        self.most = most
        self.kept = collections.OrderedDict()
        self.well = []
        self.counted = {}
        self.unread = 0
        self._words = {}
        self._columns = [self.fields.index(name) for name in ("JobID", "State")]

    def add(self, line):
        """Take a row. Most of a long listing is only counted, so that no more is made of it than that needs."""
        values = line.rstrip("\r\n").split(DELIMITER, len(self.fields) - 1)
        where = _ID.match(values[self._columns[0]].strip()) if len(values) == len(self.fields) else None
        if where is None:
            self.unread += bool(line.strip())
            return
        job, task, part, step = [text or "" for text in where.groups()]
        key = key_of({"job": job, "task": task, "part": part})
        if step:
            if key in self.kept and step not in _NO_STEP:
                self.kept[key][-1]["steps"].append(tidy(dict(zip(self.fields, values))))
            return
        state = self._state(values[self._columns[1]])
        self.counted[state] = self.counted.get(state, 0) + 1
        if key in self.kept or len(self.kept) < self.most or (state != "COMPLETED" and self._make_room()):
            self._keep(key, dict(tidy(dict(zip(self.fields, values))), steps=[]))

    def _state(self, text):
        """The word of a state; a listing has few different ones."""
        word = self._words.get(text)
        if word is None:
            word = job_states.parse(text)[0]
            if len(self._words) < 100:
                self._words[text] = word
        return word

    def _keep(self, key, job):
        if key in self.kept:
            self.kept[key].append(job)
            return
        self.kept[key] = [job]
        if job["state"] == "COMPLETED":
            self.well.append(key)

    def _make_room(self):
        """Whether a job that ended well could give its place away."""
        while self.well:
            attempts = self.kept[self.well[-1]]
            if len(attempts) == 1 and not failed_steps(attempts[0]):
                del self.kept[self.well.pop()]
                return True
            self.well.pop()
        return False

    @property
    def jobs(self):
        """Each job's attempts, oldest first, with their steps."""
        return list(self.kept.values())


def parse(text, fields, most=MOST_JOBS):
    """A whole listing; see :class:`Jobs`."""
    found = Jobs(fields, most)
    for line in text.split("\n"):
        found.add(line)
    return found


def failed_steps(job):
    """Steps that ended badly, the first first."""
    return [
        step for step in job["steps"]
        if job_states.kind(step["state"]) == job_states.BAD or exit_status.decode(step["exit"])["kind"] not in ("success", "unknown")
    ]  # fmt: skip


def peak_mb(job):
    """(MB a node at the most, whether it is exact) of what sacct sampled, None without a sample.

    The sum over tasks is closest to what the cgroup limits; without it the largest task times the tasks is the upper bound.
    """
    best, exact = None, True
    for step in [job] + job["steps"]:
        nodes = float(step["nodes"] or job["nodes"] or 1)
        if step["total"]:
            value, sure = step["total"] / nodes, True
        elif step["peak"]:
            tasks = step["tasks"] or 1
            value, sure = step["peak"] * max(1.0, tasks / nodes), tasks <= nodes
        else:
            continue
        if best is None or value > best:
            best, exact = value, sure
    return best, exact
