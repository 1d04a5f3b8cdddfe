"""Programs and files of the host: bounded, without a shell, never in pieces."""

from __future__ import annotations

import grp
import os
import pathlib
import pwd
import stat
import sys
import time

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders


def test_output_and_status() -> None:
    """Both streams and the status."""
    done = loaders.run([sys.executable, "-c", "import sys; print('o'); sys.stderr.write('e'); sys.exit(3)"], 20)
    assert (done.rc, done.out, done.err, done.timed_out) == (3, "o\n", "e", False)


def test_time_limit_ends_the_whole_group(tmp_path: pathlib.Path) -> None:
    """A program that hangs is ended with its children, in time, and what it had said is kept."""
    mark = tmp_path / "pid"
    script = f"sleep 60 & echo $! > {mark}; echo said; wait"
    begun = time.monotonic()
    done = loaders.run(["/bin/sh", "-c", script], 1)
    assert (done.rc, done.timed_out, done.out) == (124, True, "said\n")
    assert time.monotonic() - begun < 4
    child = int(mark.read_text())
    deadline = time.monotonic() + 5
    while pathlib.Path(f"/proc/{child}").exists() and _state(child) not in "ZX" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not pathlib.Path(f"/proc/{child}").exists() or _state(child) in "ZX"


def _state(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def test_a_background_process_that_keeps_the_pipe_is_not_waited_for() -> None:
    """The program has ended, somebody else holds its output."""
    begun = time.monotonic()
    assert loaders.run(["/bin/sh", "-c", "sleep 5 & echo x"], 20).out == "x\n"
    assert time.monotonic() - begun < 4


def test_output_is_bounded() -> None:
    """A program that never stops talking neither fills the memory nor hangs."""
    done = loaders.run(["/bin/sh", "-c", "head -c 3000000 /dev/zero; exit 4"], 20, max_bytes=1000)
    assert done.rc == 4 and len(done.out) == 1000


def test_case_99_the_environment_is_neutral(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the locale; and nothing of the caller changes what Slurm's commands print."""
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    monkeypatch.setenv("LANGUAGE", "zh_CN:de")
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    monkeypatch.setenv("SLURM_CONF", "/x")
    env = dict(line.split("=", 1) for line in loaders.run(["/usr/bin/env"], 20, env={"MINE": "1"}).out.splitlines())
    assert env["LC_ALL"] == "C" and env["LANGUAGE"] == "" and env["MINE"] == "1" and env["SLURM_CONF"] == "/x"
    assert "SQUEUE_FORMAT" not in env and "SLURM_TIME_FORMAT" not in env


def test_words_never_reach_a_shell() -> None:
    """What looks like shell stays a word."""
    hostile = "$(reboot); `id` | x"
    assert loaders.run(["/bin/echo", hostile], 20).out == hostile + "\n"


@pytest.mark.parametrize(("path", "rc"), [("/no/such/program", 127), ("/etc/passwd", 126)])
def test_programs_that_cannot_be_run(path: str, rc: int) -> None:
    """A result, not an exception."""
    done = loaders.run([path], 5)
    assert done.rc == rc and path in done.err


def test_input() -> None:
    """Text for the program, and end of file where there is none."""
    assert loaders.run(["/bin/cat"], 20, stdin="你好").out == "你好"
    assert loaders.run(["/bin/cat"], 20).out == ""
    with pytest.raises(ValueError):
        loaders.run(["/bin/cat"], 20, stdin="x" * 100000)


def test_atomic_write(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New content and mode; when it fails half-way the old file is there and nothing else."""
    path = tmp_path / "f"
    path.write_text("old")
    loaders.write_atomic(str(path), b"new", os.geteuid(), os.getegid(), 0o750)
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == 0o750

    def fail(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError):
        loaders.write_atomic(str(path), b"newer", os.geteuid(), os.getegid())
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["f"]


def test_reading_never_waits(tmp_path: pathlib.Path) -> None:
    """A pipe where a file should be is no file; a missing one is none."""
    os.mkfifo(tmp_path / "pipe")
    assert loaders.read_bytes(str(tmp_path / "pipe")) is None
    assert loaders.read_bytes(str(tmp_path / "none")) is None
    (tmp_path / "f").write_bytes(b"\xff\n")
    assert loaders.read_text(str(tmp_path / "f")) == "\ufffd\n"
    assert loaders.read_tail(str(tmp_path / "f"), 1) == "\n"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("relative", "no absolute"),
        ("/etc/../tmp/x", "no absolute"),
        ("/etc", "is a directory"),
        ("/tmp/hpcguard-of-a-test", "others than root may write"),
        ("/etc/passwd/x", "no directory"),
        ("/dev/null", "no regular file"),
        ("/etc/hpcguard-of-a-test/deep/f", ""),
    ],
)
def test_where_root_may_write(path: str, told: str) -> None:
    """Only where nobody else could have put a link."""
    problem = loaders.path_problem(path)
    assert told in problem if told else problem == ""


def test_a_directory_of_somebody_else(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that belongs to the slurm user is his to redirect."""
    real = os.stat

    def foreign(path: str, *args: object, **more: object) -> os.stat_result:
        values = list(real(path))
        values[0], values[4] = stat.S_IFDIR | 0o755, 64030 if path == str(tmp_path) else 0
        return os.stat_result(values)

    monkeypatch.setattr(os, "stat", foreign)
    assert "not owned by root" in loaders.path_problem(str(tmp_path / "f"))


@pytest.mark.parametrize(
    ("mode", "gid", "members", "answer"),
    [
        (0o755, 50, [], False),
        (0o757, 0, [], True),
        (0o775, 0, [], False),
        (0o2775, 50, [], False),
        (0o2775, 50, ["alice"], True),
        (0o775, 4_000_000, None, True),
    ],
)
def test_who_may_write(monkeypatch: pytest.MonkeyPatch, mode: int, gid: int, members: list[str] | None, answer: bool) -> None:
    """Debian's /usr/local belongs to a group without members, which is no danger; a group with members is."""

    def group(wanted: int) -> grp.struct_group:
        if members is None:
            raise KeyError(wanted)
        return grp.struct_group(("staff", "x", wanted, members))

    monkeypatch.setattr(grp, "getgrgid", group)
    monkeypatch.setattr(pwd, "getpwall", list)
    status = os.stat_result((stat.S_IFDIR | mode, 0, 0, 2, 0, gid, 0, 0, 0, 0))
    assert loaders.others_may_write(status) is answer


def test_created_directories_are_told_outermost_first(tmp_path: pathlib.Path) -> None:
    """So that a return can remove them again."""
    assert loaders.make_dirs(str(tmp_path / "a" / "b")) == [str(tmp_path / "a"), str(tmp_path / "a" / "b")]
    assert loaders.make_dirs(str(tmp_path / "a" / "b")) == []
    record = loaders.file_record(str(tmp_path / "c" / "d" / "f"))[0]
    assert record["kind"] == "absent" and record["missing_dirs"] == [str(tmp_path / "c" / "d"), str(tmp_path / "c")]


def test_steps_are_found_by_name(tmp_path: pathlib.Path) -> None:
    """A process called slurmstepd is a step, its keeper "infinity" is none."""
    program = tmp_path / "slurmstepd"
    program.symlink_to("/bin/sleep")
    pids = []
    for words in (["slurmstepd: [7.batch]", "30"], ["slurmstepd", "infinity"]):
        pid = os.fork()
        if pid == 0:
            os.execv(str(program), words)
        pids.append(pid)
    try:
        deadline = time.monotonic() + 5
        while pids[0] not in loaders.slurmstepds() and time.monotonic() < deadline:
            time.sleep(0.02)
        found = loaders.slurmstepds()
        assert found[pids[0]][1] == "7.batch" and pids[1] not in found
    finally:
        for pid in pids:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def test_what_slurm_says_of_many_nodes_is_not_cut(tmp_path: pathlib.Path) -> None:
    """3,000 nodes are 2.7 MB."""
    program = tmp_path / "scontrol"
    program.write_text("#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x\n", encoding="ascii")
    program.chmod(0o755)
    assert len(loaders.scontrol(str(program), ["show", "node"], 20).out) == 3000000


def test_lines_are_handed_over_one_by_one_and_little_is_kept() -> None:
    taken: list[str] = []
    done = loaders.lines(["sh", "-c", "echo oops >&2; seq 1 100000; printf last"], 30, taken.append)
    assert (done.rc, done.out, done.err) == (0, "", "oops\n")
    assert taken[:2] == ["1", "2"] and taken[-2:] == ["100000", "last"] and len(taken) == 100001


def test_lines_of_a_program_that_never_ends() -> None:
    taken: list[str] = []
    begun = time.monotonic()
    done = loaders.lines(["sh", "-c", "echo one; exec sleep 60"], 0.5, taken.append)
    assert done.timed_out and done.rc == 124 and taken == ["one"] and "no answer" in done.err
    assert time.monotonic() - begun < 10


def test_lines_of_a_program_that_fails_or_is_not_there() -> None:
    assert loaders.lines(["sh", "-c", "exit 3"], 5, str).rc == 3
    assert loaders.lines(["/no/such/program"], 5, str).rc == 127
