"""Verdicts over recorded rows, records and log lines."""

from __future__ import annotations

import json
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hpcguard.slurm.plugins.module_utils import (
    diagnosis_text,
    job_diagnosis,
    job_logs,
    partition_room,
    queue_diagnosis,
    sacct_text,
    scontrol_text,
)

FIELDS = [
    "JobID", "State", "ExitCode", "DerivedExitCode", "UID", "ReqMem", "MaxRSS", "NodeList", "Reason", "Start", "End", "ElapsedRaw",
    "TimelimitRaw", "Partition", "StdOut",
]  # fmt: skip
RAN = {"Start": "2026-12-01T10:00:00", "End": "2026-12-01T10:10:00", "ElapsedRaw": "600", "NodeList": "n3", "UID": "1001", "Partition": "p"}
SOURCES = ("sacct", "scontrol", job_logs.CONTROLLER, job_logs.NODE, job_logs.KERNEL, job_logs.OUTPUT)
Finding = dict[str, t.Any]


def row(ident: str, state: str, exit_code: str = "0:0", **more: str) -> str:
    values = {"JobID": ident, "State": state, "ExitCode": exit_code, **({} if "." in ident else RAN), **more}
    return sacct_text.DELIMITER.join(values.get(name, "") for name in FIELDS)


def known(*rows: str, lines: t.Iterable[tuple[str, str]] = (), unread: t.Iterable[str] = (), **more: t.Any) -> dict[str, t.Any]:
    return job_diagnosis.seen(
        sacct_text.parse("\n".join(rows), FIELDS).jobs,
        lines=[{"kind": kind, "source": kind, "text": text, "job": ""} for kind, text in lines],
        sources=[{"name": name, "why": "unreadable" if name in unread else ""} for name in SOURCES],
        **more,
    )


def verdict(*rows: str, asked: str = "101", **more: t.Any) -> Finding:
    found: Finding = job_diagnosis.diagnose(asked, known(*rows, **more))[0]
    return found


def step(found: Finding) -> str:
    return str(found["remedy"]["en"])


# --- cases --------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["OUT_OF_MEMORY", "OUT_OF_ME+", "OUT_"])
def test_case_77_out_of_memory_with_exit_code_0(state: str) -> None:
    found = verdict(row("101", state, "0:125"), row("101.batch", state, "0:125"), row("101.extern", "COMPLETED"))
    assert (found["id"], found["confidence"], found["who"]) == ("job_oom", "certain", "user")


def test_case_79_137_or_signal_9_without_an_oom_state() -> None:
    near = verdict(row("103", "FAILED", "137:0", ReqMem="4G"), row("103.batch", "FAILED", "137:0", MaxRSS="4100000K"))
    assert (near["id"], near["confidence"]) == ("job_oom_likely", "probable")
    far = verdict(row("104", "FAILED", "0:9", ReqMem="16G"), row("104.batch", "FAILED", "0:9", MaxRSS="200M"))
    assert (far["id"], far["confidence"]) == ("job_killed", "open")
    assert "SIGKILL" in near["title"]["en"] and "SIGKILL" in far["title"]["en"]
    proven = verdict(
        row("104", "FAILED", "0:9", ReqMem="16G"),
        lines=[(job_logs.KERNEL, "oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/slurm/uid_1001/job_104/step_0")],
    )
    assert (proven["id"], proven["confidence"]) == ("job_oom", "certain")
    node = verdict(row("104", "FAILED", "0:9", ReqMem="16G"), lines=[(job_logs.KERNEL, "Out of memory: Killed process 7 (a.out)")])
    assert (node["id"], node["who"]) == ("job_oom_node", "admin")


@pytest.mark.parametrize(
    ("state", "more", "cause", "who"),
    [
        ("CANCELLED by 1001", {}, "cancelled_by_owner", "user"),
        ("CANCELLED by 0", {}, "cancelled_by_root", "admin"),
        ("CANCELLED by 1002", {}, "cancelled_by_other", "user, admin"),
        ("CANCELLED", {"Start": "None", "ElapsedRaw": "0"}, "cancelled_before_start", "user"),
        ("CANCELLED+", {}, "cancelled", "user"),
    ],
)
def test_case_81_cancelled_by(state: str, more: dict[str, str], cause: str, who: str) -> None:
    found = verdict(row("111", state, "0:15", **more))
    assert (found["id"], found["who"]) == ("job_" + cause, who)
    assert "time limit" not in found["title"]["en"]


def test_case_83_node_fail() -> None:
    rows = (row("116", "NODE_FAIL", NodeList="n3"), row("116", "PENDING", Reason="BeginTime", Start="Unknown", End="Unknown", NodeList=""))
    nodes = scontrol_text.parse_nodes("NodeName=n3 State=DOWN+NOT_RESPONDING Reason=Not responding [slurm@2026-12-01T10:09:00]")
    waits, failed = job_diagnosis.diagnose("116", known(*rows, nodes=nodes))
    assert waits["id"] == "job_waiting" and "pause after a requeue" in waits["title"]["en"]
    assert failed["id"] == "job_node_fail" and failed["who"] == "admin" and "earlier attempt" in failed["title"]["en"]
    assert "n3" in step(failed) and "put the job back" in step(failed)
    assert any("Not responding" in line["text"] for line in failed["evidence"])


def test_case_85_the_first_failing_component_is_named_first() -> None:
    found = job_diagnosis.diagnose("118", known(row("118+0", "FAILED", "1:0"), row("118+1", "CANCELLED by 0", "0:15")))
    assert [one["host"] for one in found] == ["118+0", "118+1"] and found[0]["id"] == "job_exit_code"
    assert sum(one["number"] for one in found) == 2, "steps are no jobs"


@pytest.mark.parametrize("peak", ["1258291K", ""], ids=["sampled", "blank"])
def test_case_87_oom_though_maxrss_looks_small(peak: str) -> None:
    found = verdict(row("121", "OUT_OF_MEMORY", "0:125", ReqMem="16G"), row("121.batch", "OUT_OF_MEMORY", "0:125", MaxRSS=peak))
    assert found["id"] == "job_oom" and "--mem=20G" in step(found) and "more than 16G" in step(found)
    assert ("two samples" if peak else "no peak was sampled") in step(found)


def test_case_91_launch_failed_requeued_held() -> None:
    records = scontrol_text.parse_records("\n".join(
        f"JobId={number} ArrayJobId=130 ArrayTaskId={number - 130} UserId=a(1001) JobState=PENDING "
        f"Reason=launch_failed_requeued_held Priority=0 Partition=p BatchHost=n3" for number in range(131, 143)
    ))  # fmt: skip
    (found,) = job_diagnosis.diagnose("130", known(records=records))
    assert found["number"] == 12 and found["who"] == "admin"
    assert any(line["text"].endswith("n3") for line in found["evidence"])
    assert step(found).index("n3") < step(found).index("release"), "the node first, the release last"


@pytest.mark.parametrize(
    ("rows", "cause", "words"),
    [
        ((row("123", "TIMEOUT", TimelimitRaw="10"), row("123.batch", "CANCELLED", "0:15")), "time_limit", "partition's default"),
        ((row("124", "DEADLINE"),), "deadline", "--deadline"),
        ((row("125", "BOOT_FAIL", NodeList="n7"),), "boot_fail", "power scripts"),
    ],
)
def test_case_93_timeout_deadline_boot_fail(rows: tuple[str, ...], cause: str, words: str) -> None:
    partitions = partition_room.partitions_of("PartitionName=p DefaultTime=00:10:00 MaxTime=1-00:00:00 Nodes=n3", {})
    found = verdict(*rows, partitions=partitions)
    assert found["id"] == "job_" + cause and words in step(found)
    assert found["severity"] == "error", "0:0 is no success"


def test_time_asked_for_is_capped_by_the_partition() -> None:
    partitions = partition_room.partitions_of("PartitionName=p DefaultTime=NONE MaxTime=00:12:00 Nodes=n3", {})
    found = verdict(row("123", "TIMEOUT", TimelimitRaw="10"), partitions=partitions)
    assert "--time=00:12:00" in step(found) and "it ran 00:10:00 of 00:10:00" in step(found)


# --- the rules ----------------------------------------------------------------------------------

OUT, C, N = job_logs.OUTPUT, job_logs.CONTROLLER, job_logs.NODE


@pytest.mark.parametrize(
    ("rows", "lines", "cause"),
    [
        ([row("101", "FAILED", "127:0")], [(OUT, "./x.sh: line 3: foo: command not found")], "missing_command"),
        ([row("101", "FAILED", "126:0")], [(OUT, "bash: ./x: Permission denied")], "not_executable"),
        (
            [row("101", "FAILED", "127:0")],
            [(OUT, "a.out: error while loading shared libraries: libx.so.1: cannot open")],
            "missing_library",
        ),
        ([row("101", "FAILED", "139:0")], [], "segfault"),
        ([row("101", "FAILED", "0:11")], [], "segfault"),
        ([row("101", "FAILED", "134:0")], [], "abort"),
        ([row("101", "FAILED", "0:7")], [], "bus_error"),
        ([row("101", "FAILED", "0:10")], [], "signal"),
        ([row("101", "FAILED", "0:53")], [], "output"),
        ([row("101", "FAILED", "0:0", Reason="RaisedSignal:53(Real-time_signal_19)")], [], "output"),
        ([row("101", "FAILED", "1:0")], [(OUT, "Traceback (most recent call last):"), (OUT, "KeyError: 1")], "exit_code"),
        ([row("101", "FAILED", "1:0")], [(OUT, "OSError: [Errno 28] No space left on device")], "storage"),
        ([row("101", "FAILED", "1:0")], [(OUT, "MPI_Init: Connection refused")], "network"),
        ([row("101", "FAILED", "1:0")], [(OUT, "numpy.core._exceptions._ArrayMemoryError: MemoryError")], "program_memory"),
        ([row("101", "FAILED", "1:0", DerivedExitCode="0:125")], [], "oom"),
        ([row("101", "FAILED", "1:0"), row("101.0", "OUT_OF_MEMORY", "0:125")], [], "oom"),
        ([row("101", "FAILED", "1:0")], [(OUT, "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=101.0 cgroup.")], "oom"),
        ([row("101", "CANCELLED by 0", "0:15")], [(OUT, "slurmstepd: error: Exceeded job memory limit")], "oom_polling"),
        ([row("101", "FAILED", "0:15")], [(N, "[2026-12-01T10:10:00] slurmd started on Tue")], "slurmd_restart"),
        ([row("101", "FAILED", "0:15")], [], "terminated"),
        ([row("101", "FAILED", "0:0", Reason="JobLaunchFailure")], [], "launch_failed"),
        ([row("101", "FAILED", "0:11", Reason="JobLaunchFailure")], [], "segfault"),
        ([row("101", "FAILED", "1:0", Reason="BadConstraints", Start="None")], [], "refused"),
        ([row("101", "PREEMPTED")], [], "preempted"),
        ([row("101", "COMPLETED")], [], "completed"),
        ([row("101", "COMPLETED"), row("101.0", "FAILED", "2:0")], [], "step_failed"),
        ([row("101", "RUNNING")], [], "live"),
        ([row("101", "BRAND_NEW")], [], "unknown"),
    ],
)
def test_causes(rows: list[str], lines: list[tuple[str, str]], cause: str) -> None:
    found = verdict(*rows, lines=lines)
    assert found["id"] == "job_" + cause
    assert all(found["remedy"][language] for language in ("zh", "en")) or cause in ("completed", "live", "unknown")


@pytest.mark.parametrize(
    ("code", "lines", "cause", "sure"),
    [
        ("11:0", [(C, "_job_complete: JobId=101 WEXITSTATUS 139")], "segfault", "certain"),
        ("11:0", [(OUT, "run.sh: line 2: 4711 Segmentation fault ./a.out")], "segfault", "probable"),
        ("6:0", [(OUT, "terminate called: Aborted")], "abort", "probable"),
        ("9:0", [(C, "_job_complete: JobId=101 WEXITSTATUS 137")], "killed", "open"),
        ("11:0", [], "exit_code", "probable"),
        ("11:0", [(C, "_job_complete: JobId=101 WEXITSTATUS 11"), (OUT, "Segmentation fault")], "segfault", "probable"),
    ],
)
def test_sacct_takes_128_off(code: str, lines: list[tuple[str, str]], cause: str, sure: str) -> None:
    found = verdict(row("101", "FAILED", code), lines=lines)
    assert (found["id"], found["confidence"]) == ("job_" + cause, sure)
    doubtful = [line for line in found["evidence"] if "128+N" in line["text"]]
    assert bool(doubtful) is not any(kind == C for kind, _text in lines)


def test_a_shortened_137_near_the_limit() -> None:
    found = verdict(row("103", "FAILED", "9:0", ReqMem="4G"), row("103.batch", "FAILED", "9:0", MaxRSS="4100000K"))
    assert found["id"] == "job_oom_likely"


def test_every_cause_has_an_order_of_acting() -> None:
    for severity, who, zh, en in job_diagnosis.CAUSES.values():
        assert severity in ("error", "warning", "info") and who in job_diagnosis.WHO and zh and en
    assert set(job_diagnosis._BY_STATE.values()) <= set(job_diagnosis.CAUSES)


def test_a_program_cannot_talk_itself_out_of_it() -> None:
    """What Slurm would have to know is not believed of the program's output."""
    told = [(OUT, "Out of memory: Killed process 7"), (OUT, "DUE TO NODE FAILURE"), (OUT, "\x1b[2J slurmd started on Tue")]
    found = verdict(row("101", "FAILED", "1:0"), lines=told)
    assert found["id"] == "job_exit_code"
    assert "\x1b" not in json.dumps(found, ensure_ascii=False)


def test_evidence_comes_in_the_order_scheduler_node_application() -> None:
    lines = [(OUT, "bash: foo: command not found"), (N, "error: prolog failed JobId=101"), (C, "error: prolog JobId=101 failed")]
    order = [line["source"] for line in verdict(row("101", "FAILED", "127:0"), lines=lines)["evidence"]]
    assert order[0] == "sacct" and order[-3:] == [C, N, OUT]


@pytest.mark.parametrize(
    ("rows", "unread", "before", "after"),
    [
        ([row("101", "FAILED", "1:0")], [OUT], "probable", "open"),
        ([row("101", "CANCELLED by 0")], [C], "certain", "probable"),
        ([row("101", "FAILED", "127:0")], [OUT], "probable", "open"),
        ([row("101", "OUT_OF_MEMORY", "0:125")], [C, N, OUT, job_logs.KERNEL], "certain", "certain"),
        ([row("101", "COMPLETED")], ["sacct"], "certain", "probable"),
    ],
)
def test_a_missing_source_is_named_and_makes_less_sure(rows: list[str], unread: list[str], before: str, after: str) -> None:
    assert verdict(*rows)["confidence"] == before
    found = verdict(*rows, unread=unread)
    assert found["confidence"] == after and [one["name"] for one in found["missing"]] == [name for name in SOURCES if name in unread]


def test_tasks_with_the_same_verdict_are_told_once() -> None:
    rows = [row(f"9_{number}", "FAILED", "127:0") for number in range(40)] + [row("9_77", "TIMEOUT")]
    found = job_diagnosis.diagnose("9", known(*rows))
    assert [(one["id"], one["number"]) for one in found] == [("job_missing_command", 40), ("job_time_limit", 1)]
    assert "40 of them" in found[0]["title"]["en"]


# --- without accounting -------------------------------------------------------------------------

RECORD = (
    "JobId=55 JobName=x UserId=alice(1001) GroupId=a(1) Priority=1 Account=a QOS=normal JobState={state} Reason={reason} "
    "Requeue=1 Restarts=0 ExitCode={exit} "
    "TimeLimit=00:10:00 SubmitTime=2026-12-01T09:59:59 StartTime=2026-12-01T10:00:00 EndTime=2026-12-01T10:00:09 "
    "Partition=p NodeList=n1 NumNodes=1 NumCPUs={cpus} MinCPUsNode=1 MinMemoryNode=100M TresPerNode=(null) Features=(null) "
    "StdOut=/home/a/slurm-55.out WorkDir=/home/a"
)


def record(state: str, reason: str = "None", exit_code: str = "0:0", cpus: int = 1) -> list[dict[str, str]]:
    return scontrol_text.parse_records(RECORD.format(state=state, reason=reason, exit=exit_code, cpus=cpus))


@pytest.mark.parametrize(
    ("records", "cause"),
    [
        (record("FAILED", "NonZeroExitCode", "127:0"), "missing_command"),
        (record("OUT_OF_MEMORY", "OutOfMemory", "0:125"), "oom"),
        (record("FAILED", "OutOfMemory", "0:125"), "oom"),
        (record("TIMEOUT", "TimeLimit"), "time_limit"),
        (record("COMPLETED"), "completed"),
    ],
)
def test_scontrol_alone(records: list[dict[str, str]], cause: str) -> None:
    found = job_diagnosis.diagnose("55", known(records=records, unread=["sacct"]))[0]
    assert found["id"] == "job_" + cause and found["evidence"][0]["source"] == "scontrol"
    assert found["missing"][0]["name"] == "sacct"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("_job_complete: JobId=55 WEXITSTATUS 127", "missing_command"),
        ("_job_complete: JobId=55 OOM failure", "oom"),
        ("_job_complete: JobId=55 WTERMSIG 11", "segfault"),
        ("Time limit exhausted for JobId=55", "time_limit"),
        ("_slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=55 uid 0", "cancelled_by_root"),
        ("_job_complete: JobId=55 WEXITSTATUS 0", "completed"),
    ],
)
def test_the_controllers_log_alone(line: str, cause: str) -> None:
    lines = [(C, "[2026-12-01T10:00:00.000] sched: Allocate JobId=55 NodeList=n1 #CPUs=1"), (C, "[2026-12-01T10:00:09.000] " + line)]
    found = job_diagnosis.diagnose("55", known(lines=lines, unread=["sacct", "scontrol"]))[0]
    assert found["id"] == "job_" + cause and found["evidence"][0]["source"] == "slurmctld.log"
    if cause == "completed":
        assert found["confidence"] != "certain", "never all well where the record is missing"


def test_no_trace_is_no_good_news() -> None:
    (found,) = job_diagnosis.diagnose("999", known(unread=SOURCES))
    assert found["id"] == "job_unknown" and found["confidence"] == "open" and len(found["missing"]) == len(SOURCES)


# --- waiting ------------------------------------------------------------------------------------


def site(partitions: str, nodes: str) -> queue_diagnosis.Site:
    sizes = partition_room.nodes_of(nodes)
    return queue_diagnosis.Site(partitions=partition_room.partitions_of(partitions, sizes), nodes=sizes)


def test_64_cpus_against_maxcpuspernode_48() -> None:
    there = site(
        "PartitionName=p MaxCPUsPerNode=48 Nodes=n1 State=UP MaxTime=UNLIMITED MaxNodes=UNLIMITED\n"
        "PartitionName=big Nodes=n1 State=UP MaxTime=UNLIMITED MaxNodes=UNLIMITED",
        "NodeName=n1 CPUTot=96 RealMemory=4000 State=IDLE",
    )
    (found,) = job_diagnosis.diagnose("55", known(records=record("PENDING", "PartitionConfig", cpus=64), site=there))
    assert found["who"] == "user" and found["confidence"] == "certain"
    pair = next(line["text"] for line in found["evidence"] if line["source"] == "limits")
    assert "64" in pair and "MaxCPUsPerNode=48" in pair and "big" in step(found)


def test_sacct_says_it_waits_and_scontrol_says_for_what() -> None:
    rows = row("55", "PENDING", Reason="Dependency", Start="Unknown", End="Unknown", NodeList="None assigned")
    (found,) = job_diagnosis.diagnose("55", known(rows, records=record("PENDING", "DependencyNeverSatisfied")))
    assert found["evidence"][0]["text"] == "55, PENDING, 0:0, asked 100M a node, reason DependencyNeverSatisfied"
    assert found["who"] == "user" and "never start" in found["title"]["en"] and "scancel" in step(found)


# --- any text -----------------------------------------------------------------------------------

WORDS = st.one_of(st.text(max_size=30), st.sampled_from(["FAILED", "CANCELLED by x", "0:125", "n[1-3]", "1-1:1", "4000Mc", "9" * 30]))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(WORDS, min_size=len(FIELDS) - 1, max_size=len(FIELDS) - 1), max_size=4), st.text(max_size=80))
def test_no_record_raises_and_every_line_is_harmless(rows: list[list[str]], text: str) -> None:
    listing = "\n".join(sacct_text.DELIMITER.join(["7", *values]).replace("\n", " ") for values in rows)
    lines = [{"kind": kind, "source": text, "text": text, "job": ""} for kind in (C, N, OUT, job_logs.KERNEL)]
    records = scontrol_text.parse_records("JobId=7 " + text.replace("\n", " "))
    sources = [{"name": "x", "why": text}]
    nothing: list[t.Any] = []
    for some_rows in (sacct_text.parse(listing, FIELDS).jobs, nothing):
        found = job_diagnosis.diagnose("7", job_diagnosis.seen(some_rows, records, lines, sources))
        assert found and all(one["who"] in job_diagnosis.WHO and one["confidence"] in job_diagnosis.SURE for one in found)
        for line in diagnosis_text.report(found, 40):
            assert "\x1b" not in line and "\n" not in line
