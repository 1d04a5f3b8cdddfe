"""Module cluster_info: which configuration the daemons of a host use."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.modules import cluster_info as module

PROGRAMS = {"scontrol": None}


def units(slurmd: str, conf: pathlib.Path) -> dict[str, t.Any]:
    """Units whose daemons do not run, so that their command lines count; slurm.conf is looked for where the test has it."""
    environment = {"SLURM_CONF": str(conf)}
    return {name: {"main_pid": 0, "exec_start": slurmd, "environment": environment} for name in ("slurmd", "slurmctld")}


@pytest.fixture
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[[], str]:
    """Where slurmd keeps what the controller handed out: /run/slurm/conf may be a link to elsewhere."""
    (tmp_path / "spool").mkdir()
    linked: list[bool] = []
    islink, realpath = os.path.islink, os.path.realpath
    monkeypatch.setattr(os.path, "islink", lambda path: bool(linked) if path == "/run/slurm/conf" else islink(path))
    monkeypatch.setattr(
        os.path, "realpath", lambda path, **more: str(tmp_path / "spool") if path == "/run/slurm/conf" else realpath(path, **more)
    )

    def link() -> str:
        linked.append(True)
        return str(tmp_path / "spool")

    return link


@pytest.mark.parametrize("option", ["--conf-server c1", "--conf-server=c1:6817"])
def test_case_24_a_node_with_a_conf_server_is_configless_whatever_lies_about(
    tmp_path: pathlib.Path, cache: t.Callable[[], str], option: str
) -> None:
    """--conf-server comes before every file: the local one is left over, it is neither read nor ever written."""
    stale = tmp_path / "slurm.conf"
    stale.write_text("SlurmctldHost=oldc\n")
    spool = cache()
    seen = module.look_at_conf(None, units(f"/usr/sbin/slurmd -D {option}", stale), PROGRAMS, controller=False)
    assert (seen["mode"], seen["path"], seen["left_over"]) == ("configless", None, str(stale))
    assert (seen["servers"], seen["cache_dir"]) == (["c1:6817"], spool)
    stale.unlink()
    assert module.look_at_conf(None, units(f"/usr/sbin/slurmd -D {option}", stale), PROGRAMS, controller=False)["left_over"] is None


def test_case_24_a_cache_without_a_local_file_is_configless_too(tmp_path: pathlib.Path, cache: t.Callable[[], str]) -> None:
    """Found by DNS SRV. Beside a local file the cache is the older one, as slurmd reads the file first."""
    conf = tmp_path / "slurm.conf"
    cache()
    seen = module.look_at_conf(None, units("/usr/sbin/slurmd -D", conf), PROGRAMS, controller=False)
    assert (seen["mode"], seen["path"], seen["left_over"]) == ("configless", None, None)
    conf.write_text("SlurmctldHost=c1\n")
    seen = module.look_at_conf(None, units("/usr/sbin/slurmd -D", conf), PROGRAMS, controller=False)
    assert (seen["mode"], seen["path"], seen["left_over"]) == ("local", str(conf), None)


def test_case_24_a_controller_reads_its_file(tmp_path: pathlib.Path, cache: t.Callable[[], str]) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("SlurmctldHost=c1\n")
    cache()
    seen = module.look_at_conf(None, units("/usr/sbin/slurmd -D --conf-server c1", conf), PROGRAMS, controller=True)
    assert (seen["mode"], seen["path"], seen["left_over"]) == ("local", str(conf), None)


def test_case_30_a_host_that_has_none_of_it(tmp_path: pathlib.Path, cache: t.Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A login node without slurmd: no file, no server, no cache."""
    nowhere = str(tmp_path / "slurm.conf")
    monkeypatch.setattr(module.slurm_layout, "candidate_confs", lambda argv, environment, bin_dir: [nowhere])
    seen = module.look_at_conf(None, units("", tmp_path / "slurm.conf"), PROGRAMS, controller=False)
    assert (seen["mode"], seen["path"], seen["servers"]) == ("none", None, [])


@pytest.mark.parametrize(
    ("there", "found"),
    [
        (["/usr/bin/python2.7", "/usr/bin/python3"], "/usr/bin/python3"),
        (["/usr/bin/python", "/usr/bin/python2", "/usr/bin/python2.7"], "/usr/bin/python2.7"),  # EL7
        (["/usr/libexec/platform-python"], "/usr/libexec/platform-python"),  # EL8
    ],
)
def test_what_stays_on_the_host_runs_under_the_python_of_its_system(there: list[str], found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.X_OK and path in there)
    assert module.system_python() == found
