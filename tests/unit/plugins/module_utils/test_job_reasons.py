"""Every reason of every release, compared with the list taken from Slurm's sources."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import job_reasons

FIXTURE = pathlib.Path(__file__).resolve().parents[3] / "fixtures/job_reasons/job_reasons.tsv"
RELEASES = [(20, 11), (21, 8), (22, 5), (23, 2), (23, 11), (24, 5), (24, 11), (25, 5), (25, 11), (26, 5)]
ROWS = [line.split("\t") for line in FIXTURE.read_text(encoding="utf-8").splitlines()[2:]]


def release(text: str) -> tuple[int, int]:
    year, month = text.replace("<=", "").split(".")
    return int(year), int(month)


def listed(which: tuple[int, int], rows: list[list[str]]) -> set[str]:
    """The reasons that a release's own sources have."""
    return {row[0] for row in rows if (row[2].startswith("<=") or release(row[2]) <= which) and (not row[3] or which <= release(row[3]))}


def missing(which: tuple[int, int], rows: list[list[str]]) -> set[str]:
    return {name for name in listed(which, rows) if not job_reasons.known(name)}


@pytest.mark.parametrize("which", RELEASES)
def test_the_table_is_that_of_the_release(which: tuple[int, int]) -> None:
    """A reason of a new release that the table lacks fails here, and so does one that it has and the release does not."""
    table = set(job_reasons.REASONS) | {name for names in job_reasons.LIMITS.values() for name in names.split()}
    assert missing(which, ROWS) == set()
    assert {name for name in table if job_reasons.in_release(name, which)} == listed(which, ROWS)


def test_a_reason_that_a_new_release_brings_is_seen() -> None:
    assert missing((26, 5), [*ROWS, ["QOSGrpQuantum", "WAIT_X", "26.05", "", "", "", ""]]) == {"QOSGrpQuantum"}


def test_all_223_rows_are_there_and_of_the_right_family() -> None:
    assert len(ROWS) == 223
    for name, _enum, _since, _until, family, *_rest in ROWS:
        assert job_reasons.look_up(name)["family"] == family, name


@pytest.mark.parametrize("name", sorted({row[0] for row in ROWS}))
def test_each_reason_says_who_acts_and_what(name: str) -> None:
    said = job_reasons.look_up(name)
    assert said["known"] and said["class"] in job_reasons.CLASSES and said["who"] in ("nobody", "user", "admin")
    assert all(said[key] for key in ("zh", "en", "next_zh", "next_en"))


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            job_reasons.WAIT,
            "Resources Priority Licenses BeginTime Dependency Reservation QOSMaxSubmitJobPerUserLimit QOSMaxGRESPerUser AssocGrpCpuLimit",
        ),
        (job_reasons.OWN, "JobArrayTaskLimit JobHeldUser"),
        (job_reasons.NEVER, "DependencyNeverSatisfied"),
        (job_reasons.CHANGE, "PartitionConfig MaxMemPerLimit BadConstraints QOSMaxCpuPerJobLimit QOSMinCpuNotSatisfied"),
        (job_reasons.ADMIN, "JobHeldAdmin AssocGrpCPUMinutesLimit PartitionDown NodeDown FooBarLimit"),
    ],
)
def test_case_89_pending_reasons_need_classes(kind: str, names: str) -> None:
    assert {name: job_reasons.look_up(name)["class"] for name in names.split()} == dict.fromkeys(names.split(), kind)


def test_case_89_an_unknown_code_is_shown_as_it_is_with_its_family_guessed() -> None:
    said = job_reasons.look_up("FooBarLimit")
    assert (said["known"], said["reason"], said["family"]) == (False, "FooBarLimit", "limit-other")
    for name, family in (
        ("QOSMaxQuantum", "limit-qos"),
        ("AssocGrpQuantum", "limit-assoc"),
        ("MaxFooPerUser", "limit-qos-per-account-user"),
    ):
        assert job_reasons.look_up(name)["family"] == family
    # a name after the pattern of limits is even understood
    assert job_reasons.look_up("QOSGrpCpuRunMinutes")["class"] == job_reasons.WAIT


@pytest.mark.parametrize("text", ["(launch failed requeued held)", "launch_failed_requeued_held", "launch failed requeued held"])
def test_case_91_both_spellings(text: str) -> None:
    said = job_reasons.look_up(text)
    assert said["class"] == job_reasons.ADMIN and said["known"]
    assert said["next_en"].index("batch host") < said["next_en"].index("scontrol release"), "release comes last"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:n[1-3]", job_reasons.ADMIN),
        ("ReqNodeNotAvail, May be reserved for other job", job_reasons.WAIT),
        ("ReqNodeNotAvail, Reserved for maintenance", job_reasons.WAIT),
        ("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", job_reasons.ADMIN),
        ("uid 1001 not in group permitted to use this partition", job_reasons.CHANGE),
        ("Reservation weekend was deleted", job_reasons.CHANGE),
        ("job requeued in held state", job_reasons.OWN),
    ],
)
def test_sentences_that_squeue_prints_instead_of_a_name(text: str, kind: str) -> None:
    said = job_reasons.look_up(text)
    assert said["class"] == kind and said["reason"] == text and said["known"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("QOSMaxCpuPerUserLimit", ("qos", "max", "cpu", "", "User")),
        ("AssocGrpCPURunMinutesLimit", ("assoc", "grp", "cpu", "run_minutes", "")),
        ("AssocGrpMemMinutes", ("assoc", "grp", "mem", "minutes", "")),
        ("QOSMinCpuNotSatisfied", ("qos", "min", "cpu", "", "")),
        ("MaxGRESRunMinsPerAccount", ("qos", "max", "gres", "run_minutes", "Account")),
        ("AssocMaxWallDurationPerJobLimit", ("assoc", "max", "wall", "", "Job")),
    ],
)
def test_what_a_limit_counts(name: str, said: tuple[str, ...]) -> None:
    limit = job_reasons.limit(name)
    assert limit and (limit["scope"], limit["kind"], limit["counted"], limit["over"], limit["per"]) == said


@pytest.mark.parametrize("name", ["Resources", "MaxPoweredUpNodes", "MaxMemPerLimit", "", "QOS"])
def test_what_is_no_limit(name: str) -> None:
    assert job_reasons.limit(name) is None
