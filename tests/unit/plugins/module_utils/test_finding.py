"""Text from a host can neither steer a terminal nor hide, and results add up to what was seen."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import finding


@pytest.mark.parametrize(
    ("hostile", "clean"),
    [
        ("plain text, 中文", "plain text, 中文"),
        ("  indented", "  indented"),
        ("a\x1b[31;1mred\x1b[0m", "ared"),
        ("clear\x1b[2J\x1b[Hscreen", "clearscreen"),
        ("title\x1b]0;owned\x07!", "title!"),
        ("link \x1b]8;;http://evil\x1b\\here\x1b]8;;\x1b\\", "link here"),
        ("device \x1bP1$r0m\x1b\\control", "device control"),
        ("eight bit \x9b31mred", "eight bit red"),
        ("lone \x1b", "lone"),
        ("over\rwritten\nlines\ttabs", "over written lines tabs"),
        ("back\x08space\x00nul\x7f", "back\ufffdspace\ufffdnul\ufffd"),
        ("bidi \u202egnp.exe", "bidi \ufffdgnp.exe"),
        ("zero\u200bwidth\ufeff", "zero\ufffdwidth\ufffd"),
        ("half a pair \ud800", "half a pair \ufffd"),
        (b"bytes \xff\xfe", "bytes \ufffd\ufffd"),
        (42, "42"),
        (None, "None"),
    ],
)
def test_hostile_text_becomes_one_harmless_line(hostile: t.Any, clean: str) -> None:
    assert finding.clean_text(hostile) == clean


def test_long_text_is_cut_visibly() -> None:
    assert finding.clean_text("x" * 50, 10) == "x" * 9 + "…"
    assert len(finding.clean_text("x" * 10**6)) == finding.LIMIT


def test_the_last_lines_count_and_the_rest_is_named() -> None:
    text = "\n".join(f"line {number}" for number in range(20))
    assert finding.clean_lines(text, 3) == ["(17 lines left out)", "line 17", "line 18", "line 19"]
    assert finding.clean_lines("\n\n \x1b[0m\n") == []


def test_a_finding_has_the_agreed_shape() -> None:
    made = finding.finding("lint.x", "error", "n1", finding.title("标题", "title"), "cause\x07", "remedy", path="/etc/slurm.conf", line=3)
    assert made == {
        "id": "lint.x",
        "severity": "error",
        "host": "n1",
        "title": {"zh": "标题", "en": "title"},
        "evidence": [],
        "cause": "cause\ufffd",
        "remedy": "remedy",
        "file": "/etc/slurm.conf",
        "line": 3,
    }


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        ([], "skip"),
        (["skip"], "skip"),
        (["pass", "pass"], "pass"),
        (["pass", "skip"], "pass"),
        (["pass", "fail", "skip"], "fail"),
        (["skip", "fail"], "fail"),
    ],
)
def test_one_failing_host_fails_the_item(verdicts: list[str], whole: str) -> None:
    hosts = {f"n{number}": finding.host_result(verdict, "why") for number, verdict in enumerate(verdicts)}
    assert finding.checklist_item(1, finding.title("一", "one"), hosts)["verdict"] == whole


def test_the_reason_names_the_hosts_that_failed_and_says_equal_reasons_once() -> None:
    hosts = {f"n{number}": finding.host_result("fail", "no script") for number in range(1, 6)}
    hosts["n6"] = finding.host_result("fail", "altered")
    hosts["n7"] = finding.host_result("pass", "fine")
    item = finding.checklist_item(3, finding.title("三", "three"), hosts)
    assert item["reason"] == "n1, n2, n3 and 2 more: no script; n6: altered"


def test_a_passing_item_needs_no_names() -> None:
    hosts = {"n1": finding.host_result("pass", "fine"), "n2": finding.host_result("pass", "fine")}
    assert finding.checklist_item(3, finding.title("三", "three"), hosts)["reason"] == "fine"


def test_only_a_failure_has_a_remedy() -> None:
    assert finding.host_result("pass", "fine", [], "do this")["remedy"] == ""
    assert finding.host_result("fail", "bad", [], "do this")["remedy"] == "do this"


def problem(host: str, line: int | None = 7) -> dict[str, t.Any]:
    shown = [finding.evidence("slurm.conf:7", "Kilwait=3")] if line else []
    return finding.finding("x", "error", host, finding.title("中文", "english"), "why", "what to do", shown, "/etc/slurm/slurm.conf", line)


def test_the_list_is_numbered_and_gives_place_cause_words_and_remedy() -> None:
    assert finding.describe([problem("c1"), problem("c2", None)]) == [
        "1. [c1] /etc/slurm/slurm.conf:7 中文 / english",
        "   cause:  why",
        "   reads:  Kilwait=3",
        "   remedy: what to do",
        "2. [c2] /etc/slurm/slurm.conf 中文 / english",
        "   cause:  why",
        "   remedy: what to do",
    ]


def test_the_list_has_an_end() -> None:
    text = finding.describe([problem(f"n{number}") for number in range(100)])
    assert text[-1] == "and 70 more" and text[-2 - 3].startswith("30. ")


def test_what_several_hosts_have_in_common_is_said_once() -> None:
    found = [problem("n2"), problem("n1", 8), *[problem(f"n{number}") for number in (5, 4, 3)], problem("n2")]
    assert [(one["host"], one["line"]) for one in finding.folded(found)] == [("n2, n3, n4 and 1 more", 7), ("n1", 8)]
    assert finding.folded([]) == []
