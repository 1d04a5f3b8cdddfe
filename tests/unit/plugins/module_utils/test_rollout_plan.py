"""Which daemons a plan touches, what is unsafe under jobs, and what is left for later."""

from __future__ import annotations

import typing as t

from ansible_collections.hpcguard.slurm.plugins.module_utils import rollout_plan

Change = dict[str, t.Any]
CTL, NODES = ["c1"], ["n1", "n2"]
RUNNING = {"id": "7", "name": "md", "user": "ann", "state": "RUNNING", "nodes": "n1"}


def change(thing: str, kind: str, host: str = "c1") -> Change:
    return {"host": host, "thing": thing, "from": "a", "to": "b", "class": kind, "reason": "r", "source": "s"}


GATHER = change("slurm.conf:JobAcctGatherType", "restart_without_steps")
RETURN = change("slurm.conf:ReturnToService", "reconfigure")
UNIT = change("file:/etc/systemd/system/slurmd.service", "restart_slurmd", "n1")


def test_reconfigure_is_enough_where_nothing_asks_for_more() -> None:
    assert rollout_plan.actions([RETURN], CTL, NODES) == {"c1": ["reconfigure"]}


def test_what_is_unsafe_under_steps_restarts_both_daemons_and_hands_the_file_out() -> None:
    assert rollout_plan.actions([RETURN, GATHER], CTL, NODES) == {
        "c1": ["reconfigure", "restart_slurmctld", "without_steps"],
        "n1": ["restart_slurmd"],
        "n2": ["restart_slurmd"],
    }


def on(host: str, one: Change) -> Change:
    return dict(one, host=host)


def test_the_same_change_in_the_file_of_every_host_acts_as_one() -> None:
    """Without configless every node has a slurm.conf, and one reconfigure makes all of them read it."""
    hosts = ["c1", "b1", *NODES]
    assert rollout_plan.actions([on(host, RETURN) for host in hosts], ["c1", "b1"], NODES) == {"c1": ["reconfigure"], "b1": ["reconfigure"]}
    both = rollout_plan.actions([on(host, GATHER) for host in hosts], ["c1", "b1"], NODES)
    assert both == {
        **{host: ["reconfigure", "restart_slurmctld", "without_steps"] for host in ("c1", "b1")},
        **{host: ["restart_slurmd"] for host in NODES},
    }


def test_a_node_with_an_old_file_of_its_own_costs_the_others_nothing() -> None:
    """It was left out of an earlier run: only its slurmd has something to take in."""
    assert rollout_plan.actions([on("n2", RETURN)], CTL, NODES) == {"c1": ["reconfigure"]}
    assert rollout_plan.actions([on("n2", GATHER)], CTL, NODES) == {"c1": ["reconfigure", "without_steps"], "n2": ["restart_slurmd"]}
    key = change("slurm.conf:SlurmctldPort", "restart_slurmctld", "n2")
    assert rollout_plan.actions([key], CTL, NODES) == {"c1": ["reconfigure"]}


def test_without_a_controller_in_the_run_a_restart_makes_slurmd_read_its_own_file() -> None:
    """Nobody of the run can tell slurmctld to reconfigure, and the node would go on with the old values."""
    assert rollout_plan.actions([on("n2", RETURN), on("n2", GATHER)], [], ["n2"]) == {"n2": ["restart_slurmd"]}


def test_a_unit_restarts_its_own_host_only() -> None:
    assert rollout_plan.actions([UNIT], CTL, NODES) == {"n1": ["restart_slurmd"]}


def test_scripts_and_reloads_restart_nothing() -> None:
    assert rollout_plan.actions([change("file:/x", "none"), change("file:/y.service", "reload_units")], CTL, NODES) == {}


def test_no_job_no_danger() -> None:
    assert rollout_plan.unsafe_changes([GATHER], []) == []
    assert rollout_plan.unsafe_changes([GATHER], [dict(RUNNING, state="PENDING")]) == []


def test_each_state_that_may_hold_steps_is_danger() -> None:
    for state in rollout_plan.STATES_WITH_STEPS:
        assert rollout_plan.unsafe_changes([GATHER, RETURN], [dict(RUNNING, state=state)]) == [GATHER]


def test_defer_leaves_out_exactly_the_unsafe_keys() -> None:
    keys = rollout_plan.deferred_keys([GATHER, RETURN], [RUNNING], "defer")
    assert keys == ["JobAcctGatherType"]
    assert rollout_plan.without_keys([GATHER, RETURN, UNIT], keys) == [RETURN, UNIT]


def test_other_policies_and_idle_clusters_defer_nothing() -> None:
    assert rollout_plan.deferred_keys([GATHER], [RUNNING], "refuse") == []
    assert rollout_plan.deferred_keys([GATHER], [RUNNING], "drain") == []
    assert rollout_plan.deferred_keys([GATHER], [], "defer") == []


def test_an_interrupted_rollout_is_finished_and_a_host_with_nothing_to_do_stays_out() -> None:
    assert rollout_plan.merged_actions({"c1": ["reconfigure"]}, {"n2": [], "c1": ["restart_slurmctld"], "n1": ["restart_slurmd"]}) == {
        "c1": ["reconfigure", "restart_slurmctld"],
        "n1": ["restart_slurmd"],
    }


def test_the_plan_is_readable_and_groups_equal_changes() -> None:
    lines = rollout_plan.describe([UNIT, dict(UNIT, host="n2")], {"n1": ["restart_slurmd"], "n2": ["restart_slurmd"]}, ["X"])
    assert lines[0] == "file:/etc/systemd/system/slurmd.service  [restart_slurmd]"
    assert "    on     n1, n2" in lines
    assert "slurm.conf:X  [deferred: jobs are running]" in lines
    assert lines[-1] == "restart slurmd on n1, n2"
