#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: queue_info
short_description: Tell why the pending jobs wait
version_added: 0.1.0
description:
  - Puts each pending job into one class, with the numbers that stand against it and the partitions that would take it.
  - Tells large jobs that starve, hours in which many jobs were cancelled, and what the evidence says of backfill, with cost and way
    back of each advice.
  - Changes nothing.
options:
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
- name: Ask why jobs wait
  hpcguard.slurm.queue_info:
    bin_dir: /usr/bin
"""

RETURN = r"""
findings:
  description: Each with verdict, evidence and its sources, who acts, and the next step.
  returned: success
  type: list
  elements: dict
  sample: [{id: queue_waiting, host: "p: PartitionConfig", confidence: certain, who: user}]
sources:
  description: What was read, and why the rest was not.
  returned: success
  type: list
  elements: dict
  sample: [{name: sacct, why: ""}]
classes:
  description: Number of pending jobs in each class.
  returned: success
  type: dict
  sample: {wait: 12, change_request: 1}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import job_evidence, queue_diagnosis, sacct_text


def main():
    module = AnsibleModule(
        argument_spec={
            "bin_dir": {"type": "path", "default": ""},
            "conf_path": {"type": "path"},
            "since": {"type": "str", "default": "now-7days"},
        },
        supports_check_mode=True,
    )
    params = module.params
    if not sacct_text.is_word(params["since"]):
        module.fail_json(msg="since: %r is no time" % params["since"])
    look = job_evidence.Look(params["bin_dir"], params["conf_path"])
    look.read_config()
    report = queue_diagnosis.report(look.site())
    cancelled = [tries[-1] for tries in look.accounting(["-a", "-X", "-S", params["since"], "-s", "CA"]).jobs]
    findings = look.unread(report["findings"] + queue_diagnosis.cancelled_spikes(cancelled))
    module.exit_json(changed=False, sources=look.sources, findings=findings, classes=report["classes"])


if __name__ == "__main__":
    main()
