"""What the patrol may do about a node: the whole product of states, flags, reasons and units."""

from __future__ import annotations

import collections
import itertools
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import node_policy as policy
from ansible_collections.hpcguard.slurm.plugins.module_utils import scontrol_text

BASES = ("IDLE", "ALLOCATED", "MIXED", "DOWN", "UNKNOWN", "FUTURE", "ERROR", "SOMETHINGNEW")
MEANT = (
    *("DRAIN", "FAIL", "MAINT", "MAINTENANCE", "POWERED_DOWN", "POWERING_UP", "POWERING_DOWN", "POWER_DOWN", "POWER_UP"),
    *("REBOOT_ISSUED", "REBOOT_REQUESTED"),
)
FLAGS = ("", *MEANT, "RESERVED", "COMPLETING", "PLANNED", "CLOUD", "DYNAMIC_NORM", "INVALID_REG", "NEWFLAG")
REASONS = {
    "": "",
    "Not responding": policy.NOT_RESPONDING,
    "Node unexpectedly rebooted": policy.REBOOTED,
    "Low RealMemory (reported:1 < 100.00% of configured:2)": policy.MISCONFIGURED,
    "gres/gpu count reported lower than configured (7 < 8)": policy.MISCONFIGURED,
    "dimm swap": policy.SOMEBODY,
    "Prolog error": policy.SOMEBODY,
    "HC: disk / 95% full": policy.SOMEBODY,
}
Show = dict[str, str]
Node = dict[str, t.Any]


def unit(active: str, sub: str = "", **other: str) -> Show:
    return {"LoadState": "loaded", "UnitFileState": "enabled", "ActiveState": active, "SubState": sub, "KillMode": "process", **other}


MASKED = {"LoadState": "masked", "UnitFileState": "masked", "ActiveState": "inactive", "SubState": "dead"}
MUNGES = (unit("active", "running"), unit("inactive", "dead"), unit("failed", "failed"), unit("inactive", UnitFileState="disabled"), MASKED)
RUNNING = unit("active", "running")
FAILED = unit("failed", "failed", Result="start-limit-hit")
STOPPED = unit("inactive", "dead", ExecMainStartTimestampMonotonic="7000000", InactiveEnterTimestampMonotonic="90000000")
SLURMDS: tuple[Show, ...] = (
    RUNNING,
    {**RUNNING, "KillMode": "control-group"},
    {**RUNNING, "UnitFileState": "disabled"},
    FAILED,
    {**FAILED, "UnitFileState": "disabled"},
    {**FAILED, "Job": "17"},
    STOPPED,
    {**STOPPED, "ExecMainStartTimestampMonotonic": "0"},
    unit("activating", "start-pre"),
    unit("activating", "auto-restart"),
    unit("deactivating", "stop-sigterm"),
    MASKED,
    {"LoadState": "not-found", "ActiveState": "inactive"},
    {},
)
PASTS = (
    {"reconfigured": False, "tries": {}},
    {"reconfigured": True, "tries": {}},
    {"reconfigured": True, "tries": dict.fromkeys(policy.ON_HOST, 2)},
)


def node(base: str, *flags: str, reason: str = "") -> Node:
    return {"name": "n1", "state": base, "base": base, "flags": [flag for flag in flags if flag], "reason": reason, "reason_user": "slurm"}


def host(**parts: t.Any) -> Node:
    return {"problem": None, "hold": False, "munge": MUNGES[0], "slurmd": RUNNING, "credential": True, **parts}


def act(one: Node, seen: Node, past: Node | None = None) -> str:
    return policy.decide(one, seen, past)[0]


LOST = node("DOWN", "NOT_RESPONDING", reason="Not responding")


@pytest.mark.parametrize(("base", "flag"), list(itertools.product(BASES, FLAGS)))
def test_the_whole_product(base: str, flag: str) -> None:
    """Whatever is combined, nothing that somebody meant is touched, and each action has all that makes it safe."""
    seen_actions = collections.Counter[str]()
    for star, reason, munge, slurmd, past in itertools.product(("", "NOT_RESPONDING"), REASONS, MUNGES, SLURMDS, PASTS):
        one = node(base, flag, star, reason=reason)
        for credential, hold, problem in itertools.product((True, False), (True, False), (None, ("被拒绝", "refused"))):
            seen = host(munge=munge, slurmd=slurmd, credential=credential, hold=hold, problem=problem)
            action, chinese, english = policy.decide(one, seen, past)
            seen_actions[action] += 1
            assert action in policy.ACTIONS
            assert chinese
            assert english
            loaded = munge.get("LoadState") == slurmd.get("LoadState") == "loaded"
            somebody = base == "DOWN" and REASONS[reason] == policy.SOMEBODY and flag != "INVALID_REG"
            if base == "FUTURE" or flag in MEANT or somebody or hold or problem or not loaded:
                assert action == policy.NOTHING
            elif action == policy.START_MUNGE:
                assert not credential
                assert munge["ActiveState"] != "active"
                assert munge["UnitFileState"] == "enabled"
            elif action == policy.START_SLURMD:
                assert credential
                assert slurmd["ActiveState"] in ("failed", "inactive")
                assert slurmd["UnitFileState"] == "enabled"
                assert slurmd is not STOPPED
                assert "Job" not in slurmd
            elif action in (policy.RECONFIGURE, policy.RESTART_SLURMD):
                assert credential
                assert slurmd["ActiveState"] == "active"
                assert star or base in ("DOWN", "UNKNOWN")
                assert flag != "INVALID_REG"
                assert REASONS[reason] != policy.REBOOTED
                assert past["reconfigured"] == (action == policy.RESTART_SLURMD)
            if action == policy.RESTART_SLURMD:
                assert base == "DOWN"
                assert star
                assert slurmd["KillMode"] == "process"
            if action in policy.ON_HOST:
                assert past["tries"] == {}
    if base == "FUTURE" or flag in MEANT:
        assert set(seen_actions) == {policy.NOTHING}
    else:
        wanted = {policy.NOTHING, policy.START_MUNGE, policy.START_SLURMD}
        wanted |= set() if flag == "INVALID_REG" else {policy.RECONFIGURE}
        wanted |= {policy.RESTART_SLURMD} if base == "DOWN" and flag != "INVALID_REG" else set()
        assert set(seen_actions) == wanted


@pytest.mark.parametrize(("reason", "kind"), REASONS.items())
def test_whose_word_a_reason_is(reason: str, kind: str) -> None:
    assert policy.reason_class(node("DOWN", reason=reason)) == kind


@pytest.mark.parametrize(
    ("state", "action"),
    [
        ("IDLE+DRAIN", policy.NOTHING),
        ("MIXED+DRAIN", policy.NOTHING),
        ("DOWN+DRAIN+NOT_RESPONDING", policy.NOTHING),
        ("IDLE*+DRAIN", policy.NOTHING),
        ("UNKNOWN+DRAIN+NOT_RESPONDING", policy.NOTHING),
        ("drained*", policy.NOTHING),
        ("DOWN*+CLOUD", policy.RECONFIGURE),
        ("DOWN+NOT_RESPONDING", policy.RECONFIGURE),
        ("down*", policy.RECONFIGURE),
        ("ALLOCATED+COMPLETING", policy.NOTHING),
        ("MIXED+PLANNED", policy.NOTHING),
        ("DOWN+INVALID_REG", policy.NOTHING),
        ("IDLE+DYNAMIC_NORM", policy.NOTHING),
    ],
)
def test_case_62_all_flags_of_a_compound_state_count(state: str, action: str) -> None:
    base, flags = scontrol_text.parse_state(state)
    assert act(node(base, *flags), host()) == action


@pytest.mark.parametrize(
    "state",
    [
        *("IDLE+CLOUD+POWERED_DOWN", "IDLE+POWER", "idle~", "idle#", "idle!", "idle%", "IDLE+CLOUD+POWERING_UP", "IDLE+POWERING_DOWN"),
        *("ALLOCATED+CLOUD+POWERING_UP+NOT_RESPONDING", "IDLE+POWER_DOWN"),
    ],
)
def test_case_64_powered_down_under_new_and_old_names(state: str) -> None:
    base, flags = scontrol_text.parse_state(state)
    assert policy.meant(node(base, *flags)) == ("已由 Slurm 断电", "powered down by Slurm")


def test_case_66_after_a_power_cut_nobody_is_resumed() -> None:
    """n1 rebooted unexpectedly, n7 has a bad power supply, n8 did not respond: only n8 is helped."""
    n1 = node("DOWN", reason="Node unexpectedly rebooted")
    n7 = node("DOWN", "DRAIN", reason="bad psu")
    assert [act(one, host()) for one in (n1, n7, LOST)] == [policy.NOTHING, policy.NOTHING, policy.RECONFIGURE]
    assert "waits for a resume" in policy.decide(n1, host())[2]


@pytest.mark.parametrize("counts", ["7 < 8", "0 < 8", "3 < 4"])
@pytest.mark.parametrize("state", ["IDLE+DRAIN+INVALID_REG", "DOWN+INVALID_REG", "inval"])
def test_case_68_fewer_gpus_than_configured_is_for_a_person(state: str, counts: str) -> None:
    """Neither a restart nor a resume mends hardware or slurm.conf: never a first one, so never a second."""
    base, flags = scontrol_text.parse_state(state)
    one = node(base, *flags, reason=f"gres/gpu count reported lower than configured ({counts})")
    assert policy.reason_class(one) == policy.MISCONFIGURED
    for past in PASTS:
        action, _chinese, english = policy.decide(one, host(), past)
        assert action == policy.NOTHING
        assert english == ("drained" if "DRAIN" in flags else "what it has is not what slurm.conf says")


@pytest.mark.parametrize("slurmd", [RUNNING, FAILED])
def test_case_70_a_prolog_error_is_left_to_a_person(slurmd: Show) -> None:
    """The next job would only drain the node again, and the patrol knows no action that opens one."""
    one = node("IDLE", "DRAIN", reason="Prolog error")
    assert policy.decide(one, host(slurmd=slurmd)) == (policy.NOTHING, "已被排空", "drained")
    assert not [action for action in policy.ACTIONS if "resume" in action or "undrain" in action]


def test_case_26_one_failure_at_boot_is_transient() -> None:
    """User slurm cannot be resolved yet: systemd tries again, or has given up and is asked to; nobody calls it a wrong configuration."""
    trying = unit("activating", "auto-restart", Result="exit-code", ExecMainStatus="217")
    gave_up = unit("failed", "failed", Result="exit-code", ExecMainStatus="217")
    assert act(LOST, host(slurmd=trying)) == policy.NOTHING
    assert act(LOST, host(slurmd=gave_up)) == policy.START_SLURMD


@pytest.mark.parametrize("state", ["IDLE+MAINTENANCE+RESERVED", "maint", "idle$", "drain$", "down$"])
def test_case_72_maintenance_is_left_alone(state: str) -> None:
    base, flags = scontrol_text.parse_state(state)
    assert act(node(base, *flags), host(slurmd=FAILED)) == policy.NOTHING


@pytest.mark.parametrize("state", ["resv", "IDLE+RESERVED"])
def test_case_72_a_plain_reservation_is_treated_as_working(state: str) -> None:
    base, flags = scontrol_text.parse_state(state)
    assert act(node(base, *flags), host(slurmd=FAILED)) == policy.START_SLURMD


def test_case_74_stopped_on_purpose_masked_and_crashed() -> None:
    """n3 drained and stopped, n4 masked, n5 crashed: only n5 is started."""
    n3 = node("IDLE", "DRAIN", reason="testing kernel")
    assert act(n3, host(slurmd=STOPPED)) == policy.NOTHING
    assert act(LOST, host(slurmd=MASKED)) == policy.NOTHING
    assert act(LOST, host(slurmd=FAILED)) == policy.START_SLURMD
    # stopped with exit status 0 is not crashed, drained or not
    assert act(LOST, host(slurmd=STOPPED)) == policy.NOTHING


def test_a_slurmd_that_never_ran_since_the_boot_is_nobodys_wish() -> None:
    assert act(LOST, host(slurmd={**STOPPED, "ExecMainStartTimestampMonotonic": "0"})) == policy.START_SLURMD


@pytest.mark.parametrize(
    ("requires", "munge_ended", "action"),
    [
        ("sysinit.target munge.service", "89000000", policy.START_SLURMD),
        ("sysinit.target munge.service", "20000000", policy.NOTHING),
        ("sysinit.target munge.service", "", policy.NOTHING),
        ("sysinit.target", "89000000", policy.NOTHING),
    ],
)
def test_a_slurmd_that_went_down_with_its_munge_is_started(requires: str, munge_ended: str, action: str) -> None:
    munge = {**RUNNING, "InactiveEnterTimestampMonotonic": munge_ended}
    assert act(LOST, host(munge=munge, slurmd={**STOPPED, "Requires": requires})) == action


def test_munge_that_runs_and_is_refused_needs_a_person() -> None:
    assert act(node("IDLE"), host(credential=False)) == policy.NOTHING


def test_after_a_reconfigure_only_a_unit_that_keeps_jobs_is_restarted() -> None:
    later = PASTS[1]
    assert act(LOST, host(), later) == policy.RESTART_SLURMD
    assert act(LOST, host(slurmd={**RUNNING, "KillMode": "control-group"}), later) == policy.NOTHING
    assert act(node("IDLE"), host(), later) == policy.NOTHING
    # it answers, but ReturnToService=0 keeps it: a restart would not help
    assert act(node("DOWN", reason="Not responding"), host(), later) == policy.NOTHING


def test_a_node_that_was_helped_twice_within_the_hour_is_left_to_a_person() -> None:
    for tries, action in ((1, policy.START_SLURMD), (2, policy.NOTHING)):
        past = {"reconfigured": False, "tries": {policy.START_SLURMD: tries}}
        assert act(LOST, host(slurmd=FAILED), past) == action


@pytest.mark.parametrize(
    ("total", "most", "limit"), [(1, 20, 1), (3, 20, 3), (4, 20, 3), (30, 20, 10), (900, 20, 20), (900, 2, 2), (6, 2, 2)]
)
def test_of_many_nodes_only_some_are_touched_at_once(total: int, most: int, limit: int) -> None:
    assert policy.most_nodes(total, most) == limit
