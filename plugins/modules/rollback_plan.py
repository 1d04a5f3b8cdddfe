# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Documentation of the action plugin of the same name, which does the work on the control node.

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: rollback_plan
short_description: Choose the snapshot to go back to
version_added: 0.1.0
description:
  - Reads the snapshots and facts of all hosts of the play, prints the way back, and returns in RV(refused)
    everything that stands against it.
  - Runs once, on the control node, in the role C(hpcguard.slurm.rollout).
options:
  snapshot:
    description: Id of a snapshot. Empty means the newest rollout that is still in force.
    type: str
    default: ""
  running_jobs:
    description:
      - What to do about running jobs where a change is unsafe under them.
      - V(refuse) fails, V(defer) leaves that change for later, V(drain) makes the phases that follow wait for the jobs.
    type: str
    choices: [refuse, defer, drain]
    default: refuse
  force:
    description: Go back although Slurm itself was upgraded since.
    type: bool
    default: false
extends_documentation_fragment:
  - hpcguard.slurm.attributes
attributes:
  check_mode:
    description: Can run in check mode and does the same there.
    support: full
  diff_mode:
    description: Has nothing to show in diff mode; the way back is printed.
    support: none
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Choose the snapshot and refuse what is unsafe
  hpcguard.slurm.rollback_plan:
    running_jobs: refuse
  run_once: true
"""

RETURN = r"""
refused:
  description: Everything that stands against going back, to be read. Empty when nothing does.
  returned: always
  type: str
id:
  description: The snapshot to go back to.
  returned: always
  type: str
  sample: 20261130T120000Z-1a2b
actions:
  description: What has to be restarted or reconfigured, by host.
  returned: always
  type: dict
active:
  description: Hosts that have something to put back.
  returned: always
  type: list
  elements: str
kept:
  description: Settings that stay for now, since jobs are running.
  returned: always
  type: list
  elements: str
jobs:
  description: Jobs that have steps.
  returned: always
  type: list
  elements: dict
"""
