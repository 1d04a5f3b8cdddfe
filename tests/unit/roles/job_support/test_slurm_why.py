"""slurm-why as a user runs it: stand-ins for Slurm's commands, every Python at hand, a pipe and a narrow terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
import unicodedata
from pathlib import Path

import pytest
import yaml

from ansible_collections.hpcguard.slurm.plugins.filter import patrol as patrol_filter

ROOT = Path(__file__).resolve().parents[4]
MODULES = yaml.safe_load((ROOT / "roles/job_support/vars/main.yml").read_text())["__job_support_modules"]
FIELDS = "JobID JobIDRaw State ExitCode UID User Partition Submit Start End ElapsedRaw TimelimitRaw ReqMem MaxRSS NodeList StdOut JobName"


def real_path(python: str | None) -> str:
    done = subprocess.run([python or "false", "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


PYTHONS = [sys.executable, *filter(None, map(real_path, map(shutil.which, ("python2.7", "python3.6"))))]

CONFIG = """Configuration data as of now
AccountingStorageType   = accounting_storage/slurmdbd
SlurmctldLogFile        = {home}/slurmctld.log
SlurmdLogFile           = {home}/slurmd.log
"""
SCONTROL = """#!/bin/sh
case "$*" in
  "show config") cat {home}/config ;;
  *"show job"*) cat {home}/job 2>/dev/null || {{ echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; }} ;;
  *"show node"*) echo "NodeName=n1 CPUTot=2 RealMemory=4000 State=IDLE" ;;
  *"show partition"*) echo "PartitionName=p MaxTime=UNLIMITED DefaultTime=00:10:00 Nodes=n1 State=UP" ;;
esac
"""
SACCT = """#!/bin/sh
[ -e {home}/no-dbd ] && {{ echo "sacct: error: Problem talking to the database: Connection refused" >&2; exit 1; }}
case "$*" in
  --helpformat) echo {fields} ;;
  *JobName*) cat {home}/rows ;;
  *) echo {uid} ;;
esac
"""
SQUEUE = """#!/bin/sh
case "$*" in *"%U -j"*) echo {uid} ;; *) cat {home}/queue 2>/dev/null ;; esac
"""


class Host:
    """A login node: the program, its library, Slurm's commands."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.program = home / "prefix/bin/slurm-why"
        self.program.parent.mkdir(parents=True)
        for one in patrol_filter.patrol_library(MODULES, str(home / "prefix/lib/hpcguard")):
            Path(one["path"]).parent.mkdir(parents=True, exist_ok=True)
            Path(one["path"]).write_text(one["content"], encoding="utf-8")
        shutil.copy(ROOT / "roles/job_support/files/slurm_why.py", self.program)
        for name, text in (
            ("scontrol", SCONTROL),
            ("sacct", SACCT),
            ("squeue", SQUEUE),
            ("sdiag", "#!/bin/sh\n"),
            ("sacctmgr", "#!/bin/sh\n"),
        ):
            (home / name).write_text(text.format(home=home, fields=FIELDS, uid=os.geteuid()))
            (home / name).chmod(0o755)
        (home / "config").write_text(CONFIG.format(home=home))
        (home / "slurmctld.log").write_text("[2026-12-01T14:00:09.000] _job_complete: JobId=101 WEXITSTATUS 127\n")
        (home / "slurmd.log").write_text("")
        (home / "out").write_text("/tmp/x: line 2: fooo: command not found\n")
        self.rows(
            f"101|101|FAILED|127:0|{os.geteuid()}|alice|p|2026-12-01T14:00:00|2026-12-01T14:00:01|2026-12-01T14:00:09|8|60|100M||n1|{home}/out|作业"
        )

    def rows(self, *rows: str) -> None:
        (self.home / "rows").write_text("".join(row.replace("|", "\x1f") + "\n" for row in rows), encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self.home}:/usr/bin:/bin", "LC_ALL": "C", "TERM": "xterm"}

    def run(self, *options: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, str(self.program), *options],
            env=self.environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    def on_terminal(self, columns: int, *options: str) -> str:
        """What a terminal of so many columns shows."""
        mine, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with subprocess.Popen([sys.executable, str(self.program), *options], env=self.environment, stdout=theirs) as child:
            os.close(theirs)
            shown = b""
            while True:
                try:
                    chunk = os.read(mine, 65536)
                except OSError:
                    break
                if not chunk:
                    break
                shown += chunk
            assert child.wait(60) == 0
        os.close(mine)
        return shown.decode("utf-8").replace("\r\n", "\n")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.mark.parametrize("python", PYTHONS)
def test_a_verdict_with_its_evidence(host: Host, python: str) -> None:
    done = host.run("101", python=python)
    assert done.returncode == 0 and done.stderr == ""
    assert "找不到命令" in done.stdout and "a command was not found" in done.stdout and "用户 / the user" in done.stdout
    order = [done.stdout.index(word) for word in ("sacct: 101", "WEXITSTATUS", "fooo:")]
    assert order == sorted(order), "scheduler, node, application"
    assert "\x1b" not in done.stdout, "no colour in a pipe"


@pytest.mark.parametrize("python", PYTHONS)
def test_help_in_any_locale(host: Host, python: str) -> None:
    done = host.run("--help", python=python)
    assert done.returncode == 0 and "slurm-why" in done.stdout


@pytest.mark.parametrize("python", PYTHONS)
def test_json(host: Host, python: str) -> None:
    told = json.loads(host.run("101", "--json", python=python).stdout)
    assert told["findings"][0]["id"] == "job_missing_command"
    assert {one["name"] for one in told["sources"]} >= {"sacct", "scontrol", "slurmctld.log", "output"}


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_terminal_of_any_width_gets_colour_and_no_line_that_is_too_long(host: Host, columns: int) -> None:
    shown = host.on_terminal(columns, "101")
    assert "\x1b[31m" in shown
    for line in shown.replace("\x1b[31m", "").replace("\x1b[0m", "").split("\n"):
        assert sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line) <= max(columns, 40)


def test_one_language(host: Host) -> None:
    english = host.run("101", "--lang", "en").stdout.replace("作业", "")
    assert not [char for char in english if "\u4e00" <= char <= "\u9fff"]
    assert "a command was not found" not in host.run("101", "--lang", "zh").stdout


def test_the_database_is_down_and_slurmctld_has_forgotten(host: Host) -> None:
    """Only the log is left: less sure, and both are named."""
    (host.home / "no-dbd").touch()
    done = host.run("101")
    assert done.returncode == 0 and "a command was not found" in done.stdout
    assert "Connection refused" in done.stdout and "no longer knows" in done.stdout and "确定" not in done.stdout


def test_nothing_is_known(host: Host) -> None:
    (host.home / "no-dbd").touch()
    done = host.run("102")
    assert done.returncode == 1 and "no trace" in done.stdout


@pytest.mark.parametrize("question", ["", "x;id", "../etc", "--queue 101", "$(id)"])
def test_what_is_no_question(host: Host, question: str) -> None:
    assert host.run(*question.split()).returncode == 2


def test_somebody_elses_file_is_not_shown(host: Host) -> None:
    """A job's output path is its user's word."""
    secret = host.home / "secret"
    secret.write_text("root:hash\n")
    uid = os.geteuid() + 1
    (host.home / "sacct").write_text(SACCT.format(home=host.home, fields=FIELDS, uid=uid))
    times = "2026-12-01T14:00:00|2026-12-01T14:00:01|2026-12-01T14:00:09"
    host.rows(f"101|101|FAILED|1:0|{os.geteuid()}|x|p|{times}|8|60|1M||n1|{secret}|x UserId=root(0)")
    done = host.run("101")
    assert "hash" not in done.stdout
    assert "not a file of the job's user" in " ".join(done.stdout.split())


def test_a_hostile_name_cannot_steer_the_terminal(host: Host) -> None:
    (host.home / "out").write_text("\x1b]0;pwned\x07\x1b[2J evil command not found\n")
    assert "\x1b]" not in host.on_terminal(80, "101") and "[2J" not in host.on_terminal(80, "101")


def test_the_queue(host: Host) -> None:
    (host.home / "queue").write_text("\x1f".join(
        ["7", "p", "alice", "a", "normal", "1", "PENDING", "64", "1", "100M", "1", "0", "1:00:00", "2026-12-01T10:00:00", "N/A", "(null)",
         "N/A", "(null)", "(null)", "Resources"]) + "\n")  # fmt: skip
    done = host.run("--queue")
    assert done.returncode == 0 and "64 asked, 2 on 1 nodes" in done.stdout


def test_the_library_is_complete() -> None:
    """Each file of module_utils that one of these imports is among them."""
    for name in MODULES:
        text = (ROOT / f"plugins/module_utils/{name}.py").read_text(encoding="utf-8")
        for line in text.replace("(\n", "(").replace(",\n", ",").splitlines():
            if line.startswith("from . import"):
                needed = {one.split(" as ")[0].strip(" ()") for one in line.removeprefix("from . import").split(",")} - {""}
                assert needed <= set(MODULES), name
            elif line.startswith("from ."):
                assert line.split()[1][1:] in MODULES, name
