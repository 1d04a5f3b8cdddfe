"""The failures and waits that need something of the site: limits, licences, a prolog, partitions that preempt, a reservation.

Runs on its own settings over the lab's and puts the lab's back.
"""

from __future__ import annotations

import typing as t

import cluster
import pytest
from cluster import COMPUTES, CONTROLLER
from jobs import Ids, diagnose, is_over, keep, keep_waiting, reason, rows, submit, why

CONF = "/usr/local/slurm/etc/slurm.conf"
PROLOG = "/usr/local/bin/site-prolog"
SETTINGS = f"""
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
Licenses=matlab:1
Prolog={PROLOG}
AccountingStorageEnforce=limits,qos
PartitionName=cheap Nodes={COMPUTES[0]} PriorityTier=1 PreemptMode=CANCEL
PartitionName=patient Nodes={COMPUTES[0]} PriorityTier=1 PreemptMode=REQUEUE
PartitionName=urgent Nodes={COMPUTES[0]} PriorityTier=10 PreemptMode=OFF
PartitionName=brief Nodes={COMPUTES[1]} MaxTime=1
PartitionName=closed Nodes={COMPUTES[1]} State=DOWN
PartitionName=idle Nodes={COMPUTES[1]}
"""
UNPREPARED = "/run/unprepared"
PROLOG_TEXT = f"#!/bin/sh\n[ ! -e {UNPREPARED} ]\n"
ACCOUNTS = (
    ("add", "account", "users"),
    ("add", "account", "capped", "GrpTRES=cpu=1"),
    ("add", "user", "alice", "account=users,capped", "DefaultAccount=users"),
    ("add", "qos", "one", "MaxJobsPerUser=1"),
    ("add", "qos", "short", "MaxWall=2"),
    ("modify", "user", "alice", "set", "qos=normal,one,short"),
)


def restart_with(text: str) -> None:
    cluster.run(CONTROLLER, "tee", CONF, feed=text)
    cluster.run(CONTROLLER, "systemctl", "restart", "slurmctld")
    cluster.wait_for(lambda: cluster.run(CONTROLLER, "scontrol", "ping", check=False).returncode == 0, 60, "slurmctld answers")
    # the nodes hold what slurmctld last handed out
    cluster.run(CONTROLLER, "scontrol", "reconfigure")
    for name in COMPUTES:
        cluster.wait_for(lambda name=name: cluster.in_service(name), 120, f"{name} in service")


@pytest.fixture(scope="module")
def site() -> t.Iterator[None]:
    cluster.succeed("job_support", "-e", "job_support_slurm_why=true")
    for name in COMPUTES:
        cluster.run(name, "tee", PROLOG, feed=PROLOG_TEXT)
        cluster.run(name, "chmod", "755", PROLOG)
    for words in ACCOUNTS:
        # gives 1 where it is there already
        cluster.run(CONTROLLER, "sacctmgr", "-i", *words, check=False)
    before = cluster.run(CONTROLLER, "cat", CONF).stdout
    try:
        restart_with(before + SETTINGS)
        yield
    finally:
        cluster.run(CONTROLLER, "scancel", "-u", "alice")
        restart_with(before)


def runs(job: str) -> None:
    cluster.wait_for(lambda: cluster.job_state(job) == "RUNNING", 120, f"{job} runs")


# --- ended ----------------------------------------------------------------------------------------


def test_a_job_that_another_one_pushed_out(site: None) -> None:
    pushed = submit(["--partition=cheap", "--time=30"], "sleep 600")
    runs(pushed)
    urgent = submit(["--partition=urgent", "--exclusive", "--time=5"], "true")
    cluster.wait_for(lambda: is_over(pushed) and is_over(urgent), 180, f"the job is pushed out: {rows(pushed)}")
    keep("preempted", pushed, "preempted", CONTROLLER)
    assert why(pushed, CONTROLLER)["id"] == "job_preempted"


def test_a_job_that_was_pushed_out_and_waits_again(site: None) -> None:
    pushed = submit(["--partition=patient", "--time=30"], "sleep 600")
    runs(pushed)
    urgent = submit(["--partition=urgent", "--exclusive", "--time=5"], "sleep 60")
    cluster.wait_for(lambda: cluster.job_state(pushed) == "PENDING", 180, "it waits again")
    keep_waiting("preempted and requeued", pushed, "nobody", "it waits")
    found = why(pushed, CONTROLLER)
    assert found["id"] == "job_waiting" and found["who"] == "nobody", found
    cluster.run(CONTROLLER, "scancel", pushed, urgent)


def test_a_job_that_was_put_back_by_hand(site: None) -> None:
    job = submit(["--time=30"], "sleep 600")
    runs(job)
    cluster.run(CONTROLLER, "scontrol", "requeue", job)
    cluster.wait_for(lambda: cluster.job_state(job) == "PENDING", 60, "it waits again")
    keep_waiting("requeued", job, "nobody", "after a requeue")
    found = why(job, CONTROLLER)
    assert found["id"] == "job_waiting" and "after a requeue" in found["title"]["en"], found
    cluster.run(CONTROLLER, "scancel", job)


def test_a_prolog_that_fails(site: None) -> None:
    """Slurm drains the node and holds the job: both are an admin's."""
    node = COMPUTES[2]
    cluster.run(node, "touch", UNPREPARED)
    job = submit([f"--nodelist={node}", "--time=5"], "true")
    try:
        cluster.wait_for(lambda: "launch failed" in reason(job), 120, f"the job is held: {reason(job)}")
        keep_waiting("prolog", job, "admin", "launch")
        found = why(job, CONTROLLER)
        assert found["id"] == "job_waiting" and found["who"] == "admin" and "launch" in found["title"]["en"], found
    finally:
        cluster.run(CONTROLLER, "scancel", job)
        cluster.run(node, "rm", UNPREPARED)
        cluster.wait_for(lambda: "drain" in cluster.node(node)["state"].lower(), 60, "Slurm has drained the node")
        cluster.run(CONTROLLER, "scontrol", "update", f"NodeName={node}", "State=UNDRAIN")
        cluster.wait_for(lambda: cluster.in_service(node), 60, "the node is back")


# --- waiting --------------------------------------------------------------------------------------

# name -> (options, what squeue gives as reason, who acts, words of the title)
WAITS = {
    "jobs of a qos": (["--qos=one"], "QOSMaxJobsPerUserLimit", "nobody", "QOS"),
    "time of a qos": (["--qos=short", "--time=10"], "QOSMaxWallDurationPerJobLimit", "user", "QOS"),
    "cpus of an account": (["--account=capped", "--ntasks=2"], "AssocGrpCpuLimit", "user", ""),
    "licence": (["--licenses=matlab:1"], "Licenses", "nobody", "licence"),
    "time of a partition": (["--partition=brief", "--time=10"], "PartitionTimeLimit", "user", "time"),
    "partition down": (["--partition=closed", "--time=1"], "PartitionDown", "admin", "partition"),
    "partition inactive": (["--partition=idle", "--time=1", "--hold"], "PartitionInactive", "admin", "partition"),
    "reservation": ([f"--nodelist={COMPUTES[2]}", "--time=2:00:00"], "ReqNodeNotAvail", "nobody", ""),
    "tasks of an array": (["--array=1-2%1"], "JobArrayTaskLimit", "user", ""),
    "another job": (["--dependency=afterok:{holder}"], "Dependency", "nobody", ""),
}
# What has to run first, so that they wait.
HOLDERS = {"holder": [], "jobs of a qos": ["--qos=one"], "licence": ["--licenses=matlab:1"]}


@pytest.fixture(scope="module")
def waits(site: None) -> t.Iterator[Ids]:
    reservation = ("ReservationName=upkeep", "StartTime=now+30minutes", "Duration=60", f"Nodes={COMPUTES[2]}", "Users=root", "Flags=MAINT")
    cluster.run(CONTROLLER, "scontrol", "delete", "ReservationName=upkeep", check=False)
    cluster.run(CONTROLLER, "scontrol", "create", "reservation", *reservation)
    first = {name: submit([*options, "--time=20"], "sleep 900") for name, options in HOLDERS.items()}
    for job in first.values():
        runs(job)
    made = {}
    for name, (options, _reason, _who, _words) in WAITS.items():
        limit = [] if any("--time" in one for one in options) else ["--time=20"]
        made[name] = submit([one.format(**first) for one in options] + limit, "sleep 900")
    made["tasks of an array"] += "_2"
    # it takes no job any more that is submitted then
    cluster.run(CONTROLLER, "scontrol", "update", "PartitionName=idle", "State=INACTIVE")
    # says that it cannot start now, and releases it
    cluster.run(CONTROLLER, "runuser", "-u", "alice", "--", "scontrol", "release", made["partition inactive"], check=False)
    yield made
    cluster.run(CONTROLLER, "scancel", "-u", "alice")
    cluster.wait_for(lambda: not cluster.out(CONTROLLER, "squeue", "-h", "-u", "alice"), 60, "no job is left")
    cluster.run(CONTROLLER, "scontrol", "delete", "ReservationName=upkeep")


@pytest.mark.parametrize("name", WAITS)
def test_why_it_waits(waits: Ids, name: str) -> None:
    _options, told, who, words = WAITS[name]
    job = waits[name]
    cluster.wait_for(lambda: told in reason(job), 90, f"Slurm gives the reason: {reason(job)}")
    keep_waiting(name, job, who, words)
    found = why(job, CONTROLLER)
    assert found["id"] == "job_waiting" and found["who"] == who and words in found["title"]["en"], (told, found)


# --- fewer sources --------------------------------------------------------------------------------


def test_without_accounting_and_then_with_logs_only(site: None) -> None:
    """What was used is said each time, and what was not."""
    before = cluster.run(CONTROLLER, "cat", CONF).stdout
    # without accounting there are no limits, so what waited for them would begin
    cluster.run(CONTROLLER, "scancel", "-u", "alice")
    cluster.wait_for(lambda: not cluster.out(CONTROLLER, "squeue", "-h", "-u", "alice"), 60, "no job is left")
    lines = [line for line in before.splitlines() if not line.startswith(("AccountingStorage", "JobAcctGather"))]
    try:
        restart_with("\n".join([*lines, "AccountingStorageType=accounting_storage/none", ""]))
        job = submit(["--time=5"], "foo --bar")
        cluster.wait_for(lambda: "JobState=FAILED" in cluster.out(CONTROLLER, "scontrol", "show", "job", job), 60, "the job is over")
        found = diagnose("-e", f"job={job}")["findings"][0]
        assert found["id"] == "job_missing_command" and found["evidence"][0]["source"] == "scontrol", found
        assert "AccountingStorageType" in {one["name"]: one["why"] for one in found["missing"]}["sacct"]
        cluster.run(CONTROLLER, "systemctl", "stop", "slurmctld")
        found = diagnose("-e", f"job={job}")["findings"][0]
        assert found["id"] == "job_missing_command" and found["evidence"][0]["source"] == "slurmctld.log", found
        assert {one["name"] for one in found["missing"]} >= {"sacct", "scontrol", "output"}
    finally:
        restart_with(before)
