#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: rightsizing_info
short_description: Tell what a user's jobs should ask for
version_added: 0.1.0
description:
  - Compares what the jobs of a user asked for with what they used, for each name and partition, and proposes memory, time and CPUs.
  - A run that was out of memory says only that more was needed. Too few runs, or none with records, give no advice.
  - Changes nothing.
options:
  user:
    description: User to tell of.
    type: str
    required: true
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
- name: Ask what a user's jobs should ask for
  hpcguard.slurm.rightsizing_info:
    bin_dir: /usr/bin
    user: alice
    since: now-30days
"""

RETURN = r"""
findings:
  description: Each with verdict, evidence and its sources, who acts, and the next step.
  returned: success
  type: list
  elements: dict
  sample: [{id: rightsizing, host: "alice: fluid (p)", confidence: probable, who: user}]
sources:
  description: What was read, and why the rest was not.
  returned: success
  type: list
  elements: dict
  sample: [{name: sacct, why: ""}]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import job_evidence, rightsizing, sacct_text


def main():
    module = AnsibleModule(
        argument_spec={
            "bin_dir": {"type": "path", "default": ""},
            "conf_path": {"type": "path"},
            "user": {"type": "str", "required": True},
            "since": {"type": "str", "default": "now-7days"},
        },
        supports_check_mode=True,
    )
    params = module.params
    for name in ("user", "since"):
        if not sacct_text.is_word(params[name]):
            module.fail_json(msg="%s: %r holds what no such name does" % (name, params[name]))
    look = job_evidence.Look(params["bin_dir"], params["conf_path"])
    look.read_config()
    jobs = look.accounting(["-u", params["user"], "-S", params["since"]]).jobs
    findings = look.unread(rightsizing.advise(jobs, look.config, look.partitions()))
    module.exit_json(changed=False, sources=look.sources, findings=findings)


if __name__ == "__main__":
    main()
