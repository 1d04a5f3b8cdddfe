"""One list of everything that stands against a rollout."""

from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import finding, preflight

FACT: dict[str, t.Any] = {
    "slurm": {"version": "22.05.8", "release": [22, 5], "bin": {"scontrol": "/usr/bin/scontrol"}},
    "conf": {"mode": "configless"},
    "munge": True,
    "free_mb": 1000,
    "units": {"slurmd": {"load_state": "loaded", "active_state": "active", "main_pid": 9}},
}
VIEW: dict[str, t.Any] = {
    "ping": True,
    "config": {"AccountingStorageType": "accounting_storage/slurmdbd", "ClusterName": "lab"},
    "nodes": [{"name": "n1", "state": "IDLE", "base": "IDLE", "flags": [], "reason": ""}],
    "jobs": [],
    "cluster_registered": True,
}


def host(**parts: t.Any) -> dict[str, t.Any]:
    return {**copy.deepcopy(FACT), **parts}


def controller(**parts: t.Any) -> dict[str, t.Any]:
    return host(controller={**copy.deepcopy(VIEW), **parts})


def test_a_healthy_host_has_no_problem() -> None:
    assert preflight.host_problems("n1", FACT, ["slurm_compute"]) == []


@pytest.mark.parametrize(
    ("fact", "title"),
    [
        (None, "host unreachable"),
        (host(slurm={"version": "", "release": [], "bin": {"scontrol": None}}), "Slurm not found"),
        (host(slurm={"version": "19.05.1", "release": [19, 5], "bin": {"scontrol": "/x"}}), "unsupported Slurm release"),
        (host(conf={"mode": "none"}), "no slurm.conf"),
        (host(munge=False), "munge does not work"),
        (host(free_mb=3), "no room for a snapshot"),
        (host(units={}), "no slurmd unit"),
    ],
)
def test_each_host_problem_is_named_with_a_remedy(fact: dict[str, t.Any] | None, title: str) -> None:
    (found,) = preflight.host_problems("n1", fact, ["slurm_compute"])
    assert found["title"]["en"] == title
    assert found["severity"] == "error"
    assert found["remedy"]


def test_all_problems_of_a_host_come_at_once() -> None:
    assert len(preflight.host_problems("n1", host(munge=False, free_mb=1, conf={"mode": "none"}), ["slurm_compute"])) == 3


@pytest.mark.parametrize(
    ("fact", "title"),
    [
        (host(controller=None), "slurmctld does not answer"),
        (controller(ping=False), "slurmctld does not answer"),
        (controller(cluster_registered=False), "cluster not registered with slurmdbd"),
        (controller(nodes=[]), "unknown node"),
        (
            controller(nodes=[{"name": "n1", "state": "DOWN", "base": "DOWN", "flags": [], "reason": "Not responding"}]),
            "node out of service",
        ),
        (
            controller(nodes=[{"name": "n1", "state": "IDLE*", "base": "IDLE", "flags": ["NOT_RESPONDING"], "reason": ""}]),
            "node out of service",
        ),
    ],
)
def test_each_controller_problem(fact: dict[str, t.Any], title: str) -> None:
    (found,) = preflight.controller_problems("c1", fact, ["n1"])
    assert found["title"]["en"] == title


def test_a_node_drained_by_its_administrator_stands_against_nothing() -> None:
    drained = {"name": "n1", "state": "IDLE+DRAIN", "base": "IDLE", "flags": ["DRAIN"], "reason": "dimm"}
    assert preflight.controller_problems("c1", controller(nodes=[drained]), ["n1"]) == []


def test_a_cluster_without_accounting_needs_no_registration() -> None:
    fact = controller(cluster_registered=False, config={"AccountingStorageType": "(null)"})
    assert preflight.controller_problems("c1", fact, ["n1"]) == []


def test_running_jobs_are_named_with_the_setting_that_is_unsafe() -> None:
    change = {
        "host": "c1",
        "thing": "slurm.conf:JobAcctGatherType",
        "from": "jobacct_gather/none",
        "to": "jobacct_gather/cgroup",
        "class": "restart_without_steps",
    }
    job = {"id": "42", "name": "md", "user": "ann", "state": "RUNNING", "nodes": "n[1-3]"}
    (found,) = preflight.job_problems([change], [job], "refuse")
    assert "JobAcctGatherType" in found["cause"]
    assert "42 (md, ann, on n[1-3])" in found["cause"]
    # once, however many hosts have a slurm.conf of their own
    assert preflight.job_problems([change, {**change, "host": "n1"}, {**change, "host": "n2"}], [job], "refuse") == [found]
    assert preflight.job_problems([change], [job], "defer") == []
    assert preflight.job_problems([change], [], "refuse") == []


def test_a_slurm_conf_that_the_operator_names_and_is_not_there_is_named() -> None:
    (found,) = preflight.host_problems("c1", host(conf={"mode": "none", "given": "/nowhere/slurm.conf"}), [])
    assert "/nowhere/slurm.conf" in found["cause"]


STILL_DUE = {"c1": ["restart_slurmctld", "without_steps"], "n1": ["restart_slurmd"]}
JOB = {"id": "42", "name": "md\x1b[2J", "user": "ann", "state": "RUNNING", "nodes": "n1"}
UNSAFE = {"host": "c1", "thing": "slurm.conf:JobAcctGatherType", "from": "a", "to": "b", "class": "restart_without_steps"}


def test_an_interrupted_rollout_is_not_finished_under_running_jobs() -> None:
    for policy in ("refuse", "defer"):
        (found,) = preflight.interrupted_problems(STILL_DUE, [], [JOB], policy)
        assert "42" in found["cause"]
    assert preflight.interrupted_problems(STILL_DUE, [], [JOB], "drain") == []
    assert preflight.interrupted_problems(STILL_DUE, [], [], "refuse") == []
    assert preflight.interrupted_problems({"n1": ["restart_slurmd"]}, [], [JOB], "refuse") == []
    # told already, as a change of this rollout
    assert preflight.interrupted_problems(STILL_DUE, [UNSAFE], [JOB], "refuse") == []


@pytest.mark.parametrize(
    ("base", "flags", "count"),
    [("IDLE", [], 1), ("MIXED", [], 1), ("IDLE", ["DRAIN"], 0), ("IDLE", ["NOT_RESPONDING"], 0), ("DOWN", [], 0)],
)
def test_a_limited_run_leaves_no_node_in_service_out_of_what_concerns_all(base: str, flags: list[str], count: int) -> None:
    nodes = [{"name": "nodename9", "base": base, "flags": flags}]
    assert len(preflight.limited_problems(STILL_DUE, ["n9"], nodes, {"n9": "nodename9"})) == count
    assert preflight.limited_problems({"n1": ["restart_slurmd"]}, ["n9"], nodes, {"n9": "nodename9"}) == []


def test_a_job_name_sends_nothing_to_the_terminal() -> None:
    lines = finding.describe(preflight.job_problems([UNSAFE], [JOB], "refuse"))
    assert "\x1b" not in "".join(lines)


def test_a_host_with_only_slurmdbd_needs_neither_scontrol_nor_slurm_conf() -> None:
    units = {"slurmdbd": {"load_state": "loaded", "active_state": "active", "main_pid": 5}}
    fact = host(slurm={"version": "22.05.8", "release": [22, 5], "bin": {"scontrol": None}}, conf={"mode": "none"}, units=units)
    assert preflight.host_problems("d", fact, ["slurm_dbd"]) == []
    assert len(preflight.host_problems("d", fact, ["slurm_controller", "slurm_dbd"])) == 1


def test_a_daemon_that_systemd_does_not_run_is_refused() -> None:
    """Started by hand it would hold port 6817 when the unit is restarted."""
    units = {"slurmctld": {"load_state": "loaded", "active_state": "failed", "main_pid": 0}}
    (found,) = preflight.host_problems("c", host(units=units), ["slurm_controller"])
    assert "slurmctld.service is failed" in found["cause"]


def test_another_run_is_named() -> None:
    (found,) = preflight.lock_problems({"c": {"busy": "deploy by root on adm1"}, "n": None, "m": {"skipped": True}, "o": {"busy": ""}})
    assert found["host"] == "c" and "deploy by root on adm1" in found["cause"]


RESTART = {"n": ["restart_slurmd"]}
HELD = {"id": "1", "state": "RUNNING", "name": "x", "user": "u", "nodes": "n"}


@pytest.mark.parametrize(
    ("timeout", "wanted", "seconds"),
    [("300 sec", 120, 120), ("200 sec", 120, 90), ("0 sec", 120, 120), ("300 sec", 10, 10), ("", 120, 120)],
)
def test_slurmd_is_never_away_for_as_long_as_slurmdtimeout(timeout: str, wanted: int, seconds: int) -> None:
    """It may have to be brought back, which takes as long again."""
    assert preflight.ready_timeout(wanted, {"SlurmdTimeout": timeout}, [], RESTART, [HELD]) == (seconds, [])


def test_a_new_slurmdtimeout_counts_as_well() -> None:
    change = {"thing": "slurm.conf:SlurmdTimeout", "to": "100", "class": "reconfigure"}
    assert preflight.ready_timeout(120, {"SlurmdTimeout": "300 sec"}, [change], RESTART, [HELD])[0] == 40


def test_a_slurmdtimeout_that_leaves_no_time_is_refused_while_jobs_run() -> None:
    config = {"SlurmdTimeout": "60 sec"}
    _seconds, (found,) = preflight.ready_timeout(120, config, [], RESTART, [HELD])
    assert "60 s" in found["cause"]
    assert preflight.ready_timeout(120, config, [], RESTART, []) == (30, [])
    assert preflight.ready_timeout(120, config, [], {}, [HELD]) == (120, [])


LEFT_OVER = {"mode": "configless", "path": None, "left_over": "/etc/slurm/slurm.conf"}


def test_case_24_a_left_over_slurm_conf_warns_and_stops_nothing() -> None:
    """slurmd runs with the controller's file, the health check's scontrol reads the stale one."""
    (found,) = preflight.host_problems("n1", host(conf=LEFT_OVER), ["slurm_compute"])
    assert (found["severity"], found["file"]) == ("warning", "/etc/slurm/slurm.conf")
    assert "/etc/slurm/slurm.conf" in found["cause"] and "client commands" in found["cause"]
    assert preflight.host_problems("n1", host(conf={**LEFT_OVER, "left_over": None}), ["slurm_compute"]) == []


def test_case_30_a_host_without_configuration_is_told_where_one_comes_from() -> None:
    """A login node that was put among the compute nodes: told to take it out, and nothing would start slurmd."""
    found = preflight.host_problems("login", host(conf={"mode": "none"}, units={}), ["slurm_compute"])
    assert [one["title"]["en"] for one in found] == ["no slurm.conf", "no slurmd unit"]
    for source in ("--conf-server", "SLURM_CONF_SERVER", "SRV", "sackd"):
        assert source in found[0]["remedy"]
    assert "take the host out of the group" in found[1]["remedy"]


@pytest.mark.parametrize(("group", "daemon"), preflight.DAEMONS.items())
def test_case_105_a_daemon_without_its_unit_file_is_not_called_missing(group: str, daemon: str) -> None:
    units = {daemon: {"load_state": "not-found", "active_state": "active", "main_pid": 77}}
    (found,) = preflight.host_problems("h", host(units=units), [group])
    assert found["title"]["en"] == "the unit file is gone"
    assert f"{daemon} runs (process 77)" in found["cause"] and "install" not in found["remedy"]


def test_case_97_a_host_without_slurmd_is_one_line_of_the_list() -> None:
    """Whatever systemd says of a unit that it does not know."""
    for units in ({}, {"slurmd": {"load_state": "not-found", "active_state": "inactive", "main_pid": 0}}):
        (found,) = preflight.host_problems("n1", host(units=units), ["slurm_compute"])
        assert (found["severity"], found["title"]["en"]) == ("error", "no slurmd unit")
