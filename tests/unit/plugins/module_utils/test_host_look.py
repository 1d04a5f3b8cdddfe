"""What a host answers to the patrol's one call."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import host_look, loaders

ANSWER = """a greeting
hpcguard:foreign
unmunge: Error: Invalid credential
hpcguard:munge
LoadState=loaded
ActiveState=active
hpcguard:slurmd
ActiveState=active
ExecStart={ path=/usr/sbin/slurmd ; argv[]=/usr/sbin/slurmd -D ; status=0/0 }
hpcguard:heartbeat
verdict=pass
good_runs=3
hpcguard:facts
credential=yes
hold=yes
uptime=5000.25
now=1000100
key=1000000
hpcguard:end
"""


def test_an_answer() -> None:
    host = host_look.parse(loaders.Result(0, ANSWER), 1000099, 1000101)
    assert host["problem"] is None
    assert (host["hold"], host["credential"], host["foreign"]) == (True, True, "unmunge: Error: Invalid credential")
    assert host["munge"] == {"LoadState": "loaded", "ActiveState": "active"}
    assert "argv[]=/usr/sbin/slurmd -D" in host["slurmd"]["ExecStart"]
    assert host["heartbeat"] == {"verdict": "pass", "good_runs": "3"}
    assert (host["now"], host["uptime"], host["key_age"], host["skew"]) == (1000100, 5000.25, 100, 0)


def test_without_a_credential_of_the_controllers_nothing_is_known_of_the_key() -> None:
    assert host_look.parse(loaders.Result(0, ANSWER), 1000099, 1000101, credential=False)["foreign"] is None


@pytest.mark.parametrize(("asked", "answered", "skew"), [(1000090, 1000110, 0), (1000000, 1000050, 50), (1000500, 1000510, -400)])
def test_the_clock_is_compared_with_the_time_of_the_call(asked: float, answered: float, skew: float) -> None:
    assert host_look.parse(loaders.Result(0, ANSWER), asked, answered)["skew"] == skew


@pytest.mark.parametrize("cut", ["hpcguard:end", "hpcguard:facts", "a greeting"])
def test_an_answer_that_is_not_whole_is_none(cut: str) -> None:
    host = host_look.parse(loaders.Result(0, ANSWER[: ANSWER.index(cut)]), 0, 0)
    assert host["problem"]


@pytest.mark.parametrize("done", [None, loaders.Result(124, ANSWER[:50], "", True), loaders.Result(124)])
def test_no_time_and_no_answer_in_time_are_one(done: loaders.Result | None) -> None:
    assert host_look.parse(done, 0, 0)["problem"] == host_look.LATE


def test_hostile_words_are_made_harmless() -> None:
    host = host_look.parse(loaders.Result(255, "", "\x1b]0;x\x07mischief\n"), 0, 0)
    assert host["problem"] == ("mischief", "mischief")
    assert host_look.parse(loaders.Result(0, ANSWER.replace("unmunge:", "\x1b[31munmunge:")), 0, 0)["foreign"].startswith("unmunge:")


def test_numbers_that_are_none_do_no_harm() -> None:
    odd = ANSWER.replace("=1000100", "=later").replace("=1000000", "=").replace("=5000.25", "=")
    host = host_look.parse(loaders.Result(0, odd), 10, 20)
    assert (host["now"], host["uptime"], host["key_age"], host["skew"]) == (10, 0, None, 0)


@pytest.mark.parametrize("command", [host_look.LOOK, *host_look.COMMANDS.values()])
def test_every_command_is_what_a_plain_shell_takes(command: str) -> None:
    """dash, as sshd starts it: parsed, not run."""
    shell = shutil.which("dash") or "sh"
    assert subprocess.run([shell, "-n", "-c", command], check=False, capture_output=True).returncode == 0
    if command == host_look.LOOK:
        inner = command.split("'")
        assert len(inner) == 3
        assert subprocess.run([shell, "-n", "-c", inner[1]], check=False, capture_output=True).returncode == 0
