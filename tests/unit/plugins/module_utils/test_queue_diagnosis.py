"""Why the queue waits: recorded squeue, scontrol, sacctmgr and sdiag."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hpcguard.slurm.plugins.module_utils import job_reasons, partition_room, queue_diagnosis

NODES = "\n".join(
    [f"NodeName=n{number} CPUTot=96 RealMemory=256000 Gres=gpu:a100:4 AvailableFeatures=fast,ib State=IDLE" for number in (1, 2)]
    + ["NodeName=n3 CPUTot=96 RealMemory=256000 State=IDLE+DRAIN Reason=psu [root@2026-12-01T00:00:00]"]
)
PARTITIONS = """PartitionName=p MaxCPUsPerNode=48 Nodes=n1 MaxTime=1-00:00:00 MaxNodes=UNLIMITED State=UP QoS=N/A MaxMemPerNode=UNLIMITED
PartitionName=big Nodes=n[1-2] MaxTime=2-00:00:00 MaxNodes=UNLIMITED State=UP QoS=bigqos
PartitionName=all Nodes=n[1-3] MaxTime=UNLIMITED MaxNodes=UNLIMITED State=UP AllowAccounts=chem MaxMemPerNode=128000
"""
QOS = "Name|GrpTRES|MaxTRESPU|MaxJobsPU|MaxWall|MinTRES\nnormal|cpu=100|cpu=40,gres/gpu=2|3|1-00:00:00|\nbigqos|||||cpu=32\n"
NOW = "2026-12-03T12:00:00"


def job(ident: str = "1", **more: t.Any) -> dict[str, t.Any]:
    texts = {
        "id": ident, "partition": "big", "user": "alice", "account": "chem", "qos": "normal", "priority": "100", "state": "PENDING",
        "cpus": "4", "nodes": "1", "memory": "1000M", "cpus_per_node": "1", "tmp": "0", "limit": "1:00:00",
        "submit": "2026-12-03T11:00:00", "start": "N/A", "dependency": "(null)", "gres": "N/A", "reservation": "(null)",
        "features": "(null)", "reason": "Resources", **more,
    }  # fmt: skip
    line = queue_diagnosis.DELIMITER.join(str(texts[name]) for name, _letter in queue_diagnosis._COLUMNS)
    (found,) = queue_diagnosis.parse_jobs(line)
    return dict(found)


def site(*jobs: dict[str, t.Any], config: dict[str, str] | None = None, sdiag: str = "") -> queue_diagnosis.Site:
    nodes = partition_room.nodes_of(NODES)
    return queue_diagnosis.Site(
        jobs, partition_room.partitions_of(PARTITIONS, nodes), nodes, config or {}, queue_diagnosis.parse_table(QOS),
        queue_diagnosis.parse_table("Account|User|GrpTRES|MaxJobs|MaxWall\nchem||cpu=64||\nchem|alice||2|1:00:00\n"),
        queue_diagnosis.parse_sdiag(sdiag), NOW,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "pair", "fits"),
    [
        ({"partition": "p", "cpus": 64}, "64 asked, 48 on 1 nodes x MaxCPUsPerNode=48", ["all", "big"]),
        ({"partition": "p", "cpus_per_node": 64}, "64 asked, MaxCPUsPerNode=48", ["all", "big"]),
        ({"partition": "p", "limit": "2-00:00:00"}, "MaxTime=1-00:00:00", ["all", "big"]),
        ({"partition": "p", "nodes": 2}, "2 asked, 1 in the partition", ["all", "big"]),
        ({"partition": "all", "memory": "200000M"}, "MaxMemPerNode=125G", ["big", "p"]),
        ({"partition": "big", "memory": "300000M"}, "RealMemory=250G", []),
        ({"partition": "all", "account": "bio"}, "AllowAccounts=chem", ["big", "p"]),
        ({"partition": "big", "gres": "gpu:8"}, "8 asked, 4", []),
        ({"partition": "big", "features": "slow"}, "no node has them", []),
        ({"partition": "big", "cpus": 1000}, "192 on 2 nodes", []),
    ],
)
@pytest.mark.parametrize("reason", ["Resources", "PartitionConfig", "None"])
def test_what_can_never_run_is_told_with_its_pair_of_numbers(asked: dict[str, t.Any], pair: str, fits: list[str], reason: str) -> None:
    waits = job(**asked, reason=reason)
    said = queue_diagnosis.explain(waits, site(waits))
    assert said["class"] == job_reasons.CHANGE and any(pair in one for one in said["pairs"]), said["pairs"]
    assert said["fits"] == fits


def test_one_partition_of_several_that_would_take_it_is_enough() -> None:
    """Case 114: a job in several partitions is in no partition of that name."""
    waits = job(partition="p,big", cpus=64)
    said = queue_diagnosis.explain(waits, site(waits))
    assert said["class"] == job_reasons.WAIT and said["pairs"] == []


def test_nodes_out_of_service_are_an_admins_matter() -> None:
    waits = job(partition="all", nodes=3, cpus=3)
    said = queue_diagnosis.explain(waits, site(waits))
    assert said["class"] == job_reasons.ADMIN and "n3" in said["en"]


@pytest.mark.parametrize(
    ("asked", "reason", "pair", "kind"),
    [
        ({"cpus": 20}, "QOSMaxCpuPerUserLimit", "QOS normal: MaxTRESPU=cpu 40, 20 asked, 30 in use", job_reasons.WAIT),
        ({"cpus": 50}, "QOSMaxCpuPerUserLimit", "cpu 40, 50 asked", job_reasons.CHANGE),
        ({"gres": "gpu:1"}, "QOSMaxGRESPerUser", "gres/gpu 2, 1 asked", job_reasons.WAIT),
        ({}, "QOSMaxJobsPerUserLimit", "MaxJobsPU=3, 1 running", job_reasons.WAIT),
        ({"cpus": 8}, "QOSMinCpuNotSatisfied", "QOS bigqos: MinTRES=cpu 32, 8 asked", job_reasons.CHANGE),
        ({"limit": "2-00:00:00"}, "QOSMaxWallDurationPerJobLimit", "MaxWall=1-00:00:00, 2-00:00:00 asked", job_reasons.CHANGE),
        ({"cpus": 40}, "AssocGrpCpuLimit", "association chem (account): GrpTRES=cpu 64, 40 asked, 30 in use", job_reasons.WAIT),
        ({}, "AssocMaxJobsLimit", "association chem alice: MaxJobs=2, 1 running", job_reasons.WAIT),
    ],
)
def test_limits_stand_beside_what_is_used_and_asked_for(asked: dict[str, t.Any], reason: str, pair: str, kind: str) -> None:
    waits, runs = job("2", **asked, reason=reason), job("1", state="RUNNING", cpus=30)
    said = queue_diagnosis.explain(waits, site(waits, runs))
    assert any(pair in one for one in said["pairs"]), said["pairs"]
    assert said["class"] == kind


def test_each_pending_job_is_in_exactly_one_class_and_alike_ones_are_told_once() -> None:
    reasons = [
        "Resources",
        "Priority",
        "Dependency",
        "JobHeldUser",
        "JobHeldAdmin",
        "DependencyNeverSatisfied",
        "PartitionConfig",
        "FooBarLimit",
    ]
    jobs = [job(str(number), reason=reasons[number % 8]) for number in range(800)]
    report = queue_diagnosis.report(site(*jobs, job("9999", state="RUNNING")))
    assert sum(report["classes"].values()) == len(report["jobs"]) == 800
    assert len(report["findings"]) < 12
    assert {one["jobs"] for one in report["findings"] if one["id"].startswith("queue_") and "jobs" in one} == {100}


def test_a_large_job_that_others_overtake() -> None:
    big = job("1", cpus=96, nodes=2, priority=1000, submit="2026-12-01T00:00:00")
    small = [job(str(number), state="RUNNING", cpus=1, priority=10, start="2026-12-03T10:00:00") for number in range(2, 8)]
    (found,) = queue_diagnosis.starving(site(big, *small))
    assert found["host"] == "1" and "6 jobs of lower priority" in found["evidence"][1]["text"]
    assert "scontrol update JobId=1 Priority=1001; to undo it: scontrol hold, then release" in found["remedy"]["en"]
    assert queue_diagnosis.starving(site(job("1", submit="2026-12-03T11:59:00"), *small)) == []


def test_one_user_with_most_of_the_queue() -> None:
    (found,) = queue_diagnosis.shares(site(*[job(str(number), user="bob" if number else "eve") for number in range(30)]))
    assert found["host"] == "bob" and "96%" in found["title"]["en"]


def test_many_cancelled_at_once() -> None:
    rows = [{"state": "CANCELLED", "end": f"2026-12-01T{hour:02d}:00:00", "by": "1001", "user": "alice"} for hour in range(8)]
    assert queue_diagnosis.cancelled_spikes(rows) == []
    rows += [{"state": "CANCELLED", "end": "2026-12-01T17:30:00", "by": "0", "user": f"u{number}"} for number in range(40)]
    (found,) = queue_diagnosis.cancelled_spikes(rows)
    assert found["host"] == "2026-12-01T17" and "UID 0" in found["remedy"]["en"] and "no longest time" in found["cause"]["en"]


SDIAG = """Main schedule statistics (microseconds):
\tLast cycle:   29
Backfilling stats
\tLast cycle: 3000000
\tLast depth cycle: 500
\tLast depth cycle (try sched): {tried}
\tLast queue length: {length}
"""
BACKFILL = {"SchedulerType": "sched/backfill", "SLURM_VERSION": "22.05.8", "SchedulerParameters": "(null)"}


def advice(config: dict[str, str], tried: int = 500, length: int = 3000, exits: str = "") -> dict[str, t.Any]:
    text = SDIAG.format(tried=tried, length=length) + exits
    found = queue_diagnosis.backfill_advice(site(job(), config=config, sdiag=text))
    return {one["host"]: one for one in found}


def test_backfill_advice_has_evidence_cost_and_a_way_back() -> None:
    found = advice(BACKFILL)
    assert set(found) == {"bf_window", "bf_max_job_test", "bf_continue"}
    for one in found.values():
        assert "now " in one["cause"]["en"] and "cost:" in one["cause"]["en"] and "undo" in one["remedy"]["en"] and one["evidence"]
    assert "proposed 2880" in found["bf_window"]["cause"]["en"]
    assert found["bf_window"]["remedy"]["en"].endswith("to undo it: remove it")


def test_to_undo_an_advice_is_to_set_what_was_set_before() -> None:
    remedy = advice({**BACKFILL, "SchedulerParameters": "bf_window=1500"})["bf_window"]["remedy"]["en"]
    assert "in SchedulerParameters of slurm.conf" in remedy and "to undo it: set bf_window=1500 again" in remedy


@pytest.mark.parametrize(
    ("config", "tried", "length", "exits", "gone"),
    [
        ({**BACKFILL, "SchedulerParameters": "bf_window=2880,bf_continue"}, 10, 10, "", {"bf_window", "bf_max_job_test", "bf_continue"}),
        ({**BACKFILL, "SchedulerType": "sched/builtin"}, 500, 3000, "", {"bf_window", "bf_max_job_test", "bf_continue"}),
        ({**BACKFILL, "SLURM_VERSION": "20.11.4"}, 99, 3000, "", {"bf_max_job_test"}),
    ],
)
def test_no_advice_without_evidence(config: dict[str, str], tried: int, length: int, exits: str, gone: set[str]) -> None:
    assert not gone & set(advice(config, tried, length, exits))


def test_sdiag_of_23_11_says_how_cycles_ended() -> None:
    exits = "\tBackfill exit\n\t\tEnd of job queue:5\n\t\tHit bf_max_job_test: 4\n"
    assert "bf_max_job_test" in advice(BACKFILL, 10, 3000, exits) and "bf_max_job_test" not in advice(BACKFILL, 10, 3000)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    queue_diagnosis.parse_jobs(text)
    queue_diagnosis.parse_table(text)
    queue_diagnosis.parse_sdiag(text)
    nodes = partition_room.nodes_of("NodeName=n1 " + text)
    partition_room.partitions_of("PartitionName=p Nodes=n1 " + text, nodes)
    partition_room.gres(text)


TEXTS = st.one_of(
    st.text(alphabet=st.characters(exclude_characters="\n\x1f"), max_size=20), st.sampled_from(["QOSMaxCpuPerUserLimit", "9", "p"])
)


@settings(deadline=None, max_examples=60)
@given(st.lists(TEXTS, min_size=19, max_size=19))
def test_no_job_raises(values: list[str]) -> None:
    line = queue_diagnosis.DELIMITER.join(["7", *values])
    jobs = queue_diagnosis.parse_jobs(line)
    assert len(jobs) == 1
    report = queue_diagnosis.report(site(*[dict(one, state="PENDING") for one in jobs]))
    assert sum(report["classes"].values()) == 1
