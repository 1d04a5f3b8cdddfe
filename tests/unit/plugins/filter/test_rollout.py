"""A phase begins only when every host came through the phases before."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import yaml

from ansible_collections.hpcguard.slurm.plugins.filter.rollout import (
    PHASES,
    ROLES,
    allowed_failures,
    changed_since,
    node_names,
    not_done,
    rollout_batches,
    rollout_disproved,
    rollout_left_behind,
    rollout_outcome,
    rollout_tagged,
    rollout_trouble,
    snapshot_lines,
)

DONE: dict[str, t.Any] = {"hpcguard_reached": list(PHASES)}
STAGED: dict[str, t.Any] = {"hpcguard_reached": ["snapshot", "stage", "controller"]}
FAILED: dict[str, t.Any] = {**STAGED, "hpcguard_failed": "n: slurmd does not start"}
GROUPS = {"slurm_controller": ["c"], "slurm_compute": ["n", "m", "o"]}


def test_all_through_means_no_trouble() -> None:
    assert rollout_trouble(["c", "n"], {"c": DONE, "n": DONE}, GROUPS, "finish") == []


def test_the_first_phase_needs_nothing_before() -> None:
    assert rollout_trouble(["n"], {"n": {"hpcguard_reached": []}}, GROUPS, "snapshot") == []


def test_a_controller_takes_no_compute_phase() -> None:
    assert rollout_trouble(["c", "n"], {"c": STAGED, "n": DONE}, GROUPS, "patrol") == []


def test_an_unreachable_host_is_named_with_the_phase_it_missed() -> None:
    lost = {"hpcguard_reached": ["snapshot"]}
    assert rollout_trouble(["n"], {"n": lost}, GROUPS, "controller") == ["n: stopped or unreachable in phase stage"]


def test_a_failure_is_told_in_its_own_words() -> None:
    failed = {"hpcguard_reached": ["snapshot"], "hpcguard_failed": "n: disk full"}
    assert rollout_trouble(["n"], {"n": failed}, GROUPS, "controller") == ["n: disk full"]


def test_hosts_stopped_by_the_failure_of_another_are_no_news() -> None:
    hostvars: dict[str, dict[str, t.Any]] = {"n": {"hpcguard_failed": "n: disk full"}, "m": {"hpcguard_reached": []}, "o": DONE}
    assert rollout_trouble(["n", "m", "o"], hostvars, GROUPS, "finish", ["o"]) == ["n: disk full", "o: unreachable"]


def test_a_host_lost_in_the_present_play_counts_at_once() -> None:
    assert rollout_trouble(["n"], {"n": DONE}, GROUPS, "finish", ["n"]) == ["n: unreachable"]


@pytest.mark.parametrize(
    ("limit", "nodes", "allowed"), [(0, 3000, 0), ("0", 3000, 0), (2, 3, 2), ("1%", 3000, 30), ("10%", 9, 0), (" 50% ", 5, 2)]
)
def test_the_failure_limit_is_a_number_or_a_share_of_the_nodes(limit: int | str, nodes: int, allowed: int) -> None:
    assert allowed_failures(limit, nodes) == allowed


@pytest.mark.parametrize(
    ("given", "batches"), [([1, "10%"], [1, "10%"]), ("[3]", [3]), ("3", [3]), ("25%", ["25%"]), (5, [5]), (["2", " 50% "], [2, "50%"])]
)
def test_batches_may_come_from_the_command_line(given: t.Any, batches: list[t.Any]) -> None:
    assert rollout_batches(given) == batches


@pytest.mark.parametrize("given", [[], "", 0, "[a]", [0], ["-1"], "1,2", [True], {"a": 1}, ["10 %%"], None])
def test_batches_that_ansible_would_stumble_over_are_refused(given: t.Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        rollout_batches(given)


@pytest.mark.parametrize("phase", ["compute", "patrol", "prove", "finish"])
def test_the_failure_limit_lets_a_node_fail_alone(phase: str) -> None:
    hosts, hostvars = ["c", "n", "m"], {"c": DONE, "n": FAILED, "m": DONE}
    assert rollout_trouble(hosts, hostvars, GROUPS, phase, limit=1) == []
    assert rollout_left_behind(hosts, hostvars, GROUPS, phase, limit=1) == ["n"]
    assert rollout_trouble(hosts, hostvars, GROUPS, phase) == ["n: slurmd does not start"]


def test_one_failure_more_than_the_limit_brings_everything_back() -> None:
    hostvars = {"c": DONE, "n": FAILED, "m": {**FAILED, "hpcguard_failed": "m: too"}, "o": DONE}
    assert rollout_trouble(list(hostvars), hostvars, GROUPS, "patrol", limit=1) == ["n: slurmd does not start", "m: too"]
    assert rollout_left_behind(list(hostvars), hostvars, GROUPS, "patrol", limit=1) == []


def test_a_node_lost_in_its_own_phase_is_left_behind_too() -> None:
    hostvars = {"c": DONE, "n": STAGED, "m": DONE}
    assert rollout_left_behind(list(hostvars), hostvars, GROUPS, "patrol", limit=1) == ["n"]


def test_nodes_of_a_later_batch_have_not_failed() -> None:
    hostvars = {"c": STAGED, "n": DONE, "m": STAGED, "o": STAGED}
    assert rollout_left_behind(list(hostvars), hostvars, GROUPS, "compute", ["m"], limit=1) == ["m"]
    assert rollout_trouble(list(hostvars), hostvars, GROUPS, "compute", ["m"], limit=1) == []


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({**FAILED, "hpcguard_stop": True}, id="the cluster is not well"),
        pytest.param({**FAILED, "hpcguard_reached": ["snapshot"]}, id="it failed before its own phase"),
        pytest.param({**DONE, "hpcguard_failed": "n: the checklist"}, id="it failed after its own phase"),
    ],
)
def test_the_limit_is_for_nodes_that_fail_in_their_own_phase(variables: dict[str, t.Any]) -> None:
    assert rollout_left_behind(["c", "n"], {"c": DONE, "n": variables}, GROUPS, "finish", limit=1) == []
    assert rollout_trouble(["c", "n"], {"c": DONE, "n": variables}, GROUPS, "finish", limit=1)


def test_the_limit_is_not_for_the_controller() -> None:
    groups = {**GROUPS, "slurm_compute": ["c", "n"]}
    assert rollout_left_behind(["c", "n"], {"c": FAILED, "n": DONE}, groups, "patrol", limit=1) == []


@pytest.mark.parametrize(
    ("tags", "skipped", "left"),
    [
        (["all"], [], ["slurmctld", "slurm_conf", "patrol"]),
        (["patrol"], [], ["patrol"]),
        (["all"], ["slurm_conf"], ["slurmctld", "patrol"]),
        (["health_check"], [], []),
    ],
)
def test_tags_choose_roles_by_name(tags: list[str], skipped: list[str], left: list[str]) -> None:
    assert rollout_tagged(["slurmctld", "slurm_conf", "patrol"], tags, skipped) == left


def failed(*items: tuple[int, str]) -> list[dict[str, t.Any]]:
    return [{"item": item, "host": host, "text": f"{item} on {host}"} for item, host in items]


def test_a_whole_run_answers_for_every_item() -> None:
    assert len(rollout_disproved(failed((1, "c"), (5, "n"), (8, "n"), (7, "c"), (6, "c")), ["c", "n"], ROLES)) == 5


def test_a_run_limited_to_a_node_answers_for_the_node() -> None:
    """The controller may still be as it was, so slurmctld has run no health check on the node."""
    seen = failed((1, "c"), (7, "c"), (5, "n"), (2, "n"), (9, "n"), (8, "n"), (9, "m"))
    assert rollout_disproved(seen, ["n"], ["health_check", "slurmd"]) == ["9 on n", "8 on n"]


def test_a_run_limited_to_a_role_answers_for_that_role() -> None:
    seen = failed((1, "c"), (3, "n"), (7, "c"), (8, "c"), (8, "n"))
    assert rollout_disproved(seen, ["c", "n"], ["patrol"], ["patrol"]) == ["7 on c"]
    assert rollout_disproved(seen, ["c", "n"], ["health_check"], ["health_check"]) == ["3 on n"]


PLAN = {"id": "R1"}


def test_a_rollout_that_stands_everywhere_has_nothing_to_say() -> None:
    assert rollout_outcome(PLAN, {"n": DONE}, ["n"], [], [], []) == ""


def test_a_failed_rollout_says_why_and_how_it_left_each_host() -> None:
    hostvars = {"c": {**DONE, "hpcguard_undone": ["c: slurmctld does not start"]}, "n": DONE, "m": DONE, "o": {"hpcguard_reached": []}}
    text = rollout_outcome(PLAN, hostvars, list(hostvars), ["n: disk full"], [], ["m"])
    assert text.splitlines() == [
        "The rollout R1 failed.",
        "cause: n: disk full",
        "taken back on: n",
        "NOT wholly taken back, run playbooks/rollback.yml when this is mended:",
        "  c: slurmctld does not start",
        "not reached any more, the next deploy or rollback puts them right: m",
    ]


def test_a_rollout_that_left_nodes_behind_says_which() -> None:
    text = rollout_outcome(PLAN, {"n": FAILED, "m": STAGED, "c": DONE}, ["c", "n", "m"], [], ["n", "m"], ["m"])
    assert text.startswith("The rollout R1 stands, but not everywhere.")
    assert "left out: n: slurmd does not start" in text
    assert "left out: m: unreachable" in text


def test_a_host_lost_at_the_very_end_is_told() -> None:
    assert "m" in rollout_outcome(PLAN, {"n": DONE, "m": DONE}, ["n", "m"], [], [], ["m"])


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


def test_hosts_that_a_task_was_lost_on_are_told_from_those_that_had_nothing_to_do() -> None:
    results = {"a": {"failed": True}, "b": {"unreachable": True}, "c": {"changed": True}, "d": {"skipped": True, "changed": False}}
    hostvars: dict[str, dict[str, t.Any]] = {**{host: {"r": result} for host, result in results.items()}, "e": {}}
    assert not_done("abcde", hostvars, "r") == ["a", "b"]


# --- the order of the phases --------------------------------------------------------------------

COLLECTION = pathlib.Path(__file__).resolve().parents[4]


def deploy() -> list[dict[str, t.Any]]:
    return t.cast("list[dict[str, t.Any]]", yaml.safe_load((COLLECTION / "playbooks" / "deploy.yml").read_text(encoding="utf-8")))


def test_case_61_the_controller_takes_a_node_in_before_its_slurmd_starts() -> None:
    """The plays are the phases, in their order: slurmctld knows the new node and answers before any slurmd is restarted."""
    phases = [
        task["vars"]["rollout_phase"] for play in deploy() for task in play.get("tasks", []) if "rollout_phase" in task.get("vars", {})
    ]
    assert phases == list(PHASES)
    assert phases.index("controller") < phases.index("compute")


def test_case_61_nothing_is_left_to_the_end_of_a_play() -> None:
    """A handler would restart slurmctld after the slurmd of the new node, or never."""
    files = [path for place in ("roles", "playbooks") for path in (COLLECTION / place).rglob("*.yml")]
    assert len(files) > 30
    assert [path for path in files if path.parent.name == "handlers"] == []
    assert [path for path in files if re.search(r"^\s*(- )?(notify|handlers):", path.read_text(encoding="utf-8"), re.MULTILINE)] == []


def test_case_61_a_node_that_fails_or_is_lost_does_not_end_the_play_for_the_others() -> None:
    """The compute play goes on to the phase's own judgement: left behind within the limit, or the way back for all."""
    (compute,) = [play for play in deploy() if play["hosts"] == "hpcguard_rollout:&slurm_compute"]
    assert compute["ignore_unreachable"] is True
    assert not {"any_errors_fatal", "max_fail_percentage"} & set(compute)
    hostvars = {"c": DONE, "n": FAILED, "m": DONE, "o": DONE}
    assert rollout_trouble(["c", "n", "m", "o"], hostvars, GROUPS, "patrol", limit=1) == []
    assert rollout_trouble(["c", "n", "m", "o"], hostvars, GROUPS, "patrol") == ["n: slurmd does not start"]
