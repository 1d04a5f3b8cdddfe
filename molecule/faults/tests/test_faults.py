"""Real faults on a compute node: drained within an interval under our tag, undone by itself, and never over an administrator's word.

Every fault is made on the host itself: full disks, exhausted inodes, an ext4 error, a hung FUSE mount, a dead munge.
"""

from __future__ import annotations

import contextlib
import json
import time
import typing as t
from collections.abc import Callable, Iterator

import cluster
import pytest

NODE = cluster.COMPUTES[0]
INTERVAL = 10
GOOD_RUNS = 2
# slurmctld starts the runs of all nodes at once, a run takes at most 20 s
SCRIPT_LIMIT = 20
DRAINED_WITHIN = INTERVAL + SCRIPT_LIMIT
UNDRAINED_WITHIN = (GOOD_RUNS + 1) * INTERVAL + SCRIPT_LIMIT
# verify allows two intervals and this much before it calls a heartbeat stale
STALE_AFTER = 2 * INTERVAL + 120
HEARTBEAT = "/run/hpcguard/health_check.last"

# What an inventory would hold: deploy and verify are told the same.
WANTED = (
    "-e",
    json.dumps(
        {
            "slurm_conf_settings": {"HealthCheckInterval": INTERVAL},
            "health_check_mounts": ["/mnt/data", "/mnt/nfs"],
            "health_check_writable_dirs": ["/srv/ext4"],
            "health_check_disk_paths": ["/", "/srv/disk"],
            "health_check_undrain_after": GOOD_RUNS,
        }
    ),
)

PREPARE = """
set -e
mkdir -p /srv/disk /srv/ext4 /mnt/data /mnt/nfs
mount -t tmpfs -o size=4m,nr_inodes=64 disk /srv/disk
truncate -s 16M /srv/ext4.img
mkfs.ext4 -q /srv/ext4.img
mount -o loop,errors=remount-ro /srv/ext4.img /srv/ext4
mount -t tmpfs data /mnt/data
"""


def bash(script: str, *args: str, check: bool = True) -> str:
    return cluster.out(NODE, "bash", "-c", script, "bash", *args, check=check)


def hangfs(action: str) -> None:
    cluster.run(NODE, "python3", "/root/hangfs.py", action, "/mnt/nfs", *(("--subtype", "nfs") if action == "mount" else ()))


@pytest.fixture(scope="module", autouse=True)
def standard() -> None:
    """The standard with a short interval, watching what the faults will hit."""
    program = (cluster.ROOT / "lab/faults/hangfs.py").read_text(encoding="utf-8")
    for name in cluster.COMPUTES:
        cluster.run(name, "bash", "-c", PREPARE)
        cluster.run(name, "tee", "/root/hangfs.py", feed=program)
        cluster.run(name, "python3", "/root/hangfs.py", "mount", "/mnt/nfs", "--subtype", "nfs")
    cluster.succeed("deploy", *WANTED)


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    bash("dd if=/dev/zero of=/srv/disk/fill bs=64k 2>/dev/null; true")
    yield
    bash("rm /srv/disk/fill")


@contextlib.contextmanager
def no_inodes() -> Iterator[None]:
    bash("for i in $(seq 100); do touch /srv/disk/$i || break; done 2>/dev/null; true")
    yield
    bash("rm -f /srv/disk/*")


@contextlib.contextmanager
def read_only() -> Iterator[None]:
    bash("mount -o remount,ro /srv/ext4")
    yield
    bash("mount -o remount,rw /srv/ext4")


@contextlib.contextmanager
def read_only_by_an_error() -> Iterator[None]:
    """What ext4 does on an error; since kernel 6.x /proc/mounts goes on saying rw."""
    bash("echo 1 > /sys/fs/ext4/$(basename $(findmnt -n -o SOURCE /srv/ext4))/trigger_fs_error")
    yield
    bash("umount /srv/ext4; e2fsck -fy /srv/ext4.img >/dev/null 2>&1; mount -o loop,errors=remount-ro /srv/ext4.img /srv/ext4")


@contextlib.contextmanager
def missing_mount() -> Iterator[None]:
    bash("umount /mnt/data")
    yield
    bash("mount -t tmpfs data /mnt/data")


@contextlib.contextmanager
def hung_mount() -> Iterator[None]:
    hangfs("hang")
    yield
    hangfs("answer")


@contextlib.contextmanager
def low_memory() -> Iterator[None]:
    bash("sed 's/^MemAvailable:.*/MemAvailable:      51200 kB/' /proc/meminfo > /run/meminfo; mount --bind /run/meminfo /proc/meminfo")
    yield
    bash("umount /proc/meminfo")


Fault = Callable[[], contextlib.AbstractContextManager[None]]
FAULTS: dict[str, tuple[Fault, str]] = {
    "full disk": (full_disk, "disk"),
    "exhausted inodes": (no_inodes, "disk"),
    "read-only path": (read_only, "dirs_writable"),
    "read-only path that /proc/mounts does not show": (read_only_by_an_error, "dirs_writable"),
    "missing mount": (missing_mount, "mounts"),
    "hung mount with an unkillable stat": (hung_mount, "mounts"),
    "low memory": (low_memory, "memory"),
}


def heartbeat() -> dict[str, str]:
    return dict(line.split("=", 1) for line in cluster.out(NODE, "cat", HEARTBEAT, check=False).splitlines() if "=" in line)


def drained_by_us(check: str) -> bool:
    now = cluster.node(NODE)
    return "DRAIN" in now["state"].split("+") and now["reason"][:20].startswith(f"HC: {check}")


def wait_until_undrained(what: str) -> float:
    return cluster.wait_for(lambda: cluster.in_service(NODE), UNDRAINED_WITHIN, what)


def two_runs() -> None:
    """Wait until the health check has run twice from now on."""
    begun = time.time()
    cluster.wait_for(lambda: float(heartbeat().get("epoch", 0)) > begun, DRAINED_WITHIN, "a run of the health check")
    begun = time.time()
    cluster.wait_for(lambda: float(heartbeat().get("epoch", 0)) > begun, DRAINED_WITHIN, "a second run of the health check")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_drains_the_node_and_its_end_undrains_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    fault, check = FAULTS[name]
    with fault():
        took = cluster.wait_for(lambda: drained_by_us(check), DRAINED_WITHIN, f"{name}: DRAIN with HC: {check}; {cluster.node(NODE)}")
        beat = heartbeat()
        assert beat["verdict"] == "fail"
        assert check in beat["failed"]
        assert float(beat["duration"]) < SCRIPT_LIMIT
    back = wait_until_undrained(f"{name}: undone by itself; {cluster.node(NODE)}")
    with capsys.disabled():
        print(f"\n{name}: drained after {took:.1f} s, script {beat['duration']} s, back after {back:.1f} s")


def admin(action: str, reason: str) -> None:
    cluster.run(cluster.CONTROLLER, "scontrol", "update", f"nodename={NODE}", f"state={action}", *([f"reason={reason}"] if reason else []))


def test_drained_by_an_administrator_before_the_fault() -> None:
    admin("drain", "dimm swap")
    with missing_mount():
        two_runs()
        assert cluster.node(NODE)["reason"].startswith("dimm swap")
    two_runs()
    two_runs()
    assert "DRAIN" in cluster.node(NODE)["state"]
    assert cluster.node(NODE)["reason"].startswith("dimm swap")
    admin("resume", "")


def test_drained_by_an_administrator_during_the_fault() -> None:
    with missing_mount():
        cluster.wait_for(lambda: drained_by_us("mounts"), DRAINED_WITHIN, "our drain")
        admin("drain", "psu")
        two_runs()
        assert cluster.node(NODE)["reason"].startswith("psu")
    two_runs()
    two_runs()
    assert "DRAIN" in cluster.node(NODE)["state"]
    assert cluster.node(NODE)["reason"].startswith("psu")
    admin("resume", "")


def test_drained_by_an_administrator_after_the_fault() -> None:
    with missing_mount():
        cluster.wait_for(lambda: drained_by_us("mounts"), DRAINED_WITHIN, "our drain")
    admin("drain", "firmware")
    two_runs()
    two_runs()
    assert "DRAIN" in cluster.node(NODE)["state"]
    assert cluster.node(NODE)["reason"].startswith("firmware")
    admin("resume", "")
    cluster.wait_for(lambda: cluster.in_service(NODE), 30, "back in service")


def test_without_munge_nothing_drains_verify_says_so_and_the_patrol_heals() -> None:
    before = heartbeat()["epoch"]
    # the timer would have the patrol heal it in the middle of the test
    cluster.run(cluster.CONTROLLER, "systemctl", "stop", "slurm-cluster-health.timer")
    cluster.run(NODE, "systemctl", "stop", "munge")
    # the fault is that nothing happens any more
    cluster.wait_for(lambda: time.time() - float(heartbeat()["epoch"]) > STALE_AFTER, STALE_AFTER + 30, "a stale heartbeat", every=2)
    assert float(heartbeat()["epoch"]) - float(before) < 2 * INTERVAL
    assert "DRAIN" not in cluster.node(NODE)["state"]
    cluster.refuse("verify", *WANTED, "-e", "verify_crash_test=false", "-e", "verify_step_probe=false")
    assert cluster.verdicts()[5] == "fail"
    cluster.run(cluster.CONTROLLER, "systemctl", "start", "slurm-cluster-health.timer")
    cluster.run(cluster.CONTROLLER, "systemctl", "start", "slurm-cluster-health.service", timeout=300)
    assert cluster.out(NODE, "systemctl", "is-active", "munge") == "active"
    cluster.wait_for(lambda: cluster.in_service(NODE), 30, "back in service")
    cluster.wait_for(lambda: time.time() - float(heartbeat()["epoch"]) < INTERVAL, DRAINED_WITHIN, "a fresh heartbeat")


def test_a_killed_slurmd_is_back_within_15_seconds_with_its_job_alive(capsys: pytest.CaptureFixture[str]) -> None:
    job = cluster.submit(60, f"--nodelist={NODE}")
    cluster.wait_for(lambda: cluster.job_state(job) == "RUNNING", 30, "a job on the node")
    pid = cluster.out(NODE, "systemctl", "show", "--property=MainPID", "slurmd").split("=")[1]
    assert cluster.out(NODE, "cat", f"/proc/{pid}/comm") == "slurmd"
    cluster.run(NODE, "kill", "-KILL", pid)

    def back() -> bool:
        show = cluster.out(NODE, "systemctl", "show", "--property=ActiveState,SubState,MainPID", "slurmd")
        now: dict[str, t.Any] = dict(line.split("=", 1) for line in show.splitlines())
        return now["SubState"] == "running" and now["MainPID"] not in ("0", pid) and cluster.in_service(NODE)

    took = cluster.wait_for(back, 15, "slurmd running anew and its node in service", every=0.2)
    assert cluster.job_state(job) == "RUNNING"
    cluster.wait_for(lambda: cluster.job_state(job) == "", 120, "the job ends")
    cluster.wait_for(lambda: {row[1] for row in cluster.accounting(job)} == {"COMPLETED"}, 30, "COMPLETED in sacct")
    with capsys.disabled():
        print(f"\nslurmd killed: in service again after {took:.1f} s, its job alive")
