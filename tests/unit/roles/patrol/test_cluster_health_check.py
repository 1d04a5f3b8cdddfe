"""The patrol's program on a simulated cluster: scontrol and ssh are stand-ins that answer, refuse or hang."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import typing as t
from pathlib import Path

import pytest
import yaml

from ansible_collections.hpcguard.slurm.plugins.filter import patrol as patrol_filter
from ansible_collections.hpcguard.slurm.plugins.module_utils import ledger

ROOT = Path(__file__).resolve().parents[4]
MODULES = yaml.safe_load((ROOT / "roles/patrol/vars/main.yml").read_text())["__patrol_modules"]


def real_path(python: str | None) -> str:
    """Where an interpreter is behind its wrappers; empty where there is none that runs."""
    done = subprocess.run([python or "false", "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


# Every interpreter at hand that the program may meet on a controller.
PYTHONS = [sys.executable, *filter(None, map(real_path, map(shutil.which, ("python2.7", "python3.6"))))]

# One line of the log for each call. A "reconfigure" or a start on a host may change what is seen next.
SCONTROL = """#!/bin/sh
echo "scontrol $*" >> {log}
[ -e {home}/down ] && {{ echo "slurm_load_node error: Unable to contact slurm controller" >&2; exit 1; }}
[ -e {home}/hang ] && exec sleep 60
case "$1" in
  ping) cat {home}/ping 2>/dev/null; [ -e {home}/next_ping ] && mv {home}/next_ping {home}/ping; exit 0 ;;
  -o) cat {home}/nodes ;;
  reconfigure) [ -e {home}/after ] && cp {home}/after {home}/nodes; exit 0 ;;
  update) [ -e {home}/updated ] && cp {home}/updated {home}/nodes; exit 0 ;;
esac
"""
# The controller's own daemons: their state is a file, absent where they are well.
SYSTEMCTL = """#!/bin/sh
echo "systemctl $*" >> {log}
for word; do unit=$word; done
case "$*" in
  *" show "*) cat {home}/$unit 2>/dev/null || printf 'LoadState=loaded\\nActiveState=active\\nUnitFileState=enabled\\n' ;;
  *" start "*) rm -f {home}/$unit; [ $unit = slurmctld.service ] && rm -f {home}/down; exit 0 ;;
esac
"""
SSH = """#!/bin/sh
line="$*"
while [ "$1" != -- ]; do shift; done
case "$3" in
  *hpcguard:end*) what=look ;;
  *restart?munge*) what=new-munge ;;
  *munge*) what=munge ;;
  *Type=simple*) what=correct ;;
  *restart*) what=restart ;;
  *reset-failed*) what=clear ;;
  *) what=start ;;
esac
echo "ssh $2 $what $line" >> {log}
[ -e {home}/$2.hang ] && exec sleep 60
[ -e {home}/$2.fails ] && {{ cat {home}/$2.fails >&2; exit 255; }}
[ "$what" = look ] || {{ rm -f {home}/$2.look; exit 0; }}
cat {home}/$2.look 2>/dev/null || cat {home}/look
"""
MUNGE = """#!/bin/sh
echo MUNGE:secret:
"""
WELL = """a greeting=from .bashrc
hpcguard:foreign
accepted
hpcguard:munge
LoadState=loaded
ActiveState=active
UnitFileState=enabled
hpcguard:slurmd
LoadState=loaded
ActiveState=active
SubState=running
Result=success
UnitFileState=enabled
KillMode=process
hpcguard:heartbeat
hpcguard:facts
credential=yes
uptime=5000.5
hpcguard:end
"""
NO_MUNGE = WELL.replace("=active", "=failed", 1).replace("credential=yes\n", "")
FAILED = WELL.replace("ActiveState=active\nSubState=running", "ActiveState=failed\nSubState=failed")
LOST = "DOWN+NOT_RESPONDING Reason=Not responding [slurm@2026-12-01T00:00:00]"
CHANGED_KEY = "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.\n"


class Cluster:
    """A home for the stand-ins, the program and its library."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.log = home / "log"
        self.program = home / "prefix/bin/cluster_health_check.py"
        self.program.parent.mkdir(parents=True)
        # the library as the role puts it there
        for one in patrol_filter.patrol_library(MODULES, str(home / "prefix/lib/hpcguard")):
            path = Path(one["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(one["content"], encoding="utf-8")
        shutil.copy(ROOT / "roles/patrol/files/cluster_health_check.py", self.program)
        for name, text in (("scontrol", SCONTROL), ("ssh", SSH), ("systemctl", SYSTEMCTL), ("munge", MUNGE)):
            (home / name).write_text(text.format(home=home, log=self.log))
            (home / name).chmod(0o755)
        (home / "look").write_text(WELL)

    def nodes(self, *states: str, after: tuple[str, ...] = ()) -> None:
        for name, listed in (("nodes", states), ("after", after)):
            if listed:
                lines = [f"NodeName=n{number} NodeAddr=h{number} State={state}" for number, state in enumerate(listed, 1)]
                (self.home / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def put(self, name: str, text: str = "") -> None:
        (self.home / name).write_text(text)

    def run(self, *options: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, str(self.program), "--run-dir", str(self.home / "run"), "--ledger", str(self.home / "state/ledger.jsonl"), "--wait", "1", *options],
            env={"PATH": f"{self.home}:/usr/bin:/bin", "LC_ALL": "C"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    def report(self, *options: str) -> dict[str, t.Any]:
        return json.loads(self.run("--json", *options).stdout)

    def asked(self, beginning: str) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(beginning)]

    def touched(self) -> list[str]:
        """What was done to hosts: "h1 munge"."""
        return [" ".join(line.split()[1:3]) for line in self.asked("ssh") if line.split()[2] != "look"]

    def ledger(self) -> list[dict[str, t.Any]]:
        path = self.home / "state/ledger.jsonl"
        return ledger.loads(path.read_text(encoding="utf-8") if path.exists() else "")

    def reconfigures(self) -> int:
        return len(self.asked("scontrol reconfigure"))


@pytest.fixture
def simulated(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


@pytest.mark.parametrize("python", PYTHONS)
def test_every_interpreter_heals_and_speaks_chinese(simulated: Cluster, python: str) -> None:
    """In the C locale, with a dead munge, a host that refuses and one reconfigure."""
    simulated.nodes(LOST, "IDLE", LOST, after=("IDLE", "IDLE", LOST))
    simulated.put("h1.look", NO_MUNGE)
    simulated.put("h3.fails", "ssh: connect to host h3 port 22: Connection refused\n")
    done = simulated.run("--fix", "--json", python=python)
    assert done.returncode == 1, done.stderr
    assert "2/3 节点就绪" in done.stderr
    report = json.loads(done.stdout)
    assert (report["ready"], report["total"]) == (2, 3)
    assert [one["action"] for one in report["nodes"]["n1"]["done"]] == ["start munge", "reconfigure"]
    assert report["nodes"]["n3"]["zh"] == "无法检查: SSH 连接被拒绝"
    assert (simulated.touched(), simulated.reconfigures()) == (["h1 munge"], 1)


def test_a_healthy_cluster_is_only_looked_at(simulated: Cluster) -> None:
    simulated.nodes("IDLE", "MIXED", "ALLOCATED")
    done = simulated.run("--fix")
    assert done.returncode == 0
    assert "3/3 节点就绪" in done.stderr
    assert (simulated.touched(), simulated.reconfigures()) == ([], 0)


@pytest.mark.parametrize("options", [(), ("--fix", "--dry-run"), ("--bootstrap", "--dry-run")])
def test_without_fix_nothing_is_done(simulated: Cluster, options: tuple[str, ...]) -> None:
    simulated.nodes(LOST, "IDLE")
    simulated.put("h2.look", FAILED)
    done = simulated.run(*options)
    assert done.returncode == 1
    assert "1/2 节点就绪" in done.stderr
    assert "-> reconfigure" in done.stderr
    assert "-> start slurmd" in done.stderr
    assert (simulated.touched(), simulated.reconfigures()) == ([], 0)
    assert not (simulated.home / "run").exists()


def test_many_nodes_come_back_by_one_reconfigure(simulated: Cluster) -> None:
    simulated.nodes(*[LOST] * 40, "IDLE*", after=("IDLE",) * 41)
    assert simulated.run("--fix").returncode == 0
    assert (simulated.touched(), simulated.reconfigures()) == ([], 1)


def test_a_node_still_lost_is_restarted_ever_more_seldom_and_then_left_to_a_person(simulated: Cluster) -> None:
    simulated.nodes(LOST, "IDLE")
    first = simulated.report("--fix")
    assert first["nodes"]["n1"]["action"] == "reconfigure"
    assert simulated.touched() == []
    # no second reconfigure for the same node: that was no help
    for tries in (1, 1):
        last = simulated.report("--fix")
        assert (simulated.touched(), simulated.reconfigures()) == (["h1 restart"] * tries, 1)
    assert last["nodes"]["n1"]["action"] == "wait"
    assert "again in" in last["nodes"]["n1"]["en"]
    for tries in (2, 3, 3, 3):
        last = simulated.report("--fix", "--back-off", "0")
        assert simulated.touched() == ["h1 restart"] * tries
    assert (last["nodes"]["n1"]["action"], simulated.reconfigures()) == ("needs a person", 1)
    assert "a person has to look" in last["nodes"]["n1"]["en"]
    # told once, not once a round
    assert [(one["node"], one["event"], one["layer"]) for one in simulated.ledger()] == [("n1", "gave_up", 2)]


def test_a_restart_that_would_end_jobs_is_not_made(simulated: Cluster) -> None:
    simulated.nodes(LOST)
    simulated.put("look", WELL.replace("KillMode=process", "KillMode=control-group"))
    simulated.run("--fix")
    assert "would end its jobs" in simulated.report("--fix")["nodes"]["n1"]["en"]
    assert simulated.touched() == []


def test_munge_first_then_the_slurmd_that_died_of_it(simulated: Cluster) -> None:
    simulated.nodes("IDLE", "IDLE")
    simulated.put("h1.look", NO_MUNGE)
    simulated.put("h2.look", FAILED)
    assert simulated.run("--fix").returncode == 0
    # both work by themselves afterwards and register: nothing is reconfigured
    assert (simulated.touched(), simulated.reconfigures()) == (["h1 munge", "h2 start"], 0)


def test_what_somebody_meant_is_not_even_looked_at(simulated: Cluster) -> None:
    simulated.nodes(
        "DOWN+DRAIN+NOT_RESPONDING Reason=dimm swap [root@2026-12-01T00:00:00]",
        "IDLE+CLOUD+POWERED_DOWN",
        "DOWN Reason=bad psu [slurm@2026-12-01T00:00:00]",
        "IDLE+MAINTENANCE",
        "IDLE",
    )
    done = simulated.run("--fix", "--json")
    assert done.returncode == 0
    assert [line.split()[1] for line in simulated.asked("ssh")] == ["h5"]
    report = json.loads(done.stdout)
    assert (report["ready"], report["total"], report["nodes"]["n1"]["en"]) == (1, 1, "drained: dimm swap")


def test_a_hold_file_keeps_a_host(simulated: Cluster) -> None:
    simulated.nodes(LOST)
    simulated.put("look", FAILED.replace("hpcguard:end", "hold=yes\nhpcguard:end"))
    assert simulated.report("--fix")["nodes"]["n1"]["zh"] == "存在保留文件"
    assert simulated.touched() == []


@pytest.mark.parametrize("trouble", ["down", "hang"])
def test_no_node_is_touched_while_the_controller_does_not_answer(simulated: Cluster, trouble: str) -> None:
    simulated.nodes("IDLE")
    simulated.put(trouble)
    done = simulated.run("--fix", "--json")
    assert done.returncode == 2
    assert "scontrol" in json.loads(done.stdout)["fault"]
    assert simulated.asked("ssh") == []


def test_a_fault_of_its_own_is_not_a_node_that_is_not_ready(simulated: Cluster) -> None:
    simulated.nodes("IDLE")
    assert simulated.run("--node", "n9").returncode == 2
    assert simulated.run("--nonsense").returncode == 2
    simulated.put("run", "no directory")
    assert simulated.run("--fix").returncode == 2


@pytest.mark.parametrize(
    ("said", "english"),
    [(CHANGED_KEY, "its host key changed"), ("Host key verification failed.\n", "its host key is not known here")],
)
def test_case_101_a_changed_host_key_is_its_own_class(simulated: Cluster, said: str, english: str) -> None:
    """Never a prompt, never a check switched off; and what slurmctld says outweighs it."""
    simulated.nodes(LOST, "IDLE")
    for name in ("h1.fails", "h2.fails"):
        simulated.put(name, said)
    report = simulated.report("--fix")
    assert report["nodes"]["n1"]["en"] == "cannot be looked at: " + english
    assert (report["nodes"]["n2"]["ready"], simulated.touched(), simulated.reconfigures()) == (True, [], 0)
    for line in simulated.asked("ssh"):
        assert "BatchMode=yes" in line
        assert "StrictHostKeyChecking" not in line
        assert "UserKnownHostsFile" not in line


def test_many_hosts_hanging_cost_a_bounded_time_and_the_others_are_healed(simulated: Cluster) -> None:
    """30 of 100 hang after the login."""
    simulated.nodes(*[LOST] * 30, *["IDLE"] * 69, "IDLE*")
    for number in range(1, 31):
        simulated.put(f"h{number}.hang")
    simulated.put("h100.look", FAILED)
    begun = time.monotonic()
    report = simulated.report("--fix")
    assert time.monotonic() - begun < 60
    assert report["nodes"]["n7"]["en"] == "cannot be looked at: no answer in time"
    assert simulated.touched() == ["h100 start"]


def test_only_so_many_nodes_are_touched_in_a_round(simulated: Cluster) -> None:
    """A third of them, and never more than --most; none of them again at once."""
    simulated.nodes(*["IDLE"] * 12)
    simulated.put("look", FAILED)
    simulated.run("--fix", "--most", "2")
    assert len(simulated.touched()) == 2
    simulated.run("--fix")
    assert len(simulated.touched()) == 2 + 3
    simulated.run("--fix", "--most-percent", "50")
    assert len(set(simulated.touched())) == len(simulated.touched()) == 2 + 3 + 6


def test_all_nodes_of_a_small_cluster_are_helped_at_once(simulated: Cluster) -> None:
    simulated.nodes("IDLE", "IDLE", "IDLE")
    simulated.put("look", FAILED)
    simulated.run("--fix")
    assert sorted(simulated.touched()) == ["h1 start", "h2 start", "h3 start"]


def test_one_acts_the_other_only_looks(simulated: Cluster) -> None:
    simulated.nodes(LOST)
    simulated.run("--fix", "--dry-run")
    (simulated.home / "run").mkdir()
    with (simulated.home / "run/patrol.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = simulated.run("--fix")
    assert done.returncode == 1
    assert "另一个巡检正在进行" in done.stderr
    assert simulated.reconfigures() == 0
    simulated.run("--fix")
    assert simulated.reconfigures() == 1


def pinged(primary: str, backup: str) -> str:
    """What scontrol ping says of another host's slurmctld and of the backup here."""
    return f"Slurmctld(primary) at elsewhere is {primary}\nSlurmctld(backup) at {platform.node().split('.')[0]} is {backup}\n"


@pytest.mark.parametrize(
    ("before", "after", "acts"),
    [
        (pinged("UP", "UP"), "", False),
        (pinged("DOWN", "UP"), "", True),
        # the primary restarts, or comes back, while the backup's patrol looks at hosts
        (pinged("DOWN", "UP"), pinged("UP", "UP"), False),
        (pinged("UP", "UP"), pinged("DOWN", "UP"), False),
        # neither is known to be at work
        (pinged("DOWN", "DOWN"), "", False),
        ("Slurmctld(primary) at elsewhere is UP\n", "", True),
    ],
)
def test_the_patrol_of_a_backup_controller_acts_only_when_it_took_over(simulated: Cluster, before: str, after: str, acts: bool) -> None:
    """While the primary works, its own patrol acts, and a rollout leaves its lock with the primary."""
    simulated.nodes(LOST, "IDLE")
    simulated.put("h2.look", FAILED)
    simulated.put("ping", before)
    if after:
        simulated.put("next_ping", after)
    done = simulated.run("--fix")
    assert "/2 节点就绪" in done.stderr
    assert (simulated.touched(), simulated.reconfigures()) == ((["h2 start"], 1) if acts else ([], 0))
    assert ("备用控制器" in done.stderr) is not acts


@pytest.mark.parametrize("memory", ["", "[]", '{"n1": 3}', "\x00\xff"])
def test_a_damaged_memory_is_forgotten(simulated: Cluster, memory: str) -> None:
    simulated.nodes(LOST, after=("IDLE",))
    (simulated.home / "run").mkdir()
    simulated.put("run/patrol.json", memory)
    assert simulated.run("--fix").returncode == 0


def test_the_bootstrap_waits_for_a_late_controller(simulated: Cluster) -> None:
    """slurmctld answers later; then what is well is in service by one reconfigure."""
    simulated.nodes(LOST, LOST, "IDLE", after=("IDLE",) * 3)
    simulated.put("down")
    patrol = subprocess.Popen(
        [sys.executable, str(simulated.program), "--bootstrap", "--run-dir", str(simulated.home / "run")],
        env={"PATH": f"{simulated.home}:/usr/bin:/bin"},
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    deadline = time.monotonic() + 20
    while len(simulated.asked("scontrol")) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert simulated.asked("ssh") == []
    os.unlink(simulated.home / "down")
    answered = time.monotonic()
    _out, err = patrol.communicate(timeout=60)
    assert patrol.returncode == 0, err
    assert "3/3 节点就绪" in err
    assert time.monotonic() - answered < 30
    assert simulated.reconfigures() == 1


def test_the_bootstrap_gives_up_on_a_controller_that_stays_away(simulated: Cluster) -> None:
    simulated.put("down")
    assert simulated.run("--bootstrap", "--boot-limit", "1").returncode == 2


def test_hostile_text_reaches_neither_shell_nor_terminal(simulated: Cluster) -> None:
    simulated.nodes("DOWN+NOT_RESPONDING Reason=Not responding $(touch pwned) \x1b[31m`id` [slurm@2026-12-01T00:00:00]", "IDLE")
    with (simulated.home / "nodes").open("a") as nodes:
        nodes.write("NodeName=n3 NodeAddr=-oProxyCommand=id State=DOWN*\n")
    simulated.put("h1.fails", "\x1b]0;title\x07mischief $(id)\n")
    done = simulated.run("--fix", "--json")
    assert "\x1b" not in done.stderr + json.loads(done.stdout)["nodes"]["n1"]["en"]
    assert all("pwned" not in line and "Proxy" not in line for line in simulated.asked(""))
