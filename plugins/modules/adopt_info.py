#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: adopt_info
short_description: Ask a controller for what an inventory of its cluster needs
version_added: 0.1.0
description:
  - Gathers what M(hpcguard.slurm.cluster_info) leaves out because only taking a cluster over needs it.
  - The size of every node, also of those that are not there yet, the addresses that names have on this host, and the
    timer of the patrol.
  - Changes nothing.
options:
  scontrol:
    description: The program scontrol.
    type: path
    required: true
  conf_path:
    description: The slurm.conf that the daemons use; without it scontrol finds its own.
    type: path
  config:
    description: The loaded configuration, as M(hpcguard.slurm.cluster_info) returned it.
    type: dict
    required: true
extends_documentation_fragment:
  - hpcguard.slurm.attributes
  - hpcguard.slurm.attributes.info
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Ask for what an inventory needs
  hpcguard.slurm.adopt_info:
    scontrol: "{{ look.cluster.slurm.bin.scontrol }}"
    conf_path: "{{ look.cluster.conf.path or omit }}"
    config: "{{ look.cluster.controller.config }}"
"""

RETURN = r"""
nodes:
  description: Some fields of every node, under the names that scontrol gives them.
  returned: success
  type: list
  elements: dict
  sample: [{NodeName: n1, NodeAddr: n1, NodeHostName: n1, State: IDLE, CPUTot: "2", RealMemory: "4000"}]
addresses:
  description: The address of each name on this host; names without one are missing.
  returned: success
  type: dict
  sample: {n1: 10.0.0.1}
timer:
  description: What systemd says of the patrol's timer.
  returned: success
  type: dict
"""

import socket

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import finding, loaders, scontrol_text, slurm_layout

NODE_FIELDS = ("NodeName", "NodeAddr", "NodeHostName", "State", "CPUTot", "RealMemory")
TIMER_FIELDS = ("LoadState", "UnitFileState", "ActiveState", "TimersMonotonic", "TimersCalendar")
# A node takes about a kilobyte.
MOST_BYTES = 1 << 26
ANSWER_LIMIT = 60
# A resolver that does not answer must not hold the run up for every name anew.
RESOLVE_LIMIT = 30


def address_of(name):
    """The address of a name, IPv4 before IPv6; None where there is none that another host could use."""
    try:
        found = socket.getaddrinfo(name, None, socket.AF_UNSPEC, socket.SOCK_STREAM)
    except (socket.error, UnicodeError):
        return None
    usable = [one for one in found if not one[4][0].startswith(("127.", "::1", "fe80:"))]
    usable.sort(key=lambda one: one[0] != socket.AF_INET)
    return usable[0][4][0] if usable else None


def addresses_of(names):
    """{name: address}; names that are left when the time is up are left out."""
    end = loaders.now() + RESOLVE_LIMIT
    found = {}
    for name in names:
        if loaders.now() > end:
            break
        address = address_of(name)
        if address:
            found[name] = address
    return found


def main():
    module = AnsibleModule(
        argument_spec={
            "scontrol": {"type": "path", "required": True},
            "conf_path": {"type": "path"},
            "config": {"type": "dict", "required": True},
        },
        supports_check_mode=True,
    )
    params = module.params
    environment = {"SLURM_CONF": params["conf_path"]} if params["conf_path"] else None
    # without --future, nodes that are not there yet are not told
    shown = loaders.run([params["scontrol"], "-o", "--future", "show", "node"], ANSWER_LIMIT, environment, MOST_BYTES)
    if shown.rc != 0:
        module.fail_json(msg="scontrol show node: %s" % finding.clean_text(shown.err or shown.out))
    records = [one for one in scontrol_text.parse_records(shown.out) if one.get("NodeName")]
    config = params["config"]
    names = [address for _name, address in slurm_layout.controller_hosts(config)] + slurm_layout.database_hosts(config)
    names += [one.get("NodeAddr", one["NodeName"]) for one in records]
    module.exit_json(
        changed=False,
        nodes=[{key: one[key] for key in NODE_FIELDS if key in one} for one in records],
        addresses=addresses_of(names),
        timer=loaders.systemctl_show("slurm-cluster-health.timer", TIMER_FIELDS),
    )


if __name__ == "__main__":
    main()
