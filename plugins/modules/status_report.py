#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: status_report
short_description: Show the cluster in one screen
version_added: 0.1.0
description:
  - Joins what M(hpcguard.slurm.cluster_info) and M(hpcguard.slurm.status_info) saw on the hosts of the play, prints it in Chinese and
    English, and writes it as C(status.json). Nodes in the same state are one line.
  - Runs once, on the control node, in the role C(hpcguard.slurm.status).
options:
  folder:
    description: Directory of C(status.json) on the control node.
    type: path
    default: reports
  format:
    description: What is printed.
    type: str
    choices: [text, json]
    default: text
extends_documentation_fragment:
  - hpcguard.slurm.attributes
  - hpcguard.slurm.attributes.report
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Show it
  hpcguard.slurm.status_report:
  run_once: true
"""

RETURN = r"""
status:
  description: What C(status.json) holds.
  returned: always
  type: dict
"""
