"""What stands on the hosts after a rollout, looked at from outside, and what verify says of it."""

from __future__ import annotations

import subprocess
import typing as t

import cluster
import pytest
import testinfra

SCRIPTS = ("/usr/local/bin/slurm_health_check.sh", "/usr/local/bin/wait-for-slurmctld.sh")
Host = t.Any


def look_at(name: str) -> Host:
    return testinfra.get_host(f"podman://{cluster.container(name)}")


@pytest.fixture(params=cluster.COMPUTES)
def compute(request: pytest.FixtureRequest) -> Host:
    return look_at(request.param)


@pytest.fixture
def controller() -> Host:
    return look_at(cluster.CONTROLLER)


def journal(host: Host, unit: str) -> str:
    """What an engineer wants to see when a service test fails."""
    return str(host.run("journalctl --no-pager -n 30 -u %s", unit).stdout)


@pytest.mark.parametrize("path", SCRIPTS)
def test_scripts_are_roots_and_nobody_elses(compute: Host, path: str) -> None:
    script = compute.file(path)
    assert script.is_file
    assert (script.user, script.group, script.mode) == ("root", "root", 0o755)


def test_slurmd_runs_and_starts_with_the_host(compute: Host) -> None:
    assert compute.service("slurmd").is_running, journal(compute, "slurmd")
    assert compute.service("slurmd").is_enabled


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Restart", "always"),
        ("RestartUSec", "10s"),
        ("KillMode", "process"),
        ("Delegate", "yes"),
        ("TimeoutStartUSec", "3min"),
        ("NeedDaemonReload", "no"),
        ("Type", "simple"),
    ],
)
def test_slurmd_unit_in_force(compute: Host, name: str, value: str) -> None:
    assert compute.service("slurmd").systemd_properties[name] == value


@pytest.mark.parametrize("unit", ["slurmctld", "slurmdbd", "slurm-cluster-health.timer"])
def test_controller_services(controller: Host, unit: str) -> None:
    assert controller.service(unit).is_running, journal(controller, unit)
    assert controller.service(unit).is_enabled


def test_systemd_reads_every_unit_without_a_complaint(controller: Host, compute: Host) -> None:
    for host, units in (
        (controller, ("slurmctld.service", "slurmdbd.service", "slurm-cluster-health.timer")),
        (compute, ("slurmd.service",)),
    ):
        told = host.run("systemd-analyze verify " + " ".join(units))
        assert "Unknown" not in told.stderr, told.stderr
        assert "ignoring" not in told.stderr, told.stderr


def test_the_snapshot_is_roots_alone(controller: Host) -> None:
    place = controller.file("/var/lib/hpcguard")
    assert (place.user, place.mode) == ("root", 0o700)


def test_the_health_checks_line_is_in_slurmds_journal(compute: Host) -> None:
    assert "HealthCheck 通过" in compute.run("journalctl --no-pager -u slurmd").stdout


def test_verify_passes_13_of_13() -> None:
    output = cluster.succeed("verify")
    assert "13 of 13 passed" in output
    assert set(cluster.verdicts().values()) == {"pass"}


# What somebody may lay over a rollout without anything failing: {item: {host: {path: words that the item then says}}}.
NODE = cluster.COMPUTES[0]
TAMPERED: dict[int, dict[str, tuple[str, ...]]] = {
    3: {NODE: ("/etc/hpcguard/health_check.conf",)},
    7: {
        cluster.CONTROLLER: (
            "/usr/local/lib/hpcguard/slurmguard/node_policy.py",
            "/usr/local/bin/cluster_health_check.py",
            "/etc/systemd/system/slurm-cluster-health-bootstrap.service",
        )
    },
    9: {NODE: ("/usr/local/bin/wait-for-slurmctld.sh",)},
}


@pytest.fixture
def tampered() -> t.Iterator[None]:
    """Each file says something else and is as harmless as before to whoever only runs it; afterwards all is put back."""
    places = [(host, path) for item in TAMPERED.values() for host, paths in item.items() for path in paths]
    kept = {place: cluster.run(place[0], "cat", place[1]).stdout for place in places}
    boot = "slurm-cluster-health-bootstrap.service"
    try:
        for host, path in places:
            comment = kept[host, path] + "# altered\n"
            cluster.run(host, "tee", path, feed="#!/bin/sh\nexit 0\n" if path.endswith("wait-for-slurmctld.sh") else comment)
        cluster.run(cluster.CONTROLLER, "systemctl", "disable", boot)
        cluster.run(NODE, "systemctl", "disable", "munge")
        yield
    finally:
        for (host, path), text in kept.items():
            cluster.run(host, "tee", path, feed=text)
        cluster.run(cluster.CONTROLLER, "systemctl", "daemon-reload")
        cluster.run(cluster.CONTROLLER, "systemctl", "enable", boot)
        cluster.run(NODE, "systemctl", "enable", "munge")


def test_verify_sees_what_somebody_laid_over_a_rollout(tampered: None) -> None:
    """A wait script that only says 0, altered settings, patrol, library and unit, and what would not start at boot."""
    output = cluster.refuse("verify", "-e", "verify_crash_test=false")
    items = {item["id"]: item for item in cluster.report()["items"]}
    assert {number for number, item in items.items() if item["verdict"] == "fail"} == {3, 7, 8, 9}, output[-6000:]
    for number, hosts in TAMPERED.items():
        for host, paths in hosts.items():
            told = items[number]["hosts"][host]
            assert all(path in [line["source"] for line in told["evidence"]] for path in paths), told
            assert "not as a rollout writes" in told["reason"] and "deploy.yml" in told["remedy"], told
        assert {host for host, told in items[number]["hosts"].items() if told["verdict"] == "fail"} == set(hosts)
    assert "slurm-cluster-health-bootstrap.service would not start at boot" in items[7]["hosts"][cluster.CONTROLLER]["reason"]
    assert "munge: it is disabled" in items[8]["hosts"][NODE]["reason"]


def test_a_run_limited_to_nodes_says_what_it_did_not_compare() -> None:
    cluster.succeed("verify", "-e", "verify_crash_test=false", "--limit", NODE)
    (patrol,) = [item for item in cluster.report()["items"] if item["id"] == 7]
    assert "not compared" in patrol["hosts"][cluster.CONTROLLER]["reason"]


def test_the_report_has_three_more_forms() -> None:
    for name, beginning in (("verify.xml", "<?xml"), ("verify.html", "<!DOCTYPE html>"), ("verify.json", "{")):
        assert (cluster.ROOT / cluster.REPORTS / name).read_text(encoding="utf-8").lstrip().startswith(beginning)


def test_the_built_artefact_verifies_the_cluster() -> None:
    done = subprocess.run(
        [str(cluster.ROOT / "tests/tools/build-install"), str(cluster.ROOT / "inventories/lab")],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
