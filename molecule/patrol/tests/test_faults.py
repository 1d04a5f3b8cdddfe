"""Each of these is put right by the timer's runs, without a person; the time to service is printed."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator

import cluster
import pytest
from layer2 import all_in_service, patrol, show, systemctl, write

pytestmark = pytest.mark.usefixtures("timer")

NODE = cluster.COMPUTES[0]
DROP_IN = "/etc/systemd/system/slurmd.service.d/50-fault.conf"
KEY = "/etc/munge/munge.key"
Fault = Callable[[], contextlib.AbstractContextManager[None]]


def main_pid() -> str:
    return show(NODE, "slurmd", "MainPID")["MainPID"]


def kill_slurmd() -> None:
    pid = main_pid()
    assert cluster.out(NODE, "cat", f"/proc/{pid}/comm") == "slurmd"
    cluster.run(NODE, "kill", "-KILL", pid)


@contextlib.contextmanager
def unit_says(text: str) -> Iterator[None]:
    """Something a person wrote into the unit, taken out at the end."""
    write(NODE, DROP_IN, text)
    systemctl(NODE, "daemon-reload")
    yield
    cluster.run(NODE, "rm", "-f", DROP_IN, "/run/systemd/system/slurmd.service.d/zz-hpcguard.conf")
    systemctl(NODE, "daemon-reload")
    systemctl(NODE, "restart", "slurmd")
    cluster.wait_for(lambda: cluster.in_service(NODE), 60, "in service under its own unit")


@contextlib.contextmanager
def killed() -> Iterator[None]:
    kill_slurmd()
    yield


@contextlib.contextmanager
def wrong_type() -> Iterator[None]:
    with unit_says("[Service]\nType=forking\nTimeoutStartSec=90\n"):
        systemctl(NODE, "--no-block", "restart", "slurmd")
        cluster.wait_for(lambda: show(NODE, "slurmd", "SubState")["SubState"] == "start", 90, "stuck in its start")
        yield
        # gone at the next boot, and said: the unit is still wrong
        drop_in = cluster.out(NODE, "cat", "/run/systemd/system/slurmd.service.d/zz-hpcguard.conf")
        assert "Type=simple" in drop_in
        journal = cluster.out(cluster.CONTROLLER, "journalctl", "-u", "slurm-cluster-health", "--since=-5min", "--no-pager")
        assert "a person has to correct the unit" in journal


@contextlib.contextmanager
def start_limit() -> Iterator[None]:
    with unit_says("[Unit]\nStartLimitIntervalSec=600\nStartLimitBurst=2\n[Service]\nRestartSec=1\n"):
        systemctl(NODE, "reset-failed", "slurmd")
        before = main_pid()
        for _number in range(3):
            kill_slurmd()
            cluster.wait_for(lambda before=before: main_pid() not in ("0", before) or failed(), 60, "slurmd runs anew, or has failed")
            before = main_pid()
            if failed():
                break
        cluster.wait_for(failed, 60, f"start limit: {show(NODE, 'slurmd', 'Result', 'SubState')}")
        # asked again, systemd refuses: that is what the limit means
        assert cluster.run(NODE, "systemctl", "start", "slurmd", check=False).returncode != 0
        yield


def failed() -> bool:
    return show(NODE, "slurmd", "ActiveState")["ActiveState"] == "failed"


@contextlib.contextmanager
def left_over_pre() -> Iterator[None]:
    with unit_says(
        "[Service]\nTimeoutStartSec=infinity\nRestartSec=1\nExecStartPre=/bin/sh -c 'if test -e /run/hang; then exec sleep 100000; fi'\n"
    ):
        cluster.run(NODE, "touch", "/run/hang")
        kill_slurmd()
        cluster.wait_for(lambda: show(NODE, "slurmd", "SubState")["SubState"] == "start-pre", 60, "it hangs in ExecStartPre")
        cluster.run(NODE, "rm", "/run/hang")
        yield


@contextlib.contextmanager
def munge_stopped() -> Iterator[None]:
    systemctl(NODE, "stop", "munge")
    yield
    assert systemctl(NODE, "is-active", "munge") == "active"


@contextlib.contextmanager
def munge_with_an_old_key() -> Iterator[None]:
    """It runs with a key that is no longer the one in the file; its own credentials it takes all the same (case 28)."""
    cluster.run(NODE, "cp", "-p", KEY, "/root/munge.key.kept")
    cluster.run(NODE, "dd", "if=/dev/urandom", f"of={KEY}", "bs=1", "count=1024")
    systemctl(NODE, "restart", "munge")
    cluster.run(NODE, "sh", "-c", f"cat /root/munge.key.kept >{KEY}")
    assert cluster.run(NODE, "sh", "-c", "munge -n | unmunge", check=False).returncode == 0
    assert not credential_crosses()
    yield
    assert credential_crosses()
    cluster.run(NODE, "rm", "/root/munge.key.kept")


def credential_crosses() -> bool:
    made = cluster.out(cluster.CONTROLLER, "munge", "-n")
    return cluster.run(NODE, "unmunge", feed=made, check=False).returncode == 0


@contextlib.contextmanager
def not_responding() -> Iterator[None]:
    """The host hangs until slurmctld has it DOWN; then slurmctld would not ask it for long (S9)."""
    subprocess.run(["podman", "pause", cluster.container(NODE)], check=True, capture_output=True)
    try:
        cluster.wait_for(lambda: "DOWN" in cluster.node(NODE)["state"], 150, "DOWN", every=1)
    finally:
        subprocess.run(["podman", "unpause", cluster.container(NODE)], check=True, capture_output=True)
    yield


FAULTS: dict[str, tuple[Fault, float, str]] = {
    "slurmd killed": (killed, 60, ""),
    "Type=forking of a slurmd in the foreground": (wrong_type, 60, "correct slurmd's type"),
    "failed with its start limit hit": (start_limit, 60, "clear start limit and start slurmd"),
    "ExecStartPre left over": (left_over_pre, 90, "free slurmd"),
    "munge stopped": (munge_stopped, 60, "start munge"),
    "munge with an old key": (munge_with_an_old_key, 60, "restart munge"),
    "DOWN Not responding": (not_responding, 90, ""),
}


def ledger() -> list[str]:
    return cluster.out(cluster.CONTROLLER, "cat", "/var/lib/hpcguard/ledger.jsonl", check=False).splitlines()


def well() -> bool:
    """In service, and its daemons run."""
    return (
        cluster.in_service(NODE)
        and show(NODE, "slurmd", "SubState")["SubState"] == "running"
        and systemctl(NODE, "is-active", "munge", check=False) == "active"
        and credential_crosses()
    )


@pytest.mark.parametrize("name", FAULTS)
def test_put_right_without_a_person(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    fault, within, action = FAULTS[name]
    cluster.wait_for(all_in_service, 60, "all in service before")
    known = len(ledger())
    # no run in the middle of making the fault
    systemctl(cluster.CONTROLLER, "stop", "slurm-cluster-health.timer", "slurm-cluster-health.service")
    with fault():
        systemctl(cluster.CONTROLLER, "start", "slurm-cluster-health.timer")
        took = cluster.wait_for(well, within, f"{name}: back; {cluster.node(NODE)}, {show(NODE, 'slurmd', 'ActiveState', 'SubState')}")
        if action:
            cluster.wait_for(
                lambda: [line for line in ledger()[known:] if f'"{action}"' in line and '"fixed"' in line], 60, f"the ledger names {action}"
            )
    with capsys.disabled():
        print(f"\n{name}: in service again after {took:.1f} s")


def test_a_controller_that_restarts_ten_times_in_a_minute_costs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    job = cluster.run_until_told()
    pids = {name: show(name, "slurmd", "MainPID") for name in cluster.COMPUTES}
    for _number in range(10):
        systemctl(cluster.CONTROLLER, "restart", "slurmctld")
    took = cluster.wait_for(all_in_service, 60, "all in service")
    cluster.tell_to_end(job)
    # the patrol ran meanwhile, and restarted nobody
    assert {name: show(name, "slurmd", "MainPID") for name in cluster.COMPUTES} == pids
    with capsys.disabled():
        print(f"\ncontroller restarted ten times: in service again after {took:.1f} s")


def test_the_timer_fires_again_and_again() -> None:
    """S68: not once only. Each run is another start of the service."""
    seen = set()

    def three() -> bool:
        seen.add(
            show(cluster.CONTROLLER, "slurm-cluster-health.service", "ExecMainStartTimestampMonotonic")["ExecMainStartTimestampMonotonic"]
        )
        return len(seen - {"0"}) >= 4

    cluster.wait_for(three, 90, "the timer's service was started three times more")
    assert show(cluster.CONTROLLER, "slurm-cluster-health.service", "Result")["Result"] == "success"


def test_the_metrics_are_those_of_the_last_run() -> None:
    text = cluster.out(cluster.CONTROLLER, "cat", "/var/lib/hpcguard/patrol.prom")
    assert "hpcguard_patrol_nodes_ready 3" in text
    assert "hpcguard_patrol_fault 0" in text


def test_the_nodes_are_asked_by_clustershell() -> None:
    """The lab's controller has it, so that is what was tested here."""
    cluster.run(cluster.CONTROLLER, "/usr/bin/python3", "-c", "import ClusterShell")
    assert patrol()["ready"] == 3
