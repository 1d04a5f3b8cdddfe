"""What sacct prints, as jobs with steps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hpcguard.slurm.plugins.module_utils import sacct_text

FIELDS = ["JobID", "JobIDRaw", "State", "ExitCode", "ReqMem", "NCPUS", "NNodes", "MaxRSS", "NTasks", "TRESUsageInTot", "JobName"]


def listing(*rows: str) -> sacct_text.Jobs:
    """Rows with | between the values; missing ones at the end are empty."""
    lines = [sacct_text.DELIMITER.join((row.split("|") + [""] * len(FIELDS))[: len(FIELDS)]) for row in rows]
    return sacct_text.parse("\n".join(lines), FIELDS)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("101", ("101", "", "", "")),
        ("101_3", ("101", "3", "", "")),
        ("101_[1-5%2]", ("101", "[1-5%2]", "", "")),
        ("101_3.batch", ("101", "3", "", "batch")),
        ("118+0", ("118", "", "0", "")),
        ("118+1.0", ("118", "", "1", "0")),
        ("119.interactive", ("119", "", "", "interactive")),
        ("120.4294967295", ("120", "", "", "4294967295")),
    ],
)
def test_ids(text: str, parts: tuple[str, ...]) -> None:
    where = sacct_text.parse_id(text)
    assert where and (where["job"], where["task"], where["part"], where["step"]) == parts


@pytest.mark.parametrize("text", ["", "x", "101;rm -rf /", "-1", "101 102", "101\n102", "$(id)"])
def test_what_is_no_id(text: str) -> None:
    assert sacct_text.parse_id(text) is None


def test_case_85_het_jobs_and_step_names() -> None:
    """Components are jobs, steps are not, unknown names of steps are tolerated, the extern step is left out."""
    found = listing(
        "118+0|118|FAILED|1:0", "118+0.batch|118.batch|FAILED|1:0", "118+0.extern|118.extern|COMPLETED|0:0",
        "118+1|119|CANCELLED by 0|0:15",
        "118+1.0|119.0|CANCELLED|0:15", "119.interactive|119.interactive|COMPLETED|0:0", "120|120|COMPLETED|0:0",
        "120.4294967295|x|FAILED|2:0",
    )  # fmt: skip
    assert [tries[0]["id"] for tries in found.jobs] == ["118+0", "118+1", "120"]
    assert [[step["step"] for step in tries[0]["steps"]] for tries in found.jobs] == [["batch"], ["0"], ["4294967295"]]
    assert found.counted == {"FAILED": 1, "CANCELLED": 1, "COMPLETED": 1}


def test_attempts_of_a_requeued_job_stay_in_order() -> None:
    (tries,) = listing("5|5|NODE_FAIL|0:0", "5|5|COMPLETED|0:0", "5.batch|5.batch|COMPLETED|0:0").jobs
    assert [job["state"] for job in tries] == ["NODE_FAIL", "COMPLETED"] and len(tries[1]["steps"]) == 1


@pytest.mark.parametrize(
    ("asked", "mb"),
    [("4000Mc", 8000), ("16Gn", 16384), ("16G", 8192), ("0", None), ("", None)],
    ids=["cpu", "node", "total", "zero", "none"],
)
def test_memory_is_asked_for_in_three_ways(asked: str, mb: float | None) -> None:
    """20.11 says of what, 21.08 and newer give the sum: four CPUs on two nodes."""
    assert listing(f"5|5|COMPLETED|0:0|{asked}|4|2").jobs[0][0]["memory"] == mb


def test_peaks() -> None:
    (tries,) = listing("5|5|COMPLETED|0:0|16G|4|2", "5.0|5.0|COMPLETED|0:0||4|2|1048576K|4").jobs
    assert sacct_text.peak_mb(tries[0]) == (2048, False), "two tasks a node at the most"
    (tries,) = listing("5|5|COMPLETED|0:0|16G|4|2", "5.0|5.0|COMPLETED|0:0||4|2|1048576K|4|cpu=1,mem=3G").jobs
    assert sacct_text.peak_mb(tries[0]) == (1536, True)
    assert sacct_text.peak_mb(listing("5|5|COMPLETED|0:0").jobs[0][0]) == (None, True)


def test_a_name_that_holds_the_delimiter_stays_a_name() -> None:
    row = sacct_text.DELIMITER.join(["5", "5", "FAILED", "1:0", "", "", "", "", "", "", "evil", "COMPLETED"])
    assert sacct_text.parse(row, FIELDS).jobs[0][0]["name"].startswith("evil")


def test_of_many_what_went_wrong_is_kept() -> None:
    rows = [f"9_{number}|{number}|{'FAILED' if number % 100 == 0 else 'COMPLETED'}|0:0" for number in range(1, 5001)]
    found = sacct_text.parse("\n".join(sacct_text.DELIMITER.join((row.split("|") + [""] * 7)[:11]) for row in rows), FIELDS, most=100)
    assert len(found.jobs) == 100 and found.counted == {"COMPLETED": 4950, "FAILED": 50}
    assert sum(tries[0]["state"] == "FAILED" for tries in found.jobs) == 50


def test_only_fields_that_this_sacct_has_are_asked_for() -> None:
    assert sacct_text.fields_of("Account  JobID\nState ExitCode JobName") == ["JobID", "State", "ExitCode", "Account", "JobName"]
    assert sacct_text.fields_of("") == list(sacct_text.FIELDS)


@settings(deadline=None, max_examples=60)
@given(st.text())
def test_no_text_raises(text: str) -> None:
    sacct_text.parse(text, FIELDS)
    sacct_text.parse("\n".join(f"{number}{text}" for number in range(3)), FIELDS)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.text(alphabet=st.characters(exclude_characters="\n\r"), max_size=20), min_size=len(FIELDS) - 1, max_size=len(FIELDS) - 1)
)
def test_no_row_raises(values: list[str]) -> None:
    found = sacct_text.parse(sacct_text.DELIMITER.join(["7", *values]), FIELDS)
    assert len(found.jobs) == 1
    sacct_text.peak_mb(found.jobs[0][0])
    sacct_text.failed_steps(found.jobs[0][0])
