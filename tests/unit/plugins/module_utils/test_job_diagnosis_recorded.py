"""Verdicts over what real jobs left behind, recorded by molecule/diagnose on real releases (RECORD_DIAGNOSES)."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import job_diagnosis, job_logs

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "fixtures/diagnosis"
RECORDED = sorted(FIXTURES.glob("*/*.json"))


def recorded(path: pathlib.Path) -> dict[str, t.Any]:
    found: dict[str, t.Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_there_are_some() -> None:
    assert len(RECORDED) >= 19


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_cause_is_found(path: pathlib.Path) -> None:
    """With everything, and with what slurmctld alone knew."""
    job = recorded(path)
    assert job_diagnosis.diagnose(job["asked"], job_diagnosis.seen(**job["known"]))[0]["id"] == "job_" + job["cause"]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}")
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
