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
  lint_only:
    description: Report what is wrong with the file, with O(settings) applied, and write nothing.
    type: bool
    default: false
  contents_from:
    description:
      - Where files are read from that are not in their place, for example slurm.conf as a snapshot keeps it.
      - Only together with O(lint_only), to know whether the present Slurm would take them.
    type: dict
    default: {}
  host:
    description: Name of the host in changes and findings.
    type: str
    default: ""
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
  platform:
    description: Target platforms.
    platforms: posix
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
import shutil
import stat
import tempfile

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import (
    loaders,
    slurm_conf,
    slurm_conf_keys,
    slurm_conf_lint,
    slurm_layout,
)

PROOF_TIMEOUT = 30


class Reader:
    """Reads each file once, so that all of the module works on the same state. Paths are text of slurm_conf."""

    def __init__(self, elsewhere):
        """
        :param elsewhere: {path: where its content is read from instead}
        """
        self.contents = {}
        self.elsewhere = {slurm_conf.stored(u"%s" % path): slurm_conf.stored(u"%s" % place) for path, place in elsewhere.items()}

    def __call__(self, path):
        if path not in self.contents:
            try:
                self.contents[path] = loaders.read_bytes(slurm_conf.to_bytes(self.elsewhere.get(path, path)))
            except (OSError, IOError):
                self.contents[path] = None
        return self.contents[path]


def look_at_host(module, conf):
    """The facts that the lint needs."""
    controller = module.params["controller"]
    places = conf.value("PluginDir") or slurm_conf.stored(module.params["plugin_dir"] or u"")
    plugin_dirs = [path for path in slurm_conf.to_bytes(places).split(b":") if os.path.isdir(path)]
    plugins = {name.decode("latin-1") for path in plugin_dirs for name in os.listdir(path)} if plugin_dirs else None
    present = [path for path in conf.paths if os.path.exists(slurm_conf.to_bytes(path))]
    modes = {path: stat.S_IMODE(os.stat(slurm_conf.to_bytes(path)).st_mode) for path in present}
    log_dir = slurm_conf_lint.job_completion_dir(conf)
    absent = [log_dir] if controller and not os.path.isdir(slurm_conf.to_bytes(log_dir)) else []
    state_dir = look_at_state_dir(slurm_conf.to_bytes(slurm_conf_lint.state_location(conf))) if controller else None
    return slurm_conf_lint.Host(module.params["host"], plugins, state_dir, modes, absent)


def look_at_state_dir(path):
    if not os.path.isdir(path):
        return {"is_dir": False}
    space = os.statvfs(path)
    return {
        "is_dir": True,
        "mode": stat.S_IMODE(os.stat(path).st_mode),
        "free_bytes": space.f_bavail * space.f_frsize,
        "free_inodes": space.f_favail if space.f_files else 1,  # some file systems count none
        "has_state": os.path.exists(os.path.join(path, b"clustername")),
    }


def parse_test(module, conf):
    """What scontrol says of a configuration: (rc, output with the real file names, timed out)."""
    folder = tempfile.mkdtemp(prefix="hpcguard.")
    try:
        for name, text in slurm_conf.transplanted(conf, folder).items():
            descriptor = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(slurm_conf.to_bytes(text))
        done = loaders.scontrol(module.params["scontrol"], ["show", "hostlist", "a"], PROOF_TIMEOUT, os.path.join(folder, "slurm.conf"))
    finally:
        shutil.rmtree(folder)
    output = done.out + "\n" + done.err
    for path, name in slurm_conf.transplanted_names(conf).items():
        output = output.replace(os.path.join(folder, name), slurm_conf.readable(path))
    return done.rc, output, done.timed_out


def prove(module, conf, candidate):
    """Findings of the parse test; the present file is asked about only when there is something to compare."""
    rc, output, timed_out = parse_test(module, candidate)
    said = slurm_conf_lint.complaints(output)
    before = slurm_conf_lint.complaints(parse_test(module, conf)[1]) if said and not timed_out else []
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
        module.fail_json(
            msg="slurm.conf is left as it is, %d problem(s):\n%s" % (len(errors), slurm_conf_lint.describe(findings)), findings=findings
        )


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
            "lint_only": {"type": "bool", "default": False},
            "contents_from": {"type": "dict", "default": {}},
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
    if module.params["contents_from"] and not module.params["lint_only"]:
        module.fail_json(msg="contents_from goes with lint_only only")
    host = module.params["host"]
    release = tuple(slurm_layout.parse_version(module.params["version"])[1])
    if not release:
        module.fail_json(msg="%r is no version of Slurm" % module.params["version"])

    wanted, findings = slurm_conf_lint.check_settings(settings, secrets, release, host)
    deferred = [key.lower() for key in module.params["defer_keys"]]
    wanted = [(key, value) for key, value in wanted if key.lower() not in deferred]
    reader, path = Reader(module.params["contents_from"]), slurm_conf.stored(u"%s" % module.params["path"])
    if reader(path) is None:
        fail(module, findings + slurm_conf_lint.missing(path, host, os.path.lexists(slurm_conf.to_bytes(path))))
    conf = slurm_conf.parse(path, reader, release)
    candidate, edits, refused = slurm_conf_lint.try_plan(conf, wanted, host)
    asked = {key: "slurm_conf_settings." + key for key, _value in wanted}
    findings += refused + slurm_conf_lint.lint(candidate, look_at_host(module, candidate), asked)
    fail(module, findings)
    findings += prove(module, conf, candidate)
    fail(module, findings)

    changed = bool(edits) and not module.params["lint_only"]
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
