#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: node_state
short_description: Drain nodes of Slurm, and take back only such drains
version_added: 0.1.0
description:
  - Drains nodes that nobody drained yet, under a reason that starts with C(HC:), and undrains or resumes only nodes
    whose reason starts so. What an administrator set stays as it is. Nodes are never set DOWN.
  - What counts is the state that slurmctld shows afterwards, since a request that timed out may still be applied.
options:
  nodes:
    description: NodeNames, no ranges.
    type: list
    elements: str
    required: true
  state:
    description:
      - V(drain) keeps new jobs off.
      - V(undrain) takes a drain back and leaves a node that is DOWN alone.
      - V(resume) takes back DOWN too.
      - V(in_service) changes nothing, waits until they all are, and tells in RV(unwell) those that are not. A drain by
        somebody else, or under exactly O(reason), is no fault.
    type: str
    choices: [drain, undrain, resume, in_service]
    required: true
  reason:
    description:
      - For V(drain) the reason to write, for V(in_service) the one that is no fault.
      - For the others only nodes with exactly this reason, or with any reason of ours unless given.
    type: str
  wait_for_jobs:
    description: After V(drain) wait so many seconds for the jobs on these nodes to end.
    type: int
    default: 0
  timeout:
    description:
      - Seconds until slurmctld must show the new state.
      - After V(undrain) and V(resume) also the longest wait for the nodes to answer again.
    type: int
    default: 30
  scontrol:
    description: Path of scontrol.
    type: path
    default: scontrol
  conf_path:
    description: The slurm.conf that scontrol uses.
    type: path
  host:
    description: Name of the host in the reported changes.
    type: str
    default: ""
extends_documentation_fragment:
  - hpcguard.slurm.attributes
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description: Has nothing to show in diff mode.
    support: none
  idempotent:
    description: A second call with the same arguments changes nothing.
    support: full
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Keep new jobs off
  hpcguard.slurm.node_state:
    nodes: [k8s-node-01, k8s-node-02]
    state: drain
    reason: "HC: rollout in progress"

- name: Let jobs on again where that drain is still ours
  hpcguard.slurm.node_state:
    nodes: [k8s-node-01, k8s-node-02]
    state: undrain
    reason: "HC: rollout in progress"
"""

RETURN = r"""
changes:
  description: "One entry a node: host, thing, from, to, class, reason, source."
  returned: success
  type: list
  elements: dict
unwell:
  description: Nodes that are not in service, with state and reason.
  returned: for V(in_service)
  type: list
  elements: str
left_alone:
  description: Nodes that somebody else holds, with state and reason.
  returned: success
  type: list
  elements: dict
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import finding, loaders, scontrol_text

POLL = 1
CALL = 20
NODES_A_CALL = 500


def look(module):
    """The wanted nodes as slurmctld sees them: {name: node}."""
    done = loaders.scontrol(module.params["scontrol"], ["-o", "show", "node"], CALL, module.params["conf_path"])
    if done.rc != 0:
        module.fail_json(msg="scontrol show node: %s" % (done.err or done.out).strip()[:500])
    known = {node["name"]: node for node in scontrol_text.parse_nodes(done.out)}
    unknown = [name for name in module.params["nodes"] if name not in known]
    if unknown:
        module.fail_json(msg="slurmctld knows no node named %s" % ", ".join(unknown))
    return {name: known[name] for name in module.params["nodes"]}


def update(module, names, words):
    """One request for many nodes; returns what scontrol said when it failed."""
    said = []
    for start in range(0, len(names), NODES_A_CALL):
        argv = ["update", "nodename=" + ",".join(names[start : start + NODES_A_CALL])] + words
        done = loaders.scontrol(module.params["scontrol"], argv, CALL, module.params["conf_path"])
        if done.rc != 0:
            said.append((done.err or done.out).strip()[:300])
    return "; ".join(said)


def bring_to_state(module, names):
    """Ask, read back, and ask again for those that are not there yet."""
    params = module.params
    words = ["state=" + params["state"]] + (["reason=" + params["reason"]] if params["state"] == "drain" else [])
    deadline = loaders.now() + params["timeout"]
    while True:
        said = update(module, names, words)
        nodes = look(module)
        names = [name for name in names if scontrol_text.may_change(nodes[name], params["state"], params["reason"])]
        if not names:
            return
        if loaders.now() > deadline:
            module.fail_json(msg="%s did not become %s: %s" % (", ".join(names), params["state"], said or "no error from scontrol"))
        time.sleep(POLL)


def wait_for_answers(module, names):
    """slurmctld marks a node as not responding until it has registered anew; one that never does is no error here."""
    deadline = loaders.now() + module.params["timeout"]
    while loaders.now() < deadline:
        nodes = look(module)
        if not any("NOT_RESPONDING" in nodes[name]["flags"] for name in names):
            return
        time.sleep(POLL)


def wait_for_jobs(module):
    """Wait until no job runs or completes on the nodes."""
    deadline = loaders.now() + module.params["wait_for_jobs"]
    while True:
        busy = [name for name, node in look(module).items() if node["base"] in ("ALLOCATED", "MIXED") or "COMPLETING" in node["flags"]]
        if not busy:
            return
        if loaders.now() > deadline:
            module.fail_json(msg="jobs still run on %s after %s seconds" % (", ".join(sorted(busy)), module.params["wait_for_jobs"]))
        time.sleep(POLL)


def unwell(module):
    """Wait until the nodes are in service; those that are not, in words."""
    deadline = loaders.now() + module.params["timeout"]
    while True:
        ill = [node for node in look(module).values() if scontrol_text.fell_ill(node, module.params["reason"])]
        if not ill or loaders.now() > deadline:
            return [finding.clean_text("%s is %s (%s)" % (node["name"], node["state"], node["reason"] or "no reason")) for node in ill]
        time.sleep(POLL)


def main():
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "list", "elements": "str", "required": True},
            "state": {"type": "str", "required": True, "choices": ["drain", "undrain", "resume", "in_service"]},
            "reason": {"type": "str"},
            "wait_for_jobs": {"type": "int", "default": 0},
            "timeout": {"type": "int", "default": 30},
            "scontrol": {"type": "path", "default": "scontrol"},
            "conf_path": {"type": "path"},
            "host": {"type": "str", "default": ""},
        },
        required_if=[("state", "drain", ["reason"])],
        supports_check_mode=True,
    )
    params = module.params
    if params["reason"] is not None and not scontrol_text.is_ours(params["reason"]):
        module.fail_json(msg="the reason must start with %s" % scontrol_text.REASON_TAG)
    if params["state"] == "in_service":
        module.exit_json(changed=False, changes=[], left_alone=[], unwell=unwell(module) if params["nodes"] else [])
    nodes = look(module) if params["nodes"] else {}
    names = [name for name in params["nodes"] if scontrol_text.may_change(nodes[name], params["state"], params["reason"])]
    if names and not module.check_mode:
        bring_to_state(module, names)
    if params["state"] != "drain" and names and not module.check_mode:
        wait_for_answers(module, names)
    if params["state"] == "drain" and params["wait_for_jobs"] and not module.check_mode:
        wait_for_jobs(module)
    module.exit_json(
        changed=bool(names),
        changes=[
            {
                "host": params["host"],
                "thing": "node:%s:state" % name,
                "from": nodes[name]["state"],
                "to": params["state"],
                "class": "none",
                "reason": params["reason"] or "",
                "source": "node_state",
            }
            for name in names
        ],
        left_alone=[
            {"name": name, "state": node["state"], "reason": node["reason"]}
            for name, node in sorted(nodes.items())
            if name not in names and node["reason"] and not scontrol_text.is_ours(node["reason"])
        ],
    )


if __name__ == "__main__":
    main()
