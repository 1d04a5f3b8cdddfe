#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: lint_report
short_description: Print what is wrong with slurm.conf, and fail when an error is among it
version_added: 0.1.0
description:
  - Reads what M(hpcguard.slurm.slurm_conf_lint) found on the hosts of the play, and prints it by severity with file and line.
    What hosts have in common is printed once.
  - Runs once, on the control node, in the role C(hpcguard.slurm.lint).
options:
  strict:
    description: Fail when there are warnings, too.
    type: bool
    default: false
extends_documentation_fragment:
  - hpcguard.slurm.attributes
  - hpcguard.slurm.attributes.report
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Tell what was found
  hpcguard.slurm.lint_report:
  run_once: true
"""

RETURN = r"""
msg:
  description: How many errors, warnings and notes there are.
  returned: always
  type: str
  sample: "slurm.conf: 1 error, 2 warnings, 0 notes in 3 files"
"""
