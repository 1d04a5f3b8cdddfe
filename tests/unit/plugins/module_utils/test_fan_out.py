"""Many programs at once, by ClusterShell and by threads: the same results either way."""

from __future__ import annotations

import sys
import time

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import fan_out

ANSWER = "import sys; sys.stdout.write(sys.stdin.read() + sys.argv[1]); sys.stderr.write('said'); sys.exit(3)"


@pytest.fixture(autouse=True, params=["ClusterShell", "threads"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fan_out.task_self is not None, "ClusterShell is one of the development tools"
    if request.param == "threads":
        monkeypatch.setattr(fan_out, "task_self", None)


def test_each_reads_the_input_and_its_end_is_told() -> None:
    hostile = "a 'b' $(c) ; d\u8282"
    commands = [(name, [sys.executable, "-c", ANSWER, name]) for name in ("n1", hostile)]
    for name, done in fan_out.run_all(commands, 8, 20, 40, stdin="in\n").items():
        assert done is not None
        assert (done.rc, done.out.split(), done.err.strip(), done.timed_out) == (3, ["in", *name.split()], "said", False)


def test_twice_in_a_row() -> None:
    for text in ("one", "two"):
        done = fan_out.run_all([("n1", ["echo", text])], 8, 10, 20)["n1"]
        assert (done.rc, done.out.strip()) == (0, text)


def test_one_that_hangs_does_not_hold_the_others() -> None:
    begun = time.monotonic()
    done = fan_out.run_all([("hangs", ["sleep", "60"]), ("well", ["true"])], 8, 1, 20)
    assert time.monotonic() - begun < 10
    assert done["hangs"].timed_out
    assert done["hangs"].rc == 124
    assert done["well"].rc == 0


def test_when_the_time_is_over_what_was_not_begun_has_no_result() -> None:
    """And what had ended by then keeps its own."""
    commands = [("first", ["true"]), *[(f"h{number}", ["sleep", "60"]) for number in range(6)]]
    begun = time.monotonic()
    done = fan_out.run_all(commands, 2, 30, 1.5)
    assert time.monotonic() - begun < 10
    assert done["first"].rc == 0
    assert done["h5"] is None
    assert all(one is None or one.timed_out for key, one in done.items() if key != "first")


def test_a_program_that_is_not_there() -> None:
    assert fan_out.run_all([("n1", ["/nonexistent/ssh"])], 1, 5, 10)["n1"].rc == 127


def test_nothing_to_do() -> None:
    assert fan_out.run_all([], 1, 5, 10) == {}
