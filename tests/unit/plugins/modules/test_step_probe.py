"""Module step_probe on a simulated cluster that may be free, full, strict or forgetful."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders
from ansible_collections.hpcguard.slurm.plugins.modules import step_probe as module

from .conftest import Run


class Cluster:
    """Job 41 starts, ends and is recorded so many seconds after it was submitted."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.starts, self.ends, self.recorded = 1.0, 4.0, 7.0
        self.final = "COMPLETED"
        self.max_rss = "5120K"
        self.submit = loaders.Result(0, "41;hpc\n")
        self.calls: list[list[str]] = []
        self.stdin: list[str | None] = []
        self.cancelled = False

    def sleep(self, seconds: float) -> None:
        self.clock += seconds

    def state(self) -> str:
        if self.cancelled:
            return "CANCELLED"
        return "PENDING" if self.clock < self.starts else "RUNNING" if self.clock < self.ends else self.final

    def run(self, argv: list[str], timeout: float, env: t.Any = None, stdin: str | None = None, **more: t.Any) -> loaders.Result:
        self.calls.append(argv)
        self.stdin.append(stdin)
        program = argv[0].rsplit("/", 1)[-1]
        if program == "sbatch":
            return self.submit
        if program == "scontrol":
            return loaders.Result(0, f"JobId=41 JobName=x JobState={self.state()} Reason=Resources BatchHost=n1\n")
        if program == "scancel":
            self.cancelled = True
            return loaders.Result(0)
        rows = f"41|2026-12-01T10:00:00|COMPLETED|\n41.batch|2026-12-01T10:00:00|COMPLETED|{self.max_rss}\n"
        return loaders.Result(0, rows if self.clock >= self.recorded else "")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(loaders, "now", lambda: made.clock)
    monkeypatch.setattr(loaders, "run", made.run)
    monkeypatch.setattr(module.time, "sleep", made.sleep)
    return made


def call(run: Run, check: bool = False, **more: t.Any) -> dict[str, t.Any]:
    return run("step_probe", check=check, scontrol="/opt/slurm/bin/scontrol", start_within=15, record_within=30, **more)


def test_a_step_with_a_peak_of_memory_is_the_proof(run_module: Run, cluster: Cluster) -> None:
    result = call(run_module, partition="debug")
    assert (result["outcome"], result["job"], result["node"]) == ("recorded", "41", "n1")
    assert result["rows"] == [{"step": "41.batch", "max_rss": "5120K"}]
    [submit] = [argv for argv in cluster.calls if argv[0].endswith("/sbatch")]
    assert submit[0] == "/opt/slurm/bin/sbatch"
    assert {"--partition=debug", "--acctg-freq=task=1", "--time=1", "--no-requeue", "--output=/dev/null"} <= set(submit)
    assert cluster.stdin[0] == module.JOB
    assert not cluster.cancelled


def test_a_full_cluster_is_not_waited_for(run_module: Run, cluster: Cluster) -> None:
    cluster.starts = 1e9
    result = call(run_module)
    assert result["outcome"] == "not_run"
    assert "no node was free within 15 s (Resources)" in result["reason"]
    assert cluster.cancelled, "the job must not start later"
    assert cluster.clock < 20


def test_a_site_that_forbids_it_is_told_and_not_failed(run_module: Run, cluster: Cluster) -> None:
    cluster.submit = loaders.Result(1, err="sbatch: error: Batch job submission failed: Access/permission denied")
    result = call(run_module)
    assert (result["outcome"], result["changed"]) == ("not_run", False)
    assert "Access/permission denied" in result["reason"]


@pytest.mark.parametrize("out", ["", "no number", "sbatch: lua: hello"])
def test_an_answer_without_a_job_id_is_a_refusal(run_module: Run, cluster: Cluster, out: str) -> None:
    cluster.submit = loaders.Result(0, out)
    assert call(run_module)["outcome"] == "not_run"


@pytest.mark.parametrize("state", ["FAILED", "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY"])
def test_s43_a_job_that_cannot_run_is_a_fault(run_module: Run, cluster: Cluster, state: str) -> None:
    """Without the cgroup controllers every launch fails."""
    cluster.final = state
    result = call(run_module)
    assert result["outcome"] == "not_recorded"
    assert state in result["reason"]


@pytest.mark.parametrize("max_rss", ["", "0", "0K"])
def test_a_step_without_memory_is_a_fault(run_module: Run, cluster: Cluster, max_rss: str) -> None:
    cluster.max_rss = max_rss
    result = call(run_module)
    assert (result["outcome"], result["rows"]) == ("not_recorded", [])
    assert cluster.clock < 60


def test_a_job_that_does_not_end_is_cancelled(run_module: Run, cluster: Cluster) -> None:
    cluster.ends = 1e9
    assert call(run_module)["outcome"] == "not_recorded"
    assert cluster.cancelled


def test_check_mode_submits_nothing(run_module: Run, cluster: Cluster) -> None:
    assert call(run_module, check=True)["outcome"] == "not_run"
    assert cluster.calls == []
