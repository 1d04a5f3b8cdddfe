"""playbooks/lint.yml on the legacy cluster: what it says, its exit status, and that it changes nothing."""

from __future__ import annotations

import pathlib
import typing as t

import cluster
import pytest

SITE_CONF = "/usr/local/slurm/etc/site.conf"
LOCAL = "/etc/slurm/slurm.conf"
BROKEN = "ClusterName=hpc\nSlurmctldHost=k8s-master-01\nJobCompPass=hunter2 hunter2\nKilwait=3\n"


@pytest.fixture
def wrong_line() -> t.Iterator[int]:
    """A line in the included file that Slurm refuses; its number."""
    before = cluster.run(cluster.CONTROLLER, "cat", SITE_CONF).stdout
    cluster.run(cluster.CONTROLLER, "tee", SITE_CONF, feed=before + "SlurmdTimeout=300s\n")
    yield before.count("\n") + 1
    cluster.run(cluster.CONTROLLER, "tee", SITE_CONF, feed=before)


@pytest.fixture
def local_files() -> t.Iterator[tuple[str, ...]]:
    """The same broken slurm.conf on two of the compute nodes."""
    nodes = cluster.COMPUTES[:2]
    for node in nodes:
        cluster.run(node, "mkdir", "-p", "/etc/slurm")
        cluster.run(node, "tee", LOCAL, feed=BROKEN)
    yield nodes
    for node in nodes:
        cluster.run(node, "rm", LOCAL)


def test_the_legacy_file_has_no_error() -> None:
    text = cluster.succeed("lint")
    assert "slurm.conf: 0 errors, 0 warnings" in text
    assert all(counts["changed"] == 0 for counts in cluster.recap(text).values())


def test_an_error_is_told_with_file_and_line_and_nothing_is_touched(wrong_line: int) -> None:
    before = cluster.files(cluster.CONTROLLER), cluster.main_pids()
    text = cluster.refuse("lint")
    assert f"[{cluster.CONTROLLER}] {SITE_CONF}:{wrong_line} " in text
    assert "SlurmdTimeout: 300s is no number from 0 to 65535" in text and "it counts in seconds: write 300" in text
    assert (cluster.files(cluster.CONTROLLER), cluster.main_pids()) == before


def test_files_of_compute_nodes_are_read_too_and_what_they_share_is_said_once(local_files: tuple[str, ...]) -> None:
    text = cluster.refuse("lint")
    assert f"[{', '.join(local_files)}] {LOCAL}:4 " in text and text.count("Kilwait: Slurm") == 1
    assert "hunter2" not in text


def test_a_file_on_the_control_node_needs_no_cluster(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "slurm.conf"
    lint_file = ("-i", "/dev/null", "-e", f"lint_file={file}")
    file.write_text(BROKEN)
    assert f"[localhost] {file}:4 " in cluster.refuse("lint", *lint_file, "-e", "lint_version=24.11")
    file.write_text("ClusterName=hpc\nSlurmctldHost=c1\nJobCompType=jobcomp/filetxt\nKillWait=3\nKillWait=4\n")
    assert "0 errors, 1 warning, 0 notes in 1 file" in cluster.succeed("lint", *lint_file, "-e", "lint_version=24.11")
    cluster.refuse("lint", *lint_file, "-e", "lint_version=24.11", "-e", "lint_strict=true")
