# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Documentation of the action plugin of the same name, which does the work on the control node.

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: rollout_plan
short_description: Join every host's changes into one plan
version_added: 0.1.0
description:
  - Reads the facts of all hosts of the play, prints the plan, and returns in RV(refused) everything
    that stands against it.
  - Runs once, on the control node, in the role C(hpcguard.slurm.rollout).
options:
  running_jobs:
    description:
      - What to do about running jobs where a change is unsafe under them.
      - V(refuse) fails, V(defer) leaves that change for later, V(drain) makes the phases that follow wait for the jobs.
    type: str
    choices: [refuse, defer, drain]
    default: refuse
  ready_timeout:
    description: Seconds that a daemon may take to be ready; shortened where SlurmdTimeout is near.
    type: int
    required: true
extends_documentation_fragment:
  - hpcguard.slurm.attributes
attributes:
  check_mode:
    description: Can run in check mode and does the same there.
    support: full
  diff_mode:
    description: Has nothing to show in diff mode; the plan itself is printed.
    support: none
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Plan the rollout
  hpcguard.slurm.rollout_plan:
    running_jobs: defer
    ready_timeout: 120
  run_once: true
"""

RETURN = r"""
refused:
  description: Everything that stands against the plan, to be read. Empty when nothing does.
  returned: always
  type: str
id:
  description: Name of the rollout, and of its snapshot on every host.
  returned: always
  type: str
  sample: 20261130T120000Z-1a2b
back_to:
  description: The snapshot that a failure leads back to. Older than RV(id) where interrupted rollouts are finished.
  returned: always
  type: str
plan:
  description: The changes of all hosts, without those that were deferred.
  returned: always
  type: list
  elements: dict
actions:
  description: What has to be restarted or reconfigured, by host.
  returned: always
  type: dict
active:
  description: Hosts that take part, since something changes there.
  returned: always
  type: list
  elements: str
deferred:
  description: Settings left for a later rollout.
  returned: always
  type: list
  elements: str
unsafe_keys:
  description: Settings of the plan that must not change while a step runs.
  returned: always
  type: list
  elements: str
jobs:
  description: Jobs that have steps.
  returned: always
  type: list
  elements: dict
ready_timeout:
  description: Seconds that a daemon may take to be ready.
  returned: always
  type: int
in_service:
  description: Nodes that were in service before the rollout.
  returned: always
  type: list
  elements: str
out_of_service:
  description: Nodes that were drained before the rollout.
  returned: always
  type: list
  elements: str
"""
