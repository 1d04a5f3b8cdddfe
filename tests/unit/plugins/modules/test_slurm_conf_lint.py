"""The module slurm_conf_lint on real files: it tells, and touches nothing."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import slurm_conf_host, slurm_conf_lint, slurm_layout

from .conftest import Run

GOOD = b"ClusterName=hpc\nSlurmctldHost=c1\nAccountingStorageType=accounting_storage/slurmdbd\n"
SCONTROL = """#!/bin/sh
[ "$1" = -V ] && { echo "slurm 23.11.4"; exit; }
grep -q '^MpiDefault=openmpi' "$SLURM_CONF" && echo "scontrol: error: Translating obsolete option in $SLURM_CONF" >&2
grep -q '^EnforcePartLimits=SOME' "$SLURM_CONF" && { echo "scontrol: error: Bad EnforcePartLimits: SOME" >&2; exit 1; }
echo a
"""


class Site:
    """A slurm.conf, and a scontrol that says what a real one says of it."""

    def __init__(self, root: pathlib.Path, run: Run) -> None:
        self.root, self.run_module = root, run
        self.main, self.scontrol = root / "slurm.conf", root / "scontrol"
        self.scontrol.write_text(SCONTROL)
        self.scontrol.chmod(0o755)

    def lint(self, text: bytes, check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        self.main.write_bytes(text)
        before = self.state()
        result = self.run_module("slurm_conf_lint", check, **{"path": str(self.main), "version": "22.05.8", "host": "c1", **arguments})
        assert self.state() == before, "it changes nothing"
        assert not result.get("changed", False)
        return result

    def state(self) -> dict[str, tuple[bytes, int]]:
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in self.root.iterdir() if path.is_file()}


@pytest.fixture
def site(tmp_path: pathlib.Path, run_module: Run) -> Site:
    return Site(tmp_path, run_module)


def told(result: dict[str, t.Any]) -> list[tuple[str, str, int | None]]:
    return [(one["severity"], os.path.basename(one["file"]), one["line"]) for one in result["findings"]]


def test_a_good_file(site: Site) -> None:
    result = site.lint(GOOD)
    assert result["ok"] and result["findings"] == [] and result["files"] == [str(site.main)]
    assert site.lint(GOOD, check=True) == result


def test_errors_and_warnings_have_file_and_line(site: Site) -> None:
    (site.root / "site.conf").write_bytes(b"# ours\nKilwait=3\n")
    result = site.lint(GOOD + b"Include site.conf\nReturnToService=1\nReturnToService=2\n")
    assert not result["failed"] and not result["ok"]
    assert told(result) == [("error", "site.conf", 2), ("warning", "slurm.conf", 6)]
    assert set(result["findings"][0]) == {"id", "severity", "host", "title", "evidence", "cause", "remedy", "file", "line"}
    assert site.lint(GOOD + b"ReturnToService=1\nReturnToService=2\n")["ok"], "warnings are no errors"


def test_a_missing_file_is_a_finding(site: Site) -> None:
    result = site.lint(GOOD, path=str(site.root / "nowhere.conf"))
    assert not result["ok"] and [one["id"] for one in result["findings"]] == ["conf_missing"]


def test_case_07_secrets_appear_nowhere(site: Site) -> None:
    result = site.lint(GOOD + "JobCompPass=hunter2 hunter2 #密码\nJobCompPass hunter2\nStoragePass=hunter2\n".encode())
    assert len(result["findings"]) >= 3 and "hunter2" not in str(result)


def test_the_file_is_judged_by_the_release_that_is_named(site: Site) -> None:
    line = GOOD + b"HealthCheckProgram=/hc\nHealthCheckInterval=300\nHealthCheckNodeState=NONDRAINED_IDLE\n"
    assert len(site.lint(line, version="22.05")["findings"]) == 1
    assert site.lint(line, version="24.11")["findings"] == []
    assert "is no version of Slurm" in site.lint(line, version="new")["msg"]


def test_without_a_version_the_slurm_of_the_host_is_asked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_layout, "USUAL_PREFIXES", (str(site.root / "usr"),))
    assert "say the version" in site.lint(GOOD, version=None)["msg"]
    assert site.lint(GOOD, version=None, scontrol=str(site.scontrol))["version"] == "23.11.4"
    daemon = site.root / "usr/sbin/slurmctld"
    daemon.parent.mkdir(parents=True)
    daemon.write_text("#!/bin/sh\necho slurm-wlm 22.05.8\n")
    daemon.chmod(0o755)
    assert site.lint(GOOD, version=None, scontrol=str(site.scontrol))["version"] == "22.05.8", "the daemon is the one that reads it"


def test_slurms_own_words_count_too(site: Site) -> None:
    refused = site.lint(GOOD + b"EnforcePartLimits=SOME\n", scontrol=str(site.scontrol))
    assert not refused["ok"] and "scontrol says: error: Bad EnforcePartLimits: SOME" in refused["findings"][0]["cause"]
    taken = site.lint(GOOD + b"MpiDefault=openmpi\n", scontrol=str(site.scontrol))
    assert taken["ok"] and [one["severity"] for one in taken["findings"]] == ["warning"]
    assert str(site.main) in taken["findings"][0]["cause"], "the message names the real file"


def test_plugins_are_looked_up_where_slurm_conf_says(site: Site) -> None:
    plugins = site.root / "plugins"
    plugins.mkdir()
    line = GOOD + b"TaskPlugin=task/cgroup\n"
    assert site.lint(line)["ok"], "an unknown directory proves nothing"
    assert not site.lint(line, plugin_dir=str(plugins))["ok"]
    for name in ("accounting_storage_slurmdbd.so", "task_cgroup.so"):
        (plugins / name).touch()
    assert site.lint(line, plugin_dir=str(plugins))["ok"]
    assert site.lint(line + f"PluginDir=/nowhere:{plugins}\n".encode(), plugin_dir="/nowhere")["ok"]


def test_case_53_an_old_file_under_new_binaries(site: Site) -> None:
    """A snapshot keeps slurm.conf under another name; whether the present Slurm would take it can be asked beforehand."""
    plugins, kept = site.root / "plugins", site.root / "0001"
    plugins.mkdir()
    for name in ("accounting_storage_slurmdbd.so", "select_cons_tres.so"):
        (plugins / name).touch()
    kept.write_bytes(GOOD + b"SallocDefaultCommand=x\nFastSchedule=1\nSelectType=select/cons_res\n")
    result = site.lint(GOOD, contents_from={str(site.main): str(kept)}, version="23.11.4", plugin_dir=str(plugins))
    assert told(result) == [("error", "slurm.conf", 4), ("warning", "slurm.conf", 5), ("error", "slurm.conf", 6)]
    assert "select/cons_res: there is no such plugin" in result["findings"][2]["cause"]
    assert site.lint(GOOD, version="23.11.4", plugin_dir=str(plugins))["ok"]


def test_case_55_the_state_directory_is_looked_at_where_slurmctld_runs(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_conf_lint, "VOLATILE", ())  # the tests live below /tmp
    line = GOOD + f"StateSaveLocation={site.root}/none\n".encode()
    assert site.lint(line)["ok"]
    assert "is no directory here" in site.lint(line, controller=True)["findings"][0]["cause"]


def test_the_parse_test_has_a_time_limit(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_conf_host, "PROOF_TIMEOUT", 0.3)
    site.scontrol.write_text("#!/bin/sh\nexec sleep 60\n")
    result = site.lint(GOOD, scontrol=str(site.scontrol))
    assert not result["ok"] and "did not finish reading" in result["findings"][0]["cause"]
