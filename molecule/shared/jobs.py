"""Jobs of an ordinary user: submitted, asked about, and kept for the tests that need no lab."""

from __future__ import annotations

import json
import os
import typing as t
from pathlib import Path

import cluster
from cluster import CONTROLLER

# every host of the lab has her
USER, HOME = "alice", "/home/alice"
OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "DEADLINE")
Ids = dict[str, str]

# Where the evidence of each job is written to (tests/fixtures/diagnosis); nowhere unless it is set.
RECORD = os.environ.get("RECORD_DIAGNOSES", "")
GATHER = """
import json, sys
sys.path.insert(0, "/usr/local/lib/hpcguard")
from slurmguard import job_evidence
calls = {}
class Look(job_evidence.Look):
    def call(self, *argv):
        done = job_evidence.Look.call(self, *argv)
        calls[" ".join(argv)] = [done.rc, done.out, done.err]
        return done
known = Look().job(sys.argv[1])
kept = {name: known[name] for name in ("rows", "records", "lines", "sources", "nodes")}
print(json.dumps({"known": kept, "calls": calls}))
"""


def submit(options: list[str], script: str, user: str = USER) -> str:
    argv = ["sbatch", "--parsable", f"--chdir={HOME}", *options, "--wrap", script]
    return cluster.out(CONTROLLER, "runuser", "-u", user, "--", *argv).split(";")[0]


def rows(job: str) -> list[list[str]]:
    return cluster.accounting(job, "jobid,state,exitcode,nodelist")


def is_over(job: str) -> bool:
    states = [row[1].split()[0] for row in rows(job) if "." not in row[0]]
    return bool(states) and all(state in OVER for state in states)


def release() -> tuple[int, ...]:
    """Of the Slurm that runs: (22, 5, 8)."""
    return tuple(int(part) for part in cluster.out(CONTROLLER, "scontrol", "--version").split()[-1].split("."))


def reason(job: str) -> str:
    return cluster.out(CONTROLLER, "squeue", "-h", "-o", "%r", "-j", job)


def node_of(job: str) -> str:
    return next(row[3] for row in rows(job) if "." not in row[0])


def why(job: str, host: str, user: str = USER) -> dict[str, t.Any]:
    """The first finding of slurm-why, run as an ordinary user."""
    done = cluster.run(host, "runuser", "-u", user, "--", "/usr/local/bin/slurm-why", "--json", job, check=False)
    assert done.stdout.startswith("{"), done.stderr
    found: dict[str, t.Any] = json.loads(done.stdout)["findings"][0]
    return found


def diagnose(*args: str) -> dict[str, t.Any]:
    """What the playbook wrote into its report."""
    cluster.succeed("diagnose", "-e", f"diagnose_report_dir={cluster.REPORTS}", *args)
    told: dict[str, t.Any] = json.loads((cluster.ROOT / cluster.REPORTS / "diagnose.json").read_text(encoding="utf-8"))
    return told


# --- the golden set ---------------------------------------------------------------------------------


def gathered(job: str, host: str) -> dict[str, t.Any]:
    told: dict[str, t.Any] = json.loads(cluster.out(host, cluster.python(host), "-", job, feed=GATHER))
    return told


def _write(name: str, content: dict[str, t.Any]) -> None:
    folder = Path(RECORD) / cluster.out(CONTROLLER, "scontrol", "--version").split()[-1]
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
    (folder / f"{name.replace(' ', '_')}.json").write_text(text + "\n", encoding="utf-8")


def keep(name: str, job: str, cause: str, host: str = "") -> None:
    """Keep what is known about a job that ended, as it was on its node unless another host is named."""
    if RECORD:
        _write(name, {"asked": job, "cause": cause, "known": gathered(job, host or node_of(job))["known"]})


def keep_waiting(name: str, job: str, who: str, words: str) -> None:
    """Keep what is known about a job that waits: also what Slurm said of nodes, partitions and limits."""
    if RECORD:
        _write(name, {"asked": job, "cause": "waiting", "who": who, "words": words, **gathered(job, CONTROLLER)})
