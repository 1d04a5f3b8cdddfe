#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: slurm_conf
short_description: Set and remove keys of slurm.conf
version_added: 0.1.0
description:
  - Reads slurm.conf and its included files as Slurm does, changes the lines that have to change, and keeps every other byte.
  - A key is changed where its value counts, also in an included file. Earlier lines of the same file that set it become
    comments. A new key goes beside its relatives in the main file.
  - Everything wrong with the file or with the settings asked for is reported at once, and nothing is written then.
    The candidate has to pass the lint of this collection and the parse test of C(scontrol).
  - Only global keys. Lines that describe nodes, partitions and the like are never touched.
  - Restarts nothing. Each reported change says what it asks for.
options:
  path:
    description: The slurm.conf that the daemons use.
    type: path
    required: true
  settings:
    description:
      - Keys and the values they shall have, as they stand in slurm.conf. V(null) takes a key out.
      - Not for secrets like C(JobCompPass); they belong to O(secret_settings).
    type: raw
    default: {}
  secret_settings:
    description: The same for keys whose values must not be shown.
    type: dict
    default: {}
  defer_keys:
    description: Keys of O(settings) that are left as they are this time.
    type: list
    elements: str
    default: []
  version:
    description: Version of Slurm on this host, for example V(22.05.8).
    type: str
    required: true
  scontrol:
    description: The C(scontrol) that reads the candidate as a test.
    type: path
    required: true
  plugin_dir:
    description: Directory of Slurm's plugins, where slurm.conf names none. Without any, plugins are not checked.
    type: path
  controller:
    description: Whether slurmctld runs here, so that StateSaveLocation can be looked at.
    type: bool
    default: true
  host:
    description: Name of the host in changes and findings.
    type: str
    default: ""
extends_documentation_fragment:
  - hpcguard.slurm.attributes
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description: Returns what has changed, or possibly needs to change, when in diff mode. Secrets are blotted out.
    support: full
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
    support: full
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Have the health check run
  hpcguard.slurm.slurm_conf:
    path: /etc/slurm/slurm.conf
    version: 22.05.8
    scontrol: /usr/bin/scontrol
    plugin_dir: /usr/lib/x86_64-linux-gnu/slurm-wlm
    settings:
      HealthCheckProgram: /usr/local/bin/slurm_health_check.sh
      HealthCheckInterval: 300
      DefMemPerNode: null
"""

RETURN = r"""
changes:
  description: "Entries of the plan: host, thing, from, to, class, reason, source."
  returned: success
  type: list
  elements: dict
findings:
  description: What the lint and the parse test found; errors only on failure.
  returned: always
  type: list
  elements: dict
effective:
  description: The global keys with the values in force, before and after; secrets blotted out.
  returned: success
  type: dict
  sample: {before: {ReturnToService: "1"}, after: {ReturnToService: "2"}}
files:
  description: slurm.conf and its included files.
  returned: success
  type: list
  elements: str
"""

import os
import tempfile

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import (
    finding,
    loaders,
    slurm_conf,
    slurm_conf_host,
    slurm_conf_keys,
    slurm_conf_lint,
    slurm_layout,
)


def prove(module, conf, candidate):
    """Findings of the parse test; the present file is asked about only when there is something to compare."""
    scontrol = module.params["scontrol"]
    rc, output, timed_out = slurm_conf_host.parse_test(scontrol, candidate)
    said = slurm_conf_lint.complaints(output)
    before = slurm_conf_lint.complaints(slurm_conf_host.parse_test(scontrol, conf)[1]) if said and not timed_out else []
    return slurm_conf_lint.proof(rc, output, timed_out, before, module.params["host"], conf.path)


def write(module, reader, conf, candidate):
    """The one place that writes: every file in one durable step, all or none."""
    for path in conf.paths:
        if loaders.read_bytes(slurm_conf.to_bytes(path)) != reader.contents[path]:
            module.fail_json(msg="%s was changed by somebody else in this moment; nothing was written" % slurm_conf.readable(path))
    written = []
    try:
        for path in differing(conf, candidate):
            put(module, path, slurm_conf.to_bytes(candidate.files[path]))
            written.append(path)
    except (OSError, IOError) as error:
        for done in written:
            put(module, done, reader.contents[done])
        module.fail_json(msg="%s: %s; nothing was changed" % (slurm_conf.readable(path), error))


def put(module, path, content):
    """Replace a file; owner, mode and SELinux context stay, and a link to it stays a link."""
    real = os.path.realpath(slurm_conf.to_bytes(path))
    folder = os.path.dirname(real)
    descriptor, temporary = tempfile.mkstemp(prefix=b".hpcguard.", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        module.atomic_move(temporary, real)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    loaders.fsync_dir(folder)


def differing(conf, candidate):
    return [path for path in conf.paths if conf.files[path] != candidate.files[path]]


def diff(conf, candidate, edits):
    return [
        {
            "before_header": slurm_conf.readable(path),
            "after_header": slurm_conf.readable(path),
            "before": slurm_conf.masked_file(conf, path),
            "after": slurm_conf.masked_file(candidate, path, edits),
        }
        for path in differing(conf, candidate)
    ]


def change(host, edit, release):
    name, source = slurm_conf_keys.change_class(edit.key, release)
    before, after = [slurm_conf.masked_value(edit.key, value) for value in (edit.before, edit.after)]
    return {
        "host": host, "thing": "slurm.conf:" + edit.key, "from": "not set" if before is None else before,
        "to": "not set" if after is None else after, "class": name, "reason": edit.place(), "source": source,
    }


def masked(values):
    return {key: slurm_conf.masked_value(key, value) for key, value in values.items()}


def fail(module, findings):
    errors = [one for one in findings if one["severity"] == "error"]
    if errors:
        told = "\n".join(finding.describe(errors))
        module.fail_json(msg="slurm.conf is left as it is, %d problem(s):\n%s" % (len(errors), told), findings=findings)


def main():
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "settings": {"type": "raw", "default": {}},
            "secret_settings": {"type": "dict", "default": {}, "no_log": True},
            "defer_keys": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "version": {"type": "str", "required": True},
            "scontrol": {"type": "path", "required": True},
            "plugin_dir": {"type": "path"},
            "controller": {"type": "bool", "default": True},
            "host": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    settings, secrets = module.params["settings"], module.params["secret_settings"]
    # no_log keeps them out of the system's log. In results the module masks them itself: Ansible would blot out every
    # text that contains such a value, and a password may be as short as "slurm".
    module.no_log_values.clear()
    module.params["secret_settings"] = dict.fromkeys(secrets, slurm_conf.MASK)
    if isinstance(settings, dict):
        module.params["settings"] = {
            key: slurm_conf.MASK if slurm_conf_keys.is_secret("%s" % key) else value for key, value in settings.items()
        }
    host = module.params["host"]
    release = tuple(slurm_layout.parse_version(module.params["version"])[1])
    if not release:
        module.fail_json(msg="%r is no version of Slurm" % module.params["version"])

    wanted, findings = slurm_conf_lint.check_settings(settings, secrets, release, host)
    deferred = [key.lower() for key in module.params["defer_keys"]]
    wanted = [(key, value) for key, value in wanted if key.lower() not in deferred]
    reader, path = slurm_conf_host.Reader(), slurm_conf.stored(u"%s" % module.params["path"])
    if reader(path) is None:
        fail(module, findings + slurm_conf_lint.missing(path, host, os.path.lexists(slurm_conf.to_bytes(path))))
    conf = slurm_conf.parse(path, reader, release)
    candidate, edits, refused = slurm_conf_lint.try_plan(conf, wanted, host)
    asked = {key: "slurm_conf_settings." + key for key, _value in wanted}
    about = slurm_conf_host.look(host, candidate, module.params["plugin_dir"], module.params["controller"])
    findings += refused + slurm_conf_lint.lint(candidate, about, asked)
    fail(module, findings)
    findings += prove(module, conf, candidate)
    fail(module, findings)

    changed = bool(edits)
    if changed and not module.check_mode:
        write(module, reader, conf, candidate)
    module.exit_json(
        changed=changed,
        changes=[change(host, edit, release) for edit in edits],
        findings=findings,
        effective={"before": masked(conf.effective()), "after": masked(candidate.effective())},
        files=[slurm_conf.readable(one) for one in conf.paths],
        diff=diff(conf, candidate, edits),
    )


if __name__ == "__main__":
    main()
