"""--limit, --tags and --check: right and complete, and nothing else is touched."""

from __future__ import annotations

import typing as t

import cluster
import pytest
from cluster import COMPUTES, CONTROLLER, HOSTS

ONE, OTHERS = COMPUTES[0], (CONTROLLER, *COMPUTES[1:])
SCRIPT = "/usr/local/bin/slurm_health_check.sh"
State = dict[str, t.Any]


def everything() -> State:
    return {"files": {host: cluster.files(host) for host in HOSTS}, "pids": cluster.main_pids()}


@pytest.fixture
def legacy() -> t.Iterator[State]:
    """The state before, to which one rollback must lead."""
    before = everything()
    yield before
    cluster.succeed("rollback")
    assert everything()["files"] == before["files"]


def touched(before: State, after: State) -> set[str]:
    return {host for host in HOSTS if before["files"][host] != after["files"][host]} | {
        name.split(":")[0] for name, pid in before["pids"].items() if after["pids"][name] != pid
    }


def test_a_run_limited_to_one_node_touches_only_that_node(legacy: State) -> None:
    cluster.succeed("deploy", "--limit", ONE)
    now = everything()
    assert touched(legacy, now) == {ONE}
    assert SCRIPT in now["files"][ONE]
    assert now["pids"][f"{ONE}:slurmd"] != legacy["pids"][f"{ONE}:slurmd"]
    again = cluster.succeed("deploy", "--limit", ONE)
    assert cluster.recap(again)[ONE]["changed"] == 0
    cluster.succeed("deploy")
    cluster.succeed("verify")
    assert set(cluster.verdicts().values()) == {"pass"}, "the rest follows"


def test_tags_are_names_of_roles(legacy: State) -> None:
    cluster.succeed("deploy", "--tags", "health_check")
    now = everything()
    changed = {path for host in HOSTS for path in set(now["files"][host].items()) ^ set(legacy["files"][host].items())}
    assert {path for path, _told in changed} <= {SCRIPT, "/etc/hpcguard", "/etc/hpcguard/health_check.conf", "/usr/local/bin", "/etc"}
    assert all(SCRIPT in now["files"][name] for name in COMPUTES)
    assert now["pids"] == legacy["pids"]


def test_a_tag_that_is_no_role_is_refused() -> None:
    before = everything()
    output = cluster.refuse("deploy", "--tags", "healthcheck")
    assert "did you mean health_check?" in output
    assert everything() == before


def test_only_the_timer_or_only_the_script_goes_back(legacy: State) -> None:
    """SOP 6.2 and 6.3."""
    cluster.succeed("deploy")
    cluster.succeed("rollback", "--tags", "timer")
    for host in HOSTS:
        now = cluster.files(host)
        for path in set(now) | set(legacy["files"][host]):
            if "slurm-cluster-health" in path:
                assert now.get(path) == legacy["files"][host].get(path), path
    assert cluster.config("HealthCheckProgram") == SCRIPT
    cluster.succeed("rollback", "--tags", "script")
    assert cluster.config("HealthCheckProgram") == "(null)"
    assert not any(SCRIPT in cluster.files(name) for name in COMPUTES)
    assert cluster.config("ReturnToService") == "2", "the rest stands"


def test_check_mode_on_a_host_without_a_unit_lists_it_and_writes_nothing() -> None:
    """Case 97: nothing of Slurm's unit is there."""
    unit = "/etc/systemd/system/slurmd.service"
    text = cluster.run(ONE, "cat", unit).stdout
    cluster.run(ONE, "rm", unit)
    cluster.run(ONE, "systemctl", "daemon-reload")
    before = everything()
    try:
        output = cluster.playbook("deploy", "--check", "--diff").stdout
        assert "Traceback" not in output and unit in output and "slurm.conf:ReturnToService" in output
        assert everything() == before
    finally:
        cluster.run(ONE, "tee", unit, feed=text)
        cluster.run(ONE, "systemctl", "daemon-reload")
