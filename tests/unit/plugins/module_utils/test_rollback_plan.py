"""Which snapshot a rollback goes to, and what the daemons do then."""

from __future__ import annotations

import typing as t

from ansible_collections.hpcguard.slurm.plugins.module_utils import rollback_plan

Listed = dict[str, dict[str, t.Any]]


def snap(name: str, state: str = "sealed", **meta: t.Any) -> dict[str, t.Any]:
    return {"id": name, "state": state, "problem": "checksum" if state == "damaged" else "", "meta": meta}


def host(*snapshots: dict[str, t.Any], back_to: str | None = None) -> dict[str, t.Any]:
    return {"snapshots": list(snapshots), "back_to": back_to}


TWO: Listed = {
    "c1": host(
        snap("A", actions=["reconfigure", "without_steps"], unsafe_keys=["JobAcctGatherType"]),
        snap("B", actions=["restart_slurmctld"]),
        back_to="A",
    ),
    "n1": host(snap("A", actions=["restart_slurmd"]), back_to="A"),
    "n2": host(),
}


def test_two_rollouts_and_one_way_back_end_before_the_first() -> None:
    assert rollback_plan.target(TWO, "") == "A"
    assert rollback_plan.actions(TWO, "A") == {
        "c1": ["reconfigure", "restart_slurmctld", "without_steps"],
        "n1": ["restart_slurmd"],
    }


def test_the_id_asked_for_is_taken() -> None:
    assert rollback_plan.target(TWO, "B") == "B"
    assert rollback_plan.actions(TWO, "B") == {"c1": ["restart_slurmctld"]}


def test_an_unknown_id_and_an_empty_history_are_refused() -> None:
    for wanted, listed in (("Z", TWO), ("", {"c1": host()})):
        chosen = rollback_plan.target(listed, wanted)
        assert chosen is None
        (found,) = rollback_plan.problems(listed, wanted, chosen, {})
        assert found["title"]["en"] == "nothing to take back"


def test_a_damaged_snapshot_on_the_way_is_refused_and_an_older_one_is_not() -> None:
    listed = {"c1": host(snap("A", "damaged"), snap("B"), back_to="B")}
    assert rollback_plan.problems(listed, "", "B", {}) == []
    (found,) = rollback_plan.problems(listed, "A", "A", {})
    assert found["title"]["en"] == "damaged snapshot"


def test_case_53_old_settings_under_another_major_release_are_refused() -> None:
    listed = {"c1": host(snap("A", slurm_version="20.11.4"), back_to="A")}
    (found,) = rollback_plan.problems(listed, "", "A", {"c1": [23, 11]})
    assert found["title"]["en"] == "another major release of Slurm"
    assert rollback_plan.problems(listed, "", "A", {"c1": [20, 11]}) == []


def test_what_was_taken_back_already_asks_for_nothing() -> None:
    listed = {"c1": host(snap("A", "rolled_back", actions=["reconfigure"]), snap("B", actions=["restart_slurmctld"]))}
    assert rollback_plan.actions(listed, "B") == {"c1": ["restart_slurmctld"]}


def test_a_host_that_is_back_already_has_nothing_to_do_unless_the_id_is_named() -> None:
    listed = {"c1": host(snap("A", actions=["reconfigure"]), back_to="A"), "n1": host(snap("A", "rolled_back", actions=["restart_slurmd"]))}
    assert rollback_plan.actions(listed, "A") == {"c1": ["reconfigure"]}
    assert rollback_plan.actions(listed, "A", named=True) == {"c1": ["reconfigure"], "n1": ["restart_slurmd"]}


def test_running_jobs_refuse_or_keep_the_unsafe_key() -> None:
    job = {"id": "1", "name": "a", "user": "u", "state": "RUNNING", "nodes": "n1"}
    keys = rollback_plan.unsafe_keys(TWO, "A")
    assert keys == ["JobAcctGatherType"]
    (found,) = rollback_plan.job_problems(keys, [job], "refuse")
    assert "JobAcctGatherType" in found["cause"]
    assert rollback_plan.kept_keys(keys, [job], "defer") == keys
    assert rollback_plan.kept_keys(keys, [], "defer") == []
    assert rollback_plan.job_problems(keys, [], "refuse") == []
