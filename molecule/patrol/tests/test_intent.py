"""What somebody meant is left alone, with the reason said; and what needs a person is said to need one."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator

import cluster
import pytest
from layer2 import all_in_service, patrol, show, systemctl, write

pytestmark = pytest.mark.usefixtures("no_timer")

NODE = cluster.COMPUTES[1]
HOLD = "/run/hpcguard/hold"
UNIT = "/etc/systemd/system/slurmd.service"
Wish = Callable[[], contextlib.AbstractContextManager[None]]


def update(*words: str) -> None:
    cluster.run(cluster.CONTROLLER, "scontrol", "update", f"nodename={NODE}", *words)


@contextlib.contextmanager
def slurmd_is(*words: str) -> Iterator[None]:
    """A slurmd that systemctl was told something about; started again at the end."""
    for command in words:
        systemctl(NODE, *command.split(), "slurmd")
    yield
    systemctl(NODE, "enable", "slurmd")
    systemctl(NODE, "start", "slurmd")


@contextlib.contextmanager
def drained() -> Iterator[None]:
    update("state=drain", "reason=dimm swap")
    yield
    update("state=undrain")


@contextlib.contextmanager
def drained_over_a_fault() -> Iterator[None]:
    with drained():
        systemctl(NODE, "stop", "munge")
        yield
        systemctl(NODE, "start", "munge")
        systemctl(NODE, "start", "slurmd")


@contextlib.contextmanager
def drained_and_stopped() -> Iterator[None]:
    with drained(), slurmd_is("stop"):
        yield


@contextlib.contextmanager
def maintenance() -> Iterator[None]:
    cluster.run(
        cluster.CONTROLLER,
        *("scontrol", "create", "reservation", "reservationname=service", "starttime=now", "duration=60", "user=root"),
        *("flags=maint,ignore_jobs", f"nodes={NODE}"),
    )
    cluster.wait_for(lambda: "MAINT" in cluster.node(NODE)["state"], 60, f"MAINT: {cluster.node(NODE)}")
    with slurmd_is("stop"):
        yield
    cluster.run(cluster.CONTROLLER, "scontrol", "delete", "reservationname=service")


@contextlib.contextmanager
def masked() -> Iterator[None]:
    """By hand: systemctl refuses to mask a unit whose file lies where the mask would."""
    systemctl(NODE, "stop", "slurmd")
    cluster.run(NODE, "mv", UNIT, "/root/slurmd.service.kept")
    cluster.run(NODE, "ln", "-s", "/dev/null", UNIT)
    systemctl(NODE, "daemon-reload")
    yield
    cluster.run(NODE, "mv", "/root/slurmd.service.kept", UNIT)
    systemctl(NODE, "daemon-reload")
    systemctl(NODE, "start", "slurmd")


@contextlib.contextmanager
def disabled() -> Iterator[None]:
    with slurmd_is("disable", "stop"):
        yield


@contextlib.contextmanager
def stopped() -> Iterator[None]:
    with slurmd_is("stop"):
        yield


@contextlib.contextmanager
def held() -> Iterator[None]:
    cluster.run(NODE, "touch", HOLD)
    with slurmd_is("stop"):
        yield
    cluster.run(NODE, "rm", HOLD)


@contextlib.contextmanager
def processes_left() -> Iterator[None]:
    update("state=drain", "reason=Kill task failed")
    yield
    update("state=undrain")


@contextlib.contextmanager
def prolog_error() -> Iterator[None]:
    update("state=drain", "reason=Prolog error")
    yield
    update("state=undrain")


@contextlib.contextmanager
def conf_says(change: str) -> Iterator[None]:
    """A slurm.conf that a command of sed changed, loaded by a restart; as it was at the end."""
    conf = cluster.out(cluster.CONTROLLER, "sh", "-c", "scontrol show config | sed -n 's/^SLURM_CONF *= //p'")
    cluster.run(cluster.CONTROLLER, "cp", "-p", conf, "/root/slurm.conf.kept")
    cluster.run(cluster.CONTROLLER, "sed", "-i", change, conf)
    try:
        systemctl(cluster.CONTROLLER, "restart", "slurmctld")
        cluster.wait_for(all_in_service, 60, "in service with another slurm.conf")
        yield
    finally:
        cluster.run(cluster.CONTROLLER, "mv", "/root/slurm.conf.kept", conf)
        systemctl(cluster.CONTROLLER, "restart", "slurmctld")
        cluster.wait_for(all_in_service, 60, "in service with its own slurm.conf")


@contextlib.contextmanager
def reboot_asked_for() -> Iterator[None]:
    """While a job keeps it waiting; somebody stops slurmd meanwhile."""
    with conf_says("$ a RebootProgram=/bin/true"):
        job = cluster.submit(600, f"--nodelist={NODE}")
        try:
            cluster.wait_for(lambda: cluster.job_state(job) == "RUNNING", 60, "the job runs")
            cluster.run(cluster.CONTROLLER, "scontrol", "reboot", "ASAP", NODE)
            cluster.wait_for(lambda: "REBOOT" in cluster.node(NODE)["state"], 30, f"REBOOT: {cluster.node(NODE)}")
            with slurmd_is("stop"):
                yield
            assert cluster.job_state(job) == "RUNNING"
        finally:
            cluster.run(cluster.CONTROLLER, "scontrol", "cancel_reboot", NODE, check=False)
            cluster.run(cluster.CONTROLLER, "scancel", job)


WISHES: dict[str, tuple[Wish, str, str]] = {
    "drained": (drained, "leave alone", "drained: dimm swap"),
    "drained, with a fault under it": (drained_over_a_fault, "leave alone", "drained: dimm swap"),
    "drained, slurmd stopped": (drained_and_stopped, "leave alone", "drained: dimm swap"),
    "maintenance": (maintenance, "leave alone", "under maintenance"),
    "masked": (masked, "leave alone", "slurmd.service is masked"),
    "disabled": (disabled, "leave alone", "slurmd is disabled"),
    "stopped": (stopped, "leave alone", "slurmd was stopped on purpose"),
    "hold file": (held, "leave alone", "a hold file is there"),
    "a reboot is asked for": (reboot_asked_for, "leave alone", "a reboot is under way"),
    "Kill task failed": (processes_left, "needs a person", "a person resumes it"),
    "Prolog error": (prolog_error, "needs a person", "mend that, then resume"),
}


def seen() -> dict[str, str]:
    """Everything that an action would change, but for what Slurm changes by itself when it misses a slurmd."""
    found = {f"{unit} {key}": value for unit in ("munge", "slurmd") for key, value in show(NODE, unit, "ActiveState", "MainPID").items()}
    return {**found, "reason": cluster.node(NODE)["reason"], "drained": str("DRAIN" in cluster.node(NODE)["state"])}


@pytest.mark.parametrize("name", WISHES)
def test_left_alone_with_the_reason_said(name: str) -> None:
    wish, action, english = WISHES[name]
    cluster.wait_for(all_in_service, 60, "all in service before")
    with wish():
        before = seen()
        for _round in range(2):
            said = patrol("--fix")["nodes"][NODE]
            assert (said["action"], said["done"]) == (action, [])
            assert english in said["en"]
        assert seen() == before
    cluster.wait_for(lambda: cluster.in_service(NODE), 60, f"{name}: in service again; {cluster.node(NODE)}")


def test_nodes_that_are_powered_down_or_not_in_use_yet_are_neither_touched_nor_waited_for() -> None:
    """No host has their names: a patrol that asked them would say so. Slurm shows what is powered down under PrivateData=cloud."""
    nodes = (
        r"$ a NodeName=cloud-01 CPUs=1 RealMemory=100 State=CLOUD\nNodeName=future-01 CPUs=1 RealMemory=100 State=FUTURE\nPrivateData=cloud"
    )
    with conf_says(nodes):
        assert "POWERED_DOWN" in cluster.node("cloud-01")["state"]
        for options in (("--fix",), ("--bootstrap", "--boot-limit", "20")):
            begun = time.monotonic()
            said = patrol(*options)
            assert (said["ready"], said["total"]) == (3, 3)
            cloud = said["nodes"]["cloud-01"]
            assert (cloud["action"], cloud["en"], cloud["done"]) == ("leave alone", "powered down by Slurm", [])
            # scontrol shows such a node only to who asks for it
            assert said["nodes"].get("future-01", {"action": "leave alone"})["action"] == "leave alone"
            assert time.monotonic() - begun < 20


@pytest.mark.parametrize("how", ["starting", "answers nobody"])
def test_a_slurmdbd_that_converts_its_database_is_not_started_again(how: str) -> None:
    """Before it is done systemd has it starting (notify), or running while it answers nobody (simple)."""
    drop_in = "/run/systemd/system/slurmdbd.service.d/converts.conf"
    if how == "starting":
        write(cluster.CONTROLLER, drop_in, "[Service]\nExecStartPre=/bin/sleep 60\nTimeoutStartSec=120\n")
        systemctl(cluster.CONTROLLER, "daemon-reload")
        systemctl(cluster.CONTROLLER, "restart", "--no-block", "slurmdbd")
        cluster.wait_for(lambda: show(cluster.CONTROLLER, "slurmdbd", "SubState")["SubState"] == "start-pre", 30, "slurmdbd starts")
    else:
        cluster.run(cluster.CONTROLLER, "kill", "-STOP", show(cluster.CONTROLLER, "slurmdbd", "MainPID")["MainPID"])
    looks = ("ActiveState", "SubState", "MainPID", "InvocationID")
    before = show(cluster.CONTROLLER, "slurmdbd", *looks)
    try:
        said = patrol("--bootstrap", "--boot-limit", "20")
        assert (said["started"], said["ready"], said["total"]) == ([], 3, 3)
        assert show(cluster.CONTROLLER, "slurmdbd", *looks) == before
    finally:
        cluster.run(cluster.CONTROLLER, "rm", "-f", drop_in)
        systemctl(cluster.CONTROLLER, "daemon-reload")
        if how == "starting":
            systemctl(cluster.CONTROLLER, "stop", "slurmdbd")
            systemctl(cluster.CONTROLLER, "start", "slurmdbd")
        else:
            cluster.run(cluster.CONTROLLER, "kill", "-CONT", show(cluster.CONTROLLER, "slurmdbd", "MainPID")["MainPID"])
    cluster.wait_for(
        lambda: cluster.run(cluster.CONTROLLER, "sacctmgr", "-n", "show", "cluster", check=False).returncode == 0, 60, "slurmdbd answers"
    )


def test_a_wrong_clock_is_named_in_a_bootstrap() -> None:
    """Containers share one clock, so what the patrol asks for the time lies."""
    write(NODE, "/usr/local/bin/date", '#!/bin/sh\n[ "$*" = +%s ] && exec /bin/date -d "4000 seconds ago" +%s\nexec /bin/date "$@"\n')
    cluster.run(NODE, "chmod", "755", "/usr/local/bin/date")
    try:
        said = patrol("--bootstrap", "--boot-limit", "0")["nodes"][NODE]
    finally:
        cluster.run(NODE, "rm", "/usr/local/bin/date")
    assert (said["action"], said["done"]) == ("needs a person", [])
    assert re.match(r"its clock is off by -(399|400)\d s\b", said["en"]) and "mend its time service" in said["en"]


def test_case_66_an_unexpected_reboot_is_resumed_by_the_bootstrap_only(capsys: pytest.CaptureFixture[str]) -> None:
    """With ReturnToService=0 slurmctld leaves it to a person, whatever the node answers; an admin's drain stays."""
    conf = cluster.out(cluster.CONTROLLER, "sh", "-c", "scontrol show config | sed -n 's/^SLURM_CONF *= //p'")
    cluster.run(cluster.CONTROLLER, "cp", "-p", conf, "/root/slurm.conf.kept")
    cluster.run(cluster.CONTROLLER, "sed", "-i", "s/^ReturnToService=.*/ReturnToService=0/", conf)
    try:
        cluster.run(cluster.CONTROLLER, "scontrol", "reconfigure")
        cluster.wait_for(lambda: cluster.config("ReturnToService") == "0", 30, "ReturnToService=0")
        update("state=down", "reason=Node unexpectedly rebooted")
        said = patrol("--fix")["nodes"][NODE]
        assert (said["action"], said["done"]) == ("needs a person", [])
        assert "waits for a resume" in said["en"]
        systemctl(cluster.CONTROLLER, "restart", "slurm-cluster-health-bootstrap.service")
        took = cluster.wait_for(lambda: cluster.in_service(NODE), 10, f"resumed; {cluster.node(NODE)}")
    finally:
        cluster.run(cluster.CONTROLLER, "cp", "-p", "/root/slurm.conf.kept", conf)
        cluster.run(cluster.CONTROLLER, "scontrol", "reconfigure")
    with capsys.disabled():
        print(f"\nDOWN Node unexpectedly rebooted: in service {took:.1f} s after the bootstrap")
    assert '"resumed"' in cluster.out(cluster.CONTROLLER, "cat", "/var/lib/hpcguard/ledger.jsonl")
