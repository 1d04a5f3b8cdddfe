"""Nodes as hosts of the inventory."""

from __future__ import annotations

import typing as t

from ansible_collections.hpcguard.slurm.plugins.filter import diagnose


def test_nodes_are_found_by_what_slurm_calls_them() -> None:
    hostvars: dict[str, dict[str, t.Any]] = {"host-a": {"cluster_node_name": "n1"}, "n2": {}}
    found = diagnose.hosts_of_nodes(["n2", "n9", "n1"], ["host-a", "n2"], hostvars)
    assert found == [{"node": "n2", "host": "n2"}, {"node": "n1", "host": "host-a"}]
