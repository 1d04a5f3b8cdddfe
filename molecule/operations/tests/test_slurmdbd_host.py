"""recover.yml where slurmdbd has a host of its own: a fresh lab takes the place of the one that stands."""

from __future__ import annotations

import os
import subprocess
import typing as t

import cluster
import pytest
from layer2 import die, heal, said_of_starts, show, systemctl, write

DBD = "k8s-dbd-01"


@pytest.fixture(scope="module", autouse=True)
def own_host() -> t.Iterator[None]:
    done = subprocess.run([cluster.ROOT / "lab/up.sh"], env={**os.environ, "TOPOLOGY": "dbd"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    systemctl(cluster.CONTROLLER, "stop", "slurm-cluster-health.timer", "slurm-cluster-health.service")
    yield
    subprocess.run([cluster.ROOT / "lab/down.sh"], check=True)


def accounting_answers() -> bool:
    return cluster.run(cluster.CONTROLLER, "sacctmgr", "-n", "show", "cluster", check=False).returncode == 0


def test_a_dead_munge_and_slurmdbd_come_back() -> None:
    pids = cluster.main_pids()
    systemctl(DBD, "stop", "munge")
    die(DBD, "slurmdbd")
    assert not accounting_answers()
    counts = cluster.recap(output := cluster.succeed("recover", "--check"))
    assert said_of_starts(output) == [
        "munge.service: 将启动 / would be started (inactive/dead)",
        "slurmdbd.service: 将启动 / would be started (failed/failed (signal))",
    ]
    assert (counts[DBD]["changed"], counts[cluster.CONTROLLER]["changed"]) == (1, 0)
    assert {show(DBD, unit, "ActiveState")["ActiveState"] for unit in ("munge", "slurmdbd")} == {"inactive", "failed"}
    output = cluster.succeed("recover")
    assert said_of_starts(output) == ["munge.service: 启动 / started: ok", "slurmdbd.service: 启动 / started: ok"]
    cluster.wait_for(accounting_answers, 30, "slurmdbd answers")
    assert cluster.recap(cluster.succeed("recover"))[DBD]["changed"] == 0
    now = cluster.main_pids()
    assert {name for name in pids if pids[name] != now[name]} == set(), "nothing else was touched"
    heal(DBD, "slurmdbd")


def test_a_slurmdbd_that_does_not_stay_fails_and_slurmctld_is_looked_after_all_the_same() -> None:
    die(DBD, "slurmdbd")
    write(DBD, "/run/systemd/system/slurmdbd.service.d/ends.conf", "[Service]\nExecStart=\nExecStart=/bin/false\n")
    systemctl(DBD, "daemon-reload")
    die(cluster.CONTROLLER, "slurmctld")
    output = cluster.refuse("recover", "-e", "recover_time=30")
    assert "slurmdbd.service: failed/failed (exit-code)" in output
    assert "slurmctld.service: 启动 / started: ok" in output
    cluster.run(DBD, "rm", "/run/systemd/system/slurmdbd.service.d/ends.conf")
    for host, unit in ((DBD, "slurmdbd"), (cluster.CONTROLLER, "slurmctld")):
        heal(host, unit)
    cluster.succeed("recover")


def test_what_somebody_disabled_stays_and_a_rollout_is_not_disturbed() -> None:
    die(DBD, "slurmdbd")
    systemctl(DBD, "disable", "slurmdbd")
    output = cluster.succeed("recover")
    assert "slurmdbd.service: failed/failed (signal), disabled: 不动 / left alone" in output
    systemctl(DBD, "enable", "slurmdbd")
    owner = '{"place": "elsewhere", "process": "1 1", "who": "alice", "doing": "deploy"}'
    write(cluster.CONTROLLER, "/run/hpcguard/rollout.lock", f'{{"owner": {owner}, "since": 1, "until": 99999999999}}')
    output = cluster.succeed("recover")
    assert "a rollout is at work, nothing is touched: deploy by alice" in output
    assert show(DBD, "slurmdbd", "ActiveState")["ActiveState"] == "failed"
    cluster.run(cluster.CONTROLLER, "rm", "/run/hpcguard/rollout.lock")
    heal(DBD, "slurmdbd")
    cluster.succeed("recover")
    cluster.wait_for(accounting_answers, 30, "slurmdbd answers")
