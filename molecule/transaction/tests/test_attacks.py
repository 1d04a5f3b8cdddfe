"""What an attack once found: symbolic links, secrets in a diff, and a way back that left hosts behind.

The cluster is afterwards as it was before, for the tests of the transaction.
"""

from __future__ import annotations

import typing as t

import cluster
import pytest

ETC = "/usr/local/slurm/etc"
SECRET = "Pa55-wo.rt_of-jobcomp"
# {link: (target as the link says it, the file that it means)}
LINKS = {
    f"{ETC}/slurm.conf": ("/opt/site/slurm.conf", "/opt/site/slurm.conf"),
    f"{ETC}/site.conf": ("versions/site-2.conf", f"{ETC}/versions/site-2.conf"),
}


def everything() -> dict[str, dict[str, str]]:
    """Every watched file of every host, links with their targets."""
    return {host: cluster.files(host) for host in cluster.HOSTS}


def targets() -> dict[str, str]:
    return {link: cluster.out(cluster.CONTROLLER, "readlink", link) for link in LINKS}


@pytest.fixture(scope="module")
def linked() -> t.Iterator[dict[str, dict[str, str]]]:
    """slurm.conf and what it includes are links, as configuration management leaves them, and one line is a secret."""
    cluster.run(cluster.CONTROLLER, "mkdir", "/opt/site", f"{ETC}/versions")
    for link, (target, meant) in LINKS.items():
        cluster.run(cluster.CONTROLLER, "mv", link, meant)
        cluster.run(cluster.CONTROLLER, "ln", "-s", target, link)
    conf = LINKS[f"{ETC}/slurm.conf"][1]
    text = cluster.run(cluster.CONTROLLER, "cat", conf).stdout
    # beside a line that a rollout changes, so that a diff shows it
    near = next(line for line in text.splitlines() if line.startswith("ReturnToService="))
    cluster.run(cluster.CONTROLLER, "tee", conf, feed=text.replace(near, f"{near}\nJobCompPass={SECRET}"))
    cluster.run(cluster.CONTROLLER, "scontrol", "reconfigure")
    try:
        yield everything()
    finally:
        cluster.run(cluster.CONTROLLER, "tee", conf, feed=text)
        for link, (_target, meant) in LINKS.items():
            cluster.run(cluster.CONTROLLER, "mv", "-T", meant, link)
        cluster.run(cluster.CONTROLLER, "rmdir", "/opt/site", f"{ETC}/versions")
        cluster.run(cluster.CONTROLLER, "scontrol", "reconfigure")


def test_links_stay_links_when_the_standard_is_rolled_out(linked: dict[str, dict[str, str]]) -> None:
    """The edit goes through the link, and the secret is in no output."""
    said = cluster.succeed("deploy", "--diff")
    assert targets() == {link: target for link, (target, _meant) in LINKS.items()}
    assert cluster.config("ReturnToService") == "2"
    conf = LINKS[f"{ETC}/slurm.conf"][1]
    assert cluster.files(cluster.CONTROLLER)[conf] != linked[cluster.CONTROLLER][conf]
    assert SECRET in cluster.run(cluster.CONTROLLER, "cat", conf).stdout
    assert SECRET not in said


def test_a_diff_of_the_way_back_holds_no_secret(linked: dict[str, dict[str, str]]) -> None:
    """The line itself is there, or the test would prove nothing."""
    said = cluster.succeed("rollback", "--check", "--diff")
    lines = [line for line in said.splitlines() if "JobCompPass" in line]
    assert lines, said[-6000:]
    assert SECRET not in said


def test_links_stay_links_on_the_way_back(linked: dict[str, dict[str, str]]) -> None:
    said = cluster.succeed("rollback", "--diff")
    assert targets() == {link: target for link, (target, _meant) in LINKS.items()}
    assert everything() == linked
    assert SECRET not in said


def test_a_failed_checklist_takes_every_host_back(linked: dict[str, dict[str, str]]) -> None:
    """Item 5 looks for a heartbeat where none will be, so all is rolled out by then, on every host."""
    said = cluster.refuse("deploy", "-e", "health_check_heartbeat=/run/hpcguard/nowhere", "-e", "verify_first_beat=1")
    assert "/run/hpcguard/nowhere is not there" in said, said[-6000:]
    assert everything() == linked
    assert cluster.config("ReturnToService") != "2"
    for host in cluster.COMPUTES:
        cluster.wait_for(lambda name=host: cluster.in_service(name), 60, f"{host} in service")
