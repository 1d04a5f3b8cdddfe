#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: drill_report
short_description: Tell how long each exercise of a drill took
version_added: 0.1.0
description:
  - Prints a table in Chinese and English, writes C(drill.json), and fails when an exercise did.
  - Runs once, on the control node, in the role C(hpcguard.slurm.drill).
options:
  exercises:
    description: What was to be done.
    type: list
    elements: str
    required: true
  folder:
    description: Directory of C(drill.json) on the control node.
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
- name: Tell how long it took
  hpcguard.slurm.drill_report:
    exercises: [slurmd_crash]
  run_once: true
"""

RETURN = r"""
exercises:
  description: Of each exercise its host, outcome, reason, seconds, and the jobs that ran over the restart of slurmctld.
  returned: always
  type: list
  elements: dict
"""
