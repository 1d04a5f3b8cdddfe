# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for the phases of a rollout (control node)."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping

PHASES = ("snapshot", "stage", "controller", "compute", "patrol", "prove")


def rollout_trouble(
    hosts: Iterable[str], hostvars: Mapping[str, Mapping[str, t.Any]], computes: Iterable[str], phase: str, gone: Iterable[str] = ()
) -> list[str]:
    """Why phase *phase* must not begin: one sentence a host that did not come through the phases before.

    :param hosts: hosts of the rollout
    :param computes: hosts running slurmd, the only ones to take phase ``compute``
    :param gone: hosts that dropped out of the present play
    """
    needed = set(PHASES[: PHASES.index(phase)]) if phase in PHASES else set(PHASES)
    computes, gone = set(computes), set(gone)
    failed, stopped, lost = [], [], []
    for host in hosts:
        variables = hostvars[host]
        missing = needed - set(variables.get("hpcguard_reached", [])) - (set() if host in computes else {"compute"})
        if variables.get("hpcguard_failed"):
            failed.append(str(variables["hpcguard_failed"]))
        elif host in gone:
            lost.append(f"{host}: unreachable")
        elif missing:
            first = next(name for name in PHASES if name in missing)
            stopped.append(f"{host}: stopped or unreachable in phase {first}")
    # hosts that stopped because another failed are no news
    return failed + lost or stopped


def node_names(hosts: Iterable[str], hostvars: Mapping[str, Mapping[str, t.Any]]) -> list[str]:
    """NodeName of each host, also of those that a limited run leaves out."""
    names = []
    for host in hosts:
        variables = hostvars[host]
        names.append(str(variables.get("hpcguard_node_name") or variables.get("cluster_node_name") or host))
    return names


def changed_since(hosts: Iterable[str], hostvars: Mapping[str, Mapping[str, t.Any]], name: str) -> list[str]:
    """``host: path`` of every file that somebody changed since the rollout.

    :param name: variable under which each host keeps what the module snapshot said
    """
    return [f"{host}: {path}" for host in hosts for path in hostvars[host].get(name, {}).get("foreign", [])]


STATES = {
    "sealed": "stands, rollback.yml takes it back",
    "taken": "was interrupted: deploy.yml finishes it, rollback.yml takes it back",
    "rolled_back": "was taken back",
    "damaged": "DAMAGED",
}


def snapshot_lines(snapshots: Iterable[Mapping[str, t.Any]]) -> list[str]:
    """One line a snapshot, oldest first, fit to be read."""
    return [
        f"{one['id']}  {STATES[one['state']]}{': ' + one['problem'] if one['problem'] else ''}  ({len(one['paths'])} files)"
        for one in snapshots
    ] or ["no snapshot"]


class FilterModule:
    """Names the filters for Ansible."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {
            "rollout_trouble": rollout_trouble,
            "changed_since": changed_since,
            "node_names": node_names,
            "snapshot_lines": snapshot_lines,
        }
