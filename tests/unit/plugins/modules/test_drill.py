"""Module drill on a simulated node: its health check, a systemd that keeps promises, and a slurmctld that may be silent."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders
from ansible_collections.hpcguard.slurm.plugins.modules import drill as module

from .conftest import Run

NODE = "NodeName=n1 State={state} Reason={reason}\n"


class Node:
    """Its health check drains it while the flag is there, and opens it again in the second good run."""

    def __init__(self, flag: pathlib.Path) -> None:
        self.clock = 1000.0
        self.flag = flag
        self.state = "IDLE"
        self.reason = "none"
        self.good_runs = 0
        self.silent = 0  # so many answers fail once the flag is gone
        self.was_drained = False
        self.kill_mode = "process"
        self.calls: list[list[str]] = []

    def sleep(self, seconds: float) -> None:
        self.clock += seconds

    def run(self, argv: list[str], timeout: float, stdin: str = "") -> loaders.Result:
        self.clock += 1
        if "slurm_health_check" not in argv[-1]:
            self.calls.append(argv)
        elif self.flag.exists():
            self.state, self.good_runs, self.was_drained = "IDLE+DRAIN", 0, True
            self.reason = "HC: root_writable forced [root@2026-12-01T10:00:00]"
        else:
            self.good_runs += 1
            if self.good_runs > 1:
                self.state = "IDLE"
        return loaders.Result(0)

    def scontrol(self, program: str, words: t.Iterable[str], timeout: float, conf: str | None = None) -> loaders.Result:
        if self.silent and self.was_drained and not self.flag.exists():
            self.silent -= 1
            return loaders.Result(1, err="Unable to contact slurm controller")
        return loaders.Result(0, NODE.format(state=self.state, reason=self.reason))

    def systemctl(self, args: list[str], timeout: int = 30) -> loaders.Result:
        self.calls.append(["systemctl", *args])
        return loaders.Result(0)

    def show(self, unit: str, properties: t.Any = None) -> dict[str, str]:
        return {"KillMode": self.kill_mode}


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Node:
    made = Node(tmp_path / "force")
    monkeypatch.setattr(loaders, "now", lambda: made.clock)
    monkeypatch.setattr(loaders, "run", made.run)
    monkeypatch.setattr(loaders, "scontrol", made.scontrol)
    monkeypatch.setattr(loaders, "systemctl", made.systemctl)
    monkeypatch.setattr(loaders, "systemctl_show", made.show)
    monkeypatch.setattr(loaders, "write_atomic", lambda path, content: pathlib.Path(path).write_bytes(content))
    monkeypatch.setattr(module.time, "sleep", made.sleep)
    return made


def health_check(run: Run, node: Node, **more: t.Any) -> dict[str, t.Any]:
    return run("drill", exercise="health_check", node_name="n1", flag=str(node.flag), timeout=60, **more)


def test_the_node_is_drained_and_opened_again_and_systemd_would_have_taken_the_flag_away(run_module: Run, node: Node) -> None:
    result = health_check(run_module, node)
    assert (result["outcome"], set(result["seconds"])) == ("recovered", {"drained", "opened"})
    assert node.state == "IDLE" and not node.flag.exists()
    assert next(call for call in node.calls if call[0] == "systemd-run")[-3:] == ["rm", "-f", str(node.flag)]


@pytest.mark.parametrize(("silent", "outcome"), [(1, "recovered"), (1000, "failed")])
def test_a_controller_that_does_not_answer_has_not_opened_the_node(run_module: Run, node: Node, silent: int, outcome: str) -> None:
    node.silent = silent
    result = health_check(run_module, node)
    assert (result["outcome"], node.state) == (outcome, "IDLE")
    assert ("opened" in result["seconds"]) is (outcome == "recovered")


def test_who_drains_it_meanwhile_keeps_it(run_module: Run, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def somebody(argv: list[str], timeout: float, stdin: str = "") -> loaders.Result:
        node.state, node.reason = "IDLE+DRAIN", "dimm swap"
        return loaders.Result(0)

    monkeypatch.setattr(loaders, "run", somebody)
    result = health_check(run_module, node)
    assert result["outcome"] == "failed" and "somebody else" in result["reason"]
    assert (node.state, node.flag.exists()) == ("IDLE+DRAIN", False)


@pytest.mark.parametrize(("state", "more", "told"), [("IDLE", {"undrain_after": 0}, "nobody would open"), ("IDLE+DRAIN", {}, "left alone")])
def test_a_node_that_would_stay_closed_is_not_touched(run_module: Run, node: Node, state: str, more: t.Any, told: str) -> None:
    node.state = state
    result = health_check(run_module, node, **more)
    assert (result["outcome"], result["changed"], node.calls) == ("refused", False, [])
    assert told in result["reason"]


@pytest.mark.parametrize("kill_mode", ["process", "control-group"])
def test_an_outage_stops_no_slurmd_whose_jobs_would_end_with_it(run_module: Run, node: Node, kill_mode: str) -> None:
    node.kill_mode = kill_mode
    result = run_module("drill", exercise="outage", units=["slurmdbd.service", "slurmd.service"])
    if kill_mode == "process":
        assert result["outcome"] == "begun"
        # the promise comes before the deed
        assert [call[0] for call in node.calls if "reset-failed" not in call][-2:] == ["systemd-run", "systemctl"]
        assert node.calls[-1] == ["systemctl", "stop", "slurmd.service", "slurmdbd.service"]
    else:
        assert (result["outcome"], result["changed"], node.calls) == ("refused", False, [])


# --- the controller's restart

JOB = "JobId={} JobState={} Restarts={} StartTime=2026-12-01T10:00:00\n"
RUNNING = JOB.format(7, "RUNNING", 0)


class Controller:
    """slurmctld: whether a restart makes another process, who answers the ping, and what becomes of the jobs."""

    def __init__(self) -> None:
        self.clock = 1000.0
        self.pid = "100"
        self.jobs = RUNNING
        self.after = {"pid": "200", "ping": "Slurmctld(primary) at c1 is UP\n", "jobs": RUNNING}
        self.restarted = False
        self.jobs_fail = False

    def sleep(self, seconds: float) -> None:
        self.clock += seconds

    def scontrol(self, program: str, words: list[str], timeout: float, conf: str | None = None) -> loaders.Result:
        self.clock += 1
        if "job" in words:
            return loaders.Result(int(self.jobs_fail), self.after["jobs"] if self.restarted else self.jobs)
        return loaders.Result(0, self.after["ping"] if words == ["ping"] else NODE.format(state="IDLE", reason="none"))

    def systemctl(self, args: list[str], timeout: int = 30) -> loaders.Result:
        assert args == ["restart", "slurmctld.service"]
        self.restarted, self.pid = True, self.after["pid"]
        return loaders.Result(0)

    def show(self, unit: str, properties: t.Any = None) -> dict[str, str]:
        return {"MainPID": self.pid, "ActiveState": "active"}


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Controller:
    made = Controller()
    monkeypatch.setattr(loaders, "now", lambda: made.clock)
    monkeypatch.setattr(loaders, "scontrol", made.scontrol)
    monkeypatch.setattr(loaders, "systemctl", made.systemctl)
    monkeypatch.setattr(loaders, "systemctl_show", made.show)
    monkeypatch.setattr(module.time, "sleep", made.sleep)
    monkeypatch.setattr(module.platform, "node", lambda: "c1.example.org")
    return made


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ({}, ""),
        ({"jobs": JOB.format(7, "COMPLETED", 0)}, ""),
        ({"jobs": JOB.format(7, "RUNNING", 0).replace("T10:", "T11:")}, "jobs did not survive: 7"),
        ({"jobs": JOB.format(7, "RUNNING", 1)}, "jobs did not survive: 7"),
        ({"jobs": JOB.format(7, "PENDING", 1)}, "jobs did not survive: 7"),
        ({"jobs": JOB.format(7, "NODE_FAIL", 0)}, "jobs did not survive: 7"),
        ({"jobs": "No jobs in the system\n"}, "jobs did not survive: 7"),
        # every node is in service, but as the old process says, or another controller
        ({"pid": "100"}, "not within 60 s: slurmctld answers"),
        ({"ping": "Slurmctld(primary) at c1 is DOWN\nSlurmctld(backup) at c2 is UP\n"}, "not within 60 s: slurmctld answers"),
    ],
)
def test_a_restarted_controller_is_another_process_that_answers_and_has_its_jobs(
    run_module: Run, controller: Controller, after: dict[str, str], told: str
) -> None:
    controller.after.update(after)
    result = run_module("drill", exercise="restart", nodes=["n1"], timeout=60)
    assert (result["outcome"], result["reason"]) == ("failed" if told else "recovered", told)
    assert result["jobs"] == (0 if told else 1)


def test_a_controller_that_does_not_tell_its_jobs_is_not_restarted(run_module: Run, controller: Controller) -> None:
    controller.jobs_fail = True
    result = run_module("drill", exercise="restart", nodes=["n1"])
    assert (result["outcome"], result["changed"], controller.restarted) == ("refused", False, False)
