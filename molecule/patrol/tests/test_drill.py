"""drill.yml: practice that puts itself right, also when the run is killed in the middle of it."""

from __future__ import annotations

import json
import time
import typing as t

import cluster
import pytest
from cluster import COMPUTES, CONTROLLER
from layer2 import all_in_service, write

FLAG = "/run/hpcguard/health_check.force"
LOCK = "/run/hpcguard/rollout.lock"
FOLDER = ("-e", f"drill_report_dir={cluster.REPORTS}")


@pytest.fixture(autouse=True)
def everything_is_back() -> t.Iterator[None]:
    cluster.wait_for(all_in_service, 60, "every node in service")
    before = {host: cluster.files(host) for host in cluster.HOSTS}
    yield
    cluster.wait_for(all_in_service, 240, "every node in service again")
    assert {host: cluster.files(host) for host in cluster.HOSTS} == before
    for name in COMPUTES:
        assert cluster.run(name, "test", "-e", FLAG, check=False).returncode == 1
        assert "DRAIN" not in cluster.node(name)["state"]


def lock_stands() -> str:
    return cluster.out(CONTROLLER, "sh", "-c", f"test -e {LOCK} && echo yes || echo no")


def times() -> dict[str, dict[str, float]]:
    told = json.loads((cluster.ROOT / cluster.REPORTS / "drill.json").read_text(encoding="utf-8"))["exercises"]
    assert {one["outcome"] for one in told} == {"recovered"}
    return {one["exercise"]: one["seconds"] for one in told}


def test_each_exercise_recovers_and_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    cluster.succeed("drill", *FOLDER)
    told = times()
    assert list(told) == ["slurmd_crash", "health_check", "controller_restart"]
    assert all(number >= 0 for laps in told.values() for number in laps.values())
    with capsys.disabled():
        print(f"\n{told}")


def test_a_cold_start_with_the_controller_late(capsys: pytest.CaptureFixture[str]) -> None:
    cluster.succeed("drill", "-e", "drill=cold_start", "-e", "drill_controller_delay=20", *FOLDER)
    seconds = times()["cold_start"]
    assert seconds["every node in service"] < 30
    with capsys.disabled():
        print(f"\n{seconds}")


@pytest.mark.parametrize("exercise", ["slurmd_crash", "cold_start"])
def test_busy_nodes_are_spared(exercise: str) -> None:
    pids = cluster.main_pids()
    job = cluster.run_until_told()
    output = cluster.refuse("drill", "-e", f"drill={exercise}", *FOLDER)
    assert f"jobs are running: {job}" in output
    assert cluster.main_pids() == pids
    cluster.tell_to_end(job)


def test_a_rollout_at_work_keeps_a_drill_away() -> None:
    pids = cluster.main_pids()
    owner = {"place": "elsewhere", "process": "1 1", "who": "alice", "doing": "deploy"}
    write(CONTROLLER, LOCK, json.dumps({"owner": owner, "since": int(time.time()), "until": int(time.time()) + 600}))
    try:
        output = cluster.refuse("drill", *FOLDER)
    finally:
        cluster.run(CONTROLLER, "rm", LOCK)
    assert "somebody is at work: deploy by alice on elsewhere" in output
    assert cluster.main_pids() == pids


def test_a_node_with_another_unit_than_the_standards_is_not_broken() -> None:
    pids = cluster.main_pids()
    drop_in = "/run/systemd/system/slurmd.service.d/zz-other.conf"
    write(COMPUTES[2], drop_in, "[Service]\nKillMode=control-group\nExecStartPre=\n")
    cluster.run(COMPUTES[2], "systemctl", "daemon-reload")
    try:
        output = cluster.refuse("drill", *FOLDER)
    finally:
        cluster.run(COMPUTES[2], "rm", drop_in)
        cluster.run(COMPUTES[2], "systemctl", "daemon-reload")
    for words in ("KillMode=control-group", "ExecStartPre=/usr/local/bin/wait-for-slurmctld.sh"):
        assert f"the standard's: {words}: {COMPUTES[2]}: run deploy.yml first" in output
    assert cluster.main_pids() == pids


def test_a_job_runs_over_the_restart_of_the_controller() -> None:
    before = cluster.main_pids()
    job = cluster.run_until_told()
    output = cluster.succeed("drill", "-e", "drill=controller_restart", "-e", "drill_busy_nodes=allow", *FOLDER)
    assert times()["controller_restart"]["every node in service"] >= 0
    assert "jobs survived: 1" in output
    changed = {name for name, pid in cluster.main_pids().items() if pid != before[name]}
    assert changed == {f"{CONTROLLER}:slurmctld"}
    assert cluster.job_state(job) == "RUNNING"
    cluster.tell_to_end(job)


def test_check_mode_breaks_nothing() -> None:
    pids = cluster.main_pids()
    counts = cluster.recap(cluster.succeed("drill", "--check", *FOLDER))
    assert (counts[COMPUTES[0]]["changed"], counts[CONTROLLER]["changed"]) == (2, 1)
    assert cluster.main_pids() == pids


def test_a_killed_drill_puts_itself_right() -> None:
    run = cluster.Running("drill", "-e", "drill=health_check", "-e", "drill_timeout=40", *FOLDER)
    cluster.wait_for(lambda: "DRAIN" in cluster.node(COMPUTES[0])["state"], 120, "the node is drained", every=0.1)
    run.kill()
    # what was running on the host went on or not: in the end there is no flag and no drain
    cluster.wait_for(lambda: "DRAIN" not in cluster.node(COMPUTES[0])["state"] and all_in_service(), 240, "the node is open again")
    assert lock_stands() == "yes"
    cluster.succeed("drill", "-e", "drill=health_check", *FOLDER)
    assert lock_stands() == "no", "a drill takes over what a killed one left, and lets the patrol in again"
