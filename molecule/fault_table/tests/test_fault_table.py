"""The fault table: whatever breaks while a rollout runs, the cluster is entirely old or entirely new and no job is lost.

Every row begins and ends on the legacy cluster, with a job on all nodes that must not notice anything. What was measured
goes to reports/fault-table.json, from which tests/tools/fault-table writes docs/fault-table.md.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
import typing as t

import cluster
import pytest
from cluster import COMPUTES, CONTROLLER, HOSTS

CONF = "/usr/local/slurm/etc/slurm.conf"
WAIT_SCRIPT = "/usr/local/bin/wait-for-slurmctld.sh"
VICTIM = "k8s-node-02"
DEFER = ("-e", "slurm_running_jobs=defer")
NEW = "ReturnToService=2"
# Under running jobs nothing of the standard restarts slurmctld; this does.
RESTART = ("-e", '{"slurm_conf_settings": {"MaxStepCount": 39999}}')
TABLE = cluster.ROOT / cluster.REPORTS / "fault-table.json"

State = dict[str, t.Any]


class Row:
    """One row of the table, as it is filled in."""

    def __init__(self, legacy: State, job: str) -> None:
        self.legacy, self.job = legacy, job
        self.told: dict[str, t.Any] = {}
        self.begun = time.monotonic()

    def ended(self, fault: str, state: str, message: str, then: str) -> None:
        """Keep what was seen: the fault, how the cluster was after it, what the run said, what the next run made of it."""
        seconds = round(time.monotonic() - self.begun)
        self.told = {"fault": fault, "state": state, "message": message, "then": then, "seconds": seconds}

    # --- what has to hold

    def job_lives(self) -> None:
        assert cluster.job_state(self.job) == "RUNNING"

    def is_old(self, hosts: t.Iterable[str] = HOSTS) -> None:
        """Files and settings as before, every daemon up, every node in service, the job running."""
        for host in hosts:
            assert cluster.files(host) == self.legacy["files"][host], host
        in_service()
        if CONTROLLER in hosts:
            assert cluster.config("ReturnToService") == "1"
        self.job_lives()

    def converges(self) -> str:
        """The next deploy completes it, and one rollback ends at the legacy cluster."""
        cluster.succeed("deploy", *DEFER)
        assert cluster.verdicts()[9] == "pass"
        self.job_lives()
        cluster.succeed("rollback")
        self.is_old()
        return "the next deploy completed it, one rollback ended at the legacy cluster"


# The rows that follow are the proof: each begins with a rollout on what this one left.
ANEW = "every file, setting and daemon as before it began, so the next run begins anew"


def in_service() -> None:
    for name in COMPUTES:
        # slurmctld asks a node that was cut off again after SlurmdTimeout / 3
        cluster.wait_for(lambda node=name: cluster.in_service(node), 150, f"{name} in service")
    for host, units in cluster.DAEMONS.items():
        for unit in units:
            cluster.wait_for(
                lambda h=host, u=unit: cluster.out(h, "systemctl", "is-active", u, check=False) == "active", 60, f"{unit} on {host}"
            )


@pytest.fixture(scope="module")
def legacy() -> State:
    return {"files": {host: cluster.files(host) for host in HOSTS}, "job": cluster.run_until_told()}


@pytest.fixture
def row(legacy: State, request: pytest.FixtureRequest) -> t.Iterator[Row]:
    if legacy.pop("stained", False):
        # a row that failed must not hide the others
        subprocess.run([cluster.ROOT / "lab/up.sh"], check=True, capture_output=True)
        legacy.update(files={host: cluster.files(host) for host in HOSTS}, job=cluster.run_until_told())
    made = Row(legacy, legacy["job"])
    made.is_old()
    legacy["stained"] = True
    yield made
    legacy["stained"] = not made.told
    assert made.told, "the row was not filled in"
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    rows = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    rows[request.node.name] = made.told
    TABLE.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")


def cut(host: str) -> None:
    """Take the host's network away, as a pulled cable does."""
    cluster.run(host, "ip", "link", "set", "eth0", "down")


def mend(host: str) -> None:
    cluster.run(host, "ip", "link", "set", "eth0", "up")
    cluster.wait_for(lambda: cluster.playbook("snapshots", "--limit", host).returncode == 0, 60, f"{host} answers again")


@contextlib.contextmanager
def while_new(host: str, program: str) -> t.Iterator[None]:
    """A fault that is there only under the new slurm.conf: a Python program that may call ``new()``."""
    header = f"""
import os, signal, socket, subprocess, time
def new():
    try:
        return {NEW!r} in open({CONF!r}).read().replace(' ', '')
    except OSError:
        return False
def pid():
    return int(subprocess.check_output(['systemctl', 'show', '-p', 'MainPID', '--value', 'slurmctld']).decode())
"""
    cluster.run(host, "systemd-run", "--quiet", "--unit=fault", "python3", "-c", header + program)
    try:
        yield
    finally:
        cluster.run(host, "systemctl", "stop", "fault.service", check=False)


def last_cause(output: str) -> str:
    """The lines of the final message that name the cause."""
    causes = [line.strip() for line in output.splitlines() if "cause:" in line]
    return causes[-1][:300] if causes else ""


# --- before ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", [CONTROLLER, VICTIM])
def test_host_unreachable_before(row: Row, host: str) -> None:
    cut(host)
    try:
        output = cluster.refuse("deploy", *DEFER)
    finally:
        mend(host)
    assert f"[{host}]" in output and "did not answer" in output
    row.is_old()
    row.ended(
        f"{host} has no network when the run begins",
        "entirely old, nothing was written",
        last_cause(output),
        "refused again until it answers",
    )


def test_slurmdbd_never_answers_before(row: Row) -> None:
    cluster.run(CONTROLLER, "systemctl", "kill", "-s", "STOP", "slurmdbd")
    try:
        output = cluster.refuse("deploy", *DEFER)
    finally:
        cluster.run(CONTROLLER, "systemctl", "kill", "-s", "CONT", "slurmdbd")
    assert "slurmdbd" in output and "nothing was written" in output
    row.is_old()
    row.ended("slurmdbd is stopped by SIGSTOP", "entirely old, nothing was written", last_cause(output), "refused again until it answers")


def test_slurmctld_was_started_by_hand(row: Row) -> None:
    cluster.run(CONTROLLER, "systemctl", "stop", "slurmctld")
    cluster.run(CONTROLLER, "/usr/local/slurm/sbin/slurmctld")
    cluster.wait_for(lambda: cluster.run(CONTROLLER, "scontrol", "ping", check=False).returncode == 0, 30, "the slurmctld started by hand")
    try:
        output = cluster.refuse("deploy", *DEFER)
    finally:
        by_hand = cluster.out(CONTROLLER, "pidof", "slurmctld")
        cluster.run(CONTROLLER, "kill", *by_hand.split())
        cluster.wait_for(lambda: not cluster.out(CONTROLLER, "pidof", "slurmctld", check=False), 30, "the slurmctld started by hand ends")
        cluster.run(CONTROLLER, "systemctl", "start", "slurmctld")
    assert "slurmctld.service is inactive and runs no process here" in output
    cluster.wait_for(lambda: cluster.in_service(VICTIM), 60, "slurmctld is back")
    row.is_old()
    row.ended(
        "port 6817 is held by a slurmctld that was started by hand",
        "entirely old, nothing was written",
        last_cause(output),
        "refused again until systemd runs it",
    )


# --- during ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "play"),
    [
        (VICTIM, "PLAY [Stage scripts and units"),
        (VICTIM, "PLAY [Bring the compute nodes"),
        (CONTROLLER, "PLAY [Stage scripts and units"),
        (CONTROLLER, "PLAY [Bring the compute nodes"),
        (VICTIM, "PLAY [Prove the result"),
        (VICTIM, "PLAY [Keep the result"),
    ],
)
def test_host_lost_during(row: Row, host: str, play: str) -> None:
    run = cluster.Running("deploy", *DEFER, "-e", "deploy_ready_timeout=30")
    run.reaches(play)
    cut(host)
    status, output = run.ends()
    mend(host)
    assert status != 0 and host in output.split("cause:" if "cause:" in output else "PLAY RECAP")[-1], output[-3000:]
    row.job_lives()
    others = [name for name in HOSTS if name != host]
    if "The rollout" in output and "stands, but not everywhere" in output:
        assert cluster.config("ReturnToService") == "2"
        state = f"entirely new, only the snapshot of {host} is not closed"
    elif host == CONTROLLER:
        for name in others:
            assert cluster.files(name) == row.legacy["files"][name], name
        state = "old on every host that could be reached"
    else:
        row.is_old(others)
        state = "old on every host that could be reached"
    message = last_cause(output) or f"not reached any more: {host}"
    row.ended(f'{host} loses its network at "{play[6:]}"', state, message, row.converges())


def test_slurmdbd_stops_answering_during(row: Row) -> None:
    run = cluster.Running("deploy", *DEFER)
    run.reaches("PLAY [Stage scripts and units")
    cluster.run(CONTROLLER, "systemctl", "kill", "-s", "STOP", "slurmdbd")
    status, output = run.ends()
    cluster.run(CONTROLLER, "systemctl", "kill", "-s", "CONT", "slurmdbd")
    assert status != 0
    row.is_old()
    row.ended("slurmdbd hangs (SIGSTOP) from staging on", "entirely old", last_cause(output), ANEW)


def test_slurmctld_dies_two_seconds_after_its_start(row: Row) -> None:
    program = """
was = pid()
while True:
    time.sleep(0.1)
    now = pid()
    if new() and now and now != was:
        time.sleep(2)
        os.kill(now, signal.SIGKILL)
        was = now
"""
    with while_new(CONTROLLER, program):
        output = cluster.refuse("deploy", *DEFER, *RESTART, "-e", "deploy_ready_timeout=30")
    assert "slurmctld" in last_cause(output)
    row.is_old()
    row.ended("slurmctld is killed 2 s after each start", "entirely old", last_cause(output), ANEW)


def test_something_else_takes_port_6817(row: Row) -> None:
    program = """
while True:
    if not new():
        time.sleep(0.05)
        continue
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        holder.bind(('0.0.0.0', 6817))
        holder.listen(1)
        while new():
            time.sleep(0.05)
    except OSError:
        time.sleep(0.01)
    holder.close()
"""
    with while_new(CONTROLLER, program):
        output = cluster.refuse("deploy", *DEFER, *RESTART, "-e", "deploy_ready_timeout=30")
    assert "slurmctld" in last_cause(output)
    row.is_old()
    row.ended("another process takes port 6817 while slurmctld restarts", "entirely old", last_cause(output), ANEW)


def broken_slurmd(*args: str) -> str:
    """A rollout in which slurmd of one node does not start: its wait script fails."""
    run = cluster.Running("deploy", *DEFER, "-e", "deploy_ready_timeout=30", *args)
    run.reaches("PLAY [Bring the controller")
    cluster.run(VICTIM, "tee", WAIT_SCRIPT, feed="#!/bin/sh\necho the wait script is broken >&2\nexit 1\n")
    status, output = run.ends()
    assert status != 0, output[-3000:]
    return output


def test_slurmd_of_one_node_does_not_start(row: Row) -> None:
    output = broken_slurmd()
    assert VICTIM in last_cause(output)
    row.is_old()
    row.ended(
        f"slurmd of {VICTIM} does not start", "entirely old; the node was back before the others were", last_cause(output), row.converges()
    )


def test_slurmd_of_one_node_does_not_start_and_one_may_fail(row: Row) -> None:
    output = broken_slurmd("-e", "deploy_max_failures=1")
    assert "stands, but not everywhere" in output
    assert VICTIM in output.split("left out:")[-1]
    assert cluster.config("ReturnToService") == "2"
    assert cluster.files(VICTIM) == row.legacy["files"][VICTIM]
    in_service()
    row.job_lives()
    row.ended(
        "the same with deploy_max_failures=1", f"new, but {VICTIM} old", "stands, but not everywhere; left out: " + VICTIM, row.converges()
    )


@pytest.mark.parametrize(
    ("host", "folder", "play"),
    [
        (CONTROLLER, "/usr/local/slurm/etc", "PLAY [Bring the controller"),
        (VICTIM, "/usr/local/bin", "PLAY [Take a snapshot"),
        (VICTIM, "/var/lib/hpcguard", "PLAY [Take a snapshot"),
    ],
)
def test_disk_full_while_writing(row: Row, host: str, folder: str, play: str) -> None:
    fill = 'mkdir -p "$1" /run/small && mount -t tmpfs -o size=256k small /run/small && cp -a "$1/." /run/small/'
    fill += ' && mount --move /run/small "$1" && { cat /dev/zero > "$1/.filler" || true; }'
    run = cluster.Running("deploy", *DEFER)
    run.reaches(play)
    cluster.run(host, "bash", "-c", fill, "bash", folder)
    status, output = run.ends()
    cluster.run(host, "umount", folder)
    assert status != 0
    assert "space" in last_cause(output), output[-3000:]
    row.is_old()
    row.ended(f"the disk of {folder} on {host} is full", "entirely old", last_cause(output), ANEW)


def test_the_checklist_fails_at_the_end(row: Row) -> None:
    """The new health check finds a fault; what it drained is in service again in the old state, which has no health check."""
    cluster.run(VICTIM, "mkdir", "-p", "/run/hpcguard")
    cluster.run(VICTIM, "tee", "/run/hpcguard/health_check.force", feed="disk\n")
    try:
        output = cluster.refuse("deploy", *DEFER, "-e", "deploy_batches=[3]")
    finally:
        cluster.run(VICTIM, "rm", "/run/hpcguard/health_check.force")
    assert VICTIM in last_cause(output)
    row.is_old()
    row.ended(
        f"the health check of {VICTIM} fails, so the checklist does",
        "entirely old, the drained node in service again",
        last_cause(output),
        ANEW,
    )


KILLED_AT = [
    "TASK [hpcguard.slurm.cluster : Look at the host]",
    "PLAY [Take a snapshot",
    "PLAY [Stage scripts and units",
    "TASK [hpcguard.slurm.slurmd : Bring the unit of slurmd to the standard",
    "PLAY [Bring the controller",
    "TASK [hpcguard.slurm.rollout : Restart slurmctld",
    "PLAY [Bring the compute nodes",
    "TASK [hpcguard.slurm.rollout : Restart slurmd",
    "PLAY [Start the patrol",
    "PLAY [Prove the result",
    "PLAY [Keep the result",
]


@pytest.mark.parametrize(("number", "text"), list(enumerate(KILLED_AT, 1)))
def test_the_run_is_killed(row: Row, number: int, text: str) -> None:
    run = cluster.Running("deploy", *DEFER, *RESTART)
    # plan and run apply the same roles: the second time counts
    begin = "PLAY [Stage scripts and units" if "slurmd : Bring the unit" in text else text
    run.reaches(begin)
    cluster.wait_for(lambda: text in run.output.split(begin, 1)[1] or text == begin, 120, text, every=0.02)
    run.kill()
    row.job_lives()
    # at the first there is nothing yet to take back
    if number % 2 and number > 1 and "Keep" not in text:
        cluster.wait_for(lambda: cluster.playbook("rollback").returncode == 0, 120, "rollback takes it back")
        row.is_old()
        then = "the next rollback took it back"
    else:
        then = row.converges()
    row.ended(f'SIGKILL of the run at "{text.split("[", 1)[1].rstrip("]")}"', "found by the next run", "", then)


def test_the_run_that_finishes_a_killed_one_fails(row: Row) -> None:
    """It goes back to before the killed one."""
    run = cluster.Running("deploy", *DEFER)
    run.reaches("PLAY [Start the patrol")
    run.kill()
    cluster.run(VICTIM, "mkdir", "-p", "/run/hpcguard")
    cluster.run(VICTIM, "tee", "/run/hpcguard/health_check.force", feed="disk\n")
    try:
        output = cluster.refuse("deploy", *DEFER)
    finally:
        cluster.run(VICTIM, "rm", "/run/hpcguard/health_check.force")
    row.is_old()
    row.ended("SIGKILL of the run, and the run that finishes it fails", "entirely old", last_cause(output), ANEW)


def test_two_runs_at_once(row: Row) -> None:
    first = cluster.Running("deploy", *DEFER)
    first.reaches("PLAY [Take a snapshot")
    lock = cluster.out(CONTROLLER, "cat", "/run/hpcguard/rollout.lock")
    second = cluster.refuse("deploy", *DEFER)
    third = cluster.refuse("rollback")
    status, output = first.ends()
    assert status == 0, output[-3000:]
    for refused in (second, third):
        assert "at work already: deploy by" in refused
    patrol_keeps_off(lock)
    cluster.succeed("rollback")
    row.is_old()
    state = "entirely new: the first went on, the patrol kept off"
    row.ended("a second deploy and a rollback while one runs", state, last_cause(second), "one rollback ended at the legacy cluster")


def patrol_keeps_off(lock: str) -> None:
    """While the lock stands the patrol starts no slurmd, afterwards it does."""
    patrol = ("/usr/bin/python3", "/usr/local/bin/cluster_health_check.py", "--fix", "--node", VICTIM)
    cluster.run(VICTIM, "systemctl", "stop", "slurmd")
    cluster.run(CONTROLLER, "tee", "/run/hpcguard/rollout.lock", feed=lock)
    told = cluster.run(CONTROLLER, *patrol, check=False)
    assert "a rollout is at work" in told.stderr
    assert cluster.out(VICTIM, "systemctl", "is-active", "slurmd", check=False) != "active"
    cluster.run(CONTROLLER, "rm", "/run/hpcguard/rollout.lock")
    cluster.run(VICTIM, "systemctl", "start", "slurmd")
    cluster.wait_for(lambda: cluster.in_service(VICTIM), 60, f"{VICTIM} in service")


def test_a_damaged_snapshot(row: Row) -> None:
    cluster.succeed("deploy", *DEFER)
    standard = {host: cluster.files(host) for host in HOSTS}
    place = cluster.out(VICTIM, "bash", "-c", "ls -d /var/lib/hpcguard/snapshots/*/files/* | tail -n 1")
    content = cluster.run(VICTIM, "base64", place).stdout
    cluster.run(VICTIM, "truncate", "-s", "3", place)
    output = cluster.refuse("rollback")
    assert "damaged" in output
    assert {host: cluster.files(host) for host in HOSTS} == standard
    cluster.run(VICTIM, "bash", "-c", 'base64 -d > "$1"', "bash", place, feed=content)
    cluster.succeed("rollback")
    row.is_old()
    row.ended(
        f"the snapshot of {VICTIM} is damaged when it is to be taken back",
        "entirely new, nothing was touched",
        last_cause(output),
        "with the file whole again, rollback ended at the legacy cluster",
    )


def test_the_job_noticed_nothing(legacy: State) -> None:
    """Last: it ends COMPLETED and once, so it was never requeued."""
    cluster.tell_to_end(legacy["job"])
