#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: diagnosis_report
short_description: Print what a diagnosis found, and write it down
version_added: 0.1.0
description:
  - Prints the findings of M(hpcguard.slurm.job_diagnosis_info), M(hpcguard.slurm.queue_info),
    M(hpcguard.slurm.node_diagnosis_info) and M(hpcguard.slurm.rightsizing_info) in Chinese and English, and writes
    them as C(diagnose.json) and C(diagnose.html).
  - Runs on the control node, in the role C(hpcguard.slurm.diagnose).
options:
  question:
    description: What was asked.
    type: str
    required: true
  findings:
    description: What was found.
    type: list
    elements: dict
    required: true
  sources:
    description: What was read, and why the rest was not.
    type: list
    elements: dict
    default: []
  classes:
    description: Number of pending jobs in each class.
    type: dict
    default: {}
  cluster:
    description: Name of the cluster.
    type: str
    default: ""
  folder:
    description: Directory of the report on the control node.
    type: path
    default: reports
extends_documentation_fragment:
  - hpcguard.slurm.attributes
  - hpcguard.slurm.attributes.report
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Tell what was found
  hpcguard.slurm.diagnosis_report:
    question: job 101
    findings: "{{ looked.findings }}"
"""

RETURN = r"""
number:
  description: How many findings there are.
  returned: always
  type: int
  sample: 1
report:
  description: The page, on the control node.
  returned: always
  type: str
  sample: /home/ops/reports/diagnose.html
"""
