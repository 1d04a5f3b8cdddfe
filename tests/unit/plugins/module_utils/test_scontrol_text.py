"""What scontrol and squeue print, of 20.11 to 26.05."""

from __future__ import annotations

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import scontrol_text as text

CONFIG = """Configuration data as of 2026-11-30T23:19:35
AccountingStorageType   = accounting_storage/slurmdbd
DefMemPerCPU            = 1024
HealthCheckInterval     = 300 sec
HealthCheckProgram      = (null)
SlurmctldHost[0]        = k8s-master-01
SlurmctldParameters     = enable_configless

Cgroup Support Configuration:
AllowedKmemSpace        = (null)
DefMemPerCPU            = 7

Slurmctld(primary) at k8s-master-01 is UP
"""


def test_only_the_part_about_slurm() -> None:
    """The cgroup part behind the blank line does not overwrite keys."""
    values = text.parse_config(CONFIG)
    assert values["DefMemPerCPU"] == "1024" and values["HealthCheckInterval"] == "300 sec"
    assert "AllowedKmemSpace" not in values


@pytest.mark.parametrize(
    ("shown", "plain"),
    [("300 sec", "300"), ("(null)", ""), ("1024", "1024"), ("10 min", "10"), ("task/cgroup,task/affinity", "task/cgroup,task/affinity")],
)
def test_values_without_units(shown: str, plain: str) -> None:
    """A value as it would stand in slurm.conf."""
    assert text.plain_value(shown) == plain


def test_differences_between_loaded_and_wanted() -> None:
    """Keys in any case, units stripped, missing keys told, equal ones not."""
    config = text.parse_config(CONFIG)
    wanted = {"healthcheckinterval": 300, "DefMemPerCPU": "2048", "NoSuchKey": 1, "HealthCheckProgram": ""}
    assert text.differing_values(config, wanted) == {"DefMemPerCPU": ("1024", "2048"), "NoSuchKey": (None, "1")}


@pytest.mark.parametrize(
    ("notation", "base", "flags"),
    [
        ("IDLE+DRAIN", "IDLE", {"DRAIN"}),
        ("MIXED+DRAIN", "MIXED", {"DRAIN"}),
        ("DOWN+DRAIN+NOT_RESPONDING", "DOWN", {"DRAIN", "NOT_RESPONDING"}),
        ("IDLE*+DRAIN", "IDLE", {"DRAIN", "NOT_RESPONDING"}),
        ("DOWN*+CLOUD", "DOWN", {"CLOUD", "NOT_RESPONDING"}),
        ("ALLOCATED+COMPLETING", "ALLOCATED", {"COMPLETING"}),
        ("MIXED+PLANNED", "MIXED", {"PLANNED"}),
        ("IDLE+CLOUD+POWERED_DOWN", "IDLE", {"CLOUD", "POWERED_DOWN"}),
        ("DOWN+INVALID_REG", "DOWN", {"INVALID_REG"}),
        ("IDLE+DYNAMIC_NORM", "IDLE", {"DYNAMIC_NORM"}),
        ("UNKNOWN+DRAIN+NOT_RESPONDING", "UNKNOWN", {"DRAIN", "NOT_RESPONDING"}),
        ("IDLE+SOME_FUTURE_FLAG", "IDLE", {"SOME_FUTURE_FLAG"}),
        ("down*", "DOWN", {"NOT_RESPONDING"}),
        ("drained*", "IDLE", {"DRAIN", "NOT_RESPONDING"}),
        ("draining", "ALLOCATED", {"DRAIN"}),
        ("", "UNKNOWN", set()),
    ],
)
def test_case_62_compound_states(notation: str, base: str, flags: set[str]) -> None:
    """Base and all flags, suffix notation and unknown flags included."""
    assert text.parse_state(notation) == (base, sorted(flags))


@pytest.mark.parametrize(
    ("notation", "flag"),
    [
        ("IDLE+POWER", "POWERED_DOWN"),
        ("idle~", "POWERED_DOWN"),
        ("idle#", "POWERING_UP"),
        ("IDLE+POWERING_DOWN", "POWERING_DOWN"),
        ("IDLE+POWER_DOWN", "POWER_DOWN"),
    ],
)
def test_case_64_powered_down_under_old_names(notation: str, flag: str) -> None:
    """The old names and marks of power states mean the new flags."""
    assert flag in text.parse_state(notation)[1]


NODE = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=1 CPUAlloc=0 CPUTot=2 CPULoad=0.10 AvailableFeatures=(null) NodeAddr=10.0.0.1 NodeHostName=h1 "
    "Version=22.05.8 OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC  RealMemory=4000 AllocMem=0 State=IDLE+DRAIN ThreadsPerCore=1 "
    "Partitions=batch BootTime=2026-11-30T20:00:00 SlurmdStartTime=2026-11-30T23:19:35 LastBusyTime=Unknown CfgTRES=cpu=2,mem=4000M "
    "Reason={reason} [root@2026-11-30T23:20:00] Comment=State=DOWN Reason=HC: forged"
)


def test_nodes() -> None:
    """Values with blanks, the reason without its tail, and text behind it that only looks like keys."""
    (node,) = text.parse_nodes(NODE.format(reason="HC: tmp_ro /tmp State=IDLE"))
    assert (node["base"], node["flags"]) == ("IDLE", ["DRAIN"])
    assert (node["reason"], node["reason_user"]) == ("HC: tmp_ro /tmp State=IDLE", "root")
    assert node["slurmd_start_time"] == "2026-11-30T23:19:35" and node["hostname"] == "h1"
    assert text.is_ours(node["reason"])


def test_foreign_reasons_are_foreign() -> None:
    """The tag counts at the head only."""
    (node,) = text.parse_nodes(NODE.format(reason="dimm swap HC: no"))
    assert not text.is_ours(node["reason"])
    assert text.split_reason("none") == ("", "", "")


def test_jobs_with_hostile_names() -> None:
    """A name full of separators stays a name."""
    (job,) = text.parse_jobs("7|RUNNING|alice|n[1-2]|a|b $(reboot) {{ x }}\nnot a job\n")
    assert job == {"id": "7", "state": "RUNNING", "user": "alice", "nodes": "n[1-2]", "name": "a|b $(reboot) {{ x }}"}


def node(base: str, flags: list[str], reason: str) -> dict[str, object]:
    return {"base": base, "flags": flags, "reason": reason}


@pytest.mark.parametrize(
    ("given", "drain", "undrain", "resume"),
    [
        (node("IDLE", [], ""), True, False, False),
        (node("MIXED", ["NOT_RESPONDING"], ""), True, False, False),
        (node("IDLE", ["DRAIN"], "dimm swap"), False, False, False),
        (node("MIXED", ["DRAIN"], "HC: root_ro"), False, True, True),
        (node("DOWN", ["DRAIN"], "HC: root_ro"), False, True, True),
        (node("DOWN", [], "HC: root_ro"), True, False, True),
        (node("DOWN", [], "bad psu"), False, False, False),
        (node("DOWN", ["NOT_RESPONDING"], "Not responding"), False, False, False),
    ],
)
def test_the_rule_of_the_tag(given: dict[str, object], drain: bool, undrain: bool, resume: bool) -> None:
    """Nothing that somebody else set is changed, whatever is asked for (case 31)."""
    asked = [text.may_change(given, state) for state in ("drain", "undrain", "resume")]
    assert asked == [drain, undrain, resume]


def test_a_rollout_takes_back_only_its_own_drain() -> None:
    """A drain of the health check under the same tag is not the rollout's."""
    held = node("IDLE", ["DRAIN"], "HC: root_ro")
    assert not text.may_change(held, "undrain", "HC: rollout in progress")


@pytest.mark.parametrize(
    ("base", "flags", "answer"),
    [
        ("IDLE", [], True),
        ("IDLE", ["DRAIN"], True),
        ("MIXED", ["NOT_RESPONDING"], False),
        ("DOWN", [], False),
        ("IDLE", ["POWERED_DOWN"], False),
    ],
)
def test_in_service(base: str, flags: list[str], answer: bool) -> None:
    """Registered and answering, whoever drained it."""
    assert text.in_service(node(base, flags, "")) is answer


INVALID = "gres/gpu count reported lower than configured (7 < 8)"


@pytest.mark.parametrize(
    ("base", "flags", "reason", "ill"),
    [
        ("IDLE", ["INVALID_REG"], "", False),
        ("IDLE", ["DRAIN", "INVALID_REG"], INVALID, False),
        ("DOWN", ["INVALID_REG"], "Low CPUs", False),
        ("DOWN", ["INVALID_REG", "NOT_RESPONDING"], "Not responding", True),
        ("DOWN", [], "Low CPUs", True),
        ("IDLE", ["DRAIN", "INVALID_REG"], "HC: root_ro", True),
    ],
)
def test_case_57_invalid_until_slurmd_restarts_is_no_fault(base: str, flags: list[str], reason: str, ill: bool) -> None:
    """Between slurmctld's restart and slurmd's a node is INVALID_REG: no batch is held up for it, nothing taken back."""
    assert text.fell_ill(node(base, flags, reason)) is ill


@pytest.mark.parametrize("counts", ["7 < 8", "0 < 8", "3 < 4"])
def test_case_68_the_counts_of_an_invalid_registration_are_kept(counts: str) -> None:
    """Which of hardware, driver and configuration it is stands in the numbers."""
    reason = f"gres/gpu count reported lower than configured ({counts})"
    (found,) = text.parse_nodes(f"NodeName=n1 State=IDLE+DRAIN+INVALID_REG Reason={reason} [slurm@2026-12-01T00:00:00]")
    assert (found["base"], found["flags"], found["reason"]) == ("IDLE", ["DRAIN", "INVALID_REG"], reason)
    assert not text.in_service(found)
    assert not text.may_change(found, "resume"), "Slurm's own drain stays until somebody resumes it"


def test_case_70_a_prolog_error_and_the_job_that_it_holds() -> None:
    """The node is nobody of ours to open, and the held job is none that runs."""
    (found,) = text.parse_nodes("NodeName=n3 State=IDLE+DRAIN Reason=Prolog error [slurm@2026-12-01T00:00:00]")
    assert (found["reason"], found["reason_user"]) == ("Prolog error", "slurm")
    assert [text.may_change(found, state) for state in ("drain", "undrain", "resume")] == [False, False, False]
    (job,) = text.parse_jobs("9|PENDING|ann||train (launch failed requeued held)\n")
    assert (job["state"], job["nodes"], job["name"]) == ("PENDING", "", "train (launch failed requeued held)")


def test_case_76_reasons_are_whole_and_each_node_is_there_once() -> None:
    """One record a node, however many partitions it is in; a reason of any length, with blanks and separators."""
    reason = "dimm A3|swap on 3 Dec, ask ops (ticket 4711) before State=RESUME"
    lines = [
        f"NodeName=c{number:03} State=IDLE+DRAIN Partitions=a,b,c Reason={reason} [ann@2026-12-01T00:00:00]" for number in (1, 2, 3, 7)
    ]
    found = text.parse_nodes("\n".join(lines) + "\n")
    assert [one["name"] for one in found] == ["c001", "c002", "c003", "c007"]
    assert {(one["reason"], one["reason_user"]) for one in found} == {(reason, "ann")}
    assert {one["state"] for one in found} == {"IDLE+DRAIN"}


def test_a_ping_lists_the_controllers_in_the_order_in_which_they_take_over() -> None:
    """Also with the mode in brackets that 20.11 to 26.05 print for one, two and more controllers."""
    lines = "Slurmctld(primary) at c1 is DOWN\nSlurmctld(backup1) at c2 is UP\nSlurmctld(backup2) at c3 is UP\n"
    pinged = text.parse_ping("slurm_load: error\n" + lines)
    assert pinged == [("c1", False), ("c2", True), ("c3", True)]
    assert [text.stands_by_for(pinged, host) for host in ("c1", "c2", "c2.example.org", "c3")] == ["c2", "", "", "c2"]


def test_who_stands_by_is_never_guessed() -> None:
    """One controller stands by for nobody; where none answers, or the host is not in the list, nobody acts."""
    assert text.stands_by_for([("c1", True)], "an-alias") == ""
    assert text.stands_by_for([], "c1") == ""
    assert text.stands_by_for([("c1", False), ("c2", False)], "c1") == "none"
    assert text.stands_by_for([("c1", True), ("c2", True)], "c3") == "c1"
