"""The night of the power cut: every host loses power, the controller comes back 150 s after the compute nodes.

The legacy cluster stays down for good; after the rollout it comes back by itself.
"""

from __future__ import annotations

import subprocess
import time

import cluster
import pytest

CONTROLLER_LATE = 150
RECOVERY = 30


def podman(action: str, *hosts: str) -> None:
    """Do something to the containers themselves."""
    subprocess.run(["podman", *action.split(), *map(cluster.container, hosts)], check=True, capture_output=True, timeout=60)


def power_cut() -> None:
    """All hosts off at once, compute nodes on, the controller much later; returns when slurmctld answers."""
    podman("kill --signal KILL", *cluster.HOSTS)
    podman("wait", *cluster.HOSTS)
    podman("start", *cluster.COMPUTES)
    time.sleep(CONTROLLER_LATE)  # the fault itself: nothing to wait for, the controller is off
    podman("start", cluster.CONTROLLER)
    cluster.wait_for(
        lambda: cluster.run(cluster.CONTROLLER, "scontrol", "ping", check=False).returncode == 0, 120, "slurmctld answers", every=0.2
    )


def in_service() -> list[str]:
    return [name for name in cluster.COMPUTES if cluster.in_service(name)]


def gave_up(name: str) -> bool:
    return cluster.out(name, "systemctl", "show", "--property=ActiveState", "slurmd") == "ActiveState=failed"


def test_the_legacy_cluster_stays_down() -> None:
    power_cut()
    for name in cluster.COMPUTES:
        assert gave_up(name), cluster.out(name, "systemctl", "status", "slurmd", check=False)
    # twice the time in which the standard is back
    seen = time.monotonic() + 2 * RECOVERY
    while time.monotonic() < seen:
        assert in_service() == []
        time.sleep(5)
    for name in cluster.COMPUTES:
        assert gave_up(name)


def test_a_rollout_refuses_while_the_nodes_are_down() -> None:
    output = cluster.refuse("deploy")
    assert "node out of service" in output


def test_after_the_rollout_every_node_comes_back_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for name in cluster.COMPUTES:
        cluster.run(name, "systemctl", "reset-failed", "slurmd")
        cluster.run(name, "systemctl", "start", "slurmd")
    cluster.wait_for(lambda: len(in_service()) == len(cluster.COMPUTES), 60, "the nodes started by hand are in service")
    cluster.succeed("deploy")
    power_cut()
    took = cluster.wait_for(
        lambda: len(in_service()) == len(cluster.COMPUTES), RECOVERY, f"all nodes in service, only {in_service()} are", every=0.2
    )
    with capsys.disabled():
        print(f"\nall nodes in service {took:.1f} s after slurmctld answered")
    job = cluster.submit(1, "--nodes=3", "--ntasks=3")
    cluster.wait_for(lambda: cluster.job_state(job) == "", 60, "a job over all nodes ends")
    # slurmdbd hears of it a moment later
    cluster.wait_for(lambda: {row[1] for row in cluster.accounting(job)} == {"COMPLETED"}, 60, f"job {job} COMPLETED in sacct")
