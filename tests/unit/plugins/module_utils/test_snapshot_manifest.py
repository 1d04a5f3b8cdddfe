"""Snapshots as data: trust, chains, what may go."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.hpcguard.slurm.plugins.module_utils import snapshot_manifest as manifest

Manifest = dict[str, t.Any]
EMPTY = "0" * 64


def record(path: str, content: str | None) -> dict[str, t.Any]:
    if content is None:
        return {"path": path, "kind": "absent", "part": "scripts", "missing_dirs": []}
    return {"path": path, "kind": "file", "part": "scripts", "sha256": content, "mode": "0644", "uid": 0, "gid": 0, "missing_dirs": []}


def snapshot(name: str, paths: dict[str, str | None], state: str = "sealed", chain: str | None = None, units: t.Any = None) -> Manifest:
    made = manifest.new(name, 0, [record(path, content) for path, content in paths.items()], units or {}, {}, chain)
    made["state"] = state
    return made


def test_a_manifest_reads_back() -> None:
    """What is written is what is read."""
    made = snapshot("1", {"/a": "x"})
    assert manifest.loads(manifest.dumps(made), "1") == made


@pytest.mark.parametrize("harm", [lambda text: text.replace('"/a"', '"/b"'), lambda text: text[:-20], lambda text: "[]", lambda text: None])
def test_a_changed_manifest_is_not_believed(harm: t.Callable[[str], str | None]) -> None:
    """One changed word, half a file, something else, nothing."""
    with pytest.raises(manifest.Damaged):
        manifest.loads(harm(manifest.dumps(snapshot("1", {"/a": "x"}))), "1")


def test_a_manifest_under_another_name_is_not_believed() -> None:
    """A directory that was renamed or copied is no snapshot of that id."""
    with pytest.raises(manifest.Damaged):
        manifest.loads(manifest.dumps(snapshot("1", {})), "2")


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/usr/local/slurm/etc/slurm.conf", "conf"),
        ("/etc/slurm/site.conf", "conf"),
        ("/etc/systemd/system/slurmd.service.d/hpcguard.conf", "units"),
        ("/usr/local/bin/x.sh", "scripts"),
        ("/etc/hpcguard/health_check.conf", "scripts"),
    ],
)
def test_stages_of_a_return(path: str, part: str) -> None:
    """slurm.conf and its includes first, then units, then scripts."""
    assert manifest.part_of(path, ["/etc/slurm/site.conf"]) == part


States = st.dictionaries(st.sampled_from(["/a", "/b", "/c", "/d"]), st.sampled_from([None, "x", "y", "z"]))


@given(start=States, rollouts=st.lists(States, min_size=1, max_size=6), keep=st.integers(1, 6))
def test_going_back_is_the_state_before(start: dict[str, str | None], rollouts: list[dict[str, str | None]], keep: int) -> None:
    """Going back to any snapshot that is kept, or to the chain's first id, gives the state before it; after pruning too."""
    host = dict(start)
    taken: list[Manifest] = []
    states = []
    for number, changes in enumerate(rollouts):
        states.append(dict(host))
        taken.append(snapshot(str(number), {path: host.get(path) for path in changes}, chain="0"))
        host.update(changes)
    gone = manifest.prunable(taken, keep)
    kept = [one for one in taken if one["id"] not in gone]
    for target in {one["id"] for one in kept} | {"0"}:
        result = dict(host)
        for one in manifest.merged(manifest.return_path(kept, target))[0]:
            result[one["path"]] = one.get("sha256")
        wanted = states[int(target)]
        assert {path: text for path, text in result.items() if text} == {path: text for path, text in wanted.items() if text}
    assert kept[-1]["id"] == taken[-1]["id"], "the last good one stays"
    assert len(gone) <= max(0, len(taken) - keep)


def test_what_was_taken_back_is_not_taken_back_again() -> None:
    """A later rollout after a return starts anew; an id that was taken back can be named all the same."""
    first, second, third = snapshot("1", {"/a": "x"}, "rolled_back"), snapshot("2", {"/a": "y"}, "rolled_back"), snapshot("3", {"/b": "z"})
    everything = [third, first, second]
    assert manifest.next_chain(everything) == "3"
    assert manifest.next_chain([first, second]) is None
    assert [one["id"] for one in manifest.return_path(everything, "1")] == ["1", "3"]


def test_changes_of_others() -> None:
    """Neither before nor after; unknown where a rollout was not sealed."""
    first, second = snapshot("1", {"/a": "old"}), snapshot("2", {"/a": "new"})
    first["after"] = {"/a": manifest.fingerprint(record("/a", "new"))}
    second["after"] = {"/a": manifest.fingerprint(record("/a", "newer"))}
    for content, foreign in (("old", []), ("newer", []), ("edited", ["/a"]), (None, ["/a"])):
        assert manifest.foreign([second, first], {"/a": record("/a", content)}) == foreign
    second["after"] = {}
    assert manifest.foreign([second, first], {"/a": record("/a", "edited")}) == []


def test_a_wider_mode_is_a_change() -> None:
    """Owner and mode count as much as content."""
    open_file = {**record("/a", "x"), "mode": "0666"}
    assert manifest.fingerprint(open_file) != manifest.fingerprint(record("/a", "x"))


def test_interrupted_rollouts_stay_and_tell_what_they_meant() -> None:
    """Not pruned, and their actions are folded into the next run."""
    interrupted = snapshot("1", {"/a": "x"}, "taken")
    interrupted["meta"] = {"actions": ["restart_slurmd"]}
    others = [snapshot(str(number), {"/a": "x"}) for number in range(2, 6)]
    assert "1" not in manifest.prunable([interrupted, *others], 1)
    assert manifest.interrupted_since([interrupted, *others]) == interrupted["id"]
    assert manifest.interrupted_since(others) == ""
    assert manifest.interrupted_actions([interrupted, *others]) == ["restart_slurmd"]


def test_units_count_too() -> None:
    """A snapshot that alone knows how a unit was is needed."""
    state = {"load_state": "loaded", "unit_file_state": "disabled", "active_state": "inactive"}
    chain = [
        snapshot("1", {"/a": "x"}),
        snapshot("2", {"/a": "x"}, units={"slurmd.service": state}),
        snapshot("3", {"/a": "x"}),
        snapshot("4", {"/a": "x"}),
    ]
    assert manifest.prunable(chain, 1) == ["3"]
    assert manifest.merged(chain)[1] == {"slurmd.service": state}


def test_what_the_newest_standing_rollout_left_for_later_is_known() -> None:
    first = manifest.new("A", 1, [], {}, {"deferred": ["JobAcctGatherType"]})
    second = manifest.new("B", 2, [], {}, {"deferred": []}, "A")
    first["state"] = "sealed"
    assert manifest.deferred([first, second]) == ["JobAcctGatherType"]
    second["state"] = "sealed"
    assert manifest.deferred([first, second]) == []
    first["state"] = second["state"] = "rolled_back"
    assert manifest.deferred([first, second]) == []
