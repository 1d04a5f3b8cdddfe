"""Module recover: what it makes of a run of the patrol."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import patrol

from .conftest import Run

Report = dict[str, t.Any]


def answer(monkeypatch: pytest.MonkeyPatch, what: Report | patrol.Failure) -> list[t.Any]:
    """Runs of the patrol that end so; the options that they were given."""
    asked: list[t.Any] = []

    def run(options: patrol.Options) -> Report:
        asked.append(options)
        if isinstance(what, patrol.Failure):
            raise what
        return what

    monkeypatch.setattr(patrol, "work", run)
    monkeypatch.setattr(patrol, "accounting", run)
    return asked


def failure(*started: str) -> patrol.Failure:
    made = patrol.Failure("scontrol: Unable to contact slurm controller")
    vars(made)["started"] = started
    return made


def report(**more: t.Any) -> Report:
    return {"started": [], "planning": False, "nodes": {}, **more}


def test_check_mode_with_a_dead_slurmctld_tells_what_would_be_started(run_module: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    [asked] = [answer(monkeypatch, failure("slurmctld.service"))]
    result = run_module("recover", check=True)
    assert (result["failed"], result["changed"], result["started"]) == (False, True, ["slurmctld.service"])
    assert "once slurmctld answers" in result["lines"][-1]
    # the same code as the run, which waits for nothing
    assert (asked[0].dry_run, asked[0].bootstrap, asked[0].boot_limit) == (True, True, 0)


@pytest.mark.parametrize(("check", "started"), [(True, []), (False, []), (False, ["slurmctld.service"])])
def test_a_slurmctld_that_nothing_brings_back_is_a_failure(
    run_module: Run, monkeypatch: pytest.MonkeyPatch, check: bool, started: list[str]
) -> None:
    answer(monkeypatch, failure(*started))
    result = run_module("recover", check=check)
    assert (result["failed"], result["changed"]) == (True, bool(started))
    assert "slurmctld does not answer" in result["msg"]


@pytest.mark.parametrize(
    ("seen", "changed"),
    [
        (report(), False),
        (report(started=["munge.service"], planning=True), True),
        (report(nodes={"n1": {"action": "start slurmd", "done": []}}, planning=True), True),
        (report(nodes={"n1": {"action": "leave alone", "done": []}}, planning=True), False),
        # a rollout is at work, or this controller stands by
        (report(nodes={"n1": {"action": "start slurmd", "done": []}}), False),
    ],
)
def test_check_mode_promises_a_change_only_where_there_would_be_one(
    run_module: Run, monkeypatch: pytest.MonkeyPatch, seen: Report, changed: bool
) -> None:
    answer(monkeypatch, seen)
    assert run_module("recover", check=True)["changed"] is changed


@pytest.mark.parametrize("check", [True, False])
def test_a_host_that_has_slurmdbd_alone(run_module: Run, monkeypatch: pytest.MonkeyPatch, check: bool) -> None:
    [asked] = [answer(monkeypatch, {"started": ["slurmdbd.service"], "remaining": ["slurmdbd.service: failed"]})]
    result = run_module("recover", check=check, accounting=True)
    assert (result["failed"], result["changed"], result["remaining"]) == (False, True, ["slurmdbd.service: failed"])
    assert asked[0].dry_run is check
