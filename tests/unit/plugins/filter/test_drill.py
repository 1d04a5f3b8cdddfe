"""What stands against a drill."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.filter import drill

Vars = dict[str, t.Any]
SCRIPT = "/usr/local/bin/slurm_health_check.sh"
WELL: Vars = {"name": "n1", "state": "IDLE", "base": "IDLE", "flags": []}
ILL: Vars = {"name": "n2\x1b[2J", "state": "DOWN+NOT_RESPONDING", "base": "DOWN", "flags": ["NOT_RESPONDING"]}


def view(*nodes: Vars, program: str = SCRIPT, ping: bool = True) -> Vars:
    return {"ping": ping, "config": {"HealthCheckProgram": program}, "nodes": list(nodes)}


@pytest.mark.parametrize(
    ("seen", "exercise", "running", "busy", "told"),
    [
        (view(WELL), "slurmd_crash", [], "refuse", []),
        (view(ping=False), "slurmd_crash", [], "refuse", ["does not answer"]),
        (view(WELL, program="(null)"), "slurmd_crash", [], "refuse", ["run deploy.yml first"]),
        (view(WELL, ILL), "slurmd_crash", [], "refuse", ["not in service: n2 DOWN+NOT_RESPONDING"]),
        (view(WELL), "slurmd_crash", ["7"], "refuse", ["jobs are running: 7: -e drill_busy_nodes=allow"]),
        (view(WELL), "slurmd_crash", ["7"], "allow", []),
        (view(WELL), "cold_start", ["7"], "allow", ["wait for them"]),
        (view(ILL, program=""), "cold_start", ["7"], "refuse", ["run deploy.yml first", "not in service", "wait for them"]),
    ],
)
def test_everything_that_stands_against_a_drill_is_told_at_once(
    seen: Vars, exercise: str, running: list[str], busy: str, told: list[str]
) -> None:
    problems = drill.drill_problems(seen, [exercise], SCRIPT, running, busy)
    assert len(problems) == len(told)
    assert all(words in problem for words, problem in zip(told, problems, strict=True))


def test_only_what_runs_is_stopped_and_only_what_was_in_service_is_waited_for() -> None:
    units = {"slurmd": {"active_state": "failed"}, "slurmctld": {"active_state": "active"}, "munge": {"active_state": "active"}}
    assert drill.running_units(units) == ["slurmctld.service"]
    assert drill.nodes_in_service([WELL, ILL]) == ["n1"]


def test_who_is_at_work_and_who_is_not_reached_stands_against_a_drill_too() -> None:
    problems = drill.drill_problems(view(ping=False), ["slurmd_crash"], SCRIPT, [], "refuse", "deploy by \x1b[2Jroot", ["n7", "n8"])
    assert len(problems) == 3 and "at work: deploy by root" in problems[0] and problems[1].endswith("n7, n8")


WAIT = "/usr/local/bin/wait-for-slurmctld.sh"
WANTED: Vars = {"restart": "always", "wait": "auto", "wait_script": WAIT}


def fact(release: tuple[int, int] = (22, 5), **unit: t.Any) -> Vars:
    slurmd = {"kill_mode": "process", "restart": "always", "need_daemon_reload": False, "exec_start_pre": [{"path": WAIT}], **unit}
    return {"hpcguard_cluster": {"units": {"slurmd": slurmd}, "slurm": {"release": list(release)}}}


@pytest.mark.parametrize(
    ("seen", "wanted", "told"),
    [
        (fact(), {}, []),
        ({}, {}, []),  # not reached: that is told anyway
        (fact(kill_mode="control-group"), {}, ["KillMode=control-group: n1"]),
        (fact(restart="no"), {}, ["Restart=no: n1"]),
        (fact(restart="no"), {"restart": "no"}, []),
        (fact(need_daemon_reload=True), {}, ["daemon-reload: n1"]),
        (fact(exec_start_pre=[]), {}, [f"ExecStartPre={WAIT}: n1"]),
        (fact(exec_start_pre=[{"path": "/bin/true"}]), {}, [f"ExecStartPre={WAIT}: n1"]),
        # slurmd waits by itself, or is told to, or nobody wants it to
        (fact((24, 5), exec_start_pre=[]), {}, []),
        (fact((24, 5), exec_start_pre=[]), {"wait": True}, [f"ExecStartPre={WAIT}: n1"]),
        (fact(exec_start_pre=[]), {"wait": "false"}, []),
        (fact(kill_mode="mixed", restart="no"), {}, ["KillMode=mixed", "Restart=no"]),
    ],
)
def test_a_node_whose_unit_is_not_the_standards_stands_against_a_drill(seen: Vars, wanted: Vars, told: list[str]) -> None:
    problems = drill.drill_unit_problems(["n1"], {"n1": seen}, {**WANTED, **wanted})
    assert len(problems) == len(told)
    assert all(words in problem and "deploy.yml" in problem for words, problem in zip(told, problems, strict=True))


@pytest.mark.parametrize(
    ("registered", "well"),
    [
        ({}, True),
        ({"n1": {"__drill_slurmd_crash": {"skipped": True}}}, True),
        ({"n1": {"__drill_slurmd_crash": {"outcome": "recovered"}}}, True),
        ({"n1": {"__drill_slurmd_crash": {"outcome": "failed"}}}, False),
        ({"n1": {"__drill_health_check": {"outcome": "refused"}}}, False),
        ({"c1": {"__drill_controller_restart": {"failed": True, "msg": "no python"}}}, False),
    ],
)
def test_once_something_did_not_come_back_nothing_more_is_broken(registered: Vars, well: bool) -> None:
    assert drill.gone_well(["n1", "c1"], {"n1": {}, "c1": {}, **registered}) is well
