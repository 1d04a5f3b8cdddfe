"""What a rollout does not understand is told before it begins."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.plugin_utils import rollout_input


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("health_check_undrain_aftr", "health_check_undrain_after"),
        ("slurm_runing_jobs", "slurm_running_jobs"),
        ("patrol_qqqqqqqqqqqqqqqqq", None),
    ],
)
def test_a_misspelled_variable_is_told(name: str, meant: str | None) -> None:
    (found,) = rollout_input.unknown_variables([name])
    assert name in found["cause"]
    assert (f"did you mean {meant}?" if meant else "remove it") in found["remedy"]


@pytest.mark.parametrize("name", ["deploy_batches", "slurm_cluster_name", "ansible_user", "verify_fail"])
def test_known_and_foreign_variables_are_not(name: str) -> None:
    assert rollout_input.unknown_variables([name]) == []


@pytest.mark.parametrize("tag", ["health_check", "slurmd", "all", "always"])
def test_roles_are_tags(tag: str) -> None:
    assert rollout_input.unknown_tags([tag]) == []


@pytest.mark.parametrize(
    ("tag", "remedy"), [("healthcheck", "did you mean health_check?"), ("x", "names of roles"), ("verify", "names of roles")]
)
def test_a_tag_that_would_choose_nothing_is_told(tag: str, remedy: str) -> None:
    (found,) = rollout_input.unknown_tags([tag])
    assert tag in found["cause"] and remedy in found["remedy"]


def test_a_skipped_tag_is_told_where_it_was_meant_for_a_role() -> None:
    (found,) = rollout_input.unknown_tags(["all"], ["patroll"])
    assert "did you mean patrol?" in found["remedy"]


def test_a_skipped_tag_of_another_tool_is_not() -> None:
    """Molecule skips tags of its own in every run."""
    foreign = ["molecule-notest", "notest"]
    assert rollout_input.unknown_tags(["all"], foreign) == []
    assert len(rollout_input.unknown_tags(foreign)) == 2, "to choose them is another thing"


@pytest.mark.parametrize(
    ("name", "value"),
    [("deploy_batches", "[few]"), ("deploy_max_failures", "some"), ("slurm_running_jobs", "maybe"), ("deploy_batches", 0)],
)
def test_a_value_that_would_stop_the_run_in_the_middle_is_told(name: str, value: t.Any) -> None:
    (found,) = rollout_input.bad_values({name: value})
    assert name in found["cause"] and "use " in found["remedy"]


def test_good_values_and_none_at_all_are_fine() -> None:
    assert rollout_input.bad_values({}) == []
    assert rollout_input.bad_values({"deploy_batches": "[1, 50%]", "deploy_max_failures": "2%", "slurm_running_jobs": "drain"}) == []
