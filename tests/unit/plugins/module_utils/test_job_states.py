"""The states of jobs in every spelling."""

from __future__ import annotations

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import job_states


@pytest.mark.parametrize(
    ("text", "word", "by"),
    [
        ("COMPLETED", "COMPLETED", ""),
        ("CANCELLED by 1001", "CANCELLED", "1001"),
        ("CANCELLED+", "CANCELLED", ""),
        ("OUT_OF_ME+", "OUT_OF_MEMORY", ""),
        ("NODE_FAIL", "NODE_FAIL", ""),
        ("RUNNING+COMPLETING", "RUNNING", ""),
        ("PD", "PENDING", ""),
        ("oom", "OUT_OF_MEMORY", ""),
        ("RE+", "RE", ""),
        ("", "UNKNOWN", ""),
        ("BRAND_NEW", "BRAND_NEW", ""),
    ],
)
def test_words(text: str, word: str, by: str) -> None:
    """A cut word is completed only where one state alone begins so."""
    assert job_states.parse(text) == (word, by)


def test_every_state_has_a_kind_and_a_meaning() -> None:
    for state in job_states.STATES:
        assert job_states.kind(state) != job_states.UNKNOWN
        assert all(job_states.meaning(state))


def test_an_unknown_word_is_tolerated_and_shown() -> None:
    assert job_states.kind("BRAND_NEW") == job_states.UNKNOWN
    assert "BRAND_NEW" in job_states.meaning("BRAND_NEW")[1]


def test_short_forms_lead_to_states() -> None:
    assert set(job_states._SHORT.values()) <= set(job_states.STATES)
