"""Module daemon on a simulated host: a clock, a systemd and a slurmctld that move together."""

from __future__ import annotations

import time
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders
from ansible_collections.hpcguard.slurm.plugins.modules import daemon as module

from .conftest import Run

START = 1_700_000_000.0


class Host:
    """One unit. After a restart it goes through ``script``: (seconds after the request, properties)."""

    def __init__(self) -> None:
        self.clock = 1000.0
        self.asked: float | None = None
        self.before: dict[str, str] = {
            "LoadState": "loaded",
            "ActiveState": "active",
            "SubState": "running",
            "MainPID": "10",
            "KillMode": "process",
            "NeedDaemonReload": "no",
            "ExecStart": "{ path=/usr/sbin/slurmd ; argv[]=/usr/sbin/slurmd -D ; ignore_errors=no }",
            "ExecMainStartTimestampMonotonic": "100",
            "ConditionTimestampMonotonic": "90",
        }
        self.script: list[tuple[float, dict[str, str]]] = [(0, self.up("20", 200))]
        self.calls: list[list[str]] = []
        self.steps: list[dict[int, tuple[int, str]]] = [{}]
        self.answers_after = 0.0
        self.node_state = "IDLE"
        self.jobs = ""
        self.config = ""
        self.reconfigure_rc = 0

    @staticmethod
    def up(pid: str, stamp: int) -> dict[str, str]:
        return {
            "ActiveState": "active",
            "SubState": "running",
            "MainPID": pid,
            "ExecMainStartTimestampMonotonic": str(stamp),
            "ConditionTimestampMonotonic": str(stamp),
            "ConditionResult": "yes",
        }

    @property
    def since(self) -> float:
        return -1.0 if self.asked is None else self.clock - self.asked

    def sleep(self, seconds: float) -> None:
        self.clock += seconds

    def show(self, unit: str, properties: t.Any = None) -> dict[str, str]:
        shown = dict(self.before)
        for seconds, values in self.script:
            if self.asked is not None and self.since >= seconds:
                shown.update(values)
        return shown

    def systemctl(self, args: list[str], timeout: int = 30) -> loaders.Result:
        self.calls.append(list(args))
        if args[0] == "--no-block":
            self.asked = self.clock
        return loaders.Result(0)

    def scontrol(self, program: str, words: t.Iterable[str], timeout: float, conf: str | None = None) -> loaders.Result:
        args = list(words)
        self.clock += 0.1
        if args[:1] == ["reconfigure"]:
            self.asked = self.clock
            return loaders.Result(self.reconfigure_rc, err="slurm_reconfigure error: bad file")
        if args[:2] == ["show", "config"]:
            return loaders.Result(0, self.config if self.since >= self.answers_after else "SlurmdTimeout = 1 sec\n")
        if args[:3] == ["-o", "show", "job"]:
            return loaders.Result(0, self.jobs)
        if self.since < self.answers_after:
            return loaders.Result(1, err="Unable to contact slurm controller (connect failure)")
        if args[:3] == ["-o", "show", "node"]:
            return loaders.Result(0, f"NodeName=n1 State={self.node_state} SlurmdStartTime={self.slurmd_start} Reason=none")
        return loaders.Result(0, "Slurmctld(primary) at c1 is UP\n")

    @property
    def slurmd_start(self) -> str:
        started = START + (self.asked or 0) - 1000
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(started if self.asked is not None else START - 500))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host()
    monkeypatch.setattr(loaders, "now", lambda: made.clock)
    monkeypatch.setattr(loaders, "systemctl_show", made.show)
    monkeypatch.setattr(loaders, "systemctl", made.systemctl)
    monkeypatch.setattr(loaders, "scontrol", made.scontrol)
    monkeypatch.setattr(loaders, "slurmstepds", lambda: made.steps.pop(0) if len(made.steps) > 1 else made.steps[0])
    monkeypatch.setattr(
        loaders, "run", lambda argv, timeout, **more: loaders.Result(0, "fatal: Failed to initialize jobacct_gather plugin\n")
    )
    monkeypatch.setattr(module.time, "sleep", made.sleep)
    monkeypatch.setattr(module.time, "time", lambda: START + made.clock - 1000)
    return made


def call(run: Run, name: str = "slurmd", action: str = "restart", check: bool = False, **more: t.Any) -> dict[str, t.Any]:
    return run("daemon", check=check, name=name, action=action, node_name="n1", scontrol="/s/scontrol", sacctmgr="/s/sacctmgr", **more)


@pytest.mark.parametrize("name", ["slurmd", "slurmctld", "slurmdbd"])
def test_a_restart_that_works(run_module: Run, host: Host, name: str) -> None:
    """Not before the process has stayed the same for a while and the daemon answers; systemctl is not waited for."""
    host.answers_after = 4
    result = call(run_module, name)
    assert result["changed"] and result["main_pid"] == 20 and 4 <= result["seconds"] < 6
    assert host.calls == [["reset-failed", f"{name}.service"], ["--no-block", "restart", f"{name}.service"]]


def test_check_mode_restarts_nothing(run_module: Run, host: Host) -> None:
    """And foretells the change."""
    assert call(run_module, check=True)["changed"]
    assert call(run_module, "slurmctld", "reconfigure", check=True)["changed"]
    assert host.calls == [] and host.asked is None


def test_start_of_a_running_daemon_is_no_change(run_module: Run, host: Host) -> None:
    """Both in check mode and not."""
    assert not call(run_module, action="start")["changed"]
    assert not call(run_module, action="start", check=True)["changed"]
    assert host.calls == []


def test_start_of_a_failed_daemon(run_module: Run, host: Host) -> None:
    """S80: a start limit that was hit is forgotten first."""
    host.before.update(ActiveState="failed", SubState="failed", MainPID="0")
    assert call(run_module, action="start")["changed"]
    assert host.calls == [["reset-failed", "slurmd.service"], ["--no-block", "start", "slurmd.service"]]


@pytest.mark.parametrize("kill_mode", ["control-group", "mixed", "none", ""])
def test_case_47_slurmd_is_not_restarted_under_a_unit_that_ends_jobs(run_module: Run, host: Host, kill_mode: str) -> None:
    """S25: KillMode in force counts. Refused before anything is done, naming the steps."""
    host.before["KillMode"] = kill_mode
    host.steps = [{77: (5, "7.batch")}]
    result = call(run_module)
    assert result["failed"] and "7.batch" in result["msg"] and host.calls == []
    host.steps = [{}]
    assert call(run_module)["failed"], "not even without steps unless KillMode is set over it"


def test_case_47_jobs_are_kept_over_a_unit_that_would_end_them(
    run_module: Run, host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: t.Any
) -> None:
    """The way back restarts slurmd under the old unit, while jobs run."""
    kept = tmp_path / "slurmd.service.d" / "zz-hpcguard-keep-jobs.conf"
    monkeypatch.setattr(module, "KEEP_JOBS", str(kept))
    host.before["KillMode"] = "control-group"
    host.steps = [{77: (5, "7.batch")}]

    def systemctl(args: list[str], timeout: int = 30) -> loaders.Result:
        if args == ["daemon-reload"]:
            host.before["KillMode"] = "process" if kept.exists() else "control-group"
        if args[-2:-1] == ["restart"]:
            assert host.before["KillMode"] == "process"
        return Host.systemctl(host, args, timeout)

    monkeypatch.setattr(loaders, "systemctl", systemctl)
    assert call(run_module, keep_jobs=True)["changed"]
    assert host.before["KillMode"] == "control-group" and not kept.parent.exists()
    assert call(run_module, keep_jobs=True, check=True)["changed"] and not kept.parent.exists()


def test_case_47_a_unit_that_systemd_has_not_read_is_not_trusted(run_module: Run, host: Host) -> None:
    """S81: KillMode of the file is not KillMode in force."""
    host.before["NeedDaemonReload"] = "yes"
    result = call(run_module)
    assert result["failed"] and "daemon-reload" in result["msg"] and host.calls == []


def test_steps_lost_over_the_restart_are_an_error(run_module: Run, host: Host) -> None:
    """A step that ended by itself meanwhile is none; one that died with slurmd is."""
    host.steps = [{77: (5, "7.batch"), 78: (6, "8.batch")}, {77: (5, "7.batch"), 78: (6, "8.batch")}, {78: (6, "8.batch")}]
    host.jobs = "JobId=7 JobName=x JobState=COMPLETED Reason=None ExitCode=0:0"
    assert call(run_module)["steps"] == {"kept": ["8.batch"], "ended": ["7.batch"], "lost": []}
    host.asked = None
    host.steps = [{77: (5, "7.batch")}, {77: (5, "7.batch")}, {}]
    host.jobs = "JobId=7 JobName=x JobState=FAILED Reason=NonZeroExitCode ExitCode=0:15"
    result = call(run_module)
    assert result["failed"] and "7.batch" in result["msg"]


def test_case_22_a_start_that_a_condition_skipped(run_module: Run, host: Host) -> None:
    """systemctl start returns 0; here it fails at once and says so."""
    host.script = [
        (0, {"ActiveState": "inactive", "SubState": "dead", "MainPID": "0", "ConditionTimestampMonotonic": "200", "ConditionResult": "no"})
    ]
    result = call(run_module, "slurmctld")
    assert result["failed"] and "Condition" in result["msg"] and host.since < 2


def test_case_22_a_daemon_that_dies_after_two_seconds(run_module: Run, host: Host) -> None:
    """Active twice for a moment, never ready: told after the second end, with the daemon's own words, before the time is up."""
    dead = {"ActiveState": "activating", "SubState": "auto-restart", "MainPID": "0", "Result": "exit-code", "ExecMainStatus": "1"}
    host.script = [
        (0, Host.up("20", 200)),
        (1.5, {**dead, "ExecMainExitTimestampMonotonic": "210"}),
        (11.5, Host.up("21", 300)),
        (13, {**dead, "ExecMainExitTimestampMonotonic": "310"}),
    ]
    host.answers_after = 10**6
    result = call(run_module, "slurmctld", timeout=120)
    assert result["failed"] and "Failed to initialize jobacct_gather plugin" in result["msg"]
    assert "status 1" in result["msg"] and host.since < 15
    assert any(line["source"] == "journalctl -u slurmctld.service" for line in result["evidence"])


def test_slurmd_may_die_while_its_controller_is_away(run_module: Run, host: Host) -> None:
    """S30: up to 23.11 slurmd ends and is started again until the controller answers."""
    dead = {"ActiveState": "activating", "SubState": "auto-restart", "MainPID": "0"}
    host.script = []
    for number in range(4):
        host.script += [(number * 15, Host.up(str(20 + number), 200 + 20 * number))]
        host.script += [(number * 15 + 5, {**dead, "ExecMainExitTimestampMonotonic": str(210 + 20 * number)})] if number < 3 else []
    host.answers_after = 40
    assert call(run_module, timeout=120)["main_pid"] == 23


def test_case_22_a_main_process_that_changes_starts_the_clock_again(run_module: Run, host: Host) -> None:
    """Ready means one main process for the settling time."""
    host.script = [(0, Host.up("20", 200)), (1.5, Host.up("21", 300))]
    result = call(run_module, "slurmctld")
    assert result["main_pid"] == 21 and result["seconds"] >= 3.5


def test_case_22_running_but_not_answering_is_not_ready(run_module: Run, host: Host) -> None:
    """S23: bounded by the time limit, with the last question as evidence."""
    host.answers_after = 10**6
    result = call(run_module, "slurmctld", timeout=20)
    assert result["failed"] and "within 20 seconds" in result["msg"] and "connect failure" in result["msg"]
    assert host.since < 22


@pytest.mark.parametrize("node_state", ["IDLE*", "UNKNOWN", "IDLE+INVALID_REG"])
def test_slurmd_must_be_registered(run_module: Run, host: Host, node_state: str) -> None:
    """A node that slurmctld has not heard from is not ready, whatever systemd says."""
    host.node_state = node_state
    result = call(run_module, timeout=10)
    assert result["failed"] and node_state in result["msg"]


def test_slurmd_must_be_registered_since_this_start(run_module: Run, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registration of the slurmd before does not count."""
    monkeypatch.setattr(Host, "slurmd_start", "2023-11-14T00:00:00")
    assert call(run_module, timeout=10)["failed"]


def test_a_drained_node_is_ready(run_module: Run, host: Host) -> None:
    """Somebody's drain is no fault of the daemon."""
    host.node_state = "IDLE+DRAIN"
    assert call(run_module)["node"]["flags"] == ["DRAIN"]


def test_case_105_a_unit_that_is_stopping_is_waited_for(run_module: Run, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started only after the stop has ended, not in the middle of it."""
    host.before.update(ActiveState="deactivating", SubState="stop-sigterm")
    stopped_at = host.clock + 40
    real = host.show

    def show(unit: str, properties: t.Any = None) -> dict[str, str]:
        if host.clock >= stopped_at:
            host.before.update(ActiveState="inactive", SubState="dead", MainPID="0")
        return real(unit)

    monkeypatch.setattr(loaders, "systemctl_show", show)
    assert call(run_module, "slurmctld", "start")["changed"]
    assert host.asked is not None and host.asked >= stopped_at


def test_a_unit_that_is_not_there(run_module: Run, host: Host) -> None:
    """Told as such."""
    host.before.update(LoadState="not-found", ActiveState="inactive", SubState="dead", MainPID="0")
    result = call(run_module)
    assert result["failed"] and "not-found" in result["msg"] and "runs" not in result["msg"] and host.calls == []


def test_case_105_a_daemon_that_runs_though_its_unit_file_is_gone(run_module: Run, host: Host) -> None:
    """Left running: systemd could not start it again. And not told as one that is not installed."""
    host.before["LoadState"] = "not-found"
    result = call(run_module)
    assert result["failed"] and "but runs: the file of the unit is gone" in result["msg"] and host.calls == []


def test_reconfigure_proves_the_loaded_values(run_module: Run, host: Host) -> None:
    """S24, S41: rc 0 is not enough, the values must be there; units are stripped."""
    host.config, host.answers_after = "SlurmdTimeout           = 300 sec\n", 3
    assert call(run_module, "slurmctld", "reconfigure", expect={"slurmdtimeout": 300})["changed"]
    result = call(run_module, "slurmctld", "reconfigure", expect={"SlurmdTimeout": 600}, timeout=10)
    assert result["failed"] and "SlurmdTimeout is 300, wanted 600" in result["msg"]


@pytest.mark.parametrize("action", ["restart", "reconfigure"])
def test_nodes_are_waited_for_and_told(run_module: Run, host: Host, monkeypatch: pytest.MonkeyPatch, action: str) -> None:
    """From 23.11 on nodes are unknown for some seconds afterwards; one that stays away is told and holds nothing up for long."""
    real = host.scontrol

    def scontrol(program: str, words: t.Iterable[str], timeout: float, conf: str | None = None) -> loaders.Result:
        args = list(words)
        if args != ["-o", "show", "node"]:
            return real(program, args, timeout, conf)
        n2 = "IDLE" if host.asked is None or host.since > 9 else "UNKNOWN"
        n3 = "IDLE" if host.asked is None or host.since > back else "IDLE*"
        return loaders.Result(0, f"NodeName=n1 State=DOWN\nNodeName=n2 State={n2}\nNodeName=n3 State={n3}\n")

    monkeypatch.setattr(loaders, "scontrol", scontrol)
    back = 5.0
    assert call(run_module, "slurmctld", action)["nodes_missing"] == []
    assert 9 <= host.since < 11
    host.asked, back = None, 1e9
    assert call(run_module, "slurmctld", action)["nodes_missing"] == ["n3"]
    assert host.since < 36


def test_reconfigure_that_is_refused(run_module: Run, host: Host) -> None:
    """scontrol's own words."""
    host.reconfigure_rc = 1
    result = call(run_module, "slurmctld", "reconfigure")
    assert result["failed"] and "bad file" in result["msg"]


def test_only_the_backup_answers(run_module: Run, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """ping is content with any controller; this one must not be the one that is DOWN."""
    monkeypatch.setattr(module.platform, "node", lambda: "c1.example")
    answer = "Slurmctld(primary) at c1 is DOWN\nSlurmctld(backup) at c2 is UP\n"
    monkeypatch.setattr(loaders, "scontrol", lambda *a, **k: loaders.Result(0, answer))
    assert call(run_module, "slurmctld", timeout=5)["failed"]
    answer = "Slurmctld(primary) at c1 is UP\nSlurmctld(backup) at c2 is DOWN\n"
    host.asked = None
    assert call(run_module, "slurmctld", timeout=5)["changed"]


def test_case_49_a_slurmdbd_that_is_active_and_answers_late_is_waited_for(run_module: Run, host: Host) -> None:
    """Its unit is active at once, it answers after 20 s."""
    host.answers_after = 20
    result = call(run_module, "slurmdbd")
    assert not result["failed"] and 20 <= result["seconds"] < 22


def test_case_49_a_slurmdbd_that_never_answers_fails_in_time(run_module: Run, host: Host) -> None:
    """What restarts slurmctld after it has something to stop at."""
    host.answers_after = 10**6
    result = call(run_module, "slurmdbd", timeout=60)
    assert result["failed"] and "slurmdbd was not ready within 60 seconds" in result["msg"] and "sacctmgr" in result["msg"]
    assert host.since < 62
