# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Documentation of the action plugin of the same name, which does the work on the control node.

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: checklist_report
short_description: Judge the evidence of all hosts by the checklist
version_added: 0.1.0
description:
  - Prints the table of the 13 items, writes C(verify.json), C(verify.xml) (JUnit) and C(verify.html), and fails when an
    item fails.
  - Runs once, on the control node, in the role C(hpcguard.slurm.verify), which registers the evidence on each host.
options:
  folder:
    description: Where the reports are written, on the control node.
    type: path
    default: reports
  fail:
    description: Fail when an item fails. The ids of those that failed are returned in any case.
    type: bool
    default: true
  wanted:
    description: What the cluster should be like; the role's own variables.
    type: dict
    required: true
  controllers:
    description: What M(hpcguard.slurm.verify_info) returned for each controller.
    type: dict
    required: true
  probe:
    description: What M(hpcguard.slurm.step_probe) returned.
    type: dict
  crash:
    description: What M(hpcguard.slurm.crash_test) returned.
    type: dict
  crash_test:
    description: Whether the crash test was asked for.
    type: bool
    default: true
  crash_host:
    description: Host that the crash test ran on.
    type: str
extends_documentation_fragment:
  - hpcguard.slurm.attributes
  - hpcguard.slurm.attributes.report
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Judge the evidence
  hpcguard.slurm.checklist_report:
    wanted: "{{ __verify_wanted }}"
    controllers: "{{ __verify_controllers }}"
  run_once: true
"""

RETURN = r"""
items:
  description: Ids of the items that failed.
  returned: always
  type: list
  elements: str
failures:
  description: "What failed where: C(item), C(host), C(text)."
  returned: always
  type: list
  elements: dict
summary:
  description: How many items passed, failed and were skipped.
  returned: always
  type: dict
report:
  description: Path of the page.
  returned: always
  type: str
"""
