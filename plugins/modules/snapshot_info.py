#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: snapshot_info
short_description: List the snapshots of a host
version_added: 0.1.0
description:
  - Lists the snapshots that M(hpcguard.slurm.snapshot) keeps on a host and proves each of them.
options:
  state_dir:
    description: Directory of snapshots.
    type: path
    default: /var/lib/hpcguard
extends_documentation_fragment:
  - hpcguard.slurm.attributes
  - hpcguard.slurm.attributes.info
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: List snapshots
  hpcguard.slurm.snapshot_info:
  register: listed
"""

RETURN = r"""
snapshots:
  description: Oldest first.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Name of the snapshot, the same on every host of a rollout.
      type: str
    state:
      description: V(taken) (the rollout did not end), V(sealed), V(rolled_back) or V(damaged).
      type: str
    chain:
      description: Id of the first rollout of the chain.
      type: str
    created:
      description: Time in UTC.
      type: str
    paths:
      description: Paths that it records.
      type: list
      elements: str
    meta:
      description: What was recorded of the rollout.
      type: dict
    problem:
      description: Why it is damaged, else empty.
      type: str
back_to:
  description: Id to go back to for the state before the first rollout of the present chain, null when nothing stands.
  returned: success
  type: str
interrupted_actions:
  description: Actions on daemons that an interrupted rollout had meant to take here.
  returned: success
  type: list
  elements: str
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders, snapshot_manifest


def describe(state_dir, manifest):
    problem = ""
    try:
        for record in manifest["records"]:
            if record["kind"] == "file":
                loaders.snapshot_content(state_dir, manifest["id"], record)
    except snapshot_manifest.Damaged as error:
        problem = str(error)
    return {
        "id": manifest["id"],
        "state": "damaged" if problem else manifest["state"],
        "chain": manifest["chain"],
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(manifest["created"])),
        "paths": [record["path"] for record in manifest["records"]],
        "meta": manifest["meta"],
        "problem": problem,
    }


def main():
    module = AnsibleModule(argument_spec={"state_dir": {"type": "path", "default": "/var/lib/hpcguard"}}, supports_check_mode=True)
    state_dir = module.params["state_dir"]
    manifests, damaged = loaders.snapshots(state_dir)
    listed = [describe(state_dir, manifest) for manifest in manifests]
    listed += [
        {"id": name, "state": "damaged", "chain": "", "created": "", "paths": [], "meta": {}, "problem": problem}
        for name, problem in damaged.items()
    ]
    module.exit_json(
        changed=False,
        snapshots=sorted(listed, key=lambda one: one["id"]),
        back_to=snapshot_manifest.next_chain(manifests),
        interrupted_actions=snapshot_manifest.interrupted_actions(manifests),
    )


if __name__ == "__main__":
    main()
