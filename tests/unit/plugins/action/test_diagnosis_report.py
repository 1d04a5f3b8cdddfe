"""The report of a diagnosis: terminal, JSON and a page in which nothing of a host's text is live."""

from __future__ import annotations

import json
import typing as t
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

import pytest

from ansible_collections.hpcguard.slurm.plugins.action import diagnosis_report
from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import evidence, finding, title

FOUND = finding(
    "job_oom", "error", "101", title("内存不足", "out of memory"), title("原因", "cause"), title("--mem=2G", "--mem=2G"),
    [evidence("sacct", "<script>alert(1)</script> 101 OUT_OF_MEMORY")], who="user", confidence="certain",
    missing=[{"name": "kernel", "why": "not read"}],
)  # fmt: skip


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: t.Any) -> None:
        self.seen.add(tag)


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., t.Any]:
    shown: list[str] = []
    monkeypatch.setattr(diagnosis_report.display, "display", lambda text, *_args, **_kwargs: shown.append(text))

    def run(**args: t.Any) -> tuple[dict[str, t.Any], str, Path]:
        task = mock.Mock(args={"question": "job 101", "folder": str(tmp_path), "cluster": "hpc", **args}, async_val=0, diff=False)
        action = diagnosis_report.ActionModule(task, mock.Mock(), mock.Mock(), mock.Mock(), mock.Mock(), mock.Mock())
        action._connection._shell.tmpdir = None
        return action.run(task_vars={}), "\n".join(shown), tmp_path

    return run


def test_one_set_of_findings_three_ways(report: t.Callable[..., t.Any]) -> None:
    result, shown, folder = report(findings=[FOUND], sources=[{"name": "sacct", "why": ""}])
    assert result["number"] == 1 and not result["changed"]
    assert "内存不足" in shown and "--mem=2G" in shown and "kernel (not read)" in shown
    told = json.loads((folder / "diagnose.json").read_text(encoding="utf-8"))
    assert told["findings"] == [FOUND] and told["question"] == "job 101"
    page = (folder / "diagnose.html").read_text(encoding="utf-8")
    assert "out of memory" in page and "certain" in page and "--mem=2G" in page
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.seen and "details" in tags.seen


def test_classes_of_the_queue_and_nothing_found(report: t.Callable[..., t.Any]) -> None:
    result, shown, folder = report(findings=[], classes={"wait": 3})
    assert result["number"] == 0 and "just wait" in shown and "nothing was found" in shown
    assert "just wait" in (folder / "diagnose.html").read_text(encoding="utf-8")
