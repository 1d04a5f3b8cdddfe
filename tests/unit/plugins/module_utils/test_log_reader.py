"""Logs of any size: found by time, rotated and compressed, bounded, and never somebody else's file."""

from __future__ import annotations

import gzip
import os
import re
import time
from pathlib import Path

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import job_logs, log_reader

JOB = job_logs.names_job("4711")


def lines(first: int, number: int) -> list[str]:
    """A line each second; every thousandth is about the job."""
    made = []
    for second in range(first, first + number):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1796000000 + second))
        about = "JobId=4711 did something" if second % 1000 == 0 else "JobId=14711 is another, so is 47110 JobId=47112"
        made.append(f"[{stamp}.123] {about} {'x' * 60}\n")
    return made


def at(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1796000000 + second))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "slurmctld.log"
    path.write_text("".join(lines(0, 30000)))
    return path


@pytest.mark.parametrize(("begin", "end"), [(0, 29999), (5000, 9000), (29000, 40000), (-100, 0), (4999, 5001)])
def test_lines_of_a_time_are_found(log: Path, begin: int, end: int) -> None:
    found, note = log_reader.search(str(log), JOB, at(begin), at(end))
    expected = [second for second in range(0, 30000, 1000) if begin <= second <= end]
    assert [line[1:20] for line in found] == [at(second) for second in expected] and note == ""


def test_little_is_read_of_a_large_log(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "CHUNK", 4096)
    searched: list[int] = []
    real = log_reader._matching

    def counting(blocks, pattern, end, deadline):  # type: ignore[no-untyped-def]
        def each():  # type: ignore[no-untyped-def]
            for block in blocks:
                searched.append(len(block))
                yield block

        return real(each(), pattern, end, deadline)

    monkeypatch.setattr(log_reader, "_matching", counting)
    found, _note = log_reader.search(str(log), JOB, at(15000), at(15010))
    assert len(found) == 1 and sum(searched) < log.stat().st_size / 8


def test_what_a_long_job_leaves_out_is_said(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "MOST_BYTES", 1 << 20)
    found, note = log_reader.search(str(log), JOB, at(0), at(29999))
    assert "MB in the middle" in note and found[0][1:20] == at(0) and found[-1][1:20] == at(29000)


def test_rotated_and_compressed_files_are_read_too(tmp_path: Path) -> None:
    log = tmp_path / "slurmctld.log"
    with gzip.open(f"{log}.2.gz", "wt") as stream:
        stream.write("".join(lines(0, 1500)))
    Path(f"{log}.1").write_text("".join(lines(1500, 1000)))
    log.write_text("".join(lines(2500, 1000)))
    (tmp_path / "slurmctld.logistics").write_text("".join(lines(0, 1500)))
    for name, second in ((f"{log}.2.gz", 1500), (f"{log}.1", 2500), (str(log), 3500)):
        os.utime(name, (1796000000 + second, 1796000000 + second))
    found, _note = log_reader.search(str(log), JOB, at(900), at(3100), (1796000900, 1796003100))
    assert [line[1:20] for line in found] == [at(1000), at(2000), at(3000)]
    assert log_reader.rotated(str(log), 1796002600, 1796003100) == [str(log)], "older files cannot hold it"


def test_a_log_without_times_is_read_from_its_end(tmp_path: Path) -> None:
    log = tmp_path / "slurmd.log"
    log.write_text("Dec 01 10:00:00 n1 slurmd: JobId=4711 began\n" * 3)
    assert len(log_reader.search(str(log), JOB, at(0), at(10))[0]) == 1, "the same line once"


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe" * 100, b"x" * 300000, b"[2026-12-01T", b"\0" * 5000 + b"\nJobId=4711 \xff"])
def test_no_content_raises(tmp_path: Path, content: bytes) -> None:
    log = tmp_path / "log"
    log.write_bytes(content)
    log_reader.search(str(log), JOB, at(0), at(10))
    broken = tmp_path / "log.1.gz"
    broken.write_bytes(content)
    log_reader.search(str(log), JOB, at(0), at(10))


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe", "broken"])
def test_what_cannot_be_read_says_why(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ("log.gz" if kind == "broken" else "log")
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "broken":
        path.write_bytes(b"\x1f\x8b rubbish")
    with pytest.raises(log_reader.Unread, match=re.escape(str(path))):
        log_reader.search(str(path), JOB)


def test_the_time_is_bounded(log: Path) -> None:
    with pytest.raises(log_reader.Unread, match="the time was up"):
        log_reader.search(str(log), JOB, at(0), at(29999), seconds=-1)


def test_only_the_users_own_file_is_read(tmp_path: Path) -> None:
    """The path is what a user wrote: it may name a file that root alone may read."""
    uid, other = str(os.geteuid()), str(os.geteuid() + 1)
    own = tmp_path / "slurm-1.out"
    own.write_text("begin\n" + "x" * 50000 + "\nend\n")
    text, why = log_reader.owned_tail(str(own), uid)
    assert text.endswith("end\n") and "begin" not in text and why == ""
    assert log_reader.owned_tail(str(own), other) == ("", f"{own}: not a file of the job's user")
    link = tmp_path / "link"
    link.symlink_to(own)
    assert log_reader.owned_tail(str(link), uid) == ("", f"{link}: is a symbolic link")
    for path in (str(tmp_path), str(tmp_path / "no"), "/dev/zero", "a\0b"):
        text, why = log_reader.owned_tail(path, "0")
        assert text == "" and why


def test_a_file_that_never_answers_costs_a_bounded_time() -> None:
    begun = time.monotonic()
    assert log_reader.apart(lambda: time.sleep(30), 0.2) is None
    assert time.monotonic() - begun < 5
    assert log_reader.apart(lambda: ["text", ""], 5) == ["text", ""]
    assert log_reader.apart(lambda: 1 // 0, 5) is None
