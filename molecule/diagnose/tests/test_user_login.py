"""slurm-why as users have it: on a login node, which has no slurmd, and shares their homes with the nodes. Takes the lab's place."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import typing as t
import unicodedata

import cluster
import pytest
from jobs import HOME, USER, is_over, why

LOGIN = "k8s-login-01"


def as_user(*argv: str) -> list[str]:
    return ["runuser", "-u", USER, "--", *argv]


@pytest.fixture(scope="module")
def job() -> t.Iterator[str]:
    """One that ended, submitted where users submit."""
    up = subprocess.run([cluster.ROOT / "lab/up.sh"], env={**os.environ, "TOPOLOGY": "login"}, capture_output=True, text=True, check=False)
    assert up.returncode == 0, up.stdout[-3000:] + up.stderr[-3000:]
    cluster.succeed("job_support", "-e", "job_support_slurm_why=true")
    ident = cluster.out(LOGIN, *as_user("sbatch", "--parsable", f"--chdir={HOME}", "--wrap", "foo --bar"))
    cluster.wait_for(lambda: is_over(ident), 60, "the job is over")
    yield ident
    subprocess.run([cluster.ROOT / "lab/down.sh"], check=True)


def on_terminal(columns: int, *argv: str) -> str:
    """What a user sees on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = ["podman", "exec", "-it", "-e", "TERM=xterm", cluster.container(LOGIN), *as_user(*argv)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                got = os.read(ours, 65536)
            except OSError:  # the other end has gone
                break
            if not got:
                break
            seen += got
        assert process.wait(30) == 0, seen
    os.close(ours)
    return seen.decode().replace("\r", "").lstrip("\0")


def test_no_daemon_is_needed(job: str) -> None:
    assert cluster.run(LOGIN, "systemctl", "is-active", "slurmd", check=False).returncode
    found = why(job, LOGIN)
    assert (found["id"], found["confidence"], found["who"]) == ("job_missing_command", "certain", "user")
    assert f"{HOME}/slurm-{job}.out" in {line["source"] for line in found["evidence"]}
    assert {one["name"] for one in found["missing"]} == {"slurmctld.log", "slurmd.log", "kernel"}


@pytest.mark.parametrize(
    ("language", "words", "others"), [("zh", "找不到命令", "the user"), ("en", "a command was not found", "找不到命令")]
)
def test_a_narrow_terminal_in_one_language(job: str, language: str, words: str, others: str) -> None:
    seen = on_terminal(40, "slurm-why", "--lang", language, job)
    lines = [line.replace("\x1b[31m", "").replace("\x1b[0m", "") for line in seen.splitlines()]
    assert "\x1b[31m" in seen and words in "".join(lines) and others not in "".join(lines)
    assert max(sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line) for line in lines) <= 40, lines


def test_a_pipe_gets_no_colour_and_both_languages_whatever_the_locale(job: str) -> None:
    text = cluster.out(LOGIN, *as_user("env", "LC_ALL=C", "slurm-why", job))
    assert "\x1b" not in text and "找不到命令" in text and "a command was not found" in text


def test_others_are_told_what_slurm_tells_them(job: str) -> None:
    """The output is its user's; sacct shows the job to everybody."""
    cluster.run(LOGIN, "chmod", "700", HOME)
    found = why(job, LOGIN, user="nobody")
    assert found["id"] == "job_missing_command" and "output" in {one["name"] for one in found["missing"]}


def test_what_it_does_not_know(job: str) -> None:
    for argv, status in ((["999999"], 1), (["x"], 2), ([], 2), (["--queue"], 0)):
        assert cluster.run(LOGIN, *as_user("slurm-why", *argv), check=False).returncode == status, argv
