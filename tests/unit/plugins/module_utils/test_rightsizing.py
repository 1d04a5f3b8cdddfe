"""How much to ask for, from what runs used."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hpcguard.slurm.plugins.module_utils import rightsizing

CONFIG = {"AccountingStorageType": "accounting_storage/slurmdbd", "JobAcctGatherType": "jobacct_gather/cgroup"}


def run(peak: float | None, state: str = "COMPLETED", **more: t.Any) -> dict[str, t.Any]:
    job: dict[str, t.Any] = {
        "user": "alice", "partition": "p", "name": "run7", "state": state, "memory": 16384.0, "peak": peak, "total": None, "tasks": 1,
        "nodes": 1, "elapsed": 3600, "limit": 14400, "cpus": 8, "cpu_seconds": 3600 * 7, "steps": [],
    }  # fmt: skip
    job.update(more)
    return job


def test_five_runs_and_more_go_by_the_95th_percentile() -> None:
    said = rightsizing.memory([run(1000.0)] * 99 + [run(1100.0)])
    assert said and said["wanted"] == 1280 and said["runs"] == 100, "max(1000 x 1.2, 1100 x 1.1), in steps of 256"


def test_few_runs_go_by_the_largest() -> None:
    said = rightsizing.memory([run(1000.0), run(2000.0)])
    assert said and said["wanted"] == 2560


def test_a_run_that_was_cut_off_is_no_sample_but_a_floor() -> None:
    said = rightsizing.memory([run(1000.0)] * 10 + [run(1200.0, "OUT_OF_MEMORY")])
    assert said and said["floor"] == 16384 and said["wanted"] > 16384 and said["runs"] == 10
    alone = rightsizing.memory([run(1200.0, "OUT_OF_MEMORY")])
    assert alone and alone["wanted"] > 16384 and alone["runs"] == 0


def test_failed_runs_and_runs_without_a_sample_say_nothing() -> None:
    assert rightsizing.memory([run(9000.0, "FAILED"), run(None)]) is None


def test_no_advice_is_above_the_largest_node() -> None:
    said = rightsizing.memory([run(9000.0)], most=10000)
    assert said and said["clamped"] and said["wanted"] == 10000


def test_what_was_held_in_vain_is_told_in_gb_hours() -> None:
    jobs = [run(1000.0, nodes=2, elapsed=7200)] * 5
    assert rightsizing.saving(jobs, 2048) == 5 * 2 * 2 * 14, "five runs on two nodes for two hours, 14 GB too much"
    (found,) = rightsizing.advise([[one] for one in jobs], CONFIG)
    assert any("GB-hours" in line["text"] for line in found["evidence"])


def test_limits_that_blind_backfill_are_told_once() -> None:
    """Half of the runs took a hundredth of their time; four runs say nothing."""
    runs = [run(1000.0, elapsed=144)] * 5
    ids = [one["id"] for one in rightsizing.advise([[one] for one in runs], CONFIG)]
    assert ids == ["time_limits_loose", "rightsizing"]
    assert rightsizing.time_use(runs[:4]) == (None, 4)
    assert rightsizing.time_use([run(1.0, elapsed=14400)] * 5) == (1.0, 5)


def test_time_and_cpus() -> None:
    length = rightsizing.time([run(1.0)] * 5, most=3600 * 2)
    assert length and length["wanted"] == 4500 and not length["clamped"]
    assert rightsizing.cpus([run(1.0)]) is None, "seven of eight are used"
    said = rightsizing.cpus([run(1.0, cpu_seconds=3500)])
    assert said and (said["wanted"], said["asked"]) == (1, 8)
    cut = rightsizing.time([run(1.0, "TIMEOUT", limit=86400)])
    assert cut and cut["wanted"] > 86400


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({**CONFIG, "JobAcctGatherType": "jobacct_gather/none"}, "JobAcctGatherType is none"),
        ({**CONFIG, "AccountingStorageType": "(null)"}, "no accounting"),
        ({}, "no accounting"),
    ],
)
def test_without_records_there_is_no_advice(config: dict[str, str], words: str) -> None:
    (found,) = rightsizing.advise([[run(1000.0)]], config)
    assert found["id"] == "rightsizing_refused" and words in found["title"]["en"]


def test_runs_of_one_kind_are_taken_together_whatever_their_number() -> None:
    jobs = [[run(1000.0, name=f"run{number}")] for number in range(6)] + [[run(4000.0, name="other")]]
    found = rightsizing.advise(jobs, CONFIG)
    assert [one["host"] for one in found] == ["alice p other", "alice p run#"]
    assert "--mem=1280M" in found[1]["title"]["en"] and found[1]["confidence"] == "probable" and found[0]["confidence"] == "open"


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0.1, 1e7), min_size=1, max_size=40), st.integers(0, 3))
def test_the_advice_is_never_below_what_was_used(peaks: list[float], short: int) -> None:
    said = rightsizing.memory([run(peak) for peak in peaks] + [run(1.0, "OUT_OF_MEMORY")] * short)
    assert said and said["wanted"] >= max(peaks) and (not short or said["wanted"] > 16384)
