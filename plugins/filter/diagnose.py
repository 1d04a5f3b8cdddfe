# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Slurm calls nodes, as hosts of the inventory (control node)."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping


def hosts_of_nodes(nodes: Iterable[str], hosts: Iterable[str], hostvars: Mapping[str, Mapping[str, t.Any]]) -> list[dict[str, str]]:
    """The hosts that are these nodes, in the order of the nodes; what the inventory does not hold is left out."""
    names = {str(hostvars[host].get("cluster_node_name", host)): host for host in hosts}
    return [{"node": node, "host": names[node]} for node in nodes if node in names]


class FilterModule:
    """Names the filter for Ansible."""

    def filters(self) -> dict[str, object]:
        return {"hosts_of_nodes": hosts_of_nodes}
