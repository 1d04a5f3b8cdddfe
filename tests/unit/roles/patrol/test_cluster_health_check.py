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
from ansible_collections.hpcguard.slurm.plugins.module_utils import ledger, node_policy, rollout_lock

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
  *" show "*) cat {home}/$unit 2>/dev/null || printf 'LoadState=loaded\\nActiveState=active\\nUnitFileState=enabled\\nMainPID=7\\n' ;;
  *" start "*)
    rm -f {home}/$unit; [ -e {home}/again ] && cp {home}/again {home}/$unit
    [ $unit = slurmctld.service ] && rm -f {home}/down; exit 0 ;;
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


BY_PERSON = """
import json
from slurmguard import patrol
lines = []
try:
    report = patrol.{work}(patrol.Options(lines.append, **{given!r}))
except patrol.Failure as failure:
    report = {{"fault": failure.args[0], "started": failure.started}}
print(json.dumps(dict(report, lines=lines)))
"""
RECORD = (ROOT / "tests/fixtures/adopt/node-22.05.txt").read_text(encoding="utf-8").splitlines()[0].rstrip()


def recorded(number: int, state: str) -> str:
    """Node n1 on host h1 as scontrol printed one; a reason stands at the end."""
    before, separator, reason = state.partition(" Reason=")
    line = RECORD.replace("k8s-node-01", f"n{number}", 1).replace("NodeAddr=k8s-node-01", f"NodeAddr=h{number}")
    return line.replace("State=IDLE", f"State={before}") + separator + reason


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
                lines = [recorded(number, state) for number, state in enumerate(listed, 1)]
                (self.home / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def put(self, name: str, text: str = "") -> None:
        (self.home / name).write_text(text)

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": f"{self.home}:/usr/bin:/bin", "LC_ALL": "C"}

    def command(self, *options: str, python: str = sys.executable) -> list[str]:
        own = {"--run-dir": "run", "--ledger": "state/ledger.jsonl", "--rollout-lock": "rollout.lock"}
        places = [word for option, name in own.items() for word in (option, str(self.home / name))]
        return [python, str(self.program), *places, "--wait", "1", *options]

    def run(self, *options: str, python: str = sys.executable, wrapper: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*wrapper, *self.command(*options, python=python)],
            env=self.env,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    def by_person(self, work: str = "work", **options: t.Any) -> dict[str, t.Any]:
        """What the module recover runs; its report, and what it said."""
        given = {"fix": True, "by_person": True, "bootstrap": True, "boot_limit": 2, "wait": 1, "back_off": 0, **options}
        places = {"run_dir": "run", "ledger": "state/ledger.jsonl", "rollout_lock": "rollout.lock"}
        given.update({name: str(self.home / place) for name, place in places.items()})
        code = BY_PERSON.format(work=work, given=given)
        env = {**self.env, "PYTHONPATH": str(self.home / "prefix/lib/hpcguard")}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120, check=True)
        report: dict[str, t.Any] = json.loads(done.stdout)
        return report

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
        simulated.command("--bootstrap", "--wait", "20"),
        env=simulated.env,
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


# --- what is opened again, remembered and published ---

OURS = "IDLE+DRAIN Reason=HC: disk at 90% / [root@2026-12-01T00:00:00]"
REBOOTED = "DOWN BootTime={} Reason=Node unexpectedly rebooted [slurm@2026-12-01T00:00:00]"


def healthy_beat(**changed: str) -> str:
    beat = {"epoch": str(int(time.time())), "verdict": "pass", "good_runs": "2", "undrain_after": "2", **changed}
    return WELL.replace("hpcguard:heartbeat\n", "hpcguard:heartbeat\n" + "".join(f"{key}={value}\n" for key, value in beat.items()))


def test_our_own_drain_is_taken_back_when_the_nodes_check_is_good_again(simulated: Cluster) -> None:
    """By undrain, which leaves DOWN alone; what an administrator drained stays."""
    admins = "IDLE+DRAIN Reason=dimm swap [root@2026-12-01T00:00:00]"
    simulated.nodes("IDLE", admins, OURS)
    shutil.copy(simulated.home / "nodes", simulated.home / "updated")
    simulated.nodes(OURS, admins, OURS)
    simulated.put("look", healthy_beat())
    simulated.put("h3.look", healthy_beat(good_runs="1"))
    done = simulated.run("--fix")
    assert simulated.asked("scontrol update") == ["scontrol update nodename=n1 state=undrain"]
    assert "1/2 节点就绪" in done.stderr
    told = [(one["node"], one["event"], one["layer"]) for one in simulated.ledger()]
    assert told == [("n1", "drained", 1), ("n3", "drained", 1), ("n1", "undrained", 2)]


def boot_time(hours: float) -> str:
    """How scontrol would print a boot so many hours after this machine's."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() - time.monotonic() + hours * 3600))


def test_case_66_the_bootstrap_resumes_what_the_outage_rebooted(simulated: Cluster) -> None:
    """n1 went down with the controller, n2 days before; without --bootstrap neither is resumed."""
    simulated.nodes(REBOOTED.format(boot_time(0)), REBOOTED.format(boot_time(-48)), "DOWN+DRAIN Reason=bad psu [root@2026-12-01T00:00:00]")
    simulated.run("--fix")
    assert simulated.asked("scontrol update") == []
    simulated.run("--bootstrap", "--boot-limit", "0")
    assert simulated.asked("scontrol update") == ["scontrol update nodename=n1 state=resume"]
    assert ("n1", "resumed") in [(one["node"], one["event"]) for one in simulated.ledger()]


def test_the_ledger_is_roots_alone_and_tells_what_brought_a_node_back(simulated: Cluster) -> None:
    simulated.nodes(LOST, "IDLE", OURS, after=("IDLE", "IDLE", OURS))
    simulated.put("h2.look", FAILED)
    for _round in range(3):
        simulated.run("--fix")
    assert [(one["node"], one["event"], one["what"]) for one in simulated.ledger()] == [
        ("n3", "drained", "disk"),
        ("n1", "fixed", "reconfigure"),
        ("n2", "fixed", "start slurmd"),
    ]
    assert (simulated.home / "state").stat().st_mode & 0o777 == 0o700
    assert (simulated.home / "state/ledger.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_run_that_only_looks_writes_no_ledger(simulated: Cluster) -> None:
    simulated.nodes(OURS, LOST)
    simulated.run()
    assert not (simulated.home / "state").exists()


def test_metrics_are_published_also_of_a_run_that_could_not_work(simulated: Cluster) -> None:
    file = simulated.home / "patrol.prom"
    simulated.nodes("IDLE", LOST)
    simulated.run("--metrics", str(file))
    assert "hpcguard_patrol_nodes_ready 1" in file.read_text()
    simulated.put("down")
    simulated.run("--metrics", str(file))
    assert "hpcguard_patrol_fault 1" in file.read_text()
    assert simulated.run("--metrics", "/nonexistent/patrol.prom").returncode == 2
    os.unlink(simulated.home / "down")
    assert simulated.run("--metrics", "/nonexistent/patrol.prom").returncode == 1


@pytest.mark.parametrize(
    ("look", "done"),
    [
        (FAILED.replace("Result=success", "Result=start-limit-hit"), "h1 clear"),
        (FAILED.replace("Result=success", "Result=exit-code"), "h1 start"),
        (
            WELL.replace("active\nSubState=running", "activating\nSubState=start").replace(
                "Result=success", "Type=forking\nExecStart={ argv[]=/usr/sbin/slurmd -D ; }"
            ),
            "h1 correct",
        ),
        (WELL.replace("active\nSubState=running", "activating\nSubState=start-pre\nInactiveExitTimestampMonotonic=1"), "h1 restart"),
        (WELL.replace("accepted", "unmunge: Error: Invalid credential").replace("uptime=", "now=1000\nkey=999\nuptime="), "h1 new-munge"),
    ],
)
def test_each_trouble_of_a_host_meets_its_own_remedy(simulated: Cluster, look: str, done: str) -> None:
    """The clock of the stand-in does not matter here: the last one's is wrong, so it gets the right one."""
    look = look.replace("now=1000\nkey=999", f"now={int(time.time())}\nkey={int(time.time())}")
    simulated.nodes("IDLE")
    simulated.put("h1.look", look)
    simulated.run("--fix")
    assert simulated.touched() == [done]


@pytest.mark.parametrize("options", [("--fix",), ("--bootstrap", "--boot-limit", "0")])
def test_a_wrong_clock_is_named(simulated: Cluster, options: tuple[str, ...]) -> None:
    simulated.nodes("IDLE")
    simulated.put("look", WELL.replace("uptime=", f"now={int(time.time()) - 4000}\nuptime="))
    english = simulated.report(*options)["nodes"]["n1"]["en"]
    assert "its clock is off by -40" in english
    assert simulated.touched() == []


def test_a_node_that_somebody_drains_during_the_look_is_left_alone(simulated: Cluster) -> None:
    """What Slurm says just before the action counts."""
    simulated.nodes("IDLE", "IDLE")
    simulated.put("look", FAILED)
    simulated.nodes("IDLE", "IDLE", after=("IDLE+DRAIN Reason=dimm swap [root@2026-12-01T00:00:00]", "IDLE"))
    looking = (simulated.home / "ssh").read_text()
    (simulated.home / "ssh").write_text(looking.replace("\ncat ", f"\ncp {simulated.home}/after {simulated.home}/nodes\ncat "))
    simulated.run("--fix")
    assert simulated.touched() == ["h2 start"]


# --- controller and network first ---


@pytest.mark.parametrize("trouble", ["fails", "hang"])
def test_with_all_nodes_gone_none_is_touched_and_the_network_is_blamed(simulated: Cluster, trouble: str) -> None:
    simulated.nodes(*[LOST] * 9)
    for number in range(1, 10):
        simulated.put(f"h{number}.{trouble}", "ssh: connect to host: No route to host\n")
    done = simulated.run("--fix", "--json")
    assert json.loads(done.stdout)["suspected"][1] == "9 of 9 nodes are gone at once: rather the controller or network, so none is touched"
    assert "控制节点或网络" in done.stderr
    assert (simulated.touched(), simulated.reconfigures()) == ([], 0)


def test_no_daemon_is_restarted_while_many_are_silent_though_well(simulated: Cluster) -> None:
    """One reconfigure is harmless and may help; the one dead slurmd among them waits."""
    simulated.nodes(*[LOST] * 8, "IDLE")
    simulated.put("h9.look", FAILED)
    for _round in range(2):
        simulated.run("--fix")
    assert (simulated.touched(), simulated.reconfigures()) == ([], 1)


def test_five_hundred_nodes_most_of_them_hanging(simulated: Cluster) -> None:
    """Bounded in time and memory, whatever the number of dead hosts; and none is touched."""
    simulated.nodes(*[LOST] * 300, *["IDLE"] * 200)
    simulated.put("hanging")
    (simulated.home / "ssh").write_text(MANY.format(home=simulated.home, log=simulated.log))
    begun = time.monotonic()
    # the largest of the program and its children, in KiB
    done = simulated.run("--fix", "--json", wrapper=(sys.executable, "-c", MEASURE))
    took = time.monotonic() - begun
    report, peak = done.stdout.rsplit("peak ", 1)
    assert took < 30
    assert int(peak) < 150 * 1024
    found = json.loads(report)
    assert (found["ready"], found["total"]) == (200, 500)
    assert [found["nodes"][name]["action"] for name in ("n1", "n300", "n301", "n500")] == ["wait", "wait", "nothing", "nothing"]
    assert found["suspected"]
    assert (simulated.touched(), simulated.reconfigures()) == ([], 0)


# Of 500 hosts, 1 to 300 hang after the login.
MANY = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
[ "${{2#h}}" -gt 300 ] || exec sleep 60
exec cat {home}/look
"""
MEASURE = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print("peak %d" % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""

# --- bootstrap ---


def dead(enabled: str = "enabled", active: str = "inactive", result: str = "success") -> str:
    return f"LoadState=loaded\nActiveState={active}\nUnitFileState={enabled}\nResult={result}\n"


def starts(simulated: Cluster) -> list[str]:
    return [line.split()[-1] for line in simulated.asked("systemctl") if " start " in line]


def test_the_bootstrap_starts_the_controllers_own_daemons_that_should_run(simulated: Cluster) -> None:
    simulated.nodes("IDLE")
    simulated.put("down")
    for name in ("munge", "slurmctld"):
        simulated.put(f"{name}.service", dead(active="failed", result="start-limit-hit"))
    done = simulated.run("--bootstrap", "--boot-limit", "30")
    assert done.returncode == 0, done.stderr
    assert starts(simulated) == ["munge.service", "slurmctld.service"]
    assert "1/1 节点就绪" in done.stderr
    assert len([line for line in simulated.asked("systemctl") if "reset-failed" in line]) == 2


@pytest.mark.parametrize(
    "show",
    [
        dead(enabled="disabled"),
        dead().replace("loaded", "masked"),
        # it converts its database, and answers nobody meanwhile
        "LoadState=loaded\nActiveState=activating\nUnitFileState=enabled\n",
        "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n",
    ],
)
def test_a_daemon_of_the_controller_that_is_not_meant_to_run_or_is_busy_is_not_started(simulated: Cluster, show: str) -> None:
    simulated.put("down")
    for name in ("munge", "slurmdbd", "slurmctld"):
        simulated.put(f"{name}.service", show)
    assert simulated.run("--bootstrap", "--boot-limit", "2").returncode == 2
    assert starts(simulated) == []


def test_a_bootstrap_that_only_looks_starts_nothing(simulated: Cluster) -> None:
    simulated.put("down")
    simulated.put("slurmctld.service", dead())
    assert simulated.run("--bootstrap", "--dry-run", "--boot-limit", "1").returncode == 2
    assert starts(simulated) == []


def test_the_bootstrap_goes_on_for_nodes_that_boot_late(simulated: Cluster) -> None:
    """The host refuses in the first round and answers in a later one."""
    simulated.nodes("IDLE", LOST, after=("IDLE", "IDLE"))
    simulated.put("h2.fails", "ssh: connect to host h2 port 22: Connection refused\n")
    patrol = subprocess.Popen(simulated.command("--bootstrap", "--boot-limit", "60"), env=simulated.env, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 40
    while not simulated.asked("ssh h2"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.unlink(simulated.home / "h2.fails")
    _out, err = patrol.communicate(timeout=90)
    assert patrol.returncode == 0, err
    assert err.index("1/2 节点就绪") < err.index("2/2 节点就绪")


def test_the_table_is_explained_without_a_cluster(simulated: Cluster) -> None:
    simulated.put("down")
    done = simulated.run("--explain")
    assert done.returncode == 0
    assert "slurmd was stopped on purpose / slurmd 被人为停止" in done.stdout
    assert simulated.asked("") == []


def test_the_credential_is_in_no_command_line_and_in_no_output(simulated: Cluster) -> None:
    simulated.nodes("IDLE", LOST)
    done = simulated.run("--fix", "--json")
    assert "MUNGE" not in done.stdout + done.stderr + simulated.log.read_text()


# --- by order of a person: recover.yml


def test_a_person_is_not_held_back_by_how_many_are_gone(simulated: Cluster) -> None:
    """The same that the patrol blames on the network; its limit of nodes does not count either."""
    simulated.nodes(*[LOST] * 9)
    for number in range(1, 10):
        simulated.put(f"h{number}.look", FAILED)
    assert simulated.run("--fix", "--most", "1").returncode == 1
    assert len(simulated.touched()) == 1
    simulated.by_person(most=1)
    assert {one.split()[0] for one in simulated.touched()} == {f"h{number}" for number in range(1, 10)}


def test_a_person_is_not_held_back_by_earlier_tries(simulated: Cluster) -> None:
    simulated.nodes(LOST, "IDLE")
    tried = {"n1": {"tries": {"start slurmd": [3, int(time.time())]}, "reconfigured": 0, "well": 0, "pending": [], "given_up": True}}
    (simulated.home / "run").mkdir()
    simulated.put("run/patrol.json", json.dumps(tried))
    simulated.put("h1.look", FAILED)
    assert simulated.report("--fix")["nodes"]["n1"]["action"] == node_policy.PERSON
    assert simulated.touched() == []
    simulated.by_person()
    assert simulated.touched() == ["h1 start"]


def test_a_person_resumes_what_rebooted_whenever_that_was_and_nothing_else(simulated: Cluster) -> None:
    old = REBOOTED.format(boot_time(-48))
    simulated.nodes(old, "DOWN+DRAIN Reason=bad psu [root@2026-12-01T00:00:00]", "DOWN Reason=testing [root@2026-12-01T00:00:00]")
    assert simulated.report("--fix")["nodes"]["n1"]["action"] == node_policy.PERSON
    simulated.by_person()
    assert set(simulated.asked("scontrol update")) == {"scontrol update nodename=n1 state=resume"}


def test_a_person_resumes_what_stays_down_for_its_silence_though_it_registered(simulated: Cluster) -> None:
    """As with ReturnToService=0, under which a reconfigure changes nothing; without a person it waits for one."""
    silent = "DOWN Reason=Not responding [slurm@2026-12-01T00:00:00]"
    simulated.nodes(silent, "IDLE", "DOWN Reason=bob: not responding [root@2026-12-01T00:00:00]")
    for _round in range(2):
        assert simulated.report("--fix")["nodes"]["n1"]["done"] == [{"action": "reconfigure", "result": "ok"}][_round:]
    assert simulated.asked("scontrol update") == []
    report = simulated.by_person(boot_limit=15)
    assert [one["action"] for one in report["nodes"]["n1"]["done"]][:2] == ["reconfigure", "resume"]
    assert set(simulated.asked("scontrol update")) == {"scontrol update nodename=n1 state=resume"}


def test_a_boot_forgets_what_was_tried_but_not_what_is_written_down(simulated: Cluster) -> None:
    """After a power cut nothing is held back by what was tried before it; that it was in vain stays in the ledger."""
    simulated.nodes(LOST, "IDLE")
    simulated.put("h1.look", FAILED)
    for _try in range(4):
        simulated.put("h1.look", FAILED)
        simulated.report("--fix", "--back-off", "0")
    assert simulated.touched() == ["h1 start"] * 3
    told = [(one["node"], one["event"]) for one in simulated.ledger()]
    assert told == [("n1", "gave_up")]
    shutil.rmtree(simulated.home / "run")
    simulated.put("h1.look", FAILED)
    simulated.run("--bootstrap", "--boot-limit", "0")
    assert simulated.touched() == ["h1 start"] * 4
    assert [(one["node"], one["event"]) for one in simulated.ledger()] == told


def test_a_person_too_stays_away_from_a_rollout(simulated: Cluster) -> None:
    simulated.nodes(LOST)
    simulated.put("h1.look", FAILED)
    owner = {"process": "1 1", "place": "elsewhere", "who": "root", "doing": "deploy"}
    simulated.put("rollout.lock", rollout_lock.dumps(owner, time.time(), time.time() + 60))
    report = simulated.by_person()
    assert report["acting"] is False
    assert simulated.touched() == []


def test_what_a_person_would_start_is_told_by_a_dry_run_also_while_slurmctld_is_dead(simulated: Cluster) -> None:
    simulated.nodes("IDLE")
    simulated.put("down")
    simulated.put("slurmdbd.service", dead(active="failed"))
    simulated.put("slurmctld.service", dead())
    simulated.put("munge.service", dead().replace("loaded", "masked"))
    told = simulated.by_person(dry_run=True, boot_limit=0)
    assert told["started"] == ["slurmctld.service", "slurmdbd.service"]
    assert [line for line in told["lines"] if "would be started" in line] == [
        "slurmdbd.service: 将启动 / would be started (failed)",
        "slurmctld.service: 将启动 / would be started (inactive)",
    ]
    assert "Unable to contact" in told["fault"]
    assert starts(simulated) == []
    assert simulated.by_person()["started"] == told["started"]
    assert starts(simulated) == ["slurmdbd.service", "slurmctld.service"]


def test_a_dry_run_tells_both_the_daemons_and_the_nodes_where_slurmctld_answers(simulated: Cluster) -> None:
    simulated.nodes("IDLE", "IDLE")
    simulated.put("slurmdbd.service", dead())
    simulated.put("h2.look", FAILED)
    told = simulated.by_person(dry_run=True, boot_limit=0)
    assert (told["started"], told["planning"]) == (["slurmdbd.service"], True)
    assert told["nodes"]["n2"]["action"] == node_policy.START_SLURMD
    assert (starts(simulated), simulated.touched()) == ([], [])


@pytest.mark.parametrize("trouble", ["rollout", "stands by"])
def test_a_dry_run_does_not_promise_what_the_run_would_leave_alone(simulated: Cluster, trouble: str) -> None:
    simulated.nodes("IDLE", "IDLE")
    simulated.put("h2.look", FAILED)
    if trouble == "rollout":
        owner = {"process": "1 1", "place": "elsewhere", "who": "root", "doing": "deploy"}
        simulated.put("rollout.lock", rollout_lock.dumps(owner, time.time(), time.time() + 60))
        simulated.put("slurmdbd.service", dead())
    else:
        simulated.put("ping", pinged("UP", "UP"))
    told = simulated.by_person(dry_run=True, boot_limit=0)
    assert (told["planning"], told["started"]) == (False, [])
    assert any("only looks" in line for line in told["lines"])


# --- a host that has slurmdbd and no slurmctld


def test_munge_and_slurmdbd_of_a_host_of_their_own_are_started(simulated: Cluster) -> None:
    simulated.put("munge.service", dead(active="failed", result="start-limit-hit"))
    for name in ("slurmdbd", "slurmctld"):
        simulated.put(f"{name}.service", dead())
    both = ["munge.service", "slurmdbd.service"]
    told = simulated.by_person("accounting", dry_run=True)
    assert (told["started"], told["remaining"], starts(simulated)) == (both, [], [])
    told = simulated.by_person("accounting", boot_limit=20)
    assert (told["started"], told["remaining"], starts(simulated)) == (both, [], both)
    # in the order in which they have stayed up for long enough
    assert sorted(told["lines"][-2:]) == ["munge.service: active", "slurmdbd.service: active"]
    assert simulated.asked("scontrol") == []


def test_a_slurmdbd_that_does_not_stay_is_told_to_remain(simulated: Cluster) -> None:
    simulated.put("slurmdbd.service", dead())
    simulated.put("again", dead(active="failed", result="exit-code"))
    told = simulated.by_person("accounting")
    assert (told["started"], told["remaining"]) == (["slurmdbd.service"], ["slurmdbd.service: failed (exit-code)"])


@pytest.mark.parametrize(
    ("show", "line"),
    [
        (dead(enabled="disabled"), "inactive, disabled: 不动 / left alone"),
        (dead().replace("loaded", "masked"), "masked"),
        (dead(active="activating"), "activating"),
    ],
)
def test_what_is_not_meant_to_run_or_is_busy_is_left_alone_there_too(simulated: Cluster, show: str, line: str) -> None:
    simulated.put("slurmdbd.service", show)
    told = simulated.by_person("accounting")
    assert (told["started"], told["remaining"], starts(simulated)) == ([], [], [])
    assert told["lines"][-1] == f"slurmdbd.service: {line}"
