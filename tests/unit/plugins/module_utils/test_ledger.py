"""The ledger: bounded, tolerant of damage, one entry for a node that flaps."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import ledger

Entry = dict[str, t.Any]
HOUR = 3600


def one(time: int, node: str, event: str, layer: int = 1, what: str = "disk", why: str = "HC: disk at 90% /") -> Entry:
    return ledger.entry(time, node, event, layer, what, why)


def events(entries: list[Entry]) -> list[tuple[int, str, str]]:
    return [(each["time"], each["node"], each["event"]) for each in entries]


def test_what_is_written_is_read() -> None:
    entries = [one(1, "n1", "drained"), one(2, "n1", "fixed", 2, "start slurmd", "失败")]
    assert ledger.loads(ledger.dumps(entries)) == entries


@pytest.mark.parametrize(
    "damage",
    [
        *("", "{", "[]", "3", "null", "\x00\xff", '{"time": 1}', '{"event": "drained"}'),
        *(json.dumps({**one(1, "n", "fixed"), "event": "mischief"}), json.dumps({**one(1, "n", "fixed"), "time": "x"})),
        *(json.dumps({**one(1, "n", "fixed"), "time": float("inf")}), json.dumps({**one(1, "n", "fixed"), "layer": None})),
    ],
)
def test_damaged_lines_are_left_out(damage: str) -> None:
    whole = ledger.dumps([one(1, "n1", "drained")])
    assert events(ledger.loads(whole + damage + "\n" + whole)) == [(1, "n1", "drained")] * 2
    assert ledger.loads(None) == []


def test_it_is_bounded_in_entries_and_bytes_and_the_oldest_go() -> None:
    many = [one(number, "n1", "fixed") for number in range(5000)]
    kept = ledger.loads(ledger.dumps(many))
    assert len(kept) == ledger.MOST_ENTRIES
    assert kept[-1]["time"] == 4999
    long = [one(number, "n" * 100, "fixed", 2, "w" * 100, "节" * 300) for number in range(2000)]
    text = ledger.dumps(long)
    assert 0 < len(text) <= ledger.MOST_BYTES
    assert ledger.loads(text)[-1]["time"] == 1999


def test_hostile_text_is_made_harmless() -> None:
    entry = one(1, "n1\x1b[31m", "drained", why="a\nb\x07" + "x" * 1000)
    assert "\x1b" not in entry["node"]
    assert "\n" not in entry["why"]
    assert len(entry["why"]) <= 300


def test_a_drain_and_its_end_seen_by_comparing_rounds() -> None:
    entries = ledger.compare([], {"n1": "HC: disk at 90% /"}, 100, {"n1", "n2"})
    assert entries == [one(100, "n1", "drained")]
    # another reason, or the same one, is no new drain
    assert ledger.compare(entries, {"n1": "HC: mounts missing /data"}, 1000, {"n1", "n2"}) == entries
    after = ledger.compare(entries, {}, 2000, {"n1", "n2"})
    assert events(after)[1:] == [(2000, "n1", "undrained")]
    assert ledger.compare(after, {}, 3000, {"n1", "n2"}) == after


def test_nodes_that_were_not_asked_about_are_not_called_undrained() -> None:
    entries = ledger.compare([], {"n1": "HC: disk", "n2": "HC: disk"}, 100, {"n1", "n2"})
    assert events(ledger.compare(entries, {}, 200, {"n2"}))[2:] == [(200, "n2", "undrained")]


def test_a_flapping_node_is_one_entry_not_one_an_interval() -> None:
    entries: list[Entry] = [one(0, "n2", "drained")]
    for round_number in range(1, 20):
        drains = {"n2": "HC: disk", **({"n1": "HC: mounts stale /home"} if round_number % 2 else {})}
        entries = ledger.compare(entries, drains, round_number * 900, {"n1", "n2"})
    assert events(entries) == [(0, "n2", "drained"), (900, "n1", "drained")]
    # its end stands once it has lasted
    entries = ledger.compare(entries, {"n2": "HC: disk"}, 20 * 900, {"n1", "n2"})
    entries = ledger.compare(entries, {"n1": "HC: disk", "n2": "HC: disk"}, 20 * 900 + HOUR, {"n1", "n2"})
    assert [each[2] for each in events(entries) if each[1] == "n1"] == ["drained", "undrained", "drained"]


def test_an_end_that_layer_2_made_goes_on_too_when_the_drain_comes_back() -> None:
    entries = ledger.note([one(0, "n1", "drained")], one(100, "n1", "undrained", 2, "undrain", "good again"))
    assert ledger.drained(entries) == {}
    assert events(ledger.compare(entries, {"n1": "HC: disk"}, 200, {"n1"})) == [(0, "n1", "drained")]
