#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: recover
short_description: Bring back nodes and daemons that did not come back by themselves
version_added: 0.1.0
description:
  - Runs on a controller what the patrol runs there, as a person's order. It starts the controller's own daemons, looks at the nodes over
    SSH, and acts by the patrol's table until all are in service or the time is over.
  - Other than the patrol it heeds neither earlier tries nor a limit of nodes, and resumes nodes that are DOWN for an unexpected reboot
    or for not responding, whenever that was.
  - Nodes that somebody drained, set DOWN, masked, disabled or stopped on purpose are left alone. No job is ended.
  - On a host that has slurmdbd and no slurmctld it starts munge and slurmdbd, see O(accounting).
  - Only looks while a patrol or a rollout is at work, and on a backup controller that stands by.
options:
  accounting:
    description:
      - The host has slurmdbd and no slurmctld. Its munge and slurmdbd are started where they are enabled and dead, and have to stay.
    type: bool
    default: false
  scontrol:
    description: Path of scontrol.
    type: path
    default: /usr/bin/scontrol
  nodes:
    description: NodeNames to look at. Empty means all.
    type: list
    elements: str
    default: []
  time:
    description: Seconds that the daemons and the nodes have to come back.
    type: int
    default: 120
  stuck_after:
    description: Seconds after which a start of slurmd counts as stuck.
    type: int
    default: 120
extends_documentation_fragment:
  - hpcguard.slurm.attributes
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying target.
    details: What only shows once an earlier step is done, as what nodes need while slurmctld is dead, it cannot predict.
    support: partial
  diff_mode:
    description: Has nothing to show in diff mode.
    support: none
  idempotent:
    description: Changes nothing on a cluster that is well.
    support: full
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Bring the cluster back
  hpcguard.slurm.recover:
  register: recovered

- name: Stop when something remains
  ansible.builtin.assert:
    that: recovered.remaining | length == 0
    fail_msg: "{{ recovered.remaining | join('; ') }}"
"""

RETURN = r"""
lines:
  description: What was seen and done, in order, in Chinese and English.
  returned: success
  type: list
  elements: str
remaining:
  description: What is not in service though it should be, and why. Empty in check mode.
  returned: success
  type: list
  elements: str
nodes:
  description: Of each node its state, the action decided last, why (C(zh), C(en)), and what was done.
  returned: success
  type: dict
started:
  description: Units of this host that were started, or would be in check mode.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import finding, node_policy, patrol


def remaining(report):
    """What a person has to know of the nodes that are still missing."""
    return [
        u"{0} ({state}): {zh} / {en}".format(name, **dict({"zh": u"", "en": u""}, **node))
        for name, node in sorted(report["nodes"].items())
        if node.get("ready") is False
    ]


def recover(module, options):
    """A run on a controller."""
    check = module.check_mode
    try:
        report = patrol.work(options)
    except patrol.Failure as failure:
        started, why = list(failure.started), finding.clean_text(failure.args[0])
        if check and started:
            options.tell(u"节点需要什么, 待 slurmctld 应答后才知 / what nodes need shows once slurmctld answers: %s" % why)
            return {"changed": True, "nodes": {}, "remaining": [], "started": started}
        why = u"slurmctld 没有应答 / slurmctld does not answer: %s" % why
        return {"failed": True, "msg": why, "changed": bool(started), "started": started}
    nodes = report["nodes"]
    done = report["started"] + [one for node in nodes.values() for one in node["done"]]
    meant = [node for node in nodes.values() if node.get("action", node_policy.NOTHING) not in node_policy.PASSIVE]
    return {
        "changed": bool(report["planning"] and (report["started"] or meant) if check else done),
        "nodes": nodes,
        "remaining": [] if check else remaining(report),
        "started": report["started"],
    }


def main():
    module = AnsibleModule(
        argument_spec={
            "accounting": {"type": "bool", "default": False},
            "scontrol": {"type": "path", "default": "/usr/bin/scontrol"},
            "nodes": {"type": "list", "elements": "str", "default": []},
            "time": {"type": "int", "default": 120},
            "stuck_after": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    params = module.params
    lines = []
    options = patrol.Options(
        lines.append,
        fix=True,
        by_person=True,
        bootstrap=True,
        dry_run=module.check_mode,
        node=params["nodes"],
        scontrol=params["scontrol"],
        # a run in check mode waits for nothing, since it brings nothing back
        boot_limit=0 if module.check_mode else params["time"],
        stuck_after=params["stuck_after"],
        back_off=patrol.SETTLING,
    )
    if params["accounting"]:
        report = patrol.accounting(options)
        result = dict(report, changed=bool(report["started"]), nodes={})
    else:
        result = recover(module, options)
    if result.pop("failed", False):
        module.fail_json(lines=lines, **result)
    module.exit_json(lines=lines, **result)


if __name__ == "__main__":
    main()
