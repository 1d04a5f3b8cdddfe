"""The action that tells how long each exercise took, and fails when one did not recover."""

from __future__ import annotations

import json
import pathlib
import types
import typing as t

import pytest
from ansible.plugins.action import ActionBase

from ansible_collections.hpcguard.slurm.plugins.action import drill_report as action

Vars = dict[str, t.Any]
Report = t.Callable[..., tuple[Vars, dict[str, Vars]]]
CRASH = {"__drill_slurmd_crash": {"outcome": "recovered", "seconds": 11.2}}
BEGUN = {"__drill_outage": {"outcome": "begun", "reason": ""}}
COLD = {"__drill_cold_start": {"outcome": "recovered", "seconds": {"every node in service": 3.0}}}


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Report:
    monkeypatch.setattr(action, "display", types.SimpleNamespace(display=lambda line: None))
    monkeypatch.setattr(ActionBase, "run", lambda self, tmp=None, task_vars=None: {})

    def run(*exercises: str, **hostvars: Vars) -> tuple[Vars, dict[str, Vars]]:
        made = action.ActionModule.__new__(action.ActionModule)
        made._task = types.SimpleNamespace(args={"exercises": exercises, "folder": str(tmp_path)})
        result = made.run(task_vars={"ansible_play_hosts_all": list(hostvars), "hostvars": hostvars})
        told = json.loads((tmp_path / "drill.json").read_text(encoding="utf-8"))["exercises"]
        return result, {one["exercise"]: one for one in told}

    return run


def test_what_recovered_is_told_with_its_times(report: Report) -> None:
    result, told = report("slurmd_crash", "cold_start", c1={**BEGUN, **COLD}, n1={**BEGUN, **CRASH})
    assert not result["failed"]
    assert told["slurmd_crash"]["host"] == "n1" and told["slurmd_crash"]["seconds"] == {"in service again after": 11.2}
    assert told["cold_start"]["seconds"] == {"every node in service": 3.0}


def test_what_follows_a_failure_was_left_out(report: Report) -> None:
    failed = {"__drill_slurmd_crash": {"outcome": "failed", "reason": "not back"}}
    result, told = report("slurmd_crash", "health_check", n1={**failed, "__drill_health_check": {"skipped": True}})
    assert result["failed"] and "not back" in result["msg"]
    assert told["health_check"]["outcome"] == "left out"


def test_an_exercise_that_nobody_did_is_no_success(report: Report) -> None:
    result, told = report("slurmd_crash", n1={})
    assert result["failed"] and told["slurmd_crash"]["reason"] == "no host did it"


@pytest.mark.parametrize("outcome", ["failed", "refused"])
def test_a_cold_start_of_a_cluster_that_did_not_stop_is_no_success(report: Report, outcome: str) -> None:
    stayed = {"__drill_outage": {"outcome": outcome, "reason": "not \x1b[2Jstopped"}}
    result, told = report("cold_start", c1={**BEGUN, **COLD}, n1=stayed)
    assert result["failed"] and told["cold_start"]["reason"] == "n1: not stopped"


def test_jobs_that_ran_over_the_restart_are_counted(report: Report) -> None:
    _result, told = report("controller_restart", c1={"__drill_controller_restart": {"outcome": "recovered", "seconds": {}, "jobs": 2}})
    assert told["controller_restart"]["jobs"] == 2
