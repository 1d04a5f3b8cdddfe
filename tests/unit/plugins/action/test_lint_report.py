"""The action that prints what the lint found: by severity, what hosts have in common once, and an exit status to rely on."""

from __future__ import annotations

import types
import typing as t

import pytest
from ansible.plugins.action import ActionBase

from ansible_collections.hpcguard.slurm.plugins.action import lint_report as action
from ansible_collections.hpcguard.slurm.plugins.module_utils import finding

Vars = dict[str, t.Any]


def found(host: str, severity: str, cause: str = "why", line: int = 3) -> Vars:
    titles = finding.title("中文", "english")
    return finding.finding("x", severity, host, titles, cause, "what to do", [], "/etc/slurm/slurm.conf", line)


def look(*findings: Vars) -> Vars:
    return {"findings": list(findings), "files": ["/etc/slurm/slurm.conf"]}


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., tuple[Vars, str]]:
    lines: list[str] = []
    monkeypatch.setattr(action, "display", types.SimpleNamespace(display=lines.append))
    monkeypatch.setattr(action, "stringc", lambda text, color: text)
    monkeypatch.setattr(ActionBase, "run", lambda self, tmp=None, task_vars=None: {})

    def run(looks: dict[str, Vars], strict: t.Any = False) -> tuple[Vars, str]:
        made = action.ActionModule.__new__(action.ActionModule)
        made._task = types.SimpleNamespace(args={"strict": strict})
        hostvars = {host: {"__lint_host": one} for host, one in looks.items()}
        lines.clear()
        return made.run(task_vars={"ansible_play_hosts": list(looks), "hostvars": hostvars}), "\n".join(lines)

    return run


def test_an_error_fails_and_is_told_with_file_and_line(report: t.Any) -> None:
    result, text = report({"c1": look(found("c1", "warning", "hm"), found("c1", "error"))})
    assert result["failed"] and result["msg"] == "slurm.conf: 1 error, 1 warning, 0 notes in 1 file"
    assert "1. [c1] /etc/slurm/slurm.conf:3 中文 / english" in text and "remedy: what to do" in text
    assert text.index("ERRORS") < text.index("WARNINGS"), "the worst comes first"


@pytest.mark.parametrize(("strict", "fails"), [(False, False), ("false", False), (True, True), ("true", True)])
def test_warnings_fail_only_when_asked(report: t.Any, strict: t.Any, fails: bool) -> None:
    assert report({"c1": look(found("c1", "warning"))}, strict)[0]["failed"] is fails
    assert report({"c1": look(found("c1", "info"))}, strict)[0]["failed"] is False


def test_what_hosts_have_in_common_is_told_once(report: t.Any) -> None:
    skipped = {"skipped": True}
    result, text = report({"n3": look(found("n3", "error")), "n1": look(found("n1", "error")), "n2": skipped})
    assert "[n1, n3] " in text and text.count("cause:") == 1
    assert result["msg"] == "slurm.conf: 1 error, 0 warnings, 0 notes in 2 files"


def test_nothing_looked_at_is_no_success(report: t.Any) -> None:
    result, _text = report({"n1": {"skipped": True}, "n2": {"failed": True, "msg": "there is no Slurm on this host"}})
    assert result["failed"] and result["msg"] == "no slurm.conf was looked at"
