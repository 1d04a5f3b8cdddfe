"""Module host_files: all or nothing, durable, idempotent, and careful where root writes."""

from __future__ import annotations

import grp
import os
import pathlib
import pwd
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders

from .conftest import Run


class Systemd:
    """A stand-in for systemd that remembers what it was asked."""

    def __init__(self) -> None:
        self.units: dict[str, dict[str, str]] = {}
        self.calls: list[list[str]] = []

    def show(self, unit: str, properties: t.Any = None) -> dict[str, str]:
        return {"LoadState": "not-found", **self.units.get(unit, {})}

    def systemctl(self, args: list[str], timeout: int = 30) -> loaders.Result:
        self.calls.append(list(args))
        unit = self.units.setdefault(args[-1], {"LoadState": "loaded"})
        if "enable" in args:
            unit["UnitFileState"] = "enabled"
        if "disable" in args:
            unit["UnitFileState"] = "disabled"
        if "restart" in args:
            unit["ActiveState"] = "active"
        if "stop" in args:
            unit["ActiveState"] = "inactive"
        return loaders.Result(0)


@pytest.fixture
def systemd(monkeypatch: pytest.MonkeyPatch) -> Systemd:
    fake = Systemd()
    monkeypatch.setattr(loaders, "systemctl_show", fake.show)
    monkeypatch.setattr(loaders, "systemctl", fake.systemctl)
    return fake


@pytest.fixture
def etc(tmp_path: pathlib.Path, systemd: Systemd, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A place to write to; that root owns the way to it is judged by other tests."""
    monkeypatch.setattr(loaders, "path_problem", lambda path: "")
    return tmp_path


def me() -> dict[str, str]:
    return {"owner": pwd.getpwuid(os.geteuid()).pw_name, "group": grp.getgrgid(os.getegid()).gr_name}


def tree(root: pathlib.Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mode) for path in root.rglob("*") if path.is_file()}


def test_change_idempotent_check_and_check_after(run_module: Run, etc: pathlib.Path) -> None:
    """The four ways of a call: check writes nothing and foretells, the run does it, both are quiet afterwards."""
    path = etc / "new" / "deep" / "script.sh"
    spec = {"path": str(path), "content": "#!/bin/sh\n", "mode": "0755", "class": "restart_slurmd", "reason": "why", **me()}

    foretold = run_module("host_files", check=True, host="n1", files=[spec])
    assert foretold["changed"] and not path.exists()

    done = run_module("host_files", host="n1", files=[spec])
    assert done["changes"] == foretold["changes"]
    assert path.read_text() == "#!/bin/sh\n" and path.stat().st_mode & 0o777 == 0o755
    assert done["created_directories"] == [str(etc / "new"), str(etc / "new" / "deep")]
    (change,) = done["changes"]
    assert change["thing"] == f"file:{path}" and change["from"] == "absent"
    assert (change["host"], change["class"], change["reason"]) == ("n1", "restart_slurmd", "why")
    assert done["diff"][0]["after"] == "#!/bin/sh\n"

    before = tree(etc)
    assert not run_module("host_files", host="n1", files=[spec])["changed"]
    assert not run_module("host_files", check=True, host="n1", files=[spec])["changed"]
    assert tree(etc) == before, "no temporary file is left"


def test_case_97_a_clean_host_in_check_mode(run_module: Run, etc: pathlib.Path, systemd: Systemd) -> None:
    """No drop-in directory, no unit: what would change is told, nothing is made, started or left behind."""
    drop_in = etc / "system" / "slurmd.service.d" / "hpcguard.conf"
    wish = {"path": str(drop_in), "content": "[Service]\nRestart=always\n", "mode": "0644", "state": "present", **me()}
    before = sorted(etc.rglob("*"))
    told = run_module("host_files", check=True, files=[wish], host="n1")
    assert told["changed"] and [one["thing"] for one in told["changes"]] == [f"file:{drop_in}"]
    assert sorted(etc.rglob("*")) == before == []
    assert systemd.calls == []


def test_mode_alone_is_a_change(run_module: Run, etc: pathlib.Path) -> None:
    """A file with the right text and a wrong mode is put right and reported."""
    path = etc / "f"
    path.write_text("x")
    path.chmod(0o777)
    spec = {"path": str(path), "content": "x", "mode": "0644", **me()}
    assert run_module("host_files", files=[spec])["changed"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_absent_removes_once(run_module: Run, etc: pathlib.Path) -> None:
    """A file that must not be there goes, and is not missed twice."""
    path = etc / "f"
    path.write_text("x")
    spec = {"path": str(path), "state": "absent"}
    assert run_module("host_files", check=True, files=[spec])["changed"] and path.exists()
    assert run_module("host_files", files=[spec])["changed"] and not path.exists()
    assert not run_module("host_files", files=[spec])["changed"]


def test_every_problem_at_once_and_nothing_written(run_module: Run, etc: pathlib.Path) -> None:
    """One bad file keeps the good ones from being written, and each fault is named."""
    files = [
        {"path": str(etc / "good"), "content": "x", **me()},
        {"path": str(etc / "who"), "content": "x", "owner": "nobody-of-that-name"},
        {"path": str(etc / "mode"), "content": "x", "mode": "rw", **me()},
        {"path": str(etc / "open"), "content": "x", "mode": "0666", **me()},
        {"path": str(etc / "none")},
        {"path": str(etc / "syntax"), "content": "if\n", "validate": ["/bin/sh", "-n", "%s"], **me()},
        {"path": str(etc / "good"), "content": "y", **me()},
    ]
    result = run_module("host_files", files=files)
    assert result["failed"]
    causes = "\n".join(found["cause"] for found in result["findings"])
    for told in ("nobody-of-that-name", "not octal", "let others write", "no content", "/bin/sh refuses it", "named twice"):
        assert told in causes
    assert tree(etc) == {}


def test_units_are_enabled_started_and_reloaded(run_module: Run, etc: pathlib.Path, systemd: Systemd) -> None:
    """A new timer is read, enabled and started; a second call asks systemd for nothing."""
    path = etc / "systemd" / "system" / "patrol.timer"
    call: dict[str, t.Any] = {
        "files": [{"path": str(path), "content": "[Timer]\nOnBootSec=1\n", "class": "reload_units", **me()}],
        "units": [{"name": "patrol.timer", "enabled": True, "active": True}],
    }
    foretold = run_module("host_files", check=True, **call)
    assert systemd.calls == []
    done = run_module("host_files", **call)
    assert [change["thing"] for change in done["changes"]] == [
        f"file:{path}",
        "unit:patrol.timer:enabled",
        "unit:patrol.timer:active",
    ]
    assert done["changes"] == foretold["changes"]
    assert systemd.calls == [["daemon-reload"], ["enable", "patrol.timer"], ["restart", "patrol.timer"]]

    systemd.calls.clear()
    assert not run_module("host_files", **call)["changed"]
    assert systemd.calls == []

    call["files"][0]["content"] = "[Timer]\nOnBootSec=2\n"
    assert run_module("host_files", **call)["changed"]
    assert systemd.calls == [["daemon-reload"], ["restart", "patrol.timer"]], "a running timer takes its new file on"


def test_a_unit_edited_before_is_reloaded(run_module: Run, etc: pathlib.Path, systemd: Systemd) -> None:
    """S81: systemd that has not read a file since somebody edited it is made to, and that is a change."""
    path = etc / "systemd" / "system" / "slurmd.service"
    spec = {"path": str(path), "content": "[Service]\n", **me()}
    run_module("host_files", files=[spec])
    systemd.calls.clear()
    systemd.units["slurmd.service"] = {"LoadState": "loaded", "NeedDaemonReload": "yes"}
    result = run_module("host_files", files=[spec])
    assert result["changed"] and result["changes"][0]["thing"] == "unit:slurmd.service:reload"
    assert systemd.calls == [["daemon-reload"]]


def test_a_unit_goes_before_its_file(run_module: Run, etc: pathlib.Path, systemd: Systemd) -> None:
    """A unit is stopped and disabled while systemd still knows it."""
    path = etc / "systemd" / "system" / "old.timer"
    path.parent.mkdir(parents=True)
    path.write_text("[Timer]\n")
    systemd.units["old.timer"] = {"LoadState": "loaded", "UnitFileState": "enabled", "ActiveState": "active"}
    call = {
        "files": [{"path": str(path), "state": "absent"}],
        "units": [{"name": "old.timer", "enabled": False, "active": False}],
    }
    assert run_module("host_files", **call)["changed"]
    assert systemd.calls == [["disable", "old.timer"], ["stop", "old.timer"], ["daemon-reload"]]


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"LoadState": "masked"}, "masked"),
        ({"LoadState": "not-found"}, "no such unit"),
        ({"LoadState": "loaded", "UnitFileState": "static"}, "[Install]"),
    ],
)
def test_units_that_cannot_be_enabled_are_refused(
    run_module: Run, etc: pathlib.Path, systemd: Systemd, state: dict[str, str], told: str
) -> None:
    """Masked, missing and static units are told, and the file beside them is not written."""
    systemd.units["slurmd.service"] = state
    result = run_module(
        "host_files",
        files=[{"path": str(etc / "f"), "content": "x", **me()}],
        units=[{"name": "slurmd.service", "enabled": True}],
    )
    assert result["failed"] and told in result["msg"] and not (etc / "f").exists()


def test_writes_are_refused_where_others_could_redirect_them(run_module: Run, tmp_path: pathlib.Path, systemd: Systemd) -> None:
    """A link, a directory and a directory that others may write to are refused, in check mode too."""
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "dir").mkdir()
    open_dir = tmp_path / "open"
    open_dir.mkdir()
    open_dir.chmod(0o777)
    for path, told in (("link", "symbolic link to /etc/passwd"), ("dir", "is a directory"), ("open/f", "lies under")):
        for check in (True, False):
            result = run_module("host_files", check=check, files=[{"path": str(tmp_path / path), "content": "x"}])
            assert result["failed"] and told in result["msg"]
    assert not (open_dir / "f").exists()


@pytest.mark.parametrize(("left", "begun"), [("active", True), ("inactive", False), ("activating", False)])
def test_a_oneshot_left_active_by_another_unit_is_begun_anew(
    run_module: Run, etc: pathlib.Path, systemd: Systemd, left: str, begun: bool
) -> None:
    """S68: under RemainAfterExit=yes a service stays active after its run, and its timer never elapses again."""
    path = etc / "systemd" / "system" / "patrol.service"
    call: dict[str, t.Any] = {
        "files": [{"path": str(path), "content": "[Service]\nType=oneshot\n", **me()}],
        "units": [{"name": "patrol.service", "anew": True}],
    }
    assert run_module("host_files", **call)["changed"]
    assert systemd.calls[-1] == ["--no-block", "restart", "patrol.service"], "its file changed"

    systemd.calls.clear()
    systemd.units["patrol.service"] = {"LoadState": "loaded", "ActiveState": left}
    assert run_module("host_files", **call)["changed"] is begun
    assert bool(systemd.calls) is begun
