"""What the patrol may do about a node: the whole product of states, flags, reasons and units."""

from __future__ import annotations

import itertools
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import node_policy, scontrol_text

BASES = ("IDLE", "ALLOCATED", "MIXED", "DOWN", "UNKNOWN", "FUTURE", "ERROR", "SOMETHINGNEW")
FLAGS = (
    "",
    "NOT_RESPONDING",
    "DRAIN",
    "FAIL",
    "MAINT",
    "MAINTENANCE",
    "RESERVED",
    "POWERED_DOWN",
    "POWERING_UP",
    "POWER_DOWN",
    "REBOOT_ISSUED",
    "REBOOT_REQUESTED",
    "COMPLETING",
    "PLANNED",
    "CLOUD",
    "INVALID_REG",
    "NEWFLAG",
)
REASONS = (("", ""), ("Not responding", "slurm"), ("dimm swap", "root"), ("HC: disk / 95% full", "root"))
MUNGES = ({"LoadState": "loaded", "ActiveState": "active"}, {"LoadState": "loaded", "ActiveState": "inactive"}, {"LoadState": "masked"})
SLURMDS: tuple[dict[str, str], ...] = (
    {"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "UnitFileState": "enabled", "KillMode": "process"},
    {"LoadState": "loaded", "ActiveState": "failed", "Result": "start-limit-hit", "UnitFileState": "enabled"},
    {"LoadState": "loaded", "ActiveState": "inactive", "SubState": "dead", "UnitFileState": "enabled"},
    {"LoadState": "loaded", "ActiveState": "inactive", "SubState": "dead", "UnitFileState": "disabled"},
    {"LoadState": "loaded", "ActiveState": "activating", "SubState": "start-pre", "UnitFileState": "enabled"},
    {"LoadState": "loaded", "ActiveState": "deactivating", "SubState": "stop-sigterm", "UnitFileState": "enabled"},
    {"LoadState": "masked"},
)
Node = dict[str, t.Any]


def node(base: str, flags: str = "", reason: tuple[str, str] = ("", "")) -> Node:
    return {"name": "n1", "state": base, "base": base, "flags": [flags] if flags else [], "reason": reason[0], "reason_user": reason[1]}


def host(**parts: t.Any) -> Node:
    return {"problem": "", "hold": False, "munge": MUNGES[0], "slurmd": SLURMDS[0], "credential": True, **parts}


@pytest.mark.parametrize(("base", "flag", "reason"), list(itertools.product(BASES, FLAGS, REASONS)))
def test_the_whole_product(base: str, flag: str, reason: tuple[str, str]) -> None:
    one = node(base, flag, reason)
    for munge, slurmd, credential, hold, problem in itertools.product(MUNGES, SLURMDS, (True, False), (True, False), ("", "refused")):
        action, chinese, english = node_policy.decide(
            one, host(munge=munge, slurmd=slurmd, credential=credential, hold=hold, problem=problem)
        )
        assert action in node_policy.ACTIONS
        assert chinese
        assert english
        untouchable = (
            hold
            or problem
            or base == "FUTURE"
            or flag in ("DRAIN", "FAIL", "MAINT", "MAINTENANCE")
            or flag.startswith(("POWER", "REBOOT"))
            or (base == "DOWN" and reason == ("dimm swap", "root"))
            or "masked" in (munge.get("LoadState"), slurmd["LoadState"])
        )
        if untouchable:
            assert action == node_policy.NOTHING
        if action == node_policy.START_MUNGE:
            assert not credential
            assert munge["ActiveState"] != "active"
        if action == node_policy.START_SLURMD:
            assert credential
            assert slurmd["ActiveState"] == "failed"
        if action == node_policy.RECONFIGURE:
            assert node_policy.missing(one)
            assert slurmd["ActiveState"] == "active"
        # never a restart before a reconfigure was tried
        assert action != node_policy.RESTART_SLURMD


@pytest.mark.parametrize("state", ["IDLE+CLOUD+POWERED_DOWN", "IDLE+POWER", "idle~", "idle#", "IDLE+CLOUD+POWERING_UP", "IDLE+POWERING_DOWN"])
def test_case_64_powered_down_under_new_and_old_names(state: str) -> None:
    base, flags = scontrol_text.parse_state(state)
    one = {**node(base), "flags": flags}
    assert node_policy.decide(one, host(problem="connection refused"))[0::2] == (node_policy.NOTHING, "powered down by Slurm")


@pytest.mark.parametrize("state", ["IDLE+MAINTENANCE+RESERVED", "maint", "idle$", "down$"])
def test_case_72_maintenance_is_left_alone(state: str) -> None:
    base, flags = scontrol_text.parse_state(state)
    assert node_policy.decide({**node(base), "flags": flags}, host(slurmd=SLURMDS[1]))[0] == node_policy.NOTHING


def test_case_72_a_plain_reservation_is_treated_as_working() -> None:
    assert node_policy.decide(node("IDLE", "RESERVED"), host(slurmd=SLURMDS[1]))[0] == node_policy.START_SLURMD


def test_case_74_stopped_on_purpose_masked_and_crashed() -> None:
    drained = node("IDLE", "DRAIN", ("testing kernel", "root"))
    down = node("DOWN", "NOT_RESPONDING", ("Not responding", "slurm"))
    assert node_policy.decide(drained, host(slurmd=SLURMDS[2]))[0] == node_policy.NOTHING
    assert node_policy.decide(down, host(slurmd=SLURMDS[6]))[0] == node_policy.NOTHING
    assert node_policy.decide(down, host(slurmd=SLURMDS[2]))[0] == node_policy.NOTHING
    assert node_policy.decide(down, host(slurmd=SLURMDS[1]))[0] == node_policy.START_SLURMD


def test_munge_that_runs_and_is_refused_needs_a_person() -> None:
    assert node_policy.decide(node("IDLE"), host(credential=False))[0] == node_policy.NOTHING


def test_after_a_reconfigure_only_a_unit_that_keeps_jobs_is_restarted() -> None:
    lost = node("DOWN", "NOT_RESPONDING")
    assert node_policy.after_reconfigure(node("IDLE"), host())[0] == node_policy.NOTHING
    assert node_policy.after_reconfigure(lost, host())[0] == node_policy.RESTART_SLURMD
    assert node_policy.after_reconfigure(lost, host(slurmd={**SLURMDS[0], "KillMode": "control-group"}))[0] == node_policy.NOTHING
