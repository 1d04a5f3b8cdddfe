#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: slurm_conf_lint
short_description: Tell what is wrong with a slurm.conf
version_added: 0.1.0
description:
  - Reads slurm.conf and its included files as Slurm does, and tells what Slurm refuses, ignores or takes in another way than meant,
    with file and line.
  - Changes nothing. Findings do not fail the task; see RV(ok).
options:
  path:
    description: The slurm.conf.
    type: path
    required: true
  version:
    description: Version of Slurm that is to read it, for example V(22.05.8). Without it the Slurm of this host is asked.
    type: str
  scontrol:
    description: A C(scontrol) of that version, which then reads a file without errors as a test.
    type: path
  plugin_dir:
    description: Directory of Slurm's plugins, where slurm.conf names none. Without any, plugins are not checked.
    type: path
  controller:
    description: Whether slurmctld runs here, so that StateSaveLocation can be looked at.
    type: bool
    default: false
  contents_from:
    description:
      - Where files are read from that are not in their place, by path.
      - For example a slurm.conf as a snapshot keeps it, to know whether the present Slurm would take it.
    type: dict
    default: {}
  host:
    description: Name of the host in findings.
    type: str
    default: ""
extends_documentation_fragment:
  - hpcguard.slurm.attributes
  - hpcguard.slurm.attributes.info
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Look at the slurm.conf of the next release
  hpcguard.slurm.slurm_conf_lint:
    path: /srv/next/slurm.conf
    version: "24.11"
  register: looked_at

- name: Go on without errors only
  ansible.builtin.assert:
    that: looked_at.ok
"""

RETURN = r"""
ok:
  description: Whether there is no error; warnings may be there all the same.
  returned: success
  type: bool
findings:
  description: "What was found: id, severity, host, title, evidence, cause, remedy, file, line. Secrets are blotted out."
  returned: success
  type: list
  elements: dict
version:
  description: The version that the file was judged by.
  returned: success
  type: str
files:
  description: slurm.conf and its included files.
  returned: success
  type: list
  elements: str
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import (
    slurm_conf,
    slurm_conf_host,
    slurm_conf_lint,
    slurm_layout,
)


def look(params, release):
    """(findings, files)"""
    reader, path = slurm_conf_host.Reader(params["contents_from"]), slurm_conf.stored(u"%s" % params["path"])
    if reader(path) is None:
        return slurm_conf_lint.missing(path, params["host"], os.path.lexists(slurm_conf.to_bytes(path))), []
    conf = slurm_conf.parse(path, reader, release)
    about = slurm_conf_host.look(params["host"], conf, params["plugin_dir"], params["controller"])
    findings = slurm_conf_lint.lint(conf, about)
    if params["scontrol"] and slurm_conf_lint.is_fine(findings):
        rc, output, timed_out = slurm_conf_host.parse_test(params["scontrol"], conf)
        # what it complains of and takes all the same only warns
        before = slurm_conf_lint.complaints(output) if rc == 0 else []
        findings += slurm_conf_lint.proof(rc, output, timed_out, before, params["host"], path)
    return findings, conf.paths


def main():
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "version": {"type": "str"},
            "scontrol": {"type": "path"},
            "plugin_dir": {"type": "path"},
            "controller": {"type": "bool", "default": False},
            "contents_from": {"type": "dict", "default": {}},
            "host": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    version = module.params["version"] or slurm_conf_host.find_version(module.params["scontrol"])
    release = tuple(slurm_layout.parse_version(version)[1])
    if not release:
        unknown = "there is no Slurm on this host; say the version (lint_version)"
        module.fail_json(msg="%r is no version of Slurm" % version if version else unknown)
    findings, paths = look(module.params, release)
    module.exit_json(
        changed=False,
        ok=slurm_conf_lint.is_fine(findings),
        findings=findings,
        version=version,
        files=[slurm_conf.readable(path) for path in paths],
    )


if __name__ == "__main__":
    main()
