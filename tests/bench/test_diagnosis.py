"""A job's verdict on a 2 GB log and 200,000 rows of sacct, and the report of 10,000 pending jobs: time and memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import job_diagnosis, partition_room, queue_diagnosis

ROOT = Path(__file__).resolve().parents[2]
LOG_BYTES, ROWS, PENDING = 2 << 30, 200_000, 10_000
MEMORY_MB = 200

FIELDS = (
    "JobID JobIDRaw State ExitCode UID User Partition QOS Submit Start End ElapsedRaw TimelimitRaw ReqMem MaxRSS NCPUS NNodes "
    "NodeList JobName"
)
# In a process of its own, so that its peak is its own.
VERDICT = """
import resource, sys, time
sys.path.insert(0, {prefix!r})
from slurmguard import job_diagnosis, job_evidence
begun = time.monotonic()
found = job_diagnosis.diagnose({job!r}, job_evidence.Look({home!r}).job({job!r}))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(time.process_time(), time.monotonic() - begun, peak, found[0]["id"], found[0]["number"])
for one in found[0]["evidence"]:
    print(one["source"], one["text"])
print("missing:", found[0]["missing"])
"""


LINE = "[{when}.{line:03d}] sched: Allocate JobId={second}{line:03d} NodeList=n{line} #CPUs=4 Partition=p\n"


def stamp(second: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1796000000 + second))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Slurm's commands as stand-ins, the log, the rows and the library."""
    folder = tmp_path_factory.mktemp("bench")
    log = folder / "slurmctld.log"
    seconds = 0
    with log.open("w") as stream:
        while stream.tell() < LOG_BYTES:
            when = stamp(seconds)
            stream.write("".join(LINE.format(when=when, line=line, second=seconds) for line in range(100)))
            seconds += 1
    with log.open("r+") as stream:
        # somewhere in its middle, over lines that were there
        stream.seek(LOG_BYTES // 2)
        stream.readline()
        where = stream.tell()
        when = stream.readline()[1:20]
        stream.seek(where)
        stream.write(f"[{when}.000] _job_complete: JobId=77_0(100) WEXITSTATUS 127\n")
    rows = folder / "rows"
    with rows.open("w") as stream:
        for task in range(ROWS // 2):
            ill = task % 1000 == 0
            head = f"77_{task}", str(100 + task), "FAILED" if ill else "COMPLETED", "127:0" if ill else "0:0"
            rest = ("1001", "alice", "p", "normal", when, when, when, "9", "60", "100M", "", "1", "1", "n1", "many")
            stream.write("\x1f".join(head + rest) + "\n")
            step = f"77_{task}.batch", f"{100 + task}.batch", head[2], head[3]
            stream.write("\x1f".join((*step, "", "", "", "", "", when, when, "9", "", "", "1048576", "1", "1", "n1", "batch")) + "\n")
    programs = {
        "scontrol": f"""case "$*" in "show config") cat {folder}/config ;; *"show job"*) exit 1 ;; esac""",
        "sacct": f"""case "$*" in --helpformat) echo {FIELDS} ;; *JobName*) cat {rows} ;; *) echo 1001 ;; esac""",
    }
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    (folder / "config").write_text(f"AccountingStorageType = accounting_storage/slurmdbd\nSlurmctldLogFile = {log}\n")
    package = folder / "slurmguard"
    package.mkdir()
    (package / "__init__.py").touch()
    for path in (ROOT / "plugins/module_utils").glob("*.py"):
        (package / path.name).write_bytes(path.read_bytes())
    yield folder
    log.unlink()


def test_a_verdict_on_a_large_log_and_a_large_array(home: Path) -> None:
    program = VERDICT.format(prefix=str(home), home=str(home), job="77")
    environment = {**os.environ, "TZ": "UTC", "PATH": f"{home}:/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    print(done.stdout)
    first = done.stdout.splitlines()[0].split()
    assert first[3] == "job_missing_command" and int(first[4]) == ROWS // 2000
    assert any("WEXITSTATUS 127" in line for line in done.stdout.splitlines()), "found in the middle of the log"
    assert float(first[0]) < 5, "seconds of this process; how long it waits for a processor is the machine's affair"
    assert float(first[2]) < MEMORY_MB


REASONS = ("Priority", "Resources", "Dependency", "QOSMaxCpuPerUserLimit", "PartitionConfig", "AssocGrpCpuLimit", "JobArrayTaskLimit")


def test_a_report_of_ten_thousand_pending_jobs() -> None:
    lines = []
    for number in range(PENDING + 2000):
        row: dict[str, t.Any] = {
            "id": number, "partition": f"p{number % 20}", "user": f"u{number % 300}", "account": f"a{number % 30}", "qos": "normal",
            "priority": number, "state": "PENDING" if number < PENDING else "RUNNING", "cpus": number % 97 + 1, "nodes": number % 5 + 1,
            "memory": f"{number % 400}G", "cpus_per_node": 1, "tmp": 0, "limit": "1-00:00:00", "submit": "2026-12-01T10:00:00",
            "start": "2026-12-02T10:00:00", "dependency": "(null)", "gres": "N/A", "reservation": "(null)", "features": "(null)",
            "reason": REASONS[number % len(REASONS)],
        }  # fmt: skip
        lines.append(queue_diagnosis.DELIMITER.join(str(row[name]) for name, _letter in queue_diagnosis._COLUMNS))
    nodes = "\n".join(f"NodeName=n{number} CPUTot=96 RealMemory=256000 State=IDLE" for number in range(1000))
    partitions = "\n".join(f"PartitionName=p{number} Nodes=n[0-{number * 40 + 10}] MaxTime=2-00:00:00 State=UP" for number in range(20))
    begun, clock = time.process_time(), time.monotonic()
    sizes = partition_room.nodes_of(nodes)
    site = queue_diagnosis.Site(
        queue_diagnosis.parse_jobs("\n".join(lines)), partition_room.partitions_of(partitions, sizes), sizes,
        qos=[{"Name": "normal", "MaxTRESPU": "cpu=100"}], assocs=[{"Account": f"a{number}", "GrpTRES": "cpu=500"} for number in range(30)],
        now="2026-12-03T00:00:00",
    )  # fmt: skip
    report = queue_diagnosis.report(site)
    seconds = time.process_time() - begun
    print(
        f"{seconds:.1f} s of CPU, {time.monotonic() - clock:.1f} s, {len(report['findings'])} findings, "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB"
    )
    assert sum(report["classes"].values()) == len(report["jobs"]) == PENDING
    assert seconds < 10


def test_the_rules_alone_are_quick() -> None:
    begun = time.process_time()
    for _number in range(1000):
        job_diagnosis.diagnose("1", job_diagnosis.seen(records=[{"JobId": "1", "JobState": "FAILED", "ExitCode": "127:0"}]))
    assert time.process_time() - begun < 5
