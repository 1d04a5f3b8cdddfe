"""Power cuts: whatever the order in which the hosts come back, every node is in service soon after slurmctld answers."""

from __future__ import annotations

import itertools
import subprocess
import time

import cluster
import pytest
from layer2 import all_in_service

RECOVERY = 30
# Seconds from one host to the next.
GAP = 3


def short(order: tuple[str, ...]) -> str:
    return " ".join(name.removeprefix("k8s-") for name in order)


def podman(action: str, *hosts: str) -> None:
    subprocess.run(["podman", *action.split(), *map(cluster.container, hosts)], check=True, capture_output=True, timeout=60)


def power_cut(order: tuple[str, ...], late: float = GAP) -> float:
    """All off at once, then one after the other; the seconds from slurmctld's answer until all nodes are in service."""
    podman("kill --signal KILL", *cluster.HOSTS)
    podman("wait", *cluster.HOSTS)
    for number, host in enumerate(order):
        # the fault itself: nothing to wait for, the host is off
        time.sleep(0 if number == 0 else late if host == cluster.CONTROLLER else GAP)
        podman("start", host)
    answers = ("scontrol", "ping")
    cluster.wait_for(lambda: cluster.run(cluster.CONTROLLER, *answers, check=False).returncode == 0, 120, "slurmctld answers", every=0.2)
    return cluster.wait_for(all_in_service, RECOVERY, "all nodes in service", every=0.2)


@pytest.mark.parametrize("order", list(itertools.permutations(cluster.HOSTS)), ids=short)
def test_every_order(order: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    took = power_cut(order)
    with capsys.disabled():
        print(f"\n{' '.join(order)}: all in service {took:.1f} s after slurmctld answered")


@pytest.mark.parametrize("late", [60, 180])
def test_a_late_controller(late: float, capsys: pytest.CaptureFixture[str]) -> None:
    took = power_cut((*cluster.COMPUTES, cluster.CONTROLLER), late)
    with capsys.disabled():
        print(f"\ncontroller {late:.0f} s late: all in service {took:.1f} s after it answered")
