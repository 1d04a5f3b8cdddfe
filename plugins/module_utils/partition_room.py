# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a partition has room for, and what stands between a request and it. Pure.

Counts nodes as they are configured; whether they are in service is another question.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import quantities, scontrol_text

ALL = ("", "ALL", "(null)", "N/A")
_GRES = re.compile(r"(?:gres[:/])?([A-Za-z][\w-]*)(?::([A-Za-z][\w.-]*))?(?:[:=]([0-9]+))?$")
_PLAIN_FEATURES = re.compile(r"^[\w.-]+(?:[&,][\w.-]+)*$")


def _most(text):
    """A limit of a partition as a number; without one, no limit."""
    number = quantities.whole(text or "")
    return quantities.INFINITE if number is None else number


def gres(text):
    """``gpu:a100:2,shard:4`` as {name: number}; types of one kind are added up."""
    found = {}
    for part in re.sub(r"\([^)]*\)", "", text or "").split(","):
        match = _GRES.match(part.strip())
        if match and match.group(1) != "null":
            found[match.group(1)] = found.get(match.group(1), 0) + int(match.group(3) or 1)
    return found


def nodes_of(text):
    """Nodes of ``scontrol -o show node`` as {name: what each has and whether it is in service}."""
    found = {}
    sizes = {record.get("NodeName"): record for record in scontrol_text.parse_records(text)}
    for node in scontrol_text.parse_nodes(text):
        record = sizes[node["name"]]
        found[node["name"]] = {
            "cpus": quantities.whole(record.get("CPUEfctv") or record.get("CPUTot", "")) or 0,
            "cpus_used": quantities.whole(record.get("CPUAlloc", "")) or 0,
            "memory": quantities.memory_mb(record.get("RealMemory", ""))[0] or 0,
            "tmp": quantities.memory_mb(record.get("TmpDisk", ""))[0] or 0,
            "gres": gres(record.get("Gres", "")),
            "features": set(re.split(r"[,&]", record.get("AvailableFeatures") or record.get("Features", ""))),
            "up": scontrol_text.in_service(node) and "DRAIN" not in node["flags"],
            "state": node["state"],
            "reason": node["reason"],
        }
    return found


class Partition:
    """One partition of ``scontrol -o show partition`` with its nodes."""

    def __init__(self, record, nodes):
        self.name = record.get("PartitionName", "")
        self.state = record.get("State", "UP").upper()
        self.max_time = quantities.seconds(record.get("MaxTime", ""))
        self.max_time = quantities.INFINITE if self.max_time is None else self.max_time
        self.default_time = quantities.seconds(record.get("DefaultTime", ""))
        self.max_nodes = _most(record.get("MaxNodes"))
        self.min_nodes = quantities.whole(record.get("MinNodes", "")) or 0
        self.cpus_per_node = _most(record.get("MaxCPUsPerNode"))
        self.memory_per_node = quantities.memory_mb(record.get("MaxMemPerNode", ""))[0] or quantities.INFINITE
        self.qos = "" if record.get("QoS", "") in ALL else record["QoS"]
        self.who = {
            key: set(record.get(key, "").split(","))
            for key in ("AllowAccounts", "DenyAccounts", "AllowQos", "DenyQos")
            if record.get(key, "") not in ALL
        }
        named = quantities.hosts(record.get("Nodes", "")) if record.get("Nodes", "(null)") != "(null)" else []
        self.members = [nodes[name] for name in named if name in nodes]
        self.names = [name for name in named if name in nodes]
        self._sums = {}

    def sums(self, only_up):
        """What the nodes, all or those in service, have at the most; counted once."""
        if only_up not in self._sums:
            members = [node for node in self.members if node["up"] or not only_up]
            room = [0]
            for size in sorted((min(node["cpus"], self.cpus_per_node) for node in members), reverse=True):
                room.append(room[-1] + size)
            kinds = {name for node in members for name in node["gres"]}
            self._sums[only_up] = {
                "nodes": len(members),
                "room": room,
                "cpus": max([node["cpus"] for node in members] or [0]),
                "memory": max([node["memory"] for node in members] or [0]),
                "tmp": max([node["tmp"] for node in members] or [0]),
                "gres": {name: max(node["gres"].get(name, 0) for node in members) for name in kinds},
                "features": {frozenset(node["features"]) for node in members},
            }
        return self._sums[only_up]

    def obstacles(self, job, only_up=False):
        """What stands against a request: [(English, asked, allowed)], the pair of numbers in words."""
        there = self.sums(only_up)
        found = [] if only_up else self._rules(job)
        if not there["nodes"]:
            # a partition whose nodes this user may not see is no proof
            return found + ([("nodes in service", "%d" % job["nodes"], "0")] if only_up and self.members else [])
        most = int(min(job.get("most_nodes") or quantities.INFINITE, self.max_nodes, there["nodes"]))
        room = there["room"][most]
        limited = self.cpus_per_node < there["cpus"]
        if job["nodes"] > there["nodes"]:
            found.append(("nodes", "%d" % job["nodes"], "%d %s" % (there["nodes"], "in service" if only_up else "in the partition")))
        elif job["cpus"] > room:
            of = "%d nodes x MaxCPUsPerNode=%d" % (most, self.cpus_per_node) if limited else "%d nodes" % most
            found.append(("CPUs", "%d" % job["cpus"], "%d on %s" % (room, of)))
        return found + self._per_node(job, there, limited)

    def _rules(self, job):
        found = []
        if job["limit"] is not None and job["limit"] > self.max_time:
            found.append(("time", quantities.show_seconds(job["limit"]), "MaxTime=%s" % quantities.show_seconds(self.max_time)))
        if job["nodes"] > self.max_nodes:
            found.append(("nodes", "%d" % job["nodes"], "MaxNodes=%d" % self.max_nodes))
        if (job.get("most_nodes") or job["nodes"]) < self.min_nodes:
            found.append(("nodes", "%d" % job["nodes"], "MinNodes=%d" % self.min_nodes))
        for key, name in (("AllowAccounts", "account"), ("AllowQos", "qos")):
            if job[name] and key in self.who and job[name] not in self.who[key]:
                found.append((name, job[name], "%s=%s" % (key, ",".join(sorted(self.who[key])))))
        for key, name in (("DenyAccounts", "account"), ("DenyQos", "qos")):
            # an allow list makes Slurm ignore the deny list
            if job[name] and key in self.who and key.replace("Deny", "Allow") not in self.who and job[name] in self.who[key]:
                found.append((name, job[name], "%s=%s" % (key, job[name])))
        return found

    def _per_node(self, job, there, limited):
        found = []
        per_node, cpus = job.get("cpus_per_node") or 1, min(there["cpus"], self.cpus_per_node)
        if per_node > cpus:
            found.append(("CPUs on one node", "%d" % per_node, "MaxCPUsPerNode=%d" % cpus if limited else "%d on the largest" % cpus))
        memory = min(there["memory"], self.memory_per_node)
        if job["memory"] and job["memory"] > memory:
            limit = "MaxMemPerNode" if self.memory_per_node < there["memory"] else "RealMemory"
            found.append(("memory on one node", quantities.show_mb(job["memory"]), "%s=%s" % (limit, quantities.show_mb(memory))))
        if job.get("tmp") and job["tmp"] > there["tmp"]:
            found.append(("TmpDisk", quantities.show_mb(job["tmp"]), quantities.show_mb(there["tmp"])))
        for name, number in sorted(job.get("gres", {}).items()):
            if number > there["gres"].get(name, 0):
                found.append(("gres/%s on one node" % name, "%d" % number, "%d" % there["gres"].get(name, 0)))
        features = job.get("features", "")
        if features and _PLAIN_FEATURES.match(features):
            wanted = set(re.split("[&,]", features))
            if not any(wanted <= own for own in there["features"]):
                found.append(("features", features, "no node has them"))
        return found


def partitions_of(text, nodes):
    """Partitions of ``scontrol -o show partition`` by name."""
    found = [Partition(record, nodes) for record in scontrol_text.parse_records(text) if record.get("PartitionName")]
    return {partition.name: partition for partition in found}
