#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: host_files
short_description: Bring a set of files and units of a host to a wanted state in one call
version_added: 0.1.0
description:
  - Writes files atomically and durably, removes files, and enables and starts units.
  - Everything is checked first. When anything stands against it, all problems are reported and nothing is written.
  - Refuses a path that somebody other than root could redirect, a symbolic link and a directory.
  - systemd reads its units again when one of them changed, or had changed before without that.
  - What changed, or in check mode would change, is returned as entries of the rollout's plan.
options:
  files:
    description: Files in the order in which they are written.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path. Missing directories are created as root's with mode 0755.
        type: path
        required: true
      content:
        description: The whole content. Needed unless O(files[].state=absent).
        type: str
      owner:
        description: Name of the owner.
        type: str
        default: root
      group:
        description: Name of the group.
        type: str
        default: root
      mode:
        description: Octal mode.
        type: str
        default: "0644"
      state:
        description: Whether the file is there.
        type: str
        choices: [present, absent]
        default: present
      validate:
        description:
          - Command that must succeed on the new content before anything is written. The word V(%s) stands for a
            temporary copy.
        type: list
        elements: str
      class:
        description: What has to happen when this file changes, as in the rollout's plan.
        type: str
        default: none
      reason:
        description: Why the file is wanted so.
        type: str
        default: ""
  units:
    description: Units to enable or start after the files are written.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Full name, with its suffix.
        type: str
        required: true
      enabled:
        description: Whether it starts with the host.
        type: bool
      active:
        description: Whether it runs now. A running one whose unit file changed is restarted. Not for Slurm's daemons.
        type: bool
      anew:
        description:
          - For a oneshot that a timer starts. It is begun anew when its unit file changed, and when it is active, as one
            is left by an earlier unit with C(RemainAfterExit=yes); else its timer would never elapse again.
        type: bool
        default: false
  host:
    description: Name of the host in the reported changes.
    type: str
    default: ""
extends_documentation_fragment:
  - hpcguard.slurm.attributes
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description: Returns what has changed, or possibly needs to change, when in diff mode.
    support: full
  idempotent:
    description: A second call with the same arguments changes nothing.
    support: full
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Put the patrol's timer in place
  hpcguard.slurm.host_files:
    host: "{{ inventory_hostname }}"
    files:
      - path: /etc/systemd/system/slurm-cluster-health.timer
        content: "{{ lookup('template', 'slurm-cluster-health.timer.j2') }}"
        class: reload_units
        reason: every 15 minutes
    units:
      - name: slurm-cluster-health.timer
        enabled: true
        active: true
"""

RETURN = r"""
changes:
  description: "Entries of the plan: host, thing, from, to, class, reason, source."
  returned: success
  type: list
  elements: dict
created_directories:
  description: Directories that did not exist before.
  returned: success
  type: list
  elements: str
findings:
  description: Everything that stands against the call.
  returned: failure
  type: list
  elements: dict
"""

import grp
import os
import pwd
import shutil
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.text.converters import to_bytes

from ansible_collections.hpcguard.slurm.plugins.module_utils import finding, loaders, snapshot_manifest, systemd_unit

ENABLED = ("enabled", "enabled-runtime")
LEAVING = ("disable", "stop")
RUNNING = ("active", "activating", "reloading")
UNIT_PROPERTIES = ("LoadState", "UnitFileState", "ActiveState", "NeedDaemonReload")


class Target:
    """One file: how it is, how it should be, and what stands against it."""

    def __init__(self, spec):
        self.path = spec["path"]
        self.spec = spec
        self.problems = []
        self.present = {"kind": "absent", "path": self.path}
        self.wanted = {"kind": "absent", "path": self.path}
        self.before = self.after = ""
        problem = loaders.path_problem(self.path)
        if problem:
            self.problems.append("it " + problem)
            return
        self.present, content = loaders.file_record(self.path)
        self.before = "" if content is None else content.decode("utf-8", "replace")
        if spec["state"] == "present":
            self._want(spec)

    def _want(self, spec):
        if spec["content"] is None:
            self.problems.append("it has no content")
            return
        uid, gid, mode = self._owner(pwd.getpwnam, spec["owner"]), self._owner(grp.getgrnam, spec["group"]), 0
        try:
            mode = int(spec["mode"], 8)
        except ValueError:
            self.problems.append("mode %r is not octal" % spec["mode"])
        if mode & 0o022:
            self.problems.append("mode %s would let others write it" % spec["mode"])
        if not self.problems:
            content = to_bytes(spec["content"])
            self.after = content.decode("utf-8", "replace")
            self.wanted.update(kind="file", sha256=snapshot_manifest.sha256(content), mode="%04o" % mode, uid=uid, gid=gid)
            self.content = content

    def _owner(self, look_up, name):
        try:
            return look_up(name)[2]
        except KeyError:
            self.problems.append("owner or group %s does not exist" % name)
            return None

    @property
    def differs(self):
        return snapshot_manifest.fingerprint(self.present) != snapshot_manifest.fingerprint(self.wanted)

    def validate(self, tmpdir):
        """Run the given check on the new content."""
        command = self.spec["validate"]
        if not command or not self.differs or self.wanted["kind"] == "absent":
            return
        scratch = tempfile.mkdtemp(dir=tmpdir)
        try:
            copy = os.path.join(scratch, os.path.basename(self.path))
            loaders.write_atomic(copy, self.content, os.geteuid(), os.getegid(), 0o700)
            done = loaders.run([copy if word == "%s" else word for word in command], 30)
        finally:
            shutil.rmtree(scratch)
        if done.rc != 0:
            self.problems.append("%s refuses it: %s" % (command[0], (done.err or done.out).strip()[:500]))

    def write(self):
        """Make it so; returns the directories created for it."""
        if self.wanted["kind"] == "absent":
            os.unlink(self.path)
            loaders.fsync_dir(os.path.dirname(self.path))
            return []
        created = loaders.make_dirs(os.path.dirname(self.path))
        loaders.write_atomic(self.path, self.content, self.wanted["uid"], self.wanted["gid"], int(self.wanted["mode"], 8))
        return created


class Unit:
    """One unit: how it is and what has to be done to it."""

    def __init__(self, name, wanted, touched, brought):
        """
        :param wanted: {enabled, active, anew} of the task
        :param touched: a file of it changes in this call
        :param brought: its unit file is written in this call
        """
        show = loaders.systemctl_show(name, UNIT_PROPERTIES)
        self.name = name
        self.needs_reload = show.get("NeedDaemonReload") == "yes"
        self.problems = []
        self.steps = []  # (what, from, to, systemctl arguments)
        file_state, active = show.get("UnitFileState", ""), show.get("ActiveState") in RUNNING
        load_state = show.get("LoadState", "not-found")
        if load_state == "masked" and (wanted.get("enabled") or wanted.get("active")):
            self.problems.append("it is masked: somebody means it to stay off")
        elif load_state == "not-found" and not brought and (wanted.get("enabled") or wanted.get("active")):
            self.problems.append("there is no such unit")
        elif file_state == "static" and wanted.get("enabled"):
            self.problems.append("it has no [Install] section, so it cannot be enabled")
        enabled = file_state in ENABLED
        if wanted.get("enabled") is not None and wanted["enabled"] != enabled:
            verb = "enable" if wanted["enabled"] else "disable"
            self.steps.append(("enabled", file_state or "absent", verb + "d", [verb, name]))
        if wanted.get("active") and (not active or touched):
            self.steps.append(("active", "active" if active else "inactive", "active", ["restart", name]))
        if wanted.get("anew") and (touched or show.get("ActiveState") == "active"):
            # --no-block: how long it takes is no matter of the files
            self.steps.append(("active", show.get("ActiveState", "inactive"), "begun anew", ["--no-block", "restart", name]))
        if wanted.get("active") is False and active:
            self.steps.append(("active", "active", "inactive", ["stop", name]))


def problem(host, subject, cause):
    return finding.finding(
        "host_files",
        "error",
        host,
        finding.title("文件或单元不能这样写入", "a file or unit cannot be brought to the wanted state"),
        "%s: %s" % (subject, cause),
        "put that right on the host, or change the variable that names it",
        path=subject if subject.startswith("/") else None,
    )


def change(host, thing, was, becomes, kind="none", reason=""):
    return {
        "host": host,
        "thing": thing,
        "from": was,
        "to": becomes,
        "class": kind,
        "reason": reason,
        "source": "host_files",
    }


def look_at_units(specs, targets):
    """The units named by the task and those whose files are in it."""
    units = []
    wanted = {spec["name"]: spec for spec in specs}
    owners = [systemd_unit.unit_of(target.path) for target in targets]
    for name in sorted(set(wanted) | {owner for owner in owners if owner}):
        mine = [target for target in targets if systemd_unit.unit_of(target.path) == name]
        touched = any(target.differs for target in mine)
        brought = any(target.path.endswith("/" + name) and target.wanted["kind"] == "file" for target in mine)
        units.append(Unit(name, wanted.get(name, {}), touched, brought))
    return units


def run_systemctl(module, arguments):
    done = loaders.systemctl(arguments, 90)
    if done.rc != 0:
        module.fail_json(msg="systemctl %s: %s" % (" ".join(arguments), done.err.strip()))


def apply(module, targets, units, reload_units):
    """The one place that writes."""
    created = []
    steps = [arguments for unit in units for _what, _was, _becomes, arguments in unit.steps]
    for arguments in steps:
        if arguments[0] in LEAVING:  # while systemd still knows the unit
            run_systemctl(module, arguments)
    for target in targets:
        try:
            created += target.write()
        except (OSError, IOError) as error:
            module.fail_json(msg="%s: %s" % (target.path, error))
    if reload_units:
        run_systemctl(module, ["daemon-reload"])
    for arguments in steps:
        if arguments[0] not in LEAVING:
            run_systemctl(module, arguments)
    for unit in units:
        state = loaders.systemctl_show(unit.name, ["LoadState", "LoadError"])
        if state.get("LoadState") in ("error", "bad-setting"):
            module.fail_json(msg="systemd cannot load %s: %s" % (unit.name, state.get("LoadError", "")))
    return created


def main():
    module = AnsibleModule(
        argument_spec={
            "files": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "path", "required": True},
                    "content": {"type": "str"},
                    "owner": {"type": "str", "default": "root"},
                    "group": {"type": "str", "default": "root"},
                    "mode": {"type": "str", "default": "0644"},
                    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                    "validate": {"type": "list", "elements": "str"},
                    "class": {"type": "str", "default": "none"},
                    "reason": {"type": "str", "default": ""},
                },
            },
            "units": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": {"type": "str", "required": True},
                    "enabled": {"type": "bool"},
                    "active": {"type": "bool"},
                    "anew": {"type": "bool", "default": False},
                },
            },
            "host": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    host = module.params["host"]
    targets = [Target(spec) for spec in module.params["files"]]
    paths = [target.path for target in targets]
    for target in targets:
        target.validate(module.tmpdir)
        if paths.count(target.path) > 1:
            target.problems.append("it is named twice")
    units = look_at_units(module.params["units"], targets)
    findings = [problem(host, target.path, cause) for target in targets for cause in target.problems]
    findings += [problem(host, unit.name, cause) for unit in units for cause in unit.problems]
    if findings:
        module.fail_json(msg="nothing was written: " + "; ".join(found["cause"] for found in findings), findings=findings)

    differing = [target for target in targets if target.differs]
    changes = [
        change(
            host,
            "file:" + target.path,
            snapshot_manifest.describe(target.present),
            snapshot_manifest.describe(target.wanted),
            target.spec["class"],
            target.spec["reason"],
        )
        for target in differing
    ]
    stale = [unit for unit in units if unit.needs_reload]
    touched = {systemd_unit.unit_of(target.path) for target in differing}
    changes += [
        change(
            host,
            "unit:%s:reload" % unit.name,
            "older than its file",
            "as its file says",
            "reload_units",
            "the file had been changed before",
        )
        for unit in stale
        if unit.name not in touched
    ]
    for unit in units:
        changes += [change(host, "unit:%s:%s" % (unit.name, what), was, becomes) for what, was, becomes, _arguments in unit.steps]
    created = []
    if changes and not module.check_mode:
        created = apply(module, differing, units, bool(stale or touched - {""}))
    module.exit_json(
        changed=bool(changes),
        changes=changes,
        created_directories=created,
        diff=[
            {"before_header": target.path, "after_header": target.path, "before": target.before, "after": target.after}
            for target in differing
        ],
    )


if __name__ == "__main__":
    main()
