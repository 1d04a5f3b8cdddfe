"""The standard with a patrol that runs every few seconds, on the lab's one controller and three nodes."""

from __future__ import annotations

from collections.abc import Iterator

import cluster
import pytest
from layer2 import TIMER, TIMER_DROP_IN, WANTED, systemctl, write


@pytest.fixture(scope="session", autouse=True)
def standard() -> None:
    cluster.succeed("deploy", *WANTED)


@pytest.fixture
def timer() -> Iterator[None]:
    """The patrol every five seconds, and no memory of the test before."""
    write(cluster.CONTROLLER, TIMER_DROP_IN, TIMER)
    cluster.run(cluster.CONTROLLER, "rm", "-f", "/run/hpcguard/patrol.json")
    systemctl(cluster.CONTROLLER, "daemon-reload")
    systemctl(cluster.CONTROLLER, "restart", "slurm-cluster-health.timer")
    yield
    cluster.run(cluster.CONTROLLER, "rm", TIMER_DROP_IN)
    systemctl(cluster.CONTROLLER, "daemon-reload")


@pytest.fixture
def no_timer() -> Iterator[None]:
    systemctl(cluster.CONTROLLER, "stop", "slurm-cluster-health.timer", "slurm-cluster-health.service")
    cluster.run(cluster.CONTROLLER, "rm", "-f", "/run/hpcguard/patrol.json")
    yield
    systemctl(cluster.CONTROLLER, "start", "slurm-cluster-health.timer")
