"""The modules of the diagnosis on stand-ins for Slurm's commands."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest

from .conftest import Run

FIELDS = "JobID JobIDRaw State ExitCode UID User Partition Submit Start End ElapsedRaw TimelimitRaw ReqMem MaxRSS NodeList StdOut JobName"
ROW = "101|101|FAILED|127:0|{uid}|alice|p|2026-12-01T14:00:00|2026-12-01T14:00:01|2026-12-01T14:00:09|8|60|100M|50M|n1,n2|{home}/out|x"
PROGRAMS = {
    "scontrol": """case "$*" in
  "show config") cat {home}/config ;;
  *"show job"*) exit 1 ;;
  *"show node"*) echo "NodeName=n1 CPUTot=2 RealMemory=4000 State=IDLE+DRAIN Reason=Kill task failed [root@2026-12-01T14:00:00]" ;;
  *"show partition"*) echo "PartitionName=p MaxTime=UNLIMITED Nodes=n1 State=UP" ;;
esac""",
    "sacct": """case "$*" in --helpformat) echo {fields} ;; *JobName*) cat {home}/rows ;; *) echo {uid} ;; esac""",
    "squeue": """case "$*" in *%U*) echo {uid} ;; *) cat {home}/queue ;; esac""",
    "sdiag": ":",
    "sacctmgr": ":",
}
CONFIG = """AccountingStorageType = accounting_storage/slurmdbd
JobAcctGatherType = jobacct_gather/cgroup
SlurmctldLogFile = {home}/slurmctld.log
SlurmdLogFile = {home}/slurmd.log
"""


class Site:
    """Slurm's commands in a directory, and the modules run against them."""

    def __init__(self, home: pathlib.Path, run: Run) -> None:
        self.home, self.run = home, run
        values = {"home": home, "uid": os.geteuid(), "fields": FIELDS}
        for name, text in PROGRAMS.items():
            (home / name).write_text("#!/bin/sh\n" + text.format(**values) + "\n")
            (home / name).chmod(0o755)
        (home / "config").write_text(CONFIG.format(**values))
        (home / "rows").write_text(ROW.format(**values).replace("|", "\x1f") + "\n")
        (home / "slurmctld.log").write_text("[2026-12-01T14:00:09.000] _job_complete: JobId=101 WEXITSTATUS 127\n")
        (home / "slurmd.log").write_text("[2026-12-01T14:00:02.000] task_p_slurmd_batch_request: 101\n[2026-12-01T14:00:03] JobId=101 x\n")
        (home / "out").write_text("line 2: fooo: command not found\n")
        (home / "queue").write_text("")

    def __call__(self, name: str, **arguments: t.Any) -> dict[str, t.Any]:
        before = {path: path.read_bytes() for path in self.home.iterdir()}
        result = self.run(name, **{"bin_dir": str(self.home), **arguments})
        assert {path: path.read_bytes() for path in self.home.iterdir()} == before, "it changes nothing"
        assert not result["failed"] and result["changed"] is False, result
        return result


@pytest.fixture
def site(tmp_path: pathlib.Path, run_module: Run) -> Site:
    return Site(tmp_path, run_module)


def test_controller_nodes_and_controller_again(site: Site) -> None:
    first = site("job_diagnosis_info", job="101")
    assert first["hosts"] == ["n1", "n2"] and first["owner"] == str(os.geteuid())
    assert {one["name"]: one["why"] for one in first["sources"]}["kernel"] == "on n1,n2, not on this host"
    node = site(
        "job_diagnosis_info", part="node", job="101", jobs=first["jobs"], owner=first["owner"], config=first["config"], node_name="n1"
    )
    assert {line["kind"] for line in node["lines"]} >= {"slurmd.log", "output"}
    assert all(line["job"] == "101" for line in node["lines"] if line["kind"] == "slurmd.log")
    last = site("job_diagnosis_info", job="101", lines=node["lines"], sources=node["sources"])
    (found,) = last["findings"]
    assert (found["id"], found["confidence"]) == ("job_missing_command", "certain")
    assert [line["source"] for line in found["evidence"]][-1] == f"{site.home}/out"


def test_what_is_no_job_is_refused(run_module: Run) -> None:
    assert run_module("job_diagnosis_info", job="101;id")["failed"]


def test_the_queue(site: Site) -> None:
    row = [
        "7",
        "p",
        "alice",
        "a",
        "normal",
        "1",
        "PENDING",
        "64",
        "1",
        "100M",
        "1",
        "0",
        "1:00:00",
        "2026-12-01T10:00:00",
        "N/A",
        "",
        "N/A",
        "",
        "",
        "None",
    ]
    (site.home / "queue").write_text("\x1f".join(row) + "\n")
    result = site("queue_info")
    assert sum(result["classes"].values()) == 1 and result["classes"]["change_request"] == 1
    assert "64 asked" in str(result["findings"])


def test_a_node(site: Site) -> None:
    (found,) = site("node_diagnosis_info", node="n1")["findings"]
    assert found["id"] == "node_kill_task" and "slurmctld" not in str(found["missing"])


def test_what_a_user_s_jobs_failed_of(site: Site) -> None:
    (found,) = site("job_diagnosis_info", user="alice", since="now-30days")["findings"]
    assert found["id"] == "job_missing_command" and "output" in {one["name"] for one in found["missing"]}


def test_what_a_user_s_jobs_should_ask_for(site: Site) -> None:
    (site.home / "rows").write_text(
        ROW.format(uid=os.geteuid(), home=site.home).replace("FAILED|127:0", "COMPLETED|0:0").replace("|", "\x1f")
    )
    (found,) = site("rightsizing_info", user="alice", since="now-30days")["findings"]
    assert found["id"] == "rightsizing" and "--mem=256M" in found["title"]["en"]


def test_sizes_are_refused_without_records(site: Site) -> None:
    (site.home / "config").write_text("AccountingStorageType = accounting_storage/slurmdbd\nJobAcctGatherType = jobacct_gather/none\n")
    (found,) = site("rightsizing_info", user="alice")["findings"]
    assert found["id"] == "rightsizing_refused"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("node_diagnosis_info", {"node": "-x"}),
        ("rightsizing_info", {"user": "a b"}),
        ("rightsizing_info", {}),
        ("job_diagnosis_info", {"user": "$(id)"}),
        ("job_diagnosis_info", {"user": "alice\n"}),
        ("job_diagnosis_info", {"user": "alice", "job": "1"}),
        ("job_diagnosis_info", {}),
        ("queue_info", {"since": "--help"}),
    ],
)
def test_what_is_no_name_is_refused(run_module: Run, name: str, arguments: dict[str, str]) -> None:
    assert run_module(name, **arguments)["failed"]
