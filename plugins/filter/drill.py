# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of the role drill (control node)."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence

from ansible_collections.hpcguard.slurm.plugins.module_utils import scontrol_text
from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import clean_text, some

Vars = dict[str, t.Any]


def nodes_in_service(nodes: Sequence[Vars]) -> list[str]:
    """Names of the nodes that take jobs; of the others a drill expects nothing."""
    return [node["name"] for node in nodes if scontrol_text.in_service(node)]


def running_units(units: Mapping[str, Vars]) -> list[str]:
    """Services of Slurm that run on a host."""
    return [f"{name}.service" for name, unit in units.items() if name.startswith("slurm") and unit["active_state"] == "active"]


def drill_problems(view: Vars, exercises: Sequence[str], script: str, running: Sequence[str], busy: str) -> list[str]:
    """What stands against a drill.

    :param view: what the controller said: {ping, config, nodes}
    :param running: ids of the jobs that run
    :param busy: refuse or allow
    """
    if not view["ping"]:
        return ["slurmctld 没有应答 / slurmctld does not answer"]
    problems = []
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


class FilterModule:
    """Names the filters for Ansible."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"nodes_in_service": nodes_in_service, "running_units": running_units, "drill_problems": drill_problems}
