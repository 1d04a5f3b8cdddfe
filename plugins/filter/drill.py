# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of the role drill (control node)."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence

from ansible_collections.hpcguard.slurm.plugins.module_utils import scontrol_text
from ansible_collections.hpcguard.slurm.plugins.module_utils.checklist import SLURMD_WAITS
from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import clean_text, some

Vars = dict[str, t.Any]

ON_ONE_HOST = ("slurmd_crash", "health_check", "controller_restart")
# Without an outcome it was not this host's.
FINE = ("", "recovered", "not_run")


def nodes_in_service(nodes: Sequence[Vars]) -> list[str]:
    """Names of the nodes that take jobs; of the others a drill expects nothing."""
    return [node["name"] for node in nodes if scontrol_text.in_service(node)]


def running_units(units: Mapping[str, Vars]) -> list[str]:
    """Services of Slurm that run on a host."""
    return [f"{name}.service" for name, unit in units.items() if name.startswith("slurm") and unit["active_state"] == "active"]


def drill_problems(
    view: Vars, exercises: Sequence[str], script: str, running: Sequence[str], busy: str, at_work: str = "", lost: Sequence[str] = ()
) -> list[str]:
    """What stands against a drill.

    :param view: what the controller said: {ping, config, nodes}
    :param running: ids of the jobs that run
    :param busy: refuse or allow
    :param at_work: who holds the lock, empty when it is ours
    :param lost: hosts that were not reached
    """
    problems = [f"变更或巡检正在进行 / somebody is at work: {clean_text(at_work)}"] if at_work else []
    if lost:
        problems.append(f"主机未连接 / hosts were not reached: {some(list(lost))}")
    if not view["ping"]:
        return [*problems, "slurmctld 没有应答 / slurmctld does not answer"]
    if view["config"].get("HealthCheckProgram") != script:
        problems.append(
            f"标准未部署, 先运行 deploy.yml / the standard is not in force (HealthCheckProgram is not {script}): run deploy.yml first"
        )
    ill = [f"{clean_text(node['name'])} {clean_text(node['state'])}" for node in view["nodes"] if not scontrol_text.in_service(node)]
    if ill:
        problems.append(f"节点不在服务中 / nodes are not in service: {some(ill)}")
    if running and (busy != "allow" or "cold_start" in exercises):
        remedy = "等待作业结束 / wait for them" if "cold_start" in exercises else "-e drill_busy_nodes=allow"
        problems.append(f"有作业在运行 / jobs are running: {some(list(running))}: {remedy}")
    return problems


def drill_unit_problems(hosts: Sequence[str], hostvars: Mapping[str, Vars], wanted: Vars) -> list[str]:
    """What of the standard slurmd's unit lacks on the compute nodes, by what was seen of them: without it what is broken may stay so.

    :param wanted: the role slurmd's {restart, wait, wait_script}
    """
    lacks: dict[str, list[str]] = {}
    for host in hosts:
        fact = hostvars[host].get("hpcguard_cluster")
        if not fact:
            continue
        unit, told = fact["units"]["slurmd"], []
        if unit["kill_mode"] != "process":
            told.append(f"KillMode={unit['kill_mode']}")
        if unit["restart"] != wanted["restart"]:
            told.append(f"Restart={unit['restart']}")
        if unit["need_daemon_reload"]:
            told.append("daemon-reload")
        wait = str(wanted["wait"]).lower()
        waits = list(fact["slurm"]["release"]) < SLURMD_WAITS if wait == "auto" else wait in ("true", "yes")
        if waits and wanted["wait_script"] not in [call["path"] for call in unit["exec_start_pre"]]:
            told.append(f"ExecStartPre={wanted['wait_script']}")
        for one in told:
            lacks.setdefault(one, []).append(host)
    return [
        f"slurmd 的单元不是标准 / slurmd's unit is not the standard's: {clean_text(one)}: {some(names)}: run deploy.yml first"
        for one, names in lacks.items()
    ]


def gone_well(hosts: Sequence[str], hostvars: Mapping[str, Vars]) -> bool:
    """Whether no exercise has failed on these hosts; what is registered of one is __drill_ and its name."""
    done = [hostvars[host].get(f"__drill_{name}") or {} for host in hosts for name in ON_ONE_HOST]
    return all(one.get("outcome", "") in FINE and not one.get("failed") for one in done)


class FilterModule:
    """Names the filters for Ansible."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {
            "nodes_in_service": nodes_in_service,
            "running_units": running_units,
            "drill_problems": drill_problems,
            "drill_unit_problems": drill_unit_problems,
            "gone_well": gone_well,
        }
