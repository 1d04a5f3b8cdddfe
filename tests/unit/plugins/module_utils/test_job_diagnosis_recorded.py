"""Verdicts over what real jobs left behind, recorded by molecule/diagnose on real releases (RECORD_DIAGNOSES)."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import job_diagnosis, job_evidence, job_logs, loaders

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "fixtures/diagnosis"
RECORDED = sorted(FIXTURES.glob("*/*.json"))
# Of the causes, so many are to be found (issue D); every one that is not stands here with the reason.
NOT_FOUND = {"20.11.4/output": "that release gives it the exit status 1, as the script's own would be"}


def recorded(path: pathlib.Path) -> dict[str, t.Any]:
    found: dict[str, t.Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


class Replay(job_evidence.Look):
    """A look at a cluster of which it is known what every call answered."""

    def __init__(self, calls: dict[str, list[t.Any]]) -> None:
        super().__init__()
        self.calls = calls

    def call(self, *argv: str) -> loaders.Result:
        return loaders.Result(*self.calls[" ".join(argv)])


def known_of(job: dict[str, t.Any]) -> dict[str, t.Any]:
    if "calls" not in job:
        return job_diagnosis.seen(**job["known"])
    site = Replay(job["calls"]).site()
    return job_diagnosis.seen(**job["known"], node_sizes=site.nodes, partitions=site.partitions, site=site)


def name_of(path: pathlib.Path) -> str:
    return f"{path.parent.name}/{path.stem}"


ENDED = [path for path in RECORDED if recorded(path)["cause"] != "waiting"]
WAITING = [path for path in RECORDED if path not in ENDED]


def test_three_releases_and_enough_of_each() -> None:
    releases = {path.parent.name for path in RECORDED}
    assert len(releases) >= 3 and len(RECORDED) >= 60 and len(NOT_FOUND) <= 0.05 * len(RECORDED)


@pytest.mark.parametrize("path", ENDED, ids=name_of)
def test_the_cause_is_found(path: pathlib.Path) -> None:
    job = recorded(path)
    found = job_diagnosis.diagnose(job["asked"], known_of(job))[0]
    assert found["id"] == "job_" + job["cause"] or name_of(path) in NOT_FOUND


@pytest.mark.parametrize("path", WAITING, ids=name_of)
def test_what_it_waits_for_is_found(path: pathlib.Path) -> None:
    job = recorded(path)
    found = job_diagnosis.diagnose(job["asked"], known_of(job))[0]
    assert found["id"] == "job_waiting" and found["who"] == job["who"] and job["words"] in found["title"]["en"], found["title"]


@pytest.mark.parametrize("path", ENDED, ids=name_of)
def test_less_evidence_never_makes_a_failure_well(path: pathlib.Path) -> None:
    job = recorded(path)
    known = job["known"]
    for without in (("rows",), ("lines",), ("records",), ("rows", "lines"), ("records", "lines"), ("rows", "records", "lines")):
        less = {**known, **{name: [] for name in without}}
        less["sources"] = [{"name": name, "why": "taken away"} for name in ("sacct", "scontrol", job_logs.CONTROLLER, job_logs.OUTPUT)]
        found = job_diagnosis.diagnose(job["asked"], job_diagnosis.seen(**less))[0]
        if job["cause"] not in ("completed", "step_failed"):
            assert found["id"] != "job_completed", without
        else:
            assert found["id"] != "job_completed" or found["confidence"] != "certain", without
