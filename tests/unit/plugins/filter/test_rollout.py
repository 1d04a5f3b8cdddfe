"""A phase begins only when every host came through the phases before."""

from __future__ import annotations

from ansible_collections.hpcguard.slurm.plugins.filter.rollout import PHASES, changed_since, node_names, rollout_trouble, snapshot_lines

DONE: dict[str, object] = {"hpcguard_reached": list(PHASES)}


def test_all_through_means_no_trouble() -> None:
    assert rollout_trouble(["c", "n"], {"c": DONE, "n": DONE}, ["n"], "finish") == []


def test_the_first_phase_needs_nothing_before() -> None:
    assert rollout_trouble(["n"], {"n": {"hpcguard_reached": []}}, ["n"], "snapshot") == []


def test_a_controller_takes_no_compute_phase() -> None:
    controller = {"hpcguard_reached": ["snapshot", "stage", "controller"]}
    assert rollout_trouble(["c", "n"], {"c": controller, "n": DONE}, ["n"], "patrol") == []


def test_an_unreachable_host_is_named_with_the_phase_it_missed() -> None:
    lost = {"hpcguard_reached": ["snapshot"]}
    assert rollout_trouble(["n"], {"n": lost}, ["n"], "controller") == ["n: stopped or unreachable in phase stage"]


def test_a_failure_is_told_in_its_own_words() -> None:
    failed = {"hpcguard_reached": ["snapshot"], "hpcguard_failed": "n: disk full"}
    assert rollout_trouble(["n"], {"n": failed}, ["n"], "controller") == ["n: disk full"]


def test_hosts_stopped_by_the_failure_of_another_are_no_news() -> None:
    hostvars: dict[str, dict[str, object]] = {"a": {"hpcguard_failed": "a: disk full"}, "b": {"hpcguard_reached": []}, "c": DONE}
    assert rollout_trouble(["a", "b", "c"], hostvars, ["a", "b", "c"], "finish", ["c"]) == ["a: disk full", "c: unreachable"]


def test_a_host_lost_in_the_present_play_counts_at_once() -> None:
    assert rollout_trouble(["n"], {"n": DONE}, ["n"], "finish", ["n"]) == ["n: unreachable"]


def test_files_changed_by_somebody_are_listed_with_their_host() -> None:
    hostvars = {"a": {"x": {"foreign": ["/etc/s.conf"]}}, "b": {}, "c": {"x": {"foreign": ["/y"]}}}
    assert changed_since(["a", "b"], hostvars, "x") == ["a: /etc/s.conf"]


def test_a_host_that_a_limited_run_leaves_out_has_a_node_name_too() -> None:
    hostvars: dict[str, dict[str, str]] = {"a": {"hpcguard_node_name": "x"}, "b": {"cluster_node_name": "y"}, "c": {}}
    assert node_names(["a", "b", "c"], hostvars) == ["x", "y", "c"]


def test_snapshots_are_listed_in_words() -> None:
    one = {"id": "A", "state": "taken", "problem": "", "paths": ["/x"]}
    assert snapshot_lines([one])[0].startswith("A  was interrupted")
    assert "DAMAGED: checksum" in snapshot_lines([{**one, "state": "damaged", "problem": "checksum"}])[0]
    assert snapshot_lines([]) == ["no snapshot"]
