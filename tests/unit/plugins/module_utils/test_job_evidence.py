"""What is gathered about a job where sources are missing; Slurm's commands are not there at all."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import job_diagnosis, job_evidence, job_logs, loaders

DAY = "2026-12-01T10:"
LOG = f"""[{DAY}00:00.100] sched: Allocate JobId=7 NodeList=n1 #CPUs=1 Partition=p
[{DAY}00:09.100] _job_complete: JobId=7 WEXITSTATUS 127
[{DAY}00:09.101] _job_complete: JobId=7 done
"""


def look(tmp_path: pathlib.Path, conf: str) -> job_evidence.Look:
    (tmp_path / "slurmctld.log").write_text(LOG, encoding="utf-8")
    (tmp_path / "slurm.conf").write_text(conf.format(here=tmp_path), encoding="utf-8")
    return job_evidence.Look(bin_dir=str(tmp_path / "no/bin"), conf=str(tmp_path / "slurm.conf"), budget=20.0)


def test_with_logs_only_the_file_says_where_they_are(tmp_path: pathlib.Path) -> None:
    asked = look(tmp_path, "slurmctldlogfile={here}/slurmctld.log\nAccountingStorageType=accounting_storage/none\n")
    known = asked.job("7")
    (found,) = job_diagnosis.diagnose("7", known)
    assert found["id"] == "job_missing_command" and found["confidence"] != job_diagnosis.CERTAIN
    assert found["evidence"][0]["source"] == "slurmctld.log"
    assert [job["node_list"] for job in known["trouble"]] == ["n1"], "the node that it ran on is asked, too"
    unread = {one["name"]: one["why"] for one in asked.sources if one["why"]}
    assert unread["sacct"] == "accounting is off (AccountingStorageType)" and "scontrol" in unread
    assert job_logs.CONTROLLER not in unread and job_logs.OUTPUT in unread


def test_without_anything_it_is_open(tmp_path: pathlib.Path) -> None:
    asked = look(tmp_path, "# nothing\n")
    (found,) = job_diagnosis.diagnose("7", asked.job("7"))
    assert found["id"] == "job_unknown" and found["confidence"] == job_diagnosis.OPEN


def test_what_slurmctld_has_queued_anew_is_the_last_attempt() -> None:
    """20.11 shows in sacct only how the attempt before ended."""
    record = {"JobId": "7", "JobState": "PENDING", "Reason": "BeginTime", "StdOut": "/home/a/out", "Restarts": "1"}
    ended = job_diagnosis.row_of_record({"JobId": "7", "JobState": "PREEMPTED", "ExitCode": "0:0"})
    assert [head["state"] for head in job_evidence.Look._heads([[ended]], [record])] == ["PENDING"]
    found = job_diagnosis.diagnose("7", job_diagnosis.seen([[ended]], [record]))
    assert [one["id"] for one in found] == ["job_waiting", "job_preempted"]


def test_where_the_output_is_slurmctld_knows() -> None:
    failed = {"JobId": "7", "JobState": "FAILED", "ExitCode": "1:0"}
    ended = job_diagnosis.row_of_record(failed)
    (head,) = job_evidence.Look._heads([[ended]], [{**failed, "StdOut": "/home/a/out"}])
    assert job_evidence.output_paths(head) == ["/home/a/out"]


@pytest.mark.parametrize(
    ("sacct", "squeue", "owner"), [("2001", "", "2001"), ("0", "2001", "2001"), ("0", "", ""), ("0", "0", "0"), ("x", "2001", "2001")]
)
def test_root_owns_a_job_only_on_slurmctlds_word(sacct: str, squeue: str, owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """sacct may show uid 0 for somebody's job just after its end; root's files would be read for it."""
    asked = job_evidence.Look()
    monkeypatch.setattr(asked, "call", lambda name, *args: loaders.Result(0, {"sacct": sacct, "squeue": squeue}[name]))
    assert asked.owner("7") == owner
