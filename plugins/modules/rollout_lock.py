#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: rollout_lock
short_description: Keep other rollouts and the patrol away while this run changes the cluster
version_added: 0.1.0
description:
  - Takes or renews a lease on the controller. The patrol acts on no node while the lease stands, and another rollout is refused.
  - A patrol that is acting just now is waited for.
  - An action plugin of the same name says who asks. It takes over the lease of a run on the same control node that has ended.
  - Never fails because somebody else holds the lease; see RV(held).
options:
  state:
    description: V(held) takes or renews the lease, V(free) gives it back.
    type: str
    choices: [held, free]
    default: held
  lease:
    description: Seconds for which it stands unless it is renewed.
    type: int
    default: 3600
  take_over:
    description: Take the lease even from a run that may still be going on.
    type: bool
    default: false
  wait:
    description: Seconds to wait for a patrol that is acting.
    type: int
    default: 330
  owner:
    description: Who asks. Filled in by the action plugin.
    type: dict
    default: {}
  gone:
    description: Processes of the owner's control node that have ended. Filled in by the action plugin.
    type: list
    elements: str
    default: []
  path:
    description: File of the lease.
    type: path
    default: /run/hpcguard/rollout.lock
extends_documentation_fragment:
  - hpcguard.slurm.attributes
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description: Has nothing to show in diff mode.
    support: none
  idempotent:
    description: The lease is no change of the cluster and never reported as one.
    support: full
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Keep other rollouts and the patrol away
  hpcguard.slurm.rollout_lock:
  register: lock

- name: Stop when somebody else is at work
  ansible.builtin.assert:
    that: lock.held
    fail_msg: "{{ lock.busy }}"
"""

RETURN = r"""
held:
  description: Whether the lease is, or in check mode could be, this run's.
  returned: success
  type: bool
busy:
  description: Who holds it, in words. Empty when this run does.
  returned: success
  type: str
holder:
  description: Who holds it, for the action plugin.
  returned: success
  type: dict
"""

import errno
import fcntl
import os
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders, rollout_lock

POLL = 0.2


def guarded(folder, seconds):
    """Open file with the flock that the patrol holds while it acts; None when it did not end in time."""
    loaders.make_dirs(folder)
    handle = open(os.path.join(folder, os.path.basename(rollout_lock.GUARD)), "a")
    deadline = loaders.now() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except (OSError, IOError) as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
        if loaders.now() > deadline:
            handle.close()
            return None
        time.sleep(POLL)


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["held", "free"], "default": "held"},
            "lease": {"type": "int", "default": 3600},
            "take_over": {"type": "bool", "default": False},
            "wait": {"type": "int", "default": 330},
            "owner": {"type": "dict", "default": {}},
            "gone": {"type": "list", "elements": "str", "default": []},
            "path": {"type": "path", "default": rollout_lock.PATH},
        },
        supports_check_mode=True,
    )
    params = module.params
    # the lease is the run's own affair: taking it is no change of the cluster
    owner = {key: str(params["owner"].get(key, "?")) for key in rollout_lock.OWNER_KEYS}
    path = params["path"]
    guard = None
    if not module.check_mode:
        guard = guarded(os.path.dirname(path), params["wait"])
        if guard is None:
            module.exit_json(changed=False, held=False, busy="the patrol is acting and did not end in %d s" % params["wait"], holder={})
    now = int(time.time())
    lock = rollout_lock.loads(loaders.read_text(path))
    mine = lock is not None and rollout_lock.same(lock["owner"], owner)
    if params["state"] == "free":
        if mine and not module.check_mode:
            os.unlink(path)
        module.exit_json(changed=False, held=False, busy="", holder={})
    if not params["take_over"] and not rollout_lock.may_take(lock, owner, now, params["gone"]):
        module.exit_json(changed=False, held=False, busy=rollout_lock.describe(lock, now), holder=lock["owner"])
    if not module.check_mode:
        since = lock["since"] if mine else now
        text = rollout_lock.dumps(owner, since, now + params["lease"])
        loaders.write_atomic(path, text.encode("ascii"), os.geteuid(), os.getegid())
    module.exit_json(changed=False, held=True, busy="", holder=owner)


if __name__ == "__main__":
    main()
