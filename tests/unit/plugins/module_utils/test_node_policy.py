"""What the patrol may do about a node: the whole product of signs, and of states, flags, reasons, units and hosts."""

from __future__ import annotations

import itertools
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import host_look, node_policy, node_signs, scontrol_text

policy = node_policy
Node = dict[str, t.Any]
Show = dict[str, str]
SIGNS = dict(node_signs.SIGNS)

BASES = ("IDLE", "ALLOCATED", "MIXED", "DOWN", "UNKNOWN", "FUTURE", "ERROR", "SOMETHINGNEW")
MEANT = (
    *("FAIL", "MAINT", "MAINTENANCE", "POWERED_DOWN", "POWERING_UP", "POWERING_DOWN", "POWER_DOWN", "POWER_UP"),
    *("REBOOT_ISSUED", "REBOOT_REQUESTED"),
)
FLAGS = ("", *MEANT, "DRAIN", "RESERVED", "COMPLETING", "PLANNED", "CLOUD", "DYNAMIC_NORM", "INVALID_REG", "NEWFLAG")
REASONS = {
    "": "",
    "Not responding": node_signs.NOT_RESPONDING,
    "Node unexpectedly rebooted": node_signs.REBOOTED,
    "Low RealMemory (reported:1 < 100.00% of configured:2)": node_signs.MISCONFIGURED,
    "gres/gpu count reported lower than configured (7 < 8)": node_signs.MISCONFIGURED,
    "gres/gpu count reported lower than configured (0 < 8)": node_signs.NO_GRES,
    "Kill task failed": node_signs.PROCESSES_LEFT,
    "Prolog error": node_signs.PROLOG,
    "HC: rollout in progress": node_signs.ROLLOUT,
    "HC: disk at 90% /": node_signs.OURS,
    "dimm swap": node_signs.SOMEBODY,
    "see HC: disk": node_signs.SOMEBODY,
}


def node(base: str, *flags: str, reason: str = "", boot_time: str = "") -> Node:
    return {
        "name": "n1",
        "state": base,
        "base": base,
        "flags": [flag for flag in flags if flag],
        "reason": reason,
        "reason_user": "slurm",
        "boot_time": boot_time,
    }


def parsed(state: str, reason: str = "") -> Node:
    base, flags = scontrol_text.parse_state(state)
    return node(base, *flags, reason=reason)


def unit(active: str, sub: str = "", **other: str) -> Show:
    return {"LoadState": "loaded", "UnitFileState": "enabled", "ActiveState": active, "SubState": sub, "KillMode": "process", **other}


MASKED = {"LoadState": "masked", "UnitFileState": "masked", "ActiveState": "inactive", "SubState": "dead"}
RUNNING = unit("active", "running", ExecMainStartTimestampMonotonic="7000000")
FAILED = unit("failed", "failed", Result="exit-code")
LIMIT = unit("failed", "failed", Result="start-limit-hit")
STOPPED = unit("inactive", "dead", ExecMainStartTimestampMonotonic="7000000", InactiveEnterTimestampMonotonic="90000000")
FOREGROUND = "{ path=/usr/sbin/slurmd ; argv[]=/usr/sbin/slurmd -D $SLURMD_OPTIONS ; ignore_errors=no ; status=0/0 }"
WRONG_TYPE = unit("activating", "start", Type="forking", ExecStart=FOREGROUND, Job="17")
MUNGES = {
    "well": RUNNING,
    "dead": unit("inactive", "dead"),
    "failed": unit("failed", "failed"),
    "disabled": unit("inactive", UnitFileState="disabled"),
    "masked": MASKED,
}
SLURMDS: dict[str, Show] = {
    "running": RUNNING,
    "running, would kill": {**RUNNING, "KillMode": "control-group"},
    "running, disabled": {**RUNNING, "UnitFileState": "disabled"},
    "failed": FAILED,
    "failed, disabled": {**FAILED, "UnitFileState": "disabled"},
    "failed, job": {**FAILED, "Job": "17"},
    "start limit": LIMIT,
    "stopped": STOPPED,
    "never started": unit("inactive", "dead", ExecMainStartTimestampMonotonic="0", InactiveEnterTimestampMonotonic="0"),
    "waits for slurmctld": unit("activating", "start-pre", Job="17", InactiveExitTimestampMonotonic="4990000000"),
    "stuck": unit("activating", "start-pre", Job="17", InactiveExitTimestampMonotonic="4000000000"),
    "stuck, would kill": unit("activating", "start-pre", KillMode="mixed", InactiveExitTimestampMonotonic="4000000000"),
    "wrong type": WRONG_TYPE,
    "auto-restart": unit("activating", "auto-restart", InactiveExitTimestampMonotonic="1000000"),
    "stopping": unit("deactivating", "stop-sigterm"),
    "masked": MASKED,
    "not found": {"LoadState": "not-found", "ActiveState": "inactive"},
    "no answer": {},
}


def host(**parts: t.Any) -> Node:
    return {
        "problem": None,
        "hold": False,
        "munge": RUNNING,
        "slurmd": RUNNING,
        "credential": True,
        "foreign": "accepted",
        "now": 1000000.0,
        "uptime": 5000.0,
        "key_age": 4000.0,
        "skew": 0,
        "heartbeat": {},
        **parts,
    }


HOSTS: dict[str, Node] = {
    "seen": {},
    "refuses": {"problem": ("被拒绝", "refused")},
    "hold": {"hold": True},
    "no credential": {"credential": False},
    "clock": {"skew": -301.5},
    "old key": {"foreign": "unmunge: Error: Invalid credential", "key_age": 60.0},
    "other key": {"foreign": "unmunge: Error: Invalid credential", "key_age": None},
    "healthy": {"heartbeat": {"verdict": "pass", "good_runs": "2", "undrain_after": "2", "epoch": "999900"}},
}
PASTS: tuple[dict[str, t.Any], ...] = (
    {"reconfigured": False, "restarted": False, "tries": {}},
    {"reconfigured": True, "restarted": True, "tries": {}},
)


def decide(one: Node, seen: Node | None = None, past: Node | None = None, **other: t.Any) -> tuple[str, str, str]:
    return policy.decide(one, seen or host(), past, **other)


def act(one: Node, seen: Node | None = None, past: Node | None = None, **other: t.Any) -> str:
    return decide(one, seen, past, **other)[0]


LOST = node("DOWN", "NOT_RESPONDING", reason="Not responding")

# --- the table by itself ----------------------------------------------------------------------------


def test_every_sign_and_value_of_the_table_is_known() -> None:
    for row in policy.TABLE:
        assert row.action in policy.ACTIONS
        assert row.source
        for sign, values in row.when.items():
            assert set(values) <= set(SIGNS[sign]), row.english


def test_each_combination_of_signs_is_decided_by_one_row_and_keeps_what_must_not_happen_from_happening() -> None:
    """From the top, row by row, the combinations that are left: none is left at the end, and no row is for nothing."""
    # what a row takes of a set of combinations leaves one box for each of its conditions
    boxes = [{sign: frozenset(values) for sign, values in SIGNS.items()}]
    for row in policy.TABLE:
        taken, left = [], []
        for box in boxes:
            rest = dict(box)
            for sign, values in row.when.items():
                outside = rest[sign] - set(values)
                if outside:
                    left.append({**rest, sign: outside})
                rest[sign] &= set(values)
                if not rest[sign]:
                    break
            else:
                taken.append(rest)
        assert taken, f"no combination comes to: {row.english}"
        for box in taken:
            assert_harmless(row.action, box)
        boxes = left
    assert boxes == []


def assert_harmless(action: str, box: dict[str, frozenset[str]]) -> None:
    """The invariants, for every combination in the box."""
    if action in policy.PASSIVE:
        return
    assert box["state"] <= {"open", "our drain", "rebooted", "missed", "no gres"}
    assert box["host"] == {"seen"}
    assert box["clock"] == {"right"}
    assert not box["munge"] & {"absent", "disabled", "busy", "other key", "refused"}
    assert not box["slurmd"] & {"absent", "disabled", "stopped"}
    if action in (policy.RESTART_SLURMD, policy.FREE_SLURMD, policy.RESTART_MUNGE):
        assert box["jobs"] == {"kept"}
    if action not in policy.ON_MUNGE:
        assert box["munge"] == {"well"}
    if action in (*policy.ON_NODE, policy.RECONFIGURE, policy.RESTART_SLURMD):
        assert box["slurmd"] <= {"running", "running, disabled"}
    if action in policy.ON_SLURMD and action != policy.RESTART_SLURMD:
        assert not box["slurmd"] & {"running", "running, disabled", "busy"}
    if action == policy.CORRECT_SLURMD:
        assert box["slurmd"] == {"wrong type"}
    if action == policy.CLEAR_SLURMD:
        assert box["slurmd"] == {"start limit"}
    if action == policy.RESUME:
        assert box["state"] in ({"rebooted"}, {"missed"})
        assert [set(box[sign]) for sign in ("outage", "heard")] == [{"fits"}, {"down"}]
    if action == policy.UNDRAIN:
        assert [set(box[sign]) for sign in ("state", "health", "heard")] == [{"our drain"}, {"good"}, {"yes"}]
    if action == policy.RECONFIGURE:
        assert box["reconfigured"] == {"no"}
        assert "yes" not in box["heard"]


def test_a_command_that_restarts_slurmd_sets_or_needs_kill_mode_process() -> None:
    """S25: the correction writes it before the restart, every other restart is of a unit that has it."""
    correction = host_look.COMMANDS[policy.CORRECT_SLURMD]
    assert correction.index("KillMode=process") < correction.index("daemon-reload") < correction.index("restart")
    assert "/run/systemd/system/slurmd.service.d/zz-hpcguard.conf" in correction
    restarting = {action for action, command in host_look.COMMANDS.items() if "restart slurmd" in command}
    assert restarting == {policy.CORRECT_SLURMD, policy.RESTART_SLURMD, policy.FREE_SLURMD}
    assert set(host_look.COMMANDS) == set(policy.ON_HOST)


def test_only_a_start_limit_has_its_counter_reset() -> None:
    resetting = {action for action, command in host_look.COMMANDS.items() if "reset-failed" in command}
    assert resetting == {policy.CLEAR_SLURMD, policy.START_MUNGE}
    assert "start munge.service || { systemctl reset-failed" in host_look.COMMANDS[policy.START_MUNGE]


def test_the_explanation_names_every_row_in_aligned_columns() -> None:
    lines = policy.explain()
    assert len(lines) == len(policy.TABLE) + 1
    column = lines[0].index("why")
    assert all(line[column - 2 : column] == "  " and line[column] != " " for line in lines)
    for row, line in zip(policy.TABLE, lines[1:], strict=True):
        assert row.english in line
        assert row.chinese in line
        assert f"[{row.source}]" in line


# --- what Slurm and hosts say, as signs -------------------------------------------------------------


@pytest.mark.parametrize("base", BASES)
def test_what_somebody_meant_by_a_node_is_left_alone_whatever_the_host_shows(base: str) -> None:
    """Every state, flag and reason, with hosts in every kind of need."""
    needs = [host(), host(slurmd=FAILED), host(slurmd=WRONG_TYPE), host(munge=MUNGES["dead"], credential=False), host(**HOSTS["healthy"])]
    for flag, star, reason in itertools.product(FLAGS, ("", "NOT_RESPONDING"), REASONS):
        one = node(base, flag, star, reason=reason)
        kind = REASONS[reason]
        by_somebody = (
            base == "FUTURE"
            or flag in MEANT
            or (flag == "DRAIN" and kind != node_signs.OURS)
            or (flag == "INVALID_REG" and kind != node_signs.NO_GRES)
            or (base == "DOWN" and kind in (node_signs.SOMEBODY, node_signs.PROLOG, node_signs.PROCESSES_LEFT))
        )
        if by_somebody:
            assert policy.meant(one)
            assert {act(one, seen, past, since=1) for seen in needs for past in PASTS} <= {policy.LEAVE, policy.PERSON}
        elif base != "DOWN" or kind not in (node_signs.MISCONFIGURED, node_signs.NO_GRES):
            assert not policy.meant(one)
            assert act(one, host(slurmd=FAILED)) == policy.START_SLURMD


def test_every_host_beside_every_kind_of_node() -> None:
    """What its units and its other signs say; the kinds of nodes are the signs that Slurm's words become."""
    kinds = {}
    for base, flag, star, reason in itertools.product(BASES, FLAGS, ("", "NOT_RESPONDING"), REASONS):
        one = node(base, flag, star, reason=reason)
        if not policy.meant(one):
            kinds[node_signs.state_of(one), node_signs.heard(one)] = one
    assert len(kinds) == 3 * 4 + 2 * 2
    for munge, slurmd, seen in itertools.product(MUNGES, SLURMDS, HOSTS):
        look = host(**{"munge": MUNGES[munge], "slurmd": SLURMDS[slurmd], "credential": munge == "well", **HOSTS[seen]})
        for one, past in itertools.product(kinds.values(), PASTS):
            action, chinese, english = policy.decide(one, look, past, 1)
            assert action in policy.ACTIONS
            assert "{" not in chinese + english
            not_ours = {munge, slurmd} & {"masked", "not found", "no answer", "disabled", "failed, disabled", "stopped"}
            if not_ours or seen in ("refuses", "hold", "clock") or (seen == "other key" and munge == "well"):
                assert action in policy.PASSIVE
            if "would kill" in slurmd:
                assert action not in (policy.RESTART_SLURMD, policy.FREE_SLURMD, policy.RESTART_MUNGE)


@pytest.mark.parametrize(("reason", "kind"), REASONS.items())
def test_whose_word_a_reason_is(reason: str, kind: str) -> None:
    assert node_signs.reason_class(node("DOWN", reason=reason)) == kind


@pytest.mark.parametrize(
    ("state", "action"),
    [
        ("IDLE+DRAIN", policy.LEAVE),
        ("MIXED+DRAIN", policy.LEAVE),
        ("DOWN+DRAIN+NOT_RESPONDING", policy.LEAVE),
        ("IDLE*+DRAIN", policy.LEAVE),
        ("UNKNOWN+DRAIN+NOT_RESPONDING", policy.LEAVE),
        ("drained*", policy.LEAVE),
        ("DOWN*+CLOUD", policy.RECONFIGURE),
        ("DOWN+NOT_RESPONDING", policy.RECONFIGURE),
        ("down*", policy.RECONFIGURE),
        ("ALLOCATED+COMPLETING", policy.NOTHING),
        ("MIXED+PLANNED", policy.NOTHING),
        ("DOWN+INVALID_REG", policy.PERSON),
        ("IDLE+DYNAMIC_NORM", policy.NOTHING),
    ],
)
def test_case_62_all_flags_of_a_compound_state_count(state: str, action: str) -> None:
    assert act(parsed(state)) == action


@pytest.mark.parametrize(
    "state",
    [
        *("IDLE+CLOUD+POWERED_DOWN", "IDLE+POWER", "idle~", "idle#", "idle!", "idle%", "IDLE+CLOUD+POWERING_UP", "IDLE+POWERING_DOWN"),
        *("ALLOCATED+CLOUD+POWERING_UP+NOT_RESPONDING", "IDLE+POWER_DOWN"),
    ],
)
def test_case_64_powered_down_under_new_and_old_names(state: str) -> None:
    assert policy.meant(parsed(state)) == ("已由 Slurm 断电", "powered down by Slurm")


@pytest.mark.parametrize("state", ["IDLE+DRAIN+REBOOT_REQUESTED", "IDLE+DRAIN+REBOOT_ISSUED+NOT_RESPONDING", "idle@", "down^"])
def test_case_39_a_reboot_under_way_is_left_alone(state: str) -> None:
    assert policy.meant(parsed(state, "Reboot ASAP")) == ("正在重启", "a reboot is under way")


def test_case_66_after_a_power_cut_what_rebooted_in_it_is_resumed_by_the_bootstrap_only() -> None:
    """n1 rebooted unexpectedly, n7 has a bad power supply, n8 did not respond."""
    since = node_signs._epoch("2026-12-01T02:00:00")
    n1 = node("DOWN", reason="Node unexpectedly rebooted", boot_time="2026-12-01T02:10:00")
    last_week = {**n1, "boot_time": "2026-11-24T00:00:00"}
    n7 = node("DOWN", "DRAIN", reason="bad psu", boot_time="2026-12-01T02:10:00")
    assert act(n1, since=since) == policy.RESUME
    assert act(last_week, since=since) == policy.PERSON
    assert act({**n1, "boot_time": ""}, since=since) == policy.PERSON
    assert decide(n1)[0::2] == (policy.PERSON, "it rebooted unexpectedly and waits for a resume")
    # RESUME would clear both DOWN and DRAIN
    assert act(n7, since=since) == policy.LEAVE
    assert act({**n1, "flags": ["DRAIN"]}, since=since) == policy.LEAVE
    assert act(LOST, since=since) == policy.RECONFIGURE
    # one that is not well is mended first
    assert act(n1, host(slurmd=FAILED), since=since) == policy.START_SLURMD


def test_what_was_down_for_its_silence_is_resumed_where_return_to_service_leaves_it_so() -> None:
    """First it may register by a reconfigure; and only after an outage, or by order of a person (since is 0)."""
    since = node_signs._epoch("2026-12-01T02:00:00")
    n1 = node("DOWN", reason="Not responding", boot_time="2026-12-01T02:10:00")
    asked = PASTS[1]
    assert act(n1, since=since) == policy.RECONFIGURE
    assert act(n1, past=asked, since=since) == policy.RESUME
    assert act(n1, past=asked, since=0) == policy.RESUME
    assert act(n1, past=asked) == policy.PERSON
    assert act({**n1, "boot_time": "2026-11-24T00:00:00"}, past=asked, since=since) == policy.PERSON
    assert act(LOST, past=asked, since=0) == policy.RESTART_SLURMD
    for wish in ({"flags": ["DRAIN"]}, {"flags": ["MAINT"]}, {"reason": "bob: not responding"}):
        assert act({**n1, **wish}, past=asked, since=0) == policy.LEAVE
    assert act({**n1, "reason": ""}, past=asked, since=0) == policy.PERSON, "why it is DOWN nobody said"
    assert act({**n1, "flags": ["NOT_RESPONDING"]}, since=since) == policy.RECONFIGURE


@pytest.mark.parametrize(
    ("counts", "state", "action"),
    [
        ("7 < 8", "IDLE+DRAIN+INVALID_REG", policy.PERSON),
        ("3 < 4", "DOWN+INVALID_REG", policy.PERSON),
        ("7 < 8", "inval", policy.PERSON),
        # all of them gone: the driver came after slurmd
        ("0 < 8", "DOWN+INVALID_REG", policy.RESTART_SLURMD),
        ("0 < 8", "inval", policy.RESTART_SLURMD),
        # Slurm's own drain for it, which stays after a valid registration: nothing is restarted then
        ("0 < 8", "IDLE+DRAIN+INVALID_REG", policy.RESTART_SLURMD),
        ("0 < 8", "IDLE+DRAIN", policy.LEAVE),
    ],
)
def test_case_68_fewer_gpus_than_configured(counts: str, state: str, action: str) -> None:
    """Hardware and slurm.conf are a person's; a driver that came late is met with one restart, never a second."""
    one = parsed(state, f"gres/gpu count reported lower than configured ({counts})")
    assert act(one) == action
    assert act(one, past=PASTS[1]) == (policy.PERSON if action == policy.RESTART_SLURMD else action)
    assert act(one, host(slurmd=SLURMDS["running, would kill"])) != policy.RESTART_SLURMD


@pytest.mark.parametrize("slurmd", [RUNNING, FAILED])
def test_case_70_a_prolog_error_is_left_to_a_person(slurmd: Show) -> None:
    """The next job would only drain the node again: the prolog first, then the node, then the jobs."""
    action, _chinese, english = decide(node("IDLE", "DRAIN", reason="Prolog error"), host(slurmd=slurmd))
    assert action == policy.PERSON
    assert english.index("mend") < english.index("resume") < english.index("release")


def test_kill_task_failed_is_left_to_a_person() -> None:
    assert act(node("IDLE", "DRAIN", reason="Kill task failed"), host(slurmd=FAILED)) == policy.PERSON


def test_case_26_one_failure_at_boot_is_transient() -> None:
    """User slurm cannot be resolved yet: systemd tries again, or has given up and is asked to; nobody calls it a wrong configuration."""
    trying = unit("activating", "auto-restart", Result="exit-code", ExecMainStatus="217")
    gave_up = unit("failed", "failed", Result="exit-code", ExecMainStatus="217")
    assert act(LOST, host(slurmd=trying)) == policy.WAIT
    assert act(LOST, host(slurmd=gave_up)) == policy.START_SLURMD


@pytest.mark.parametrize(
    ("result", "restart", "action"),
    [
        ("start-limit-hit", "no", policy.CLEAR_SLURMD),
        # systemd 219 calls it so
        ("start-limit", "no", policy.CLEAR_SLURMD),
        # what failed first stays the result (seen on 252)
        ("signal", "always", policy.CLEAR_SLURMD),
        ("exit-code", "on-failure", policy.CLEAR_SLURMD),
        ("signal", "no", policy.START_SLURMD),
    ],
)
def test_case_20_a_start_limit_is_cleared_whatever_systemd_calls_it(result: str, restart: str, action: str) -> None:
    assert act(LOST, host(slurmd=unit("failed", "failed", Result=result, Restart=restart))) == action


@pytest.mark.parametrize(
    ("foreign", "key_age", "action"),
    [
        ("accepted", 10.0, policy.NOTHING),
        # nodes that share a host read one credential twice
        ("unmunge: Error: Replayed credential", 10.0, policy.NOTHING),
        # no credential could be made on the controller
        (None, 10.0, policy.NOTHING),
        ("unmunge: Error: Invalid credential", 10.0, policy.RESTART_MUNGE),
        # munged started after the key came
        ("unmunge: Error: Invalid credential", 4999.0, policy.PERSON),
        ("unmunge: Error: Invalid credential", None, policy.PERSON),
        ("unmunge: Error: Unauthorized credential", 10.0, policy.PERSON),
        ("", 10.0, policy.PERSON),
    ],
)
def test_case_28_the_key_that_munged_has_in_use(foreign: str | None, key_age: float | None, action: str) -> None:
    """It takes its own credentials all the same; it is restarted only where the key file is newer than it."""
    assert act(node("IDLE"), host(foreign=foreign, key_age=key_age)) == action


@pytest.mark.parametrize(("skew", "action"), [(300, policy.NOTHING), (301, policy.PERSON), (-301, policy.PERSON)])
def test_a_wrong_clock_is_named_and_no_munge_restarted_for_it(skew: float, action: str) -> None:
    found, _chinese, english = decide(node("IDLE"), host(skew=skew, foreign="accepted" if abs(skew) <= 300 else "Rewound credential"))
    assert found == action
    assert action == policy.NOTHING or f"{skew:+d} s" in english


@pytest.mark.parametrize("state", ["IDLE+MAINTENANCE+RESERVED", "maint", "idle$", "drain$", "down$"])
def test_case_72_maintenance_is_left_alone(state: str) -> None:
    assert act(parsed(state), host(slurmd=FAILED)) == policy.LEAVE


@pytest.mark.parametrize("state", ["resv", "IDLE+RESERVED"])
def test_case_72_a_plain_reservation_is_treated_as_working(state: str) -> None:
    assert act(parsed(state), host(slurmd=FAILED)) == policy.START_SLURMD


def test_case_74_stopped_on_purpose_masked_and_crashed() -> None:
    """n3 drained and stopped, n4 masked, n5 crashed: only n5 is started."""
    n3 = node("IDLE", "DRAIN", reason="testing kernel")
    assert act(n3, host(slurmd=STOPPED)) == policy.LEAVE
    assert act(LOST, host(slurmd=MASKED)) == policy.LEAVE
    assert act(LOST, host(slurmd=FAILED)) == policy.START_SLURMD
    # stopped with exit status 0 is not crashed, drained or not; nor is anything else done there
    assert act(LOST, host(slurmd=STOPPED)) == policy.LEAVE
    assert act(LOST, host(slurmd=STOPPED, munge=MUNGES["dead"], credential=False)) == policy.LEAVE


def test_case_105_a_unit_in_transition_is_waited_for_and_one_without_a_file_is_left() -> None:
    assert act(LOST, host(slurmd=SLURMDS["stopping"])) == policy.WAIT
    assert act(LOST, host(slurmd={**RUNNING, "LoadState": "not-found"})) == policy.LEAVE


def test_a_slurmd_that_never_ran_since_the_boot_is_nobodys_wish() -> None:
    never = SLURMDS["never started"]
    assert act(LOST, host(slurmd=never)) == policy.START_SLURMD
    # stopped while it waited for its slurmctld
    assert act(LOST, host(slurmd={**never, "InactiveEnterTimestampMonotonic": "90000000"})) == policy.LEAVE


@pytest.mark.parametrize(
    ("requires", "munge_ended", "action"),
    [
        ("sysinit.target munge.service", "89000000", policy.START_SLURMD),
        ("sysinit.target munge.service", "20000000", policy.LEAVE),
        ("sysinit.target munge.service", "", policy.LEAVE),
        ("sysinit.target", "89000000", policy.LEAVE),
    ],
)
def test_a_slurmd_that_went_down_with_its_munge_is_started(requires: str, munge_ended: str, action: str) -> None:
    munge = {**RUNNING, "InactiveEnterTimestampMonotonic": munge_ended}
    assert act(LOST, host(munge=munge, slurmd={**STOPPED, "Requires": requires})) == action


@pytest.mark.parametrize(
    ("changed", "action"),
    [
        ({}, policy.CORRECT_SLURMD),
        ({"KillMode": "control-group"}, policy.CORRECT_SLURMD),
        ({"ActiveState": "failed", "SubState": "failed", "Job": "0"}, policy.CORRECT_SLURMD),
        ({"ActiveState": "deactivating", "SubState": "stop-sigterm"}, policy.CORRECT_SLURMD),
        ({"ExecStart": FOREGROUND.replace("-D", "--systemd")}, policy.CORRECT_SLURMD),
        # still in its ExecStartPre, or right as it is
        ({"SubState": "start-pre", "InactiveExitTimestampMonotonic": "4999000000"}, policy.WAIT),
        ({"Type": "simple", "InactiveExitTimestampMonotonic": "4999000000"}, policy.WAIT),
        ({"ExecStart": FOREGROUND.replace(" -D", ""), "InactiveExitTimestampMonotonic": "4999000000"}, policy.WAIT),
        ({"ExecStart": FOREGROUND.replace("-D", "-Dummy"), "InactiveExitTimestampMonotonic": "4999000000"}, policy.WAIT),
        ({"UnitFileState": "disabled"}, policy.LEAVE),
    ],
)
def test_a_slurmd_in_the_foreground_under_type_forking_is_corrected(changed: Show, action: str) -> None:
    """5.3.1: it never gets ready; systemd kills and starts it for ever (S67)."""
    found, _chinese, english = decide(LOST, host(slurmd={**WRONG_TYPE, **changed}))
    assert found == action
    assert action != policy.CORRECT_SLURMD or "a person has to correct the unit" in english


@pytest.mark.parametrize(
    ("slurmd", "after", "action"),
    [
        ("waits for slurmctld", 180, policy.WAIT),
        ("waits for slurmctld", 5, policy.FREE_SLURMD),
        ("stuck", 180, policy.FREE_SLURMD),
        ("stuck, would kill", 180, policy.PERSON),
        ("auto-restart", 180, policy.WAIT),
    ],
)
def test_a_start_that_takes_too_long_is_begun_anew(slurmd: str, after: float, action: str) -> None:
    assert act(LOST, host(slurmd=SLURMDS[slurmd]), stuck_after=after) == action


@pytest.mark.parametrize(
    ("beat", "action"),
    [
        ({}, policy.UNDRAIN),
        ({"verdict": "fail"}, policy.WAIT),
        ({"good_runs": "1"}, policy.WAIT),
        # the script asks for more after a drain that did not last, and for none where taking back is switched off
        ({"undrain_after": "4"}, policy.WAIT),
        ({"undrain_after": "0"}, policy.WAIT),
        ({"epoch": "999200"}, policy.WAIT),
        ({"epoch": "1000100"}, policy.WAIT),
        ({"epoch": "never"}, policy.WAIT),
    ],
)
def test_our_drain_is_taken_back_only_when_the_nodes_own_check_says_so(beat: Show, action: str) -> None:
    heartbeat = {**HOSTS["healthy"]["heartbeat"], **beat}
    assert act(node("IDLE", "DRAIN", reason="HC: disk at 90% /"), host(heartbeat=heartbeat)) == action
    assert act(node("IDLE", "DRAIN", reason="dimm swap"), host(heartbeat=heartbeat)) == policy.LEAVE
    assert act(node("IDLE", "DRAIN", reason="HC: rollout in progress"), host(heartbeat=heartbeat)) == policy.LEAVE


def test_a_node_that_its_check_drained_is_mended_like_any_other() -> None:
    ours = node("IDLE", "DRAIN", reason="HC: munge no credential")
    assert act(ours, host(munge=MUNGES["dead"], credential=False)) == policy.START_MUNGE
    assert act({**ours, "base": "DOWN", "flags": ["DRAIN", "NOT_RESPONDING"]}) == policy.RECONFIGURE


def test_after_a_reconfigure_only_a_unit_that_keeps_jobs_is_restarted() -> None:
    later = PASTS[1]
    assert act(LOST, past=later) == policy.RESTART_SLURMD
    assert act(LOST, host(slurmd=SLURMDS["running, would kill"]), later) == policy.PERSON
    assert act(node("IDLE"), past=later) == policy.NOTHING
    assert act(node("IDLE", "NOT_RESPONDING"), past=later) == policy.WAIT
    # it answers, but ReturnToService=0 keeps it: a restart would not help
    assert act(node("DOWN", reason="Not responding"), past=later) == policy.PERSON


@pytest.mark.parametrize(
    ("tries", "left", "action"),
    [(1, 0, policy.START_SLURMD), (1, 30, policy.WAIT), (2, 0, policy.START_SLURMD), (3, 0, policy.PERSON), (3, 30, policy.PERSON)],
)
def test_the_same_again_only_after_a_while_and_not_for_ever(tries: int, left: float, action: str) -> None:
    past = {**PASTS[0], "tries": {policy.START_SLURMD: (tries, left)}}
    assert act(LOST, host(slurmd=FAILED), past) == action
    # another action is another matter
    assert act(LOST, host(slurmd=LIMIT), past) == policy.CLEAR_SLURMD


@pytest.mark.parametrize(
    ("total", "most", "percent", "limit"),
    [
        (1, 20, 33, 1),
        (3, 20, 33, 3),
        (4, 20, 33, 3),
        (30, 20, 33, 9),
        (900, 20, 33, 20),
        (900, 2, 33, 2),
        (6, 2, 33, 2),
        (900, 500, 10, 90),
    ],
)
def test_of_many_nodes_only_some_are_touched_at_once(total: int, most: int, percent: int, limit: int) -> None:
    assert policy.most_nodes(total, most, percent) == limit


@pytest.mark.parametrize(
    ("total", "unseen", "silent", "failed", "suspected"),
    [(3, 3, 0, 0, False), (4, 2, 0, 0, True), (9, 3, 0, 0, False), (9, 4, 0, 0, True), (9, 2, 2, 0, True), (9, 0, 0, 9, False)],
)
def test_when_many_are_gone_the_controller_or_the_network_is_suspected(
    total: int, unseen: int, silent: int, failed: int, suspected: bool
) -> None:
    """Not where daemons that have failed explain it, nor in a cluster of three."""
    nodes = [{**(LOST if number < unseen + silent + failed else node("IDLE")), "name": f"n{number}"} for number in range(total)]
    hosts = {}
    for number, one in enumerate(nodes):
        fails = unseen + silent <= number < unseen + silent + failed
        hosts[one["name"]] = host(problem=("无", "none") if number < unseen else None, slurmd=FAILED if fails else RUNNING)
    decisions = {one["name"]: act(one, hosts[one["name"]]) for one in nodes}
    said = policy.suspect(nodes, hosts, decisions)
    assert bool(said) == suspected
    assert said is None or "controller or network" in said[1]


@pytest.mark.parametrize(
    ("show", "may"),
    [
        (unit("inactive", "dead"), True),
        (unit("failed", "failed"), True),
        # a slurmdbd that converts its database runs, or starts, and does not answer
        (unit("active", "running"), False),
        (unit("activating", "start"), False),
        (unit("inactive", "dead", Job="12"), False),
        (unit("inactive", UnitFileState="disabled"), False),
        (MASKED, False),
        ({"LoadState": "not-found", "ActiveState": "inactive"}, False),
        ({}, False),
    ],
)
def test_which_daemon_of_the_controller_is_started_after_a_boot(show: Show, may: bool) -> None:
    assert policy.may_start(show) is may
