"""Module crash_test on a simulated node: a kill, a systemd that starts slurmd again, a slurmctld that hears of it."""

from __future__ import annotations

import os
import signal
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders
from ansible_collections.hpcguard.slurm.plugins.modules import crash_test as module

from .conftest import Run


class Node:
    """slurmd has process 77; killed, it comes back as 99 after some seconds and registers a little later."""

    def __init__(self) -> None:
        self.clock = 1000.0
        self.killed_at: float | None = None
        self.kills: list[tuple[int, int]] = []
        self.back_after = 10.0
        self.registered_after = 11.0
        self.unit = {"ActiveState": "active", "SubState": "running", "MainPID": "77", "KillMode": "process", "Restart": "always"}
        self.comms = {"77": "slurmd\n", "99": "slurmd\n"}
        self.state = "MIXED"
        self.state_after = "MIXED"
        self.steps: dict[int, tuple[int, str]] = {500: (1, "7.batch"), 501: (2, "8.0")}
        self.steps_after = dict(self.steps)
        self.jobs: dict[str, str] = {}
        self.calls: list[list[str]] = []

    def since(self) -> float:
        return -1.0 if self.killed_at is None else self.clock - self.killed_at

    def sleep(self, seconds: float) -> None:
        self.clock += seconds

    def kill(self, pid: int, number: int) -> None:
        self.kills.append((pid, number))
        self.killed_at = self.clock

    def show(self, unit: str, properties: t.Any = None) -> dict[str, str]:
        if self.killed_at is None:
            return self.unit
        if self.since() < self.back_after:
            return {**self.unit, "ActiveState": "activating", "SubState": "auto-restart", "MainPID": "0"}
        return {**self.unit, "MainPID": "99"}

    def read_text(self, path: str, max_bytes: int = 0) -> str | None:
        return self.comms.get(path.split("/")[2])

    def scontrol(self, program: str, words: t.Iterable[str], timeout: float, conf: str | None = None) -> loaders.Result:
        args = list(words)
        if args[:3] == ["-o", "show", "job"]:
            return loaders.Result(0, self.jobs.get(args[3], ""))
        new = self.since() >= self.registered_after
        state, start = (self.state_after, "2026-12-01T10:00:12") if new else (self.state, "2026-12-01T08:00:00")
        return loaders.Result(0, f"NodeName=n1 State={state} SlurmdStartTime={start}\n")

    def systemctl(self, args: list[str], timeout: int = 30) -> loaders.Result:
        self.calls.append(list(args))
        return loaders.Result(0)


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    made = Node()
    monkeypatch.setattr(loaders, "now", lambda: made.clock)
    monkeypatch.setattr(loaders, "systemctl_show", made.show)
    monkeypatch.setattr(loaders, "systemctl", made.systemctl)
    monkeypatch.setattr(loaders, "scontrol", made.scontrol)
    monkeypatch.setattr(loaders, "read_text", made.read_text)
    monkeypatch.setattr(loaders, "slurmstepds", lambda: made.steps if made.killed_at is None else made.steps_after)
    monkeypatch.setattr(os, "kill", made.kill)
    monkeypatch.setattr(module.time, "sleep", made.sleep)
    return made


def call(run: Run, check: bool = False) -> dict[str, t.Any]:
    return run("crash_test", check=check, node_name="n1", scontrol="/s/scontrol", timeout=60)


def test_slurmd_comes_back_and_its_steps_run_on(run_module: Run, node: Node) -> None:
    result = call(run_module)
    assert (result["outcome"], result["changed"], result["steps"], result["kept"]) == ("recovered", True, 2, 2)
    assert node.kills == [(77, signal.SIGKILL)]
    assert 11 <= result["seconds"] <= 12
    assert node.calls == []


def test_the_state_alone_is_no_proof(run_module: Run, node: Node) -> None:
    """slurmctld shows the node in service for minutes after slurmd died: only a new registration counts."""
    node.registered_after = 30.0
    assert call(run_module)["seconds"] >= 30


def test_check_mode_kills_nothing(run_module: Run, node: Node) -> None:
    result = call(run_module, check=True)
    assert (result["outcome"], node.kills) == ("not_run", [])


@pytest.mark.parametrize(
    ("unit", "comms", "state"),
    [
        ({"KillMode": "control-group"}, {}, "IDLE"),
        ({"Restart": "no"}, {}, "IDLE"),
        ({}, {"77": "slurmdbd\n"}, "IDLE"),
        ({}, {"77": "bash\n"}, "IDLE"),
        ({"SubState": "start-pre", "ActiveState": "activating"}, {}, "IDLE"),
        ({}, {}, "DOWN*"),
        ({}, {}, "IDLE+NOT_RESPONDING"),
    ],
)
def test_s51_nothing_is_killed_where_that_would_be_unsafe(
    run_module: Run, node: Node, unit: dict[str, str], comms: dict[str, str], state: str
) -> None:
    node.unit.update(unit)
    node.comms.update(comms)
    node.state = state
    result = call(run_module)
    assert (result["outcome"], result["changed"], node.kills) == ("refused", False, [])
    assert result["reason"]


def test_a_slurmd_that_stays_away_is_started(run_module: Run, node: Node) -> None:
    node.back_after = node.registered_after = 1e6
    result = call(run_module)
    assert result["outcome"] == "failed"
    assert "not back within 60 s (slurmd activating/auto-restart)" in result["reason"]
    assert ["--no-block", "start", "slurmd.service"] in node.calls


def test_a_node_that_does_not_answer_afterwards_fails(run_module: Run, node: Node) -> None:
    node.state_after = "IDLE*"
    assert call(run_module)["outcome"] == "failed"


def test_a_lost_step_fails_the_test_although_slurmd_is_back(run_module: Run, node: Node) -> None:
    del node.steps_after[500]
    node.jobs["7"] = "JobId=7 JobState=NODE_FAIL ExitCode=0:0"
    result = call(run_module)
    assert (result["outcome"], result["kept"]) == ("failed", 1)
    assert "7.batch" in result["reason"]


def test_a_step_that_ended_by_itself_meanwhile_is_no_loss(run_module: Run, node: Node) -> None:
    del node.steps_after[500]
    node.jobs["7"] = "JobId=7 JobState=COMPLETED ExitCode=0:0"
    assert call(run_module)["outcome"] == "recovered"


def test_a_pid_that_another_step_got_counts_as_lost(run_module: Run, node: Node) -> None:
    node.steps_after[500] = (9, "9.batch")
    node.jobs["7"] = "JobId=7 JobState=FAILED ExitCode=0:15"
    assert call(run_module)["outcome"] == "failed"
