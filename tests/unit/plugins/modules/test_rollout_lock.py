"""Module rollout_lock on real files."""

from __future__ import annotations

import fcntl
import pathlib

import pytest

from .conftest import Run

ME = {"place": "adm1", "process": "42 1", "who": "root", "doing": "deploy"}
OTHER = {**ME, "process": "43 1", "doing": "rollback"}


@pytest.fixture
def path(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "run" / "rollout.lock")


def test_one_holds_it_the_other_is_told_and_gets_it_afterwards(run_module: Run, path: str) -> None:
    assert run_module("rollout_lock", owner=ME, path=path)["held"]
    assert run_module("rollout_lock", owner=ME, path=path)["held"], "renewed"
    refused = run_module("rollout_lock", owner=OTHER, path=path)
    assert not refused["held"] and "deploy by root" in refused["busy"] and refused["holder"]["process"] == "42 1"
    run_module("rollout_lock", owner=OTHER, path=path, state="free")
    assert not run_module("rollout_lock", owner=OTHER, path=path)["held"], "only its owner gives it back"
    run_module("rollout_lock", owner=ME, path=path, state="free")
    assert run_module("rollout_lock", owner=OTHER, path=path)["held"]


def test_that_of_a_dead_run_is_taken_over(run_module: Run, path: str) -> None:
    run_module("rollout_lock", owner=ME, path=path)
    assert run_module("rollout_lock", owner=OTHER, path=path, gone=["42 1"])["held"]
    assert not run_module("rollout_lock", owner=ME, path=path)["held"]
    assert run_module("rollout_lock", owner=ME, path=path, take_over=True)["held"]


def test_check_mode_writes_nothing(run_module: Run, path: str) -> None:
    assert run_module("rollout_lock", check=True, owner=ME, path=path)["held"]
    assert not pathlib.Path(path).parent.exists()


def test_a_patrol_that_acts_is_waited_for(run_module: Run, path: str) -> None:
    folder = pathlib.Path(path).parent
    folder.mkdir()
    with (folder / "patrol.lock").open("a") as patrol:
        fcntl.flock(patrol, fcntl.LOCK_EX)
        refused = run_module("rollout_lock", owner=ME, path=path, wait=0)
        assert not refused["held"] and "patrol" in refused["busy"]
    assert run_module("rollout_lock", owner=ME, path=path, wait=0)["held"]
