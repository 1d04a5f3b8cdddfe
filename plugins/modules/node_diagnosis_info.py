#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: node_diagnosis_info
short_description: Tell why nodes take no jobs
version_added: 0.1.0
description:
  - Says of each node that takes no jobs what its state, flags and reason mean, who acts, and whether it is safe to resume it.
  - Names nodes on which jobs of several users fail within a minute, for there the cause is the node.
  - Changes nothing.
options:
  node:
    description: NodeName, or a list such as V(n[1-3]), to tell of. V(all) for every node.
    type: str
    default: all
  since:
    description: Since when jobs that have ended count, in sacct's own words, such as V(now-7days) or V(2026-12-01).
    type: str
    default: now-7days
extends_documentation_fragment:
  - hpcguard.slurm.attributes
  - hpcguard.slurm.attributes.info
  - hpcguard.slurm.slurm_commands
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Ask why nodes take no jobs
  hpcguard.slurm.node_diagnosis_info:
    bin_dir: /usr/bin
"""

RETURN = r"""
findings:
  description: Each with verdict, evidence and its sources, who acts, and the next step.
  returned: success
  type: list
  elements: dict
  sample: [{id: node_kill_task, host: n1, confidence: certain, who: admin}]
sources:
  description: What was read, and why the rest was not.
  returned: success
  type: list
  elements: dict
  sample: [{name: sacct, why: ""}]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import job_evidence, node_diagnosis, sacct_text, scontrol_text


def main():
    module = AnsibleModule(
        argument_spec={
            "bin_dir": {"type": "path", "default": ""},
            "conf_path": {"type": "path"},
            "node": {"type": "str", "default": "all"},
            "since": {"type": "str", "default": "now-7days"},
        },
        supports_check_mode=True,
    )
    params = module.params
    for name in ("node", "since"):
        if not sacct_text.is_word(params[name]):
            module.fail_json(msg="%s: %r holds what no such name does" % (name, params[name]))
    look = job_evidence.Look(params["bin_dir"], params["conf_path"])
    look.read_config()
    named = [] if params["node"] == "all" else [params["node"]]
    done = look.call("scontrol", "-o", "show", "node", *named)
    look.source("scontrol", "" if done.rc == 0 else job_evidence.last_line(done.err) or "no answer")
    ended = ["-a", "-X", "-S", params["since"], "-s", "F,NF"] + ["-N" + name for name in named]
    jobs = [tries[-1] for tries in look.accounting(ended).jobs]
    ill = [node_diagnosis.explain(node) for node in scontrol_text.parse_nodes(done.out)]
    findings = look.unread(node_diagnosis.black_holes(jobs) + [one for one in ill if one])
    module.exit_json(changed=False, sources=look.sources, findings=findings)


if __name__ == "__main__":
    main()
