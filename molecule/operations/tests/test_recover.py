"""recover.yml and status.yml on the legacy cluster, where nothing of ours is installed."""

from __future__ import annotations

import json
import typing as t
from collections.abc import Iterator

import cluster
import pytest
from cluster import COMPUTES, CONTROLLER
from layer2 import all_in_service, die, heal, said_of_starts, show, status_screen, systemctl

FIRST, SECOND, THIRD = COMPUTES


def status() -> dict[str, t.Any]:
    return status_screen()[0]


def set_node(name: str, *words: str) -> None:
    cluster.out(CONTROLLER, "scontrol", "update", f"nodename={name}", *words)


def wait_until_saved() -> None:
    """slurmctld writes its state every few seconds; killed before that, it knows neither job nor drain."""
    now = cluster.out(CONTROLLER, "date", "+%s")
    state = cluster.config("StateSaveLocation")
    told = ("sh", "-c", f"stat -c %Y {state}/node_state {state}/job_state")
    cluster.wait_for(lambda: all(time > now for time in cluster.out(CONTROLLER, *told).split()), 30, "the state is saved")


@pytest.fixture(scope="module", autouse=True)
def no_patrol() -> Iterator[None]:
    """The legacy patrol would do half of it."""
    systemctl(CONTROLLER, "stop", "slurm-cluster-health.timer", "slurm-cluster-health.service")
    yield
    systemctl(CONTROLLER, "start", "slurm-cluster-health.timer")


def test_a_cluster_that_is_well_is_not_touched() -> None:
    pids = cluster.main_pids()
    counts = cluster.recap(cluster.succeed("recover"))
    assert counts[CONTROLLER]["changed"] == 0
    assert cluster.main_pids() == pids
    seen = status()
    assert seen["nodes"] == {"total": 3, "in_service": 3, "out": []}
    assert seen["services"]["slurmd"] == {"active/running": list(COMPUTES)}


def test_what_died_comes_back_and_what_somebody_drained_does_not() -> None:
    # on the others the legacy unit's KillMode takes a job with its slurmd
    job = cluster.submit(600, f"--nodelist={THIRD}")
    cluster.wait_for(lambda: cluster.job_state(job) == "RUNNING", 30, "the job runs")
    set_node(THIRD, "state=drain", "reason=dimm swap")
    wait_until_saved()
    die(SECOND, "slurmd")
    systemctl(FIRST, "stop", "munge")
    die(CONTROLLER, "slurmctld")
    seen, screen = status_screen()
    assert seen["controllers"][CONTROLLER]["answers"] is False
    assert seen["services"]["slurmd"]["failed/failed"] == [SECOND]
    assert "unknown, no slurmctld answers" in screen and "节点就绪" not in screen
    counts = cluster.recap(output := cluster.succeed("recover", "--check"))
    assert counts[CONTROLLER]["changed"] == 1
    assert said_of_starts(output) == ["slurmctld.service: 将启动 / would be started (failed/failed (signal))"]
    assert "what nodes need shows once slurmctld answers" in output
    assert show(CONTROLLER, "slurmctld", "ActiveState")["ActiveState"] == "failed"

    output = cluster.succeed("recover")
    assert "slurmctld.service: 启动 / started: ok" in output
    assert f"{THIRD} (" in output and "dimm swap" in output
    assert cluster.in_service(FIRST) and cluster.in_service(SECOND)
    seen = status()
    assert [(one["nodes"], one["reason"]) for one in seen["nodes"]["out"]] == [([THIRD], "dimm swap")]
    assert cluster.job_state(job) == "RUNNING"

    set_node(THIRD, "state=resume")
    for host, unit in ((SECOND, "slurmd"), (CONTROLLER, "slurmctld")):
        heal(host, unit)
    cluster.out(CONTROLLER, "scancel", job)
    cluster.wait_for(all_in_service, 60, "every node in service")


def test_check_mode_tells_what_would_be_done_and_does_nothing() -> None:
    die(SECOND, "slurmd")
    counts = cluster.recap(output := cluster.succeed("recover", "--check"))
    assert counts[CONTROLLER]["changed"] == 1
    assert "-> clear start limit and start slurmd" in output or "-> start slurmd" in output
    assert show(SECOND, "slurmd", "ActiveState")["ActiveState"] == "failed"
    cluster.succeed("recover")
    assert cluster.in_service(SECOND)
    heal(SECOND, "slurmd")


def test_what_was_down_for_its_silence_is_resumed_where_return_to_service_leaves_it_so() -> None:
    conf = cluster.out(CONTROLLER, "sh", "-c", "scontrol show config | sed -n 's/^SLURM_CONF *= //p'")
    cluster.run(CONTROLLER, "cp", "-p", conf, "/root/slurm.conf.kept")
    cluster.run(CONTROLLER, "sed", "-i", "s/^ReturnToService=.*/ReturnToService=0/", conf)
    try:
        systemctl(CONTROLLER, "restart", "slurmctld")
        cluster.wait_for(all_in_service, 60, "in service under ReturnToService=0")
        set_node(FIRST, "state=down", "reason=Not responding")
        set_node(SECOND, "state=down", "reason=bob: not responding")
        output = cluster.succeed("recover")
        assert f"{FIRST}: resume: ok" in output and f"{SECOND}: " not in output
        assert cluster.in_service(FIRST) and cluster.node(SECOND)["state"].startswith("DOWN")
    finally:
        cluster.run(CONTROLLER, "mv", "/root/slurm.conf.kept", conf)
        systemctl(CONTROLLER, "restart", "slurmctld")
    set_node(SECOND, "state=resume")
    cluster.wait_for(all_in_service, 60, "every node in service")


def test_what_needs_a_person_fails_and_says_who_must_act() -> None:
    systemctl(FIRST, "stop", "slurmd")  # on purpose, as far as anybody can see
    set_node(FIRST, "state=down", "reason=Not responding")
    output = cluster.refuse("recover", "-e", "recover_time=20")
    assert "slurmd was stopped on purpose" in output
    assert show(FIRST, "slurmd", "ActiveState")["ActiveState"] == "inactive"
    systemctl(FIRST, "start", "slurmd")
    cluster.wait_for(all_in_service, 60, "every node in service")


def test_a_node_that_is_not_there_is_told_and_nothing_else_is_asked() -> None:
    output = cluster.refuse("recover", "-e", json.dumps({"recover_nodes": ["nosuch"]}))
    assert "no such node: nosuch" in output


def test_a_host_that_is_gone_does_not_end_the_screen() -> None:
    systemctl(THIRD, "stop", "ssh.socket", "ssh.service")
    try:
        read = cluster.playbook("status", "-e", f"status_report_dir={cluster.REPORTS}").stdout
    finally:
        systemctl(THIRD, "start", "ssh.service")
    [line] = [line for line in read.splitlines() if "not reached" in line]
    assert line.split()[-1] == THIRD and "2/3" not in read, "slurmctld still hears from it"
