"""Module verify_info: what it looks at, in which order, and what it must never run."""

from __future__ import annotations

import hashlib
import os
import pathlib
import time
import types
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders
from ansible_collections.hpcguard.slurm.plugins.modules import verify_info as module

from .conftest import Run

SCRIPT = '#!/bin/sh\n[ "$(env | grep -c SLURMD_NODENAME=n1)" = 1 ] || exit 3\n[ "$#$1" = 1--dry-run ] || exit 4\necho "HealthCheck 通过"\n'
CONF = (
    "SlurmctldHost=c1\nClusterName=hpc\nhealthcheckinterval=600\nHealthCheckInterval=300 # 秒\n#HealthCheckProgram=/x\nInclude site.conf\n"
)


class Host:
    """A node under a temporary directory; systemd and journal are scripted, the health check script is really run."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.clock = time.time()
        self.slurmd: dict[str, str] = {"LoadState": "loaded", "ExecStartPre": ""}
        self.started(500)
        self.journal = ""
        self.ran: list[list[str]] = []
        self.beat_at = float("inf")
        self.script = root / "health_check.sh"
        self.script.write_text(SCRIPT, encoding="utf-8")
        self.script.chmod(0o755)
        self.beat = root / "last"
        conf = root / "slurm.conf"
        conf.write_text(CONF, encoding="utf-8")
        (root / "site.conf").write_text("MaxJobCount=20000\n", encoding="utf-8")
        for path in (conf, root / "site.conf"):
            os.utime(path, (self.clock - 5000, self.clock - 5000))

    def started(self, ago: float, what: str = "ExecMainStartTimestamp") -> None:
        self.slurmd[what] = time.strftime("%a %Y-%m-%d %H:%M:%S UTC", time.localtime(self.clock - ago))

    def sleep(self, seconds: float) -> None:
        self.clock += seconds
        if self.clock >= self.beat_at:
            self.write_beat(0)

    def write_beat(self, ago: float) -> None:
        self.beat.write_text(f"epoch={int(self.clock - ago)}\nrc=0\n", encoding="utf-8")

    def run(self, argv: list[str], timeout: float, **more: t.Any) -> loaders.Result:
        self.ran.append(list(argv))
        if argv[0] == "journalctl":
            return loaders.Result(0, self.journal)
        return _really_run(argv, timeout, **more)

    def look(self, run: Run, **more: t.Any) -> dict[str, t.Any]:
        arguments = {
            "part": "node",
            "node_name": "n1",
            "conf": {"mode": "local", "path": str(self.root / "slurm.conf")},
            "release": [22, 5],
            "settings": {"HealthCheckInterval": 300},
            "script": str(self.script),
            "heartbeat": str(self.beat),
        }
        result = run("verify_info", **{**arguments, **more})
        assert result["changed"] is False
        return t.cast("dict[str, t.Any]", result["evidence"])


_really_run = loaders.run


@pytest.fixture
def host(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(tmp_path)
    monkeypatch.setattr(loaders, "systemctl_show", lambda unit, properties=None: made.slurmd)
    monkeypatch.setattr(loaders, "run", made.run)
    monkeypatch.setattr(loaders, "path_problem", lambda path: "")
    # a clock for this module only: the script is really run meanwhile
    monkeypatch.setattr(module, "time", types.SimpleNamespace(**{**vars(time), "time": lambda: made.clock, "sleep": made.sleep}))
    # the tests may run as anybody
    monkeypatch.setattr(os, "lstat", lambda path, lstat=os.lstat: os.stat_result([*lstat(path)[:4], 0, 0, *lstat(path)[6:]]))
    return made


def test_s55_the_script_runs_in_the_environment_of_slurmd(run_module: Run, host: Host) -> None:
    """Nothing but SLURMD_NODENAME, and never without --dry-run."""
    host.write_beat(30)
    seen = host.look(run_module)
    assert seen["dry_run"]["rc"] == 0, seen["dry_run"]
    assert seen["dry_run"]["out"] == "HealthCheck 通过\n"
    assert seen["script"]["sha256"] == seen["dry_run"]["sha256_after"] == hashlib.sha256(SCRIPT.encode()).hexdigest()


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_a_script_that_others_can_write_is_not_run_as_root(run_module: Run, host: Host, mode: int) -> None:
    host.script.chmod(mode)
    seen = host.look(run_module, first_beat=0)
    assert seen["dry_run"] is None
    assert "others than root" in seen["script"]["problem"]
    assert not [argv for argv in host.ran if str(host.script) in argv]


def test_a_script_under_a_directory_of_somebody_is_not_run_as_root(run_module: Run, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaders, "path_problem", lambda path: "lies under /home/x, which is not owned by root")
    assert host.look(run_module, first_beat=0)["dry_run"] is None


def test_a_link_and_nothing_are_not_run(run_module: Run, host: Host) -> None:
    host.script.rename(host.root / "elsewhere")
    host.script.symlink_to(host.root / "elsewhere")
    assert (host.look(run_module)["script"]["kind"], host.look(run_module)["dry_run"]) == ("link", None)
    host.script.unlink()
    assert (host.look(run_module)["script"]["kind"], host.look(run_module)["dry_run"]) == ("absent", None)


def test_the_settings_of_the_file_are_read_as_slurm_reads_them(run_module: Run, host: Host) -> None:
    """S53 S54: comments and superseded lines do not count, included files do."""
    host.write_beat(30)
    conf = host.look(run_module)["conf"]
    assert conf["values"] == {"HealthCheckInterval": "300", "ClusterName": "hpc"}
    assert sorted(pathlib.Path(path).name for path in conf["files"]) == ["site.conf", "slurm.conf"]
    assert conf["files"][str(host.root / "slurm.conf")] == hashlib.sha256(CONF.encode()).hexdigest()


def test_the_heartbeat_is_taken_before_the_dry_run(run_module: Run, host: Host) -> None:
    """A script that left a heartbeat in a dry run would otherwise prove that slurmd runs it."""
    host.script.write_text(f"#!/bin/sh\necho epoch=9999999999 >{host.beat}\n", encoding="utf-8")
    host.write_beat(30)
    assert "9999999999" not in host.look(run_module)["heartbeat"]["text"]


def waited(run: Run, host: Host, **more: t.Any) -> float:
    before = host.clock
    host.look(run, **more)
    return host.clock - before


def test_the_first_beat_after_a_start_is_waited_for(run_module: Run, host: Host) -> None:
    host.started(2)
    host.write_beat(400)

    host.beat_at = host.clock + 5
    assert 5 <= waited(run_module, host) < 7


def test_the_wait_for_the_first_beat_ends(run_module: Run, host: Host) -> None:
    host.started(2)
    assert 57 <= waited(run_module, host) <= 59


def test_a_new_interval_may_take_its_time(run_module: Run, host: Host) -> None:
    """After a reconfigure the first run comes an interval later, slurmd is not restarted."""
    host.started(5000)
    os.utime(host.root / "slurm.conf", (host.clock - 100, host.clock - 100))
    assert 259 <= waited(run_module, host) <= 261


def test_a_process_that_a_reconfigure_began_is_no_start(run_module: Run, host: Host) -> None:
    """Slurm 23.11 and newer: slurmd puts another process in its place, which runs no health check before the interval is over."""
    host.started(5000, "InactiveExitTimestamp")
    host.started(4999, "ActiveEnterTimestamp")
    host.started(100)
    os.utime(host.root / "slurm.conf", (host.clock - 100, host.clock - 100))
    assert 259 <= waited(run_module, host) <= 261

    host.write_beat(200)
    assert waited(run_module, host) == 0
    assert int(host.clock) - host.look(run_module)["started"] >= 4999


def test_a_start_that_systemd_has_not_seen_complete_is_a_start(run_module: Run, host: Host) -> None:
    """A slurmd that is still starting: the service was active long ago, before this start."""
    host.started(5000, "ActiveEnterTimestamp")
    host.started(20, "InactiveExitTimestamp")
    host.started(2)
    host.write_beat(400)
    assert host.look(run_module, first_beat=0)["started"] >= int(host.clock) - 21


@pytest.mark.parametrize("why", ["old start", "no script", "no interval", "not running"])
def test_nothing_is_waited_for_where_no_beat_can_come(run_module: Run, host: Host, why: str) -> None:
    host.started(5000 if why == "old start" else 2)
    if why == "no script":
        host.script.unlink()
    if why == "not running":
        host.slurmd["ExecMainStartTimestamp"] = ""
    assert waited(run_module, host, **({"settings": {}} if why == "no interval" else {})) == 0


def call(stop: str, path: object = "/w/wait.sh") -> str:
    return f"{{ path={path} ; argv[]={path} c1 ; ignore_errors=no ; start_time=[n/a] ; stop_time=[{stop}] ; code=exited ; status=0 }}"


@pytest.mark.parametrize(
    ("stop", "journal", "again"),
    [
        ("Tue 2026-12-01 10:00:00 UTC", "", False),
        ("n/a", "12:00 n1 wait: slurmctld 已就绪\n", False),
        ("n/a", "12:00 n1 wait: something else\n", True),
    ],
)
def test_the_wait_script_is_run_again_only_where_no_trace_is_left(
    run_module: Run, host: Host, stop: str, journal: str, again: bool
) -> None:
    script = waiting(host, 0o755)
    host.slurmd["ExecStartPre"] = call(stop, script)
    host.journal = journal
    seen = host.look(run_module, wait_script=script)
    assert (seen["wait_run"] is not None) is again
    assert ([script, "c1"] in host.ran) is again
    assert seen["journal"]["ready"] == (journal.strip() if "已就绪" in journal else "")


def waiting(host: Host, mode: int) -> str:
    """A wait script on a host whose health check has just run."""
    host.write_beat(30)
    script = host.root / "wait.sh"
    script.write_text("#!/bin/sh\n", encoding="utf-8")
    script.chmod(mode)
    return str(script)


def test_a_wait_script_that_others_can_write_is_not_run_as_root(run_module: Run, host: Host) -> None:
    """Or verify would be the way to become root."""
    script = waiting(host, 0o777)
    host.slurmd["ExecStartPre"] = call("n/a", script)
    assert host.look(run_module, wait_script=script)["wait_run"] is None
    assert not [argv for argv in host.ran if script in argv]


def test_a_host_that_cannot_be_looked_at_is_a_result(run_module: Run, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: t.Any) -> t.NoReturn:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(loaders, "read_text", broken)
    assert "Input/output error" in host.look(run_module)["error"]


CREDENTIAL = "MUNGE:AwQFAAC5:"


def test_case_28_a_credential_of_the_controller_is_read_on_the_node(run_module: Run, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Handed over on standard input, and gone from what comes back. Without one nothing is read and nothing claimed."""
    given: list[t.Any] = []

    def munge(argv: list[str], timeout: float, **more: t.Any) -> loaders.Result:
        if argv[0] in ("munge", "unmunge"):
            given.append((argv, more.get("stdin")))
            return loaders.Result(0, CREDENTIAL) if argv[0] == "munge" else loaders.Result(14, err="unmunge: Error: Invalid credential\n")
        return host.run(argv, timeout, **more)

    monkeypatch.setattr(loaders, "run", munge)
    host.write_beat(30)
    assert host.look(run_module)["credential"] is None and given == []
    made = run_module("verify_info", part="credential")["evidence"]["credential"]
    seen = host.look(run_module, munge_credential=made)
    assert seen["credential"] == {"rc": 14, "err": "unmunge: Error: Invalid credential\n"}
    assert given == [(["munge", "-n"], None), (["unmunge", "-n"], CREDENTIAL)]
    assert CREDENTIAL not in str(seen)


def test_case_28_a_munge_that_makes_no_credential_claims_nothing(run_module: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaders, "run", lambda argv, timeout, **more: loaders.Result(6, "", "munge: Error: Unable to access socket"))
    assert run_module("verify_info", part="credential")["evidence"] == {"credential": ""}


# --- controller ---------------------------------------------------------------------------------

CONFIG = """Configuration data as of 2026-12-01T10:00:00
AccountingStorageType   = accounting_storage/slurmdbd
AccountingStoragePass   = secret1
ClusterName             = hpc
JobAcctGatherType       = jobacct_gather/cgroup
ReturnToService         = 2
SLURM_VERSION           = 22.05.8
SlurmctldHost[0]        = c1
SlurmctldHost[1]        = c2

Slurmctld(primary) at c1 is UP
"""


def look_at_controller(
    run: Run, monkeypatch: pytest.MonkeyPatch, answers: dict[str, loaders.Result], conf: dict[str, str] | None = None
) -> tuple[t.Any, list[list[str]]]:
    asked: list[list[str]] = []

    def scontrol(program: str, args: t.Iterable[str], timeout: float, conf: str | None = None) -> loaders.Result:
        words = [program.rsplit("/", 1)[-1], *args]
        asked.append(words)
        return next((answer for start, answer in answers.items() if " ".join(words).startswith(start)), loaders.Result(1))

    monkeypatch.setattr(loaders, "scontrol", scontrol)
    monkeypatch.setattr(loaders, "systemctl_show", lambda unit, properties=None: {"LoadState": "loaded"})
    programs = {name: f"/s/{name}" for name in ("scontrol", "sacct", "sacctmgr")}
    settings = {"JobAcctGatherType": "jobacct_gather/cgroup", "ReturnToService": 2}
    result = run("verify_info", part="controller", programs=programs, conf=conf or {}, release=[22, 5], settings=settings)
    return result["evidence"], asked


NODES = loaders.Result(0, "NodeName=n1 State=IDLE SlurmdStartTime=2099-01-01T00:00:00\nNodeName=n2 State=IDLE SlurmdStartTime=None\n")


def test_a_controller_tells_only_what_may_be_told(run_module: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, _asked = look_at_controller(run_module, monkeypatch, {"scontrol show config": loaders.Result(0, CONFIG)})
    assert "secret1" not in str(seen)
    assert seen["config"]["values"]["ReturnToService"] == "2"
    assert seen["controllers"] == 2


@pytest.mark.parametrize(("rows", "needed"), [("5.batch|2099-01-01T00:00:01|COMPLETED|5M\n", False), ("", True)])
def test_a_step_since_slurmctlds_start_spares_the_probe_though_a_slurmd_is_younger(
    run_module: Run, monkeypatch: pytest.MonkeyPatch, rows: str, needed: bool
) -> None:
    answers = {"scontrol show config": loaders.Result(0, CONFIG), "scontrol -o show node": NODES, "sacct ": loaders.Result(0, rows)}
    seen, asked = look_at_controller(run_module, monkeypatch, answers)
    assert seen["needs_probe"] is needed
    [question] = [words for words in asked if words[0] == "sacct"]
    assert question[question.index("-S") + 1] < "2099"


def test_a_silent_controller_is_asked_for_nothing_more(run_module: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, asked = look_at_controller(run_module, monkeypatch, {})
    assert (seen["config"]["rc"], seen["nodes"]["rc"], seen["needs_probe"]) == (1, 1, False)
    assert "sacct" not in [words[0] for words in asked]


@pytest.mark.parametrize(("shown", "listed"), [(CONFIG, "other\nhpc\n"), (CONFIG.replace("= hpc", "= HPC"), "hpc\n"), ("", "hpc\n")])
def test_the_cluster_is_looked_for_by_its_name(
    run_module: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, shown: str, listed: str
) -> None:
    """Also while slurmctld is away: then slurm.conf says the name."""
    (tmp_path / "slurm.conf").write_text(CONF, encoding="utf-8")
    answers = {"scontrol show config": loaders.Result(0 if shown else 1, shown), "sacctmgr": loaders.Result(0, listed)}
    conf = {"path": str(tmp_path / "slurm.conf")}
    assert look_at_controller(run_module, monkeypatch, answers, conf)[0]["accounting"]["listed"] is True
    answers["sacctmgr"] = loaders.Result(0, "hpc2\n")
    assert look_at_controller(run_module, monkeypatch, answers, conf)[0]["accounting"]["listed"] is False


def test_a_controller_without_slurms_programs(run_module: Run) -> None:
    seen = run_module("verify_info", part="controller")["evidence"]
    assert (seen["config"]["rc"], "scontrol was not found" in seen["config"]["err"]) == (127, True)
