"""What earlier rounds did: backing off, giving up, and forgetting after a stable hour."""

from __future__ import annotations

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import node_policy, patrol_memory
from ansible_collections.hpcguard.slurm.plugins.module_utils.patrol_memory import Memory

START = node_policy.START_SLURMD
HOUR = 3600


def again(memory: Memory) -> Memory:
    """What the next run reads."""
    return Memory(memory.dumps())


def test_each_try_makes_the_next_wait_twice_as_long() -> None:
    memory = Memory(None)
    for number, wait in enumerate((600, 1200, 2400), 1):
        memory.tried("n1", START, "failed", 10000)
        memory = again(memory)
        assert memory.of("n1", 10000)["tries"] == {START: (number, wait)}
        assert memory.of("n1", 10000 + wait)["tries"] == {START: (number, 0)}
    assert memory.of("n2", 10000)["tries"] == {}


def test_a_clock_that_was_set_back_holds_nobody_off_for_long() -> None:
    memory = Memory(None)
    memory.tried("n1", START, "failed", 10**9)
    assert memory.of("n1", 1000)["tries"] == {START: (1, 600)}


def test_what_brought_a_node_back_is_told_once() -> None:
    memory = Memory(None)
    memory.tried("n1", START, "failed", 1000)
    assert again(memory).settle("n1", False, 1010) is None
    assert memory.settle("n1", True, 1900) == (START, "failed")
    assert memory.settle("n1", True, 1910) is None


def test_a_reconfigure_does_not_take_the_credit_for_what_was_done_to_the_host() -> None:
    """Both in one round: munge was restarted, and slurmctld told to ask the node again."""
    memory = Memory(None)
    memory.tried("n1", "restart munge", "an old key", 1000)
    memory.reconfigured(["n1"], "silent", 1001)
    assert memory.settle("n1", True, 1010) == ("restart munge", "an old key")


def test_all_is_forgotten_after_a_stable_hour_only() -> None:
    memory = Memory(None)
    memory.tried("n1", START, "failed", 1000)
    assert memory.gives_up("n1")
    memory.settle("n1", True, 2000)
    memory.settle("n1", False, 4000)
    memory.settle("n1", True, 5000)
    memory = again(memory)
    memory.settle("n1", True, 5000 + HOUR - 1)
    assert memory.of("n1", 9000)["tries"]
    assert not memory.gives_up("n1")
    memory.settle("n1", True, 5000 + HOUR)
    assert memory.of("n1", 9000)["tries"] == {}
    assert memory.gives_up("n1")


def test_a_reconfigure_counts_until_the_node_is_back_or_for_an_hour() -> None:
    memory = Memory(None)
    memory.reconfigured(["n1", "n2"], "silent", 1000)
    memory.settle("n1", False, 1020)
    assert memory.settle("n2", True, 1020) == (node_policy.RECONFIGURE, "silent")
    memory = again(memory)
    assert memory.of("n1", 1030)["reconfigured"]
    assert not memory.of("n2", 1030)["reconfigured"]
    assert not memory.of("n1", 1000 + HOUR)["reconfigured"]


def test_that_slurmd_was_restarted_is_known_until_all_is_forgotten() -> None:
    memory = Memory(None)
    assert not memory.of("n1", 0)["restarted"]
    memory.tried("n1", node_policy.RESTART_SLURMD, "no gres", 1000)
    assert again(memory).of("n1", 10**6)["restarted"]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{", '{"n1": 3}', '{"n1": {}}', "\x00"),
        '{"n1": {"tries": {"start": [0, 1]}, "reconfigured": 0, "well": 0, "pending": [], "given_up": false}}',
        '{"n1": {"tries": {"start": [1]}, "reconfigured": 0, "well": 0, "pending": [], "given_up": false}}',
        '{"n1": {"tries": {}, "reconfigured": "x", "well": 0, "pending": [], "given_up": false}}',
        '{"n1": {"tries": {}, "reconfigured": 0, "well": 0, "pending": ["one"], "given_up": false}}',
    ],
)
def test_a_damaged_memory_is_none(text: str) -> None:
    assert Memory(text).of("n1", 1000) == {"reconfigured": False, "restarted": False, "tries": {}}


def test_nodes_with_nothing_to_remember_take_no_room() -> None:
    memory = Memory(None)
    memory.settle("n1", False, 1000)
    assert memory.dumps() == "{}"
    assert patrol_memory.STABLE == HOUR
