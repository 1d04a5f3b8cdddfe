#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: status_info
short_description: What layers 1 and 2 left on a host
version_added: 0.1.0
description:
  - Reads the heartbeat of the health check, the newest snapshot and, on a controller, the patrol's timer and ledger.
  - Changes nothing.
options:
  heartbeat:
    description: File of the health check's last run.
    type: path
    default: /run/hpcguard/health_check.last
  state_dir:
    description: Directory of snapshots and of the ledger.
    type: path
    default: /var/lib/hpcguard
  patrol:
    description: Also look at the patrol.
    type: bool
    default: false
  entries:
    description: Entries of the ledger that are returned.
    type: int
    default: 8
extends_documentation_fragment:
  - hpcguard.slurm.attributes
  - hpcguard.slurm.attributes.info
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Look at what layers 1 and 2 left on the host
  hpcguard.slurm.status_info:
    patrol: "{{ inventory_hostname in groups.slurm_controller }}"
  register: look
"""

RETURN = r"""
health:
  description: The last health check, null when there is none.
  returned: success
  type: dict
  sample: {verdict: pass, failed: "", action: keep, age: 42}
snapshot:
  description: The newest snapshot, null when there is none.
  returned: success
  type: dict
  sample: {id: 20261201T120000Z-1a2b, state: sealed, created: "2026-12-01T12:00:00Z"}
patrol:
  description: The patrol's timer and the result of its last run; null unless it was asked for.
  returned: success
  type: dict
  sample: {enabled: enabled, active: active/waiting, next: 300, result: success}
ledger:
  description: What layers 1 and 2 did, oldest first.
  returned: success
  type: list
  elements: dict
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import finding, ledger, loaders, verify_evidence

UNIT = ("LoadState", "ActiveState", "SubState", "UnitFileState", "Result")
TIMER = UNIT + ("NextElapseUSecMonotonic", "NextElapseUSecRealtime")


def epoch_of(text):
    return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S"))


def look_at_health(path):
    text = loaders.read_text(path, 4096)
    if text is None:
        return None
    beat = verify_evidence.heartbeat(text)
    told = {key: finding.clean_text(beat.get(key, "")) for key in ("verdict", "failed", "action")}
    return dict(told, age=int(time.time() - beat["epoch"]))


def newest_snapshot(state_dir):
    manifests, _damaged = loaders.snapshots(state_dir)
    if not manifests:
        return None
    newest = max(manifests, key=lambda manifest: manifest["created"])
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(newest["created"]))
    return {"id": newest["id"], "state": newest["state"], "created": created}


def look_at_patrol():
    timer = loaders.systemctl_show("slurm-cluster-health.timer", TIMER)
    service = loaders.systemctl_show("slurm-cluster-health.service", UNIT)
    left = verify_evidence.next_elapse(timer, time.time(), loaders.now(), epoch_of)
    return {
        "enabled": timer.get("UnitFileState") or timer.get("LoadState", "unknown"),
        "active": "%s/%s" % (timer.get("ActiveState", "unknown"), timer.get("SubState", "unknown")),
        "next": None if left is None else int(left),
        "result": service.get("Result", "unknown"),
    }


def main():
    module = AnsibleModule(
        argument_spec={
            "heartbeat": {"type": "path", "default": "/run/hpcguard/health_check.last"},
            "state_dir": {"type": "path", "default": "/var/lib/hpcguard"},
            "patrol": {"type": "bool", "default": False},
            "entries": {"type": "int", "default": 8},
        },
        supports_check_mode=True,
    )
    params = module.params
    book = os.path.join(params["state_dir"], os.path.basename(ledger.PATH))
    entries = ledger.loads(loaders.read_text(book)) if params["patrol"] else []
    module.exit_json(
        changed=False,
        health=look_at_health(params["heartbeat"]),
        snapshot=newest_snapshot(params["state_dir"]),
        patrol=look_at_patrol() if params["patrol"] else None,
        ledger=entries[-params["entries"] :] if params["entries"] > 0 else [],
    )


if __name__ == "__main__":
    main()
