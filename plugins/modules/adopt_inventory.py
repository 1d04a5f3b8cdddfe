# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Documentation of the action plugin of the same name, which does the work on the control node.

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: adopt_inventory
short_description: Write the inventory of a cluster that was kept by hand
version_added: 0.1.0
description:
  - Writes C(hosts.yml) and C(group_vars/all/*.yml) from what the controller said, on the control node.
  - Takes over how Ansible reached the controller, but no password.
  - Runs once, in the role C(hpcguard.slurm.adopt), which registers on each host what it said.
options:
  dir:
    description: Directory of the inventory, on the control node. It is made where it is missing.
    type: path
    required: true
  force:
    description: Overwrite files that say something else. Without it, one such file means that nothing is written.
    type: bool
    default: false
  standard:
    description: Keys of slurm.conf and the values that a deploy would give them.
    type: dict
    required: true
  patrol_interval:
    description: Seconds from one run of the patrol to the next, as a deploy would set them.
    type: int
    required: true
extends_documentation_fragment:
  - hpcguard.slurm.attributes
attributes:
  check_mode:
    description: Can run in check mode and tells what it would write.
    support: full
  diff_mode:
    description: Shows what it writes.
    support: full
  idempotent:
    description: What is there already is not written again.
    support: full
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Write the inventory
  hpcguard.slurm.adopt_inventory:
    dir: inventories/mycluster
    standard: "{{ slurm_conf_standard }}"
    patrol_interval: "{{ patrol_interval }}"
  run_once: true
"""

RETURN = r"""
dir:
  description: The directory.
  returned: success
  type: str
files:
  description: The files of the inventory.
  returned: success
  type: list
  elements: str
written:
  description: Those of them that were written, or would be.
  returned: success
  type: list
  elements: str
hosts:
  description: The hosts of each group.
  returned: success
  type: dict
notes:
  description: What the cluster could not say.
  returned: success
  type: list
  elements: str
"""
