"""The patrol's program on a simulated cluster: scontrol and ssh are stand-ins that answer, refuse or hang."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
MODULES = ("finding", "loaders", "node_policy", "scontrol_text", "snapshot_manifest", "systemd_unit")

SCONTROL = """#!/bin/sh
echo "scontrol $*" >> {log}
case "$1" in
  -o) [ -e {home}/down ] && exit 1; cat {home}/nodes ;;
  reconfigure) [ -e {home}/after ] && cp {home}/after {home}/nodes; exit 0 ;;
  ping) [ -e {home}/down ] && exit 1; exit 0 ;;
esac
"""
SSH = """#!/bin/sh
for word in "$@"; do last=$word; done
while [ "$1" != -- ]; do shift; done
echo "ssh $2 $last" | head -n 1 >> {log}
[ -e {home}/$2.hang ] && exec sleep 60
[ -e {home}/$2.key ] && {{ echo "Host key verification failed." >&2; exit 255; }}
case "$last" in
  *==*) cat {home}/$2.look 2>/dev/null || cat {home}/look ;;
esac
"""
WELL = (
    "LoadState=loaded\nActiveState=active\n==\nLoadState=loaded\nActiveState=active\nSubState=running\n"
    "Result=success\nUnitFileState=enabled\nKillMode=process\n==\ncredential\n"
)


class Cluster:
    """A home for the stand-ins, the program and its library."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.log = home / "log"
        (home / "prefix/bin").mkdir(parents=True)
        library = home / "prefix/lib/hpcguard/slurmguard"
        library.mkdir(parents=True)
        (library / "__init__.py").touch()
        for name in MODULES:
            shutil.copy(ROOT / f"plugins/module_utils/{name}.py", library)
        self.program = Path(shutil.copy(ROOT / "roles/patrol/files/cluster_health_check.py", home / "prefix/bin"))
        for name, text in (("scontrol", SCONTROL), ("ssh", SSH)):
            (home / name).write_text(text.format(home=home, log=self.log))
            (home / name).chmod(0o755)
        (home / "look").write_text(WELL)

    def nodes(self, *states: str, after: tuple[str, ...] = ()) -> None:
        for name, listed in (("nodes", states), ("after", after)):
            if listed:
                lines = [f"NodeName=n{number} NodeAddr=n{number} State={state}" for number, state in enumerate(listed, 1)]
                (self.home / name).write_text("\n".join(lines) + "\n")

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(self.program), "--run-dir", str(self.home / "run"), *options],
            env={"PATH": f"{self.home}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def asked(self, beginning: str) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(beginning)]


@pytest.fixture
def simulated(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_a_healthy_cluster_is_only_looked_at(simulated: Cluster) -> None:
    simulated.nodes("IDLE", "MIXED", "ALLOCATED")
    done = simulated.run("--fix")
    assert done.returncode == 0
    assert "3/3 节点就绪" in done.stderr
    assert simulated.asked("scontrol reconfigure") == []


def test_without_fix_nothing_is_done(simulated: Cluster) -> None:
    simulated.nodes("DOWN+NOT_RESPONDING Reason=Not responding [slurm@2026-12-01T00:00:00]", "IDLE")
    for options in ((), ("--fix", "--dry-run")):
        done = simulated.run(*options)
        assert done.returncode == 1
        assert "1/2 节点就绪" in done.stderr
    assert simulated.asked("scontrol reconfigure") == []
    assert [line for line in simulated.asked("ssh") if "systemctl --no-block" in line] == []


def test_a_node_that_is_well_comes_back_by_one_reconfigure(simulated: Cluster) -> None:
    simulated.nodes("DOWN+NOT_RESPONDING", "IDLE*", after=("IDLE", "IDLE"))
    done = simulated.run("--fix")
    assert done.returncode == 0
    assert len(simulated.asked("scontrol reconfigure")) == 1
    assert [line for line in simulated.asked("ssh") if "restart" in line] == []


def test_a_dead_munge_is_started_first(simulated: Cluster) -> None:
    simulated.nodes("IDLE*", "IDLE", after=("IDLE", "IDLE"))
    (simulated.home / "n1.look").write_text(WELL.replace("ActiveState=active", "ActiveState=failed", 1).replace("credential\n", ""))
    assert simulated.run("--fix").returncode == 0
    assert "ssh n1 systemctl start munge" in simulated.asked("ssh n1")


def test_what_an_administrator_drained_is_not_even_looked_at(simulated: Cluster) -> None:
    simulated.nodes("DOWN+DRAIN+NOT_RESPONDING Reason=dimm swap [root@2026-12-01T00:00:00]", "IDLE")
    done = simulated.run("--fix", "--json")
    assert done.returncode == 0
    assert simulated.asked("ssh n1") == []
    assert json.loads(done.stdout)["nodes"]["n1"]["why"] == "drained"


def test_no_node_is_touched_while_the_controller_does_not_answer(simulated: Cluster) -> None:
    simulated.nodes("IDLE")
    (simulated.home / "down").touch()
    done = simulated.run("--fix")
    assert done.returncode == 2
    assert simulated.asked("ssh") == []


def test_case_101_a_changed_host_key_is_its_own_finding(simulated: Cluster) -> None:
    simulated.nodes("DOWN+NOT_RESPONDING", "IDLE")
    (simulated.home / "n1.key").touch()
    done = simulated.run("--fix", "--json")
    assert "host key" in json.loads(done.stdout)["nodes"]["n1"]["why"]
    assert all("StrictHostKeyChecking" not in line for line in simulated.asked("ssh"))


def test_most_hosts_hanging_cost_a_bounded_time(simulated: Cluster) -> None:
    simulated.nodes(*["IDLE"] * 4, *["DOWN+NOT_RESPONDING"] * 6)
    for number in range(5, 11):
        (simulated.home / f"n{number}.hang").touch()
    begun = time.monotonic()
    done = simulated.run("--fix", "--json")
    assert time.monotonic() - begun < 60
    assert json.loads(done.stdout)["nodes"]["n7"]["why"].startswith("cannot be looked at")


def test_only_so_many_nodes_are_touched_in_a_round(simulated: Cluster) -> None:
    simulated.nodes(*["IDLE"] * 6)
    failed = WELL.replace("ActiveState=active\nSubState=running", "ActiveState=failed\nSubState=failed")
    (simulated.home / "look").write_text(failed)
    simulated.run("--fix", "--most", "2")
    assert len([line for line in simulated.asked("ssh") if "reset-failed" in line]) == 2


def test_hostile_reasons_reach_neither_shell_nor_terminal(simulated: Cluster) -> None:
    simulated.nodes("DOWN+NOT_RESPONDING Reason=$(touch pwned) \x1b[31m`id` [slurm@2026-12-01T00:00:00]")
    done = simulated.run("--fix")
    assert "\x1b" not in done.stderr
    assert all("pwned" not in line for line in simulated.asked(""))
