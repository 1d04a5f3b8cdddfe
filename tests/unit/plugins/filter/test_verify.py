"""Which node the crash test takes, and which settings verify may see."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hpcguard.slurm.plugins.filter.verify import verify_crash_host, verify_settings

LOOKED_AT: dict[str, t.Any] = {"__verify_node": {"evidence": {}}}


def controllers(**states: str) -> dict[str, t.Any]:
    nodes = [{"name": name, "base": state.split("+")[0], "flags": state.split("+")[1:]} for name, state in states.items()]
    return {"results": [{"item": "gone", "unreachable": True}, {"item": "c1", "evidence": {"nodes": {"list": nodes}}}]}


@pytest.mark.parametrize(
    ("states", "chosen"),
    [
        ({"n1": "ALLOCATED", "n2": "IDLE", "n3": "IDLE"}, "n2"),
        ({"n1": "ALLOCATED", "n2": "MIXED", "n3": "IDLE+DRAIN"}, "n1"),
        ({"n1": "IDLE+NOT_RESPONDING", "n2": "DOWN", "n3": "IDLE"}, "n3"),
        ({"n1": "IDLE+DRAIN", "n2": "DOWN", "n3": "UNKNOWN"}, ""),
        ({}, ""),
    ],
)
def test_an_idle_node_is_preferred_and_a_flagged_one_never_taken(states: dict[str, str], chosen: str) -> None:
    hostvars = dict.fromkeys(("n1", "n2", "n3"), LOOKED_AT)
    assert verify_crash_host(controllers(**states), hostvars, ["n1", "n2", "n3"]) == chosen


def test_the_operators_choice_stands() -> None:
    assert verify_crash_host(controllers(n1="IDLE", n2="ALLOCATED"), {}, ["n1", "n2"], "n2") == "n2"
    with pytest.raises(AnsibleFilterError, match="n9 is no compute host"):
        verify_crash_host(controllers(n1="IDLE"), {}, ["n1", "n2"], "n9")


def test_a_host_that_did_not_answer_or_is_not_in_this_run_is_not_taken() -> None:
    hostvars = {"n1": {"__verify_node": {"unreachable": True}}, "n2": LOOKED_AT, "n3": LOOKED_AT}
    assert verify_crash_host(controllers(n1="IDLE", n2="IDLE", n3="IDLE"), hostvars, ["n1", "n2"]) == "n2"


def test_a_host_may_bear_another_name_than_its_node() -> None:
    hostvars = {"host-a": {**LOOKED_AT, "cluster_node_name": "n7"}}
    assert verify_crash_host(controllers(n7="IDLE"), hostvars, ["host-a"]) == "host-a"


def test_no_controller_no_choice() -> None:
    assert verify_crash_host({"results": [{"item": "c1", "evidence": {"error": "gone"}}]}, {"n1": LOOKED_AT}, ["n1"]) == ""
    assert verify_crash_host({"skipped": True}, {"n1": LOOKED_AT}, ["n1"]) == ""


def test_secrets_and_what_stays_as_it_is_are_left_out() -> None:
    wanted = {"returntoservice": 2, "JobCompPass": "secret1", "HealthCheckInterval": 300, "DefMemPerCPU": 1024}
    assert verify_settings(wanted, ["healthcheckinterval"]) == {"ReturnToService": 2}
