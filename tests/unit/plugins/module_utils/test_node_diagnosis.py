"""Nodes that take no jobs: why, who acts, whether to resume."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hpcguard.slurm.plugins.module_utils import node_diagnosis, scontrol_text


def explain(state: str, reason: str = "") -> dict[str, t.Any] | None:
    tail = f" Reason={reason} [root@2026-12-01T00:00:00]" if reason else ""
    (node,) = scontrol_text.parse_nodes(f"NodeName=n1 State={state}{tail}")
    found: dict[str, t.Any] | None = node_diagnosis.explain(node)
    return found


@pytest.mark.parametrize(
    ("state", "reason", "cause", "safe"),
    [
        ("DOWN+NOT_RESPONDING", "Not responding", "not_responding", False),
        ("IDLE*", "", "not_responding", False),
        ("DOWN", "Node unexpectedly rebooted", "rebooted", True),
        ("IDLE+DRAIN", "Kill task failed", "kill_task", False),
        ("IDLE+DRAIN", "Prolog error", "prolog_epilog", False),
        ("IDLE+DRAIN", "Low RealMemory (reported:100 < 100.00% of configured:200)", "config_or_hardware", False),
        ("IDLE+DRAIN", "gres/gpu count reported lower than configured (7 < 8)", "config_or_hardware", False),
        ("IDLE+DRAIN", "HC: /tmp not writable", "health_check", False),
        ("MIXED+DRAIN", "bad psu, ask wang", "by_a_person", False),
        ("IDLE+CLOUD+POWERED_DOWN", "", "powered_down", False),
        ("IDLE+MAINTENANCE", "", "maintenance", False),
        ("DOWN+INVALID_REG", "", "invalid", False),
        ("FUTURE", "", "future", False),
    ],
)
def test_causes(state: str, reason: str, cause: str, safe: bool) -> None:
    if "MAINTENANCE" in state:
        state = state.replace("MAINTENANCE", "MAINT")
    found = explain(state, reason)
    assert found and found["id"] == "node_" + cause
    assert (found["cause"]["en"] == "safe to resume") is safe
    assert "down" not in found["remedy"]["en"].lower().replace("powered down", "")


@pytest.mark.parametrize("state", ["IDLE", "MIXED", "ALLOCATED+COMPLETING", "MIXED+PLANNED", "IDLE+RESERVED"])
def test_a_node_that_takes_jobs_is_no_finding(state: str) -> None:
    assert explain(state) is None


def failed(number: int, user: str, node: str = "n3", elapsed: int = 2, minute: int = 0) -> dict[str, t.Any]:
    end = f"2026-12-01T10:{minute:02d}:00"
    return {"id": str(number), "user": user, "node_list": node, "elapsed": elapsed, "state": "FAILED", "end": end}


def test_a_node_that_swallows_the_jobs_of_many() -> None:
    (found,) = node_diagnosis.black_holes([failed(number, f"u{number % 3}", minute=number) for number in range(9)])
    assert found["host"] == "n3" and "state=drain" in found["remedy"]["en"] and "9 jobs of 3 users" in found["evidence"][0]["text"]


@pytest.mark.parametrize(
    "jobs",
    [
        [failed(number, "one") for number in range(9)],
        [failed(number, f"u{number}", elapsed=600) for number in range(9)],
        [failed(number, f"u{number}", node=f"n{number}") for number in range(9)],
        [failed(number, f"u{number}", minute=number * 16 % 60) for number in range(2)],
    ],
    ids=["one user", "after ten minutes", "many nodes", "two"],
)
def test_what_is_no_black_hole(jobs: list[dict[str, t.Any]]) -> None:
    assert node_diagnosis.black_holes(jobs) == []


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=100))
def test_no_text_raises(text: str) -> None:
    for node in scontrol_text.parse_nodes(f"NodeName=n1 State={text} Reason={text}"):
        node_diagnosis.explain(node)
