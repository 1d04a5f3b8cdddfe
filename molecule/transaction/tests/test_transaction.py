"""One rollout from beginning to end on the legacy cluster: refusals, prediction, failure, jobs, way back.

The tests follow one another on one lab, in the order of this file.
"""

from __future__ import annotations

import json
import re
import typing as t

import cluster
import pytest

BROKEN_PLUGIN = "priority/hpcguardtest"
# What the legacy state breaks: everything but "the nodes are in service".
LEGACY_FAILS = {1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13}
State = dict[str, t.Any]


@pytest.fixture(scope="module")
def memory() -> State:
    """What a test leaves for the ones after it."""
    return {}


def everything() -> State:
    """Every watched file of every host and every daemon's main process."""
    return {"files": {host: cluster.files(host) for host in cluster.HOSTS}, "pids": cluster.main_pids()}


def settings(**wanted: t.Any) -> tuple[str, str]:
    """Extra variables that ask for settings of slurm.conf."""
    return "-e", json.dumps({"slurm_conf_settings": wanted})


def plugin_dir() -> str:
    return cluster.config("PluginDir")


def test_verify_fails_exactly_what_the_legacy_state_breaks(memory: State) -> None:
    memory["legacy"] = everything()
    cluster.refuse("verify")
    assert {item for item, verdict in cluster.verdicts().items() if verdict == "fail"} == LEGACY_FAILS
    assert everything() == memory["legacy"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(
            settings(DefMemPerCPU="2G", ReturnToService=True, HealthCheckInterval="5m", NoSuchKey=1, JobCompType="jobcomp/slurmdbd"),
            ["DefMemPerCPU", "ReturnToService", "HealthCheckInterval", "NoSuchKey", "jobcomp/slurmdbd"],
            id="case 13: every bad value at once",
        ),
        pytest.param(("-e", "cluster_conf_path=/nowhere/slurm.conf"), ["/nowhere/slurm.conf"], id="a path that does not exist"),
        pytest.param(("-e", "cluster_conf_path=/etc/passwd"), ["/etc/passwd"], id="a file that is not Slurm's"),
        pytest.param(
            ("-e", "health_check_undrain_aftr=3"), ["health_check_undrain_aftr", "health_check_undrain_after"], id="a typing error"
        ),
        pytest.param(
            ("-e", "slurm_runing_jobs=defer"), ["slurm_runing_jobs", "slurm_running_jobs"], id="a typing error in our longest prefix"
        ),
        pytest.param(("-e", "deploy_batches=[few]"), ["deploy_batches", "few"], id="batches that would stop the run in the middle"),
        pytest.param(("-e", "deploy_max_failures=some"), ["deploy_max_failures", "some"], id="a limit that is none"),
        pytest.param(("-e", "slurm_running_jobs=maybe"), ["slurm_running_jobs"], id="a policy that does not exist"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(memory: State, arguments: tuple[str, str], told: list[str]) -> None:
    output = cluster.refuse("deploy", *arguments)
    for word in told:
        assert word in output
    assert everything() == memory["legacy"]


@pytest.mark.parametrize("line", ["<<<<<<< HEAD", "Empty file for user customisations", "MessageTimeout=30s", "ReturnToServise=2"])
def test_case_15_a_file_that_slurm_would_refuse_is_refused_with_its_place(memory: State, line: str) -> None:
    site = "/usr/local/slurm/etc/site.conf"
    before = cluster.out(cluster.CONTROLLER, "cat", site) + "\n"
    cluster.run(cluster.CONTROLLER, "tee", site, feed=before + line + "\n")
    output = cluster.refuse("deploy")
    cluster.run(cluster.CONTROLLER, "tee", site, feed=before)
    number = len(before.splitlines()) + 1
    assert f"{site}:{number}" in output
    assert everything() == memory["legacy"]


def test_check_mode_writes_nothing_and_predicts(memory: State) -> None:
    memory["predicted"] = cluster.succeed("deploy", "--check", "--diff")
    assert everything() == memory["legacy"]


def test_case_51_a_slurmctld_that_does_not_come_up_brings_the_old_state_back(memory: State) -> None:
    fake = f"{plugin_dir()}/{BROKEN_PLUGIN.replace('/', '_')}.so"
    cluster.run(cluster.CONTROLLER, "touch", fake)
    try:
        output = cluster.refuse("deploy", *settings(PriorityType=BROKEN_PLUGIN))
    finally:
        cluster.run(cluster.CONTROLLER, "rm", fake)
    assert re.search(r"(fatal|error):.*priority", output), output[-4000:]
    now = everything()
    assert now["files"] == memory["legacy"]["files"]
    for host in cluster.COMPUTES:
        assert now["pids"][f"{host}:slurmd"] == memory["legacy"]["pids"][f"{host}:slurmd"]
    assert cluster.config("PriorityType") != BROKEN_PLUGIN
    for host in cluster.COMPUTES:
        cluster.wait_for(lambda name=host: cluster.in_service(name), 60, f"{host} in service")


def test_running_jobs_are_named_and_nothing_is_written(memory: State) -> None:
    memory["job"] = cluster.run_until_told()
    output = cluster.refuse("deploy")
    assert "JobAcctGatherType" in output
    assert f"{memory['job']} (everywhere" in output
    assert everything()["files"] == memory["legacy"]["files"]
    assert cluster.job_state(memory["job"]) == "RUNNING"


def test_defer_rolls_out_everything_else_under_the_running_job(memory: State) -> None:
    cluster.succeed("deploy", "-e", "slurm_running_jobs=defer")
    assert cluster.job_state(memory["job"]) == "RUNNING"
    assert cluster.config("JobAcctGatherType") == "jobacct_gather/none"
    assert cluster.config("ReturnToService") == "2"
    assert cluster.verdicts()[12] == "skip"
    cluster.succeed("verify", "-e", "verify_crash_test=false")
    assert cluster.verdicts()[12] == "skip"
    assert {verdict for item, verdict in cluster.verdicts().items() if item not in (12, 13)} == {"pass"}


def test_rollback_under_the_running_job_restores_all_since_nothing_unsafe_was_changed(memory: State) -> None:
    cluster.succeed("rollback")
    assert cluster.job_state(memory["job"]) == "RUNNING"
    assert everything()["files"] == memory["legacy"]["files"]
    cluster.succeed("deploy", "-e", "slurm_running_jobs=defer")
    assert cluster.job_state(memory["job"]) == "RUNNING"


def test_the_job_ends_completed_once(memory: State) -> None:
    cluster.tell_to_end(memory["job"])


def test_the_next_deploy_completes_what_was_deferred(memory: State) -> None:
    cluster.succeed("deploy")
    assert cluster.config("JobAcctGatherType") == "jobacct_gather/cgroup"
    assert cluster.verdicts()[12] == "pass"
    memory["standard"] = everything()


def test_a_second_deploy_changes_nothing_and_restarts_nothing(memory: State) -> None:
    output = cluster.succeed("deploy")
    assert {host: counts["changed"] for host, counts in cluster.recap(output).items()} == dict.fromkeys(cluster.HOSTS, 0)
    assert everything() == memory["standard"]


def test_check_mode_had_predicted_exactly_the_files_that_changed(memory: State) -> None:
    before, after = memory["legacy"]["files"], memory["standard"]["files"]
    changed = {
        path
        for host in cluster.HOSTS
        for path in set(before[host]) | set(after[host])
        if before[host].get(path) != after[host].get(path)
        and "directory" not in (before[host].get(path, "") + after[host].get(path, ""))
        and ".wants/" not in path
    }
    predicted = set(re.findall(r"^\s*file:(\S+)  \[", memory["predicted"], re.MULTILINE))
    if "slurm.conf:" in memory["predicted"]:
        predicted.add("/usr/local/slurm/etc/slurm.conf")
    assert changed == predicted


def test_rollback_with_a_job_refuses_then_defers_then_completes(memory: State) -> None:
    job = cluster.run_until_told()
    output = cluster.refuse("rollback")
    assert "JobAcctGatherType" in output
    assert f"{job} (everywhere" in output
    assert everything() == memory["standard"]

    cluster.succeed("rollback", "-e", "slurm_running_jobs=defer")
    assert cluster.job_state(job) == "RUNNING"
    assert cluster.config("JobAcctGatherType") == "jobacct_gather/cgroup"
    assert cluster.config("ReturnToService") == "1"

    cluster.tell_to_end(job)

    cluster.succeed("rollback")
    assert cluster.config("JobAcctGatherType") == "jobacct_gather/none"
    assert everything()["files"] == memory["legacy"]["files"]


def test_two_rollouts_and_one_way_back_end_before_the_first(memory: State) -> None:
    cluster.succeed("deploy")
    cluster.succeed("deploy", *settings(HealthCheckInterval=240), "-e", "patrol_interval=1200")
    assert cluster.config("HealthCheckInterval") == "240 sec"
    cluster.succeed("rollback")
    assert everything()["files"] == memory["legacy"]["files"]
    for host in cluster.COMPUTES:
        cluster.wait_for(lambda name=host: cluster.in_service(name), 60, f"{host} in service")


def test_there_is_nothing_more_to_take_back() -> None:
    assert "nothing to take back" in cluster.refuse("rollback")


def test_what_somebody_changed_since_is_not_overwritten(memory: State) -> None:
    cluster.succeed("deploy")
    conf = "/usr/local/slurm/etc/slurm.conf"
    text = cluster.run(cluster.CONTROLLER, "cat", conf).stdout
    cluster.run(cluster.CONTROLLER, "tee", conf, feed=text + "# added by an administrator\n")
    assert conf in cluster.refuse("rollback")
    assert cluster.run(cluster.CONTROLLER, "cat", conf).stdout.endswith("# added by an administrator\n")
    cluster.succeed("rollback", "-e", "rollback_force=true")
    assert everything()["files"] == memory["legacy"]["files"]


def test_a_damaged_snapshot_is_refused_before_anything_is_touched(memory: State) -> None:
    cluster.succeed("deploy")
    standard = everything()
    place = cluster.out(cluster.CONTROLLER, "bash", "-c", "ls -d /var/lib/hpcguard/snapshots/*/files/0000 | tail -n 1")
    cluster.run(cluster.CONTROLLER, "truncate", "-s", "3", place)
    assert "damaged" in cluster.refuse("rollback")
    assert everything() == standard
