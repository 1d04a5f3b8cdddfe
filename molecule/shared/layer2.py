"""Layer 2 on the lab: settings with short times, units on a host, and one run of the patrol."""

from __future__ import annotations

import json
import typing as t

import cluster

# What an inventory would hold; short times, so that the tests are.
WANTED = (
    "-e",
    json.dumps(
        {
            "slurm_conf_settings": {"HealthCheckInterval": 60, "SlurmdTimeout": 30},
            "patrol_back_off": 5,
            "patrol_stuck_after": 20,
            "patrol_metrics_file": "/var/lib/hpcguard/patrol.prom",
        }
    ),
)
TIMER_DROP_IN = "/etc/systemd/system/slurm-cluster-health.timer.d/test.conf"
TIMER = "[Timer]\nOnBootSec=\nOnBootSec=1\nOnUnitActiveSec=5\nAccuracySec=1\n"
# Nothing brings it back by itself.
NO_RESTART = "[Service]\nRestart=no\n"
PROGRAM = "/usr/local/bin/cluster_health_check.py"


def systemctl(host: str, *words: str, check: bool = True) -> str:
    return cluster.out(host, "systemctl", *words, check=check, timeout=300)


def show(host: str, unit: str, *keys: str) -> dict[str, str]:
    text = systemctl(host, "show", unit, *(f"--property={key}" for key in keys))
    return dict(line.split("=", 1) for line in text.splitlines())


def write(host: str, path: str, text: str) -> None:
    cluster.run(host, "mkdir", "-p", path.rpartition("/")[0])
    cluster.run(host, "tee", path, feed=text)


def die(host: str, unit: str) -> None:
    """Killed, and failed for good."""
    write(host, f"/run/systemd/system/{unit}.service.d/dies.conf", NO_RESTART)
    systemctl(host, "daemon-reload")
    cluster.run(host, "kill", "-KILL", show(host, unit, "MainPID")["MainPID"])
    cluster.wait_for(lambda: show(host, unit, "ActiveState")["ActiveState"] == "failed", 30, f"{unit} has failed")


def heal(host: str, unit: str) -> None:
    cluster.run(host, "rm", "-f", f"/run/systemd/system/{unit}.service.d/dies.conf")
    systemctl(host, "daemon-reload")


def all_in_service() -> bool:
    return all(cluster.in_service(name) for name in cluster.COMPUTES)


def patrol(*options: str) -> dict[str, t.Any]:
    """One run by hand; what it says of each node."""
    text = cluster.out(cluster.CONTROLLER, PROGRAM, "--json", *options, check=False, timeout=300)
    report: dict[str, t.Any] = json.loads(text)
    assert "fault" not in report, report
    return report


def status_screen() -> tuple[dict[str, t.Any], str]:
    """What status.yml writes, and what it shows; it changes nothing."""
    screen = cluster.succeed("status", "-e", f"status_report_dir={cluster.REPORTS}")
    assert {host: count["changed"] for host, count in cluster.recap(screen).items() if count["changed"]} == {}
    read: dict[str, t.Any] = json.loads((cluster.ROOT / cluster.REPORTS / "status.json").read_text(encoding="utf-8"))
    return read, screen


def said_of_starts(output: str) -> list[str]:
    """What recover.yml said of the daemons that it started, or would start."""
    return [line.split("- ", 1)[1].strip("'") for line in output.splitlines() if "started" in line and "- " in line]
