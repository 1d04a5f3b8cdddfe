"""Deploy, verify and rollback on every release of Debian and both layouts, with a job that must survive.

Each combination has a lab of its own. What was measured goes to reports/matrix.json, from which tests/tools/matrix writes the
table in the READMEs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import typing as t
from pathlib import Path

import cluster
import pytest
from cluster import COMPUTES, CONTROLLER

Choices = dict[str, str]

# What lab/choices.sh is told; what is not named here has its default there.
COMBINATIONS: tuple[Choices, ...] = (
    *({"RELEASE": name, "LAYOUT": layout} for name in ("bullseye", "bookworm", "trixie", "sid") for layout in ("source", "package")),
    {"RELEASE": "bullseye", "PYTHON": "2.7"},
    *({"RELEASE": "bookworm", "TOPOLOGY": topology} for topology in ("backup", "dbd", "noacct")),
    {"RELEASE": "bookworm", "CONF": "files"},
)
DEFAULTS = {"RELEASE": "bookworm", "LAYOUT": "source", "CONF": "configless", "TOPOLOGY": "one", "PYTHON": "3"}

# The last ansible-core that manages hosts with Python 2.7, and the interpreters that it runs on.
CORE = "ansible-core==2.16.19"
CORE_PYTHONS = ("python3.12", "python3.11", "python3.10")

# From Slurm 23.11 on the first health check comes an interval after the rollout, which waits for it.
SETTINGS = ("-e", '{"slurm_conf_settings": {"HealthCheckInterval": 60}}')
DAEMONS = {"slurm_controller": "slurmctld", "slurm_dbd": "slurmdbd", "slurm_compute": "slurmd"}
MATRIX = cluster.ROOT / cluster.REPORTS / "matrix.json"

Row = dict[str, t.Any]


def name_of(choices: Choices) -> str:
    return "-".join(choices.values()).replace("2.7", "python2.7")


def keep(name: str, row: Row) -> None:
    """Write a row of the matrix, in the order of the table above; rows of earlier runs stay."""
    MATRIX.parent.mkdir(parents=True, exist_ok=True)
    rows = json.loads(MATRIX.read_text(encoding="utf-8")) if MATRIX.exists() else {}
    rows[name] = row
    order = [name_of(choices) for choices in COMBINATIONS]
    kept = {key: rows[key] for key in order if key in rows}
    MATRIX.write_text(json.dumps(kept, indent=1, ensure_ascii=False), encoding="utf-8")


def lab(script: str, choices: Choices) -> None:
    """Run a script of the lab's, which says itself what went wrong."""
    done = subprocess.run(
        [cluster.ROOT / "lab" / script],
        env={**os.environ, **DEFAULTS, **choices},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]


# --- the control node -----------------------------------------------------------------------------


def runs(program: str) -> bool:
    """True when it is there and is more than a stub for a version that is not installed."""
    return bool(shutil.which(program)) and subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0


def old_core() -> Path | None:
    """ansible-playbook of :data:`CORE` in an environment of its own, which is made once; None where no Python is old enough."""
    home = cluster.ROOT / ".venv" / CORE.replace("==", "-")
    playbook = home / "bin/ansible-playbook"
    if not playbook.exists():
        python = next((name for name in CORE_PYTHONS if runs(name)), None)
        if python is None:
            return None
        subprocess.run([python, "-m", "venv", "--clear", home], check=True)
        subprocess.run([home / "bin/pip", "install", "-q", "--disable-pip-version-check", "--no-input", CORE], check=True)
    return playbook


@pytest.fixture
def control(choices: Choices, monkeypatch: pytest.MonkeyPatch) -> str:
    """The version of ansible-core that the playbooks run with."""
    if choices.get("PYTHON") == "2.7":
        playbook = old_core()
        if playbook is None:
            reason = f"{CORE} needs one of {', '.join(CORE_PYTHONS)}"
            keep(name_of(choices), {**DEFAULTS, **choices, "not_run": reason})
            pytest.skip(reason)
        monkeypatch.setattr(cluster, "PLAYBOOK", playbook)
    said = subprocess.run([cluster.PLAYBOOK, "--version"], capture_output=True, text=True, check=True).stdout
    return said.split("[core ", 1)[1].split("]", 1)[0]


# --- the cluster ----------------------------------------------------------------------------------


def hosts() -> list[str]:
    return list(cluster.inventory()["_meta"]["hostvars"])


def files() -> dict[str, dict[str, str]]:
    return {host: cluster.files(host) for host in hosts()}


def in_service() -> None:
    """Every node takes jobs, and every daemon runs."""
    for name in COMPUTES:
        cluster.wait_for(lambda node=name: cluster.in_service(node), 60, f"{name} in service")
    told = cluster.inventory()
    for group, unit in DAEMONS.items():
        for host in told[group]["hosts"]:
            assert cluster.out(host, "systemctl", "is-active", unit, check=False) == "active", (host, unit)


def versions() -> Row:
    """What runs on the hosts, as it says itself."""
    python = cluster.run(CONTROLLER, cluster.python(CONTROLLER), "--version")  # Python 2 says it on stderr
    return {
        "slurm": cluster.out(CONTROLLER, "scontrol", "--version").split()[-1],
        "systemd": cluster.out(CONTROLLER, "systemctl", "--version").split()[1],
        "python": (python.stdout + python.stderr).split()[-1],
    }


def job_record(job: str) -> set[str]:
    return set(cluster.out(CONTROLLER, "scontrol", "-o", "show", "job", job).split())


def end(job: str) -> None:
    """Let the job end: as it should, and on its first attempt. Without accounting, too."""
    for name in COMPUTES:
        cluster.run(name, "touch", "/run/end-of-job")
    cluster.wait_for(lambda: job_record(job) >= {"JobState=COMPLETED", "Restarts=0"}, 60, f"job {job} ends as it should")


def nothing_changes() -> None:
    counts = cluster.recap(cluster.succeed("deploy", *SETTINGS))
    assert set(counts) == set(hosts())
    assert {host: count["changed"] for host, count in counts.items() if count["changed"]} == {}


def skipped_for() -> dict[str, str]:
    """The reason of each item that was skipped; any other has passed."""
    found = {}
    for item in cluster.report()["items"]:
        assert item["verdict"] in ("pass", "skip"), item
        if item["verdict"] == "skip":
            reasons = {item["reason"], *(result["reason"] for result in item["hosts"].values())} - {""}
            assert reasons, item
            found[str(item["id"])] = "; ".join(sorted(reasons))
    return found


def items_without_a_subject(row: Row) -> set[str]:
    """Items of the checklist that ask for something which this cluster has no need of."""
    own_wait = tuple(int(part) for part in row["slurm"].split(".")[:2]) >= (24, 5)  # slurmd waits for slurmctld by itself
    by_topology = {"dbd": {"10"}, "noacct": {"10", "12"}}
    return ({"9"} if own_wait else set()) | by_topology.get(row["TOPOLOGY"], set())


@pytest.mark.parametrize("choices", COMBINATIONS, ids=name_of)
def test_the_standard_comes_and_goes(choices: Choices, control: str, request: pytest.FixtureRequest) -> None:
    row: Row = {**DEFAULTS, **choices, "core": control, "passed": []}
    begun = time.monotonic()
    request.addfinalizer(lambda: lab("down.sh", choices))
    request.addfinalizer(lambda: keep(name_of(choices), {**row, "seconds": round(time.monotonic() - begun)}))

    def passed(step: str) -> None:
        row["passed"].append(step)

    lab("up.sh", choices)
    row.update(versions())
    legacy = files()

    job = cluster.run_until_told()
    cluster.succeed("deploy", *SETTINGS, "-e", "slurm_running_jobs=defer")
    assert cluster.job_state(job) == "RUNNING"
    end(job)
    passed("job")

    # what had to wait for the job, if anything
    cluster.succeed("deploy", *SETTINGS)
    passed("deploy")
    nothing_changes()
    passed("again")

    cluster.succeed("verify", *SETTINGS)
    row["skipped"] = skipped_for()
    assert set(row["skipped"]) == items_without_a_subject(row)
    passed("verify")

    cluster.succeed("rollback")
    assert {host for host, seen in files().items() if seen != legacy[host]} == set()
    in_service()
    passed("rollback")
