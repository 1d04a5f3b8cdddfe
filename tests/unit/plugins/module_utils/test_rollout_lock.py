"""Two runs never act at once, and a dead one holds nobody off for ever."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import rollout_lock

ME = {"place": "adm1 boot", "process": "42 1000", "who": "root", "doing": "deploy"}
OTHER = {**ME, "place": "adm2 boot", "process": "7 5"}
EARLIER = {**ME, "process": "41 900"}


def lock(owner: dict[str, str], until: int = 200) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", rollout_lock.loads(rollout_lock.dumps(owner, 100, until)))


def test_the_text_comes_back_as_it_was() -> None:
    assert lock(ME) == {"owner": ME, "since": 100, "until": 200}


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", '{"owner": {}}', '{"owner": 1, "since": 1, "until": 2}', "null"])
def test_what_cannot_be_read_holds_nobody_off(text: str | None) -> None:
    assert rollout_lock.loads(text) is None
    assert not rollout_lock.stands(rollout_lock.loads(text), 0)


@pytest.mark.parametrize(
    ("present", "now", "gone", "taken"),
    [
        (None, 150, (), True),
        (lock(ME), 150, (), True),
        (lock(OTHER), 150, (), False),
        (lock(OTHER), 201, (), True),
        (lock(EARLIER), 150, (), False),
        (lock(EARLIER), 150, ("41 900",), True),
        # a process of that number ended here, which says nothing of another control node
        (lock(OTHER), 150, ("7 5",), False),
    ],
)
def test_who_may_take_it(present: dict[str, t.Any] | None, now: int, gone: tuple[str, ...], taken: bool) -> None:
    assert rollout_lock.may_take(present, ME, now, gone) is taken


def test_the_holder_is_named_and_cannot_write_to_the_terminal() -> None:
    told = rollout_lock.describe(lock({**OTHER, "who": "eve\x1b[31m"}), 220)
    assert "deploy by eve" in told and "on adm2 (process 7), begun 2 minutes ago" in told
    assert "\x1b" not in told
