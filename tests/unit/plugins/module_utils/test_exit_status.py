"""code:signal, decoded."""

from __future__ import annotations

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import exit_status


@pytest.mark.parametrize(
    ("text", "kind", "signal", "words"),
    [
        ("0:0", "success", 0, "exit status 0"),
        ("1:0", "code", 0, "exit status 1"),
        ("126:0", "not_executable", 0, "cannot be executed"),
        ("127:0", "missing", 0, "not found"),
        ("0:125", "memory", 0, "out of memory"),
        ("0:53", "output", 0, "could not be opened"),
        ("0:9", "signal", 9, "SIGKILL"),
        ("137:0", "signal", 9, "the shell saw"),
        ("139:0", "signal", 11, "SIGSEGV"),
        ("0:11", "signal", 11, "SIGSEGV"),
        ("134:0", "signal", 6, "SIGABRT"),
        ("0:64", "signal", 64, "signal 64"),
        ("255:0", "code", 0, "255"),
        ("rubbish", "unknown", 0, "no exit status"),
    ],
)
def test_decoding(text: str, kind: str, signal: int, words: str) -> None:
    said = exit_status.decode(text)
    assert (said["kind"], said["signal"]) == (kind, signal)
    assert words in exit_status.describe(text)[1] and exit_status.describe(text)[0].startswith(text)


def test_a_shell_is_told_from_slurm() -> None:
    assert exit_status.decode("137:0")["by_shell"] and not exit_status.decode("0:9")["by_shell"]
