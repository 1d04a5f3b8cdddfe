"""Sizes, times, TRES and host lists as Slurm prints them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hpcguard.slurm.plugins.module_utils import quantities


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("4000Mc", "M", (4000, "c")),
        ("16Gn", "M", (16384, "n")),
        ("100M", "M", (100, "")),
        ("100", "M", (100, "")),
        ("0", "M", (0, "")),
        ("1048576", "B", (1, "")),
        ("102400K", "B", (100, "")),
        ("1.5T", "M", (1.5 * 1024 * 1024, "")),
        ("UNLIMITED", "M", (float("inf"), "")),
        ("", "M", (None, "")),
        ("much", "M", (None, "")),
    ],
)
def test_memory(text: str, unit: str, expected: tuple[float | None, str]) -> None:
    assert quantities.memory_mb(text, unit) == expected


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1-00:00:00", 86400),
        ("2-12", 216000),
        ("01:02:03", 3723),
        ("10:30", 630),
        ("60", 3600),
        ("00:01.500", 1),
        ("UNLIMITED", float("inf")),
        ("NOT_SET", None),
        ("", None),
    ],
)
def test_lengths_of_time(text: str, number: float | None) -> None:
    assert quantities.seconds(text) == number


def test_tres() -> None:
    found = quantities.tres("cpu=2,mem=100M,node=1,billing=2,gres/gpu=1,broken,x=")
    assert found == {"cpu": 2, "mem": 100, "node": 1, "billing": 2, "gres/gpu": 1}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[01-03],g1", ["n01", "n02", "n03", "g1"]),
        ("a[1-2]b[3-4]", ["a1b3", "a1b4", "a2b3", "a2b4"]),
        ("n[1,3]-ib", ["n1-ib", "n3-ib"]),
        ("None assigned", ["None assigned"]),
        ("", []),
    ],
)
def test_host_lists(text: str, names: list[str]) -> None:
    assert quantities.hosts(text) == names


def test_a_list_of_a_million_hosts_is_bounded() -> None:
    assert len(quantities.hosts("n[0-99999999],m[0-99999999]")) == quantities.MOST_HOSTS
    assert len(quantities.hosts("n[0-9999]a[0-9999]")) <= quantities.MOST_HOSTS


@pytest.mark.parametrize(("number", "option"), [(19660.8, "20G"), (120, "128M"), (1300, "1536M"), (1024, "1G"), (4097, "5G"), (1, "64M")])
def test_a_size_is_rounded_up(number: float, option: str) -> None:
    assert quantities.option_mb(number) == option
    size = quantities.memory_mb(option)[0]
    assert size is not None and size >= number


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=60))
def test_no_text_raises(text: str) -> None:
    for read in (
        quantities.memory_mb,
        quantities.seconds,
        quantities.whole,
        quantities.tres,
        quantities.stamp,
        quantities.epoch,
        quantities.hosts,
    ):
        read(text)
    quantities.later(text, 5)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**9))
def test_times_come_back(number: int) -> None:
    assert quantities.seconds(quantities.show_seconds(number)) == number
