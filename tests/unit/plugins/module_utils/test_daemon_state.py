"""Whether a start that was asked for has come to something."""

from __future__ import annotations

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import daemon_state as state

BEFORE = {
    "ActiveState": "active",
    "SubState": "running",
    "MainPID": "10",
    "ExecMainStartTimestampMonotonic": "100",
    "ConditionTimestampMonotonic": "90",
}
RUNNING = {
    **BEFORE,
    "MainPID": "20",
    "ExecMainStartTimestampMonotonic": "200",
    "ConditionTimestampMonotonic": "190",
    "ConditionResult": "yes",
}


@pytest.mark.parametrize(
    ("shown", "verdict"),
    [
        (RUNNING, state.UP),
        (BEFORE, state.STARTING),  # the old process, the request is still on its way
        ({**BEFORE, "Job": "77"}, state.STARTING),
        ({**RUNNING, "Job": "77"}, state.STARTING),
        ({**RUNNING, "ActiveState": "activating", "SubState": "start-pre", "MainPID": "0"}, state.STARTING),
        ({**RUNNING, "ActiveState": "activating", "SubState": "auto-restart", "MainPID": "0"}, state.STARTING),
        ({**RUNNING, "ActiveState": "deactivating"}, state.STARTING),
        ({**RUNNING, "ActiveState": "active", "SubState": "exited"}, state.STARTING),
        ({**RUNNING, "ActiveState": "failed", "MainPID": "0"}, state.ENDED),
        ({**RUNNING, "ActiveState": "inactive", "MainPID": "0"}, state.ENDED),
        ({**RUNNING, "ActiveState": "inactive", "ConditionResult": "no"}, state.SKIPPED),
        # a condition that was not met long ago says nothing of this start
        ({**BEFORE, "ActiveState": "activating", "ConditionResult": "no"}, state.STARTING),
    ],
)
def test_case_22_started_without_running(shown: dict[str, str], verdict: str) -> None:
    """Only a new main process that systemd sees running is up; a skipped start is told as one."""
    assert state.judge(shown, BEFORE) == verdict


def test_exits_since_the_request() -> None:
    """The exit of the process that was restarted does not count; each later one counts once."""
    seen: set[int] = set()
    own_exit = {**RUNNING, "ExecMainStartTimestampMonotonic": "100", "ExecMainExitTimestampMonotonic": "150"}
    assert state.exits(own_exit, BEFORE, seen) == 0
    first = {**RUNNING, "ExecMainStartTimestampMonotonic": "200", "ExecMainExitTimestampMonotonic": "210"}
    assert [state.exits(first, BEFORE, seen), state.exits(first, BEFORE, seen)] == [1, 1]
    running = {**RUNNING, "ExecMainStartTimestampMonotonic": "300", "ExecMainExitTimestampMonotonic": "210"}
    assert state.exits(running, BEFORE, seen) == 1
    second = {**RUNNING, "ExecMainStartTimestampMonotonic": "300", "ExecMainExitTimestampMonotonic": "310"}
    assert state.exits(second, BEFORE, seen) == 2


def test_steps_are_known_by_their_start_too() -> None:
    """A pid that another process has now is a step that is gone."""
    before = {10: (1, "7.batch"), 11: (2, "8.0"), 12: (3, "9.batch")}
    assert state.steps_lost(before, {10: (1, "7.batch"), 11: (9, "20.0")}) == {11: "8.0", 12: "9.batch"}


@pytest.mark.parametrize(
    ("job", "fine"),
    [
        ({"JobState": "COMPLETED", "ExitCode": "0:0"}, True),
        ({"JobState": "RUNNING"}, True),
        ({"JobState": "TIMEOUT", "ExitCode": "0:0"}, True),
        ({"JobState": "FAILED", "ExitCode": "3:0"}, True),
        ({"JobState": "FAILED", "ExitCode": "0:15"}, False),
        ({"JobState": "FAILED", "ExitCode": "0:9"}, False),
        ({"JobState": "NODE_FAIL"}, False),
        ({"JobState": "PENDING", "Restarts": "1"}, False),
        ({}, False),
    ],
)
def test_steps_that_ended_by_themselves(job: dict[str, str], fine: bool) -> None:
    """S25: FAILED 0:15 is how a job looks that died with slurmd's unit."""
    assert state.ended_by_itself(job) is fine


def test_excerpt_is_short_and_harmless() -> None:
    """Lines of trouble, bounded, no control characters; the last lines where none tells of trouble."""
    log = "".join(f"line {number}\n" for number in range(100))
    log += "fatal: \x1b[2Jcannot find \u202eplugin " + "x" * 1000 + "\nerror: second\n"
    lines = state.excerpt(log)
    assert len(lines) == 2 and lines[1] == "error: second"
    assert len(lines[0]) == 300 and "\x1b" not in lines[0] and "\u202e" not in lines[0]
    assert state.excerpt("a\n\nb\n") == ["a", "b"]
    assert len(state.excerpt("".join(f"error: {number}\n" for number in range(500)))) == 20
    assert state.excerpt("slurmctld: error: x\nerror: x\n") == ["error: x"], "the journal has it twice"


def test_where_a_daemon_logs() -> None:
    """The last setting counts, in any case; comments do not; %h and %n are filled in."""
    conf = "#SlurmdLogFile=/no\nslurmdlogfile = /a\nSlurmdLogFile=/var/log/%h-%n.log # remark\nSlurmctldLogFile=/c\n"
    assert state.log_path(conf, "slurmd", "h1", "n1") == "/var/log/h1-n1.log"
    assert state.log_path(conf, "slurmctld", "h1", "n1") == "/c"
    assert state.log_path("LogFile=/d\n", "slurmdbd", "h1", "h1") == "/d" and state.log_path("", "slurmd", "h", "n") == ""
