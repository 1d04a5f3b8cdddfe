"""The one screen of status.yml, from what the hosts showed."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import quantities
from ansible_collections.hpcguard.slurm.plugins.module_utils.text_columns import width_of
from ansible_collections.hpcguard.slurm.plugins.plugin_utils import cluster_status

Vars = dict[str, t.Any]
GROUPS = {"slurm_controller": ["c1"], "slurm_dbd": ["c1"], "slurm_compute": ["n1", "n2", "n3"]}


def unit(active: str = "active", sub: str = "running", enabled: str = "enabled", loaded: str = "loaded") -> Vars:
    return {"active_state": active, "sub_state": sub, "unit_file_state": enabled, "load_state": loaded}


def node(name: str, state: str = "IDLE", reason: str = "", user: str = "") -> Vars:
    base, *flags = state.split("+")
    return {
        "name": name,
        "state": state,
        "base": base,
        "flags": flags,
        "reason": reason,
        "reason_user": user,
        "reason_time": "2026-12-01T03:00:00" if reason else "",
    }


def host(**more: t.Any) -> Vars:
    units = {name: unit() for name in ("munge", "slurmd", "slurmctld", "slurmdbd")}
    fact: Vars = {"slurm": {"version": "22.05.8"}, "units": units, "interrupted": [], "deferred": [], "controller": None}
    look: Vars = {"health": {"verdict": "pass", "failed": "", "action": "keep", "age": 20}, "snapshot": None, "patrol": None, "ledger": []}
    fact.update({key: value for key, value in more.items() if key in fact})
    look.update({key: value for key, value in more.items() if key not in fact})
    return {"cluster": fact, **look}


def controller(*nodes: Vars, ping: bool = True, **more: t.Any) -> Vars:
    config = {"ClusterName": "hpc", "HealthCheckInterval": "300 sec", "ReturnToService": "2", "AuthInfo": "secret"} if ping else {}
    view = {"ping": ping, "error": "" if ping else "slurm_load_ctl_conf error", "config": config, "nodes": list(nodes), "jobs": []}
    patrol = {"enabled": "enabled", "active": "active/waiting", "next": 300, "result": "success"}
    return host(controller=view, **{"patrol": patrol, **more})


def text_of(seen: Vars, columns: int = 100) -> tuple[Vars, str, str]:
    status = {"finished": "2026-12-01T04:00:00+0000", **cluster_status.build(seen, GROUPS)}
    lines = cluster_status.screen(status, columns)
    assert max(width_of(line) for line, _mood in lines) <= columns
    return status, "\n".join(line for line, _mood in lines), "\n".join(line for line, mood in lines if mood == "bad")


def test_a_cluster_that_is_well_shows_nothing_bad() -> None:
    nodes = [node("n1"), node("n2", "MIXED+PLANNED"), node("n3", "ALLOCATED")]
    status, text, bad = text_of({"c1": controller(*nodes), "n1": host(), "n2": host(), "n3": host()})
    assert bad == ""
    assert "3/3 节点就绪" in text and "n[1-3]" in text
    assert status["settings"] == {"HealthCheckInterval": "300", "ReturnToService": "2"}
    assert status["health"] == {"pass": ["n1", "n2", "n3"]}


def test_what_is_out_of_service_is_told_with_its_author_and_folded() -> None:
    nodes = [
        node("n1", "IDLE+DRAIN", "dimm swap", "alice"),
        node("n2", "IDLE+DRAIN", "dimm swap", "alice"),
        node("n3", "DOWN+NOT_RESPONDING", "Not responding", "slurm"),
    ]
    _status, _text, bad = text_of({"c1": controller(*nodes), "n1": host(), "n2": host(), "n3": host()})
    assert "0/3 节点就绪" in bad
    assert "n[1-2]: IDLE+DRAIN dimm swap [alice@2026-12-01T03:00:00]" in bad
    assert "n3: DOWN+NOT_RESPONDING Not responding" in bad


@pytest.mark.parametrize("state", ["IDLE+MAINTENANCE", "IDLE+FAIL", "UNKNOWN", "IDLE+POWERED_DOWN", "IDLE+NOT_RESPONDING", "FUTURE"])
def test_a_node_that_takes_no_jobs_is_not_in_service(state: str) -> None:
    assert text_of({"c1": controller(node("n1", state))})[0]["nodes"]["in_service"] == 0


@pytest.mark.parametrize(
    ("health", "verdict"),
    [
        (None, "none"),
        ({"verdict": "pass", "failed": "", "age": 2 * 300 + cluster_status.LATE}, "pass"),
        ({"verdict": "pass", "failed": "", "age": 2 * 300 + cluster_status.LATE + 1}, "late"),
        ({"verdict": "fail", "failed": "disk", "age": 5}, "failed: disk"),
    ],
)
def test_the_last_health_check(health: Vars | None, verdict: str) -> None:
    seen = {"c1": controller(node("n1")), "n1": host(health=health)}
    assert text_of(seen)[0]["health"] == {verdict: ["n1"]}


def test_hosts_and_controllers_that_do_not_answer_are_named() -> None:
    status, _text, bad = text_of({"c1": controller(ping=False), "n1": {"cluster": None}, "n2": host()})
    assert "n1" in bad.splitlines()[0] and "c1: 不应答 does not answer: slurm_load_ctl_conf error" in bad
    assert status["not_reached"] == ["n1"] and status["settings"] == {}


@pytest.mark.parametrize("seen", [{"c1": controller(ping=False), "n1": host()}, {"c1": {"cluster": None}, "n1": host()}])
def test_nodes_that_nobody_was_asked_about_are_unknown_not_well(seen: Vars) -> None:
    _status, text, bad = text_of(seen)
    assert "no slurmctld answers" in bad and "节点就绪" not in text


def test_a_controller_that_knows_no_node_is_not_well() -> None:
    assert "0/0 节点就绪" in text_of({"c1": controller()})[2]


def test_services_that_do_not_run_and_a_patrol_that_never_comes_are_bad() -> None:
    sick = host()
    sick["cluster"]["units"] = {"munge": unit("failed", "failed"), "slurmd": unit("inactive", "dead", "disabled")}
    patrol = {"enabled": "disabled", "active": "active/elapsed", "next": None, "result": "timeout"}
    _status, _text, bad = text_of({"c1": controller(node("n1"), patrol=patrol), "n1": sick})
    assert "failed/failed: n1" in bad and "inactive/dead (disabled): n1" in bad
    assert "never again" in bad and "timeout" in bad


def test_a_patrol_at_work_has_no_next_time_and_is_well() -> None:
    patrol = {"enabled": "enabled", "active": "active/running", "next": None, "result": "success"}
    _status, text, bad = text_of({"c1": controller(node("n1"), patrol=patrol)})
    assert "at work now" in text and "never again" not in text and bad == ""


def test_what_a_rollout_and_the_layers_left() -> None:
    entry = {"time": 1700000000, "node": "n1", "event": "fixed", "layer": 2, "what": "start munge", "why": "munge does not run"}
    snapshot = {"id": "20261201T0000Z-a", "state": "taken", "created": ""}
    seen = {
        "c1": controller(node("n1"), interrupted=["restart slurmctld"], deferred=["JobAcctGatherType"], snapshot=snapshot, ledger=[entry])
    }
    status, text, bad = text_of(seen)
    assert status["rollout"] == {"newest": {"20261201T0000Z-a taken": ["c1"]}, "interrupted": ["c1"], "deferred": ["JobAcctGatherType"]}
    assert "c1: deploy.yml 完成或 rollback.yml 撤销" in bad and "JobAcctGatherType: deploy.yml" in bad
    assert "2023-11-14T22:13Z" in text and "n1 fixed (layer 2): start munge: munge does not run" in text


def test_no_text_of_the_cluster_steers_the_terminal_and_no_secret_is_shown() -> None:
    hostile = node("n1", "IDLE+DRAIN", "a\x1b[2Jb\u202ec\nd", "e\x07")
    status, text, _bad = text_of({"c1": controller(hostile), "n1": host(health={"verdict": "fail", "failed": "disk", "age": 1})})
    assert not set("\x1b\x07\u202e").intersection(text) and "secret" not in str(status)


def test_three_thousand_nodes_are_a_few_lines() -> None:
    names = [f"node{number:04d}" for number in range(3000)]
    groups = {**GROUPS, "slurm_compute": names}
    seen = {
        "c1": controller(*(node(name, "DOWN" if name == "node1500" else "IDLE", "bad psu" if name == "node1500" else "") for name in names))
    }
    seen.update({name: host() for name in names})
    lines = cluster_status.screen({"finished": "", **cluster_status.build(seen, groups)}, 100)
    assert len(lines) < 40
    assert any("2999/3000" in line for line, _mood in lines) and any("node1500: DOWN bad psu" in line for line, _mood in lines)


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["login"], "login"),
        (["n1", "n3", "n2"], "n[1-3]"),
        (["n09", "n10", "n7"], "n7,n[09-10]"),
        (["r1n2-ib", "r1n3-ib", "r2n2-ib"], "r1n[2-3]-ib,r2n2-ib"),
    ],
)
def test_names_are_folded_and_unfold_to_the_same(names: list[str], folded: str) -> None:
    assert quantities.fold(names) == folded
    assert sorted(quantities.hosts(folded)) == sorted(names)
