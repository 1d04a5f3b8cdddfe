# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of the role verify (control node)."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.hpcguard.slurm.plugins.module_utils.checklist import KEYS

Vars = c.Mapping[str, t.Any]


def verify_settings(wanted: Vars, leave: c.Iterable[str]) -> dict[str, t.Any]:
    """Those of the wanted settings of slurm.conf that an item looks at; the others may hold secrets.

    :param leave: keys that stay as they are. Keys are the same in whatever case, as for Slurm.
    """
    values = {str(key).lower(): value for key, value in wanted.items()}
    left = {key.lower() for key in leave}
    return {key: values[key.lower()] for key in KEYS if key.lower() in values and key.lower() not in left}


def verify_crash_host(controllers: Vars, hostvars: c.Mapping[str, Vars], computes: c.Sequence[str], preferred: str = "") -> str:
    """The compute host for the crash test: the preferred one, else one whose node is idle, else one in service.

    :param controllers: result of the loop over the controllers (verify_info)
    :param hostvars: variables of all hosts
    :param computes: compute hosts of this run
    :returns: empty when no host is fit
    """
    if preferred:
        if preferred not in computes:
            raise AnsibleFilterError(f"verify_crash_test_node: {preferred} is no compute host of this run")
        return preferred
    nodes: list[Vars] = next(
        (one["evidence"]["nodes"]["list"] for one in controllers.get("results", []) if "nodes" in one.get("evidence", {})), []
    )
    well = [node for node in nodes if node["base"] in ("IDLE", "MIXED", "ALLOCATED") and not node["flags"]]
    # a host usually bears its node's name, so the others are looked at only where it does not
    for node in sorted(well, key=lambda one: one["base"] != "IDLE"):
        candidates = [node["name"]] if node["name"] in computes else computes
        for host in candidates:
            variables = hostvars[host]
            if variables.get("cluster_node_name", host) == node["name"] and "evidence" in variables.get("__verify_node", {}):
                return host
    return ""


class FilterModule:
    """Names the filters for Ansible."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"verify_crash_host": verify_crash_host, "verify_settings": verify_settings}
