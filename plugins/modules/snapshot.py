#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: snapshot
short_description: Record files and units of a host before a rollout, and put them back
version_added: 0.1.0
description:
  - Keeps snapshots under I(state_dir)C(/snapshots/ID), readable by root only. A snapshot proves itself by checksums;
    a damaged one is refused before anything is touched.
  - Going back to I(id) means the state before that rollout, also where later ones followed it. A host that took
    part in none of them has nothing to put back.
options:
  state:
    description:
      - V(taken) records how everything is now.
      - V(sealed) records how the rollout left the files and marks it complete, interrupted ones before it included.
      - V(checked) proves that the snapshots are whole and tells what somebody changed since.
      - V(restored) puts everything back. With O(only) a part of it; the call without O(only) comes last and marks
        the rollouts as taken back.
      - V(pruned) removes old snapshots, never one that a way back needs.
      - V(absent) removes one.
    type: str
    choices: [taken, sealed, checked, restored, pruned, absent]
    required: true
  id:
    description: Name of the snapshot, the same on every host of a rollout. It begins with the time.
    type: str
  paths:
    description: Files to record, whether they exist or not.
    type: list
    elements: path
    default: []
  conf:
    description: Files to record that are Slurm's configuration, the first stage of a return.
    type: list
    elements: path
    default: []
  units:
    description: Units whose enabled and active state is recorded.
    type: list
    elements: str
    default: []
  meta:
    description: Anything worth knowing of the rollout. Its list C(actions) is what an interrupted one had meant to do.
    type: dict
    default: {}
  chain:
    description: Id of the first rollout of the chain. Found from the snapshots of this host unless given.
    type: str
  only:
    description: Put back only these parts.
    type: list
    elements: str
    choices: [conf, units, scripts]
  match:
    description: With V(restored), put back only files and units whose path or name matches one of these shell patterns.
    type: list
    elements: str
  force:
    description: Put back what somebody changed since, and remove a snapshot that is still needed.
    type: bool
    default: false
  again:
    description:
      - With V(sealed), record anew how the files are now, in this snapshot and those that followed it. For a return
        that had to leave something for later.
    type: bool
    default: false
  keep:
    description: Number of newest snapshots that stay when old ones are removed.
    type: int
    default: 10
  host:
    description: Name of the host in the reported changes.
    type: str
    default: ""
  state_dir:
    description: Directory of snapshots.
    type: path
    default: /var/lib/hpcguard
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
- name: Record what a rollout is going to touch
  hpcguard.slurm.snapshot:
    state: taken
    id: 20261130T120000Z-1a2b
    paths: [/etc/systemd/system/slurmd.service]
    conf: [/etc/slurm/slurm.conf]
    units: [slurmd.service]

- name: Put slurm.conf back first
  hpcguard.slurm.snapshot:
    state: restored
    id: 20261130T120000Z-1a2b
    only: [conf]
"""

RETURN = r"""
snapshots:
  description: Ids that the call is about, oldest first. Empty where the host took part in none.
  returned: success
  type: list
  elements: str
foreign:
  description: Paths that somebody changed since the rollout.
  returned: success
  type: list
  elements: str
changes:
  description: What was, or would be, put back.
  returned: success
  type: list
  elements: dict
meta:
  description: What was recorded of the rollout O(id).
  returned: when the host has that snapshot
  type: dict
"""

import fnmatch
import glob
import os
import shutil
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders, slurm_conf, snapshot_manifest, systemd_unit

LINKS = "/etc/systemd/system/*.wants"
UNIT_PROPERTIES = ("LoadState", "UnitFileState", "ActiveState")


def unit_state(name):
    show = loaders.systemctl_show(name, UNIT_PROPERTIES)
    return {
        "load_state": show.get("LoadState", "not-found"),
        "unit_file_state": show.get("UnitFileState", ""),
        "active_state": show.get("ActiveState", "inactive"),
    }


def empty_folders():
    """What ``systemctl disable`` takes away with its last link, although it was there before the link was."""
    return sorted(folder for folder in glob.glob(LINKS) if os.path.isdir(folder) and not os.path.islink(folder) and not os.listdir(folder))


class Store:
    """The snapshots of this host."""

    def __init__(self, state_dir):
        self.state_dir = state_dir
        self.folder = os.path.join(state_dir, "snapshots")
        self.manifests, self.damaged = loaders.snapshots(state_dir)

    def get(self, name):
        return next((one for one in self.manifests if one["id"] == name), None)

    def place(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, manifest):
        loaders.write_atomic(self.place(manifest["id"], "manifest.json"), snapshot_manifest.dumps(manifest).encode("utf-8"), mode=0o600)

    def take(self, manifest, contents):
        """Write a snapshot so that it is either there and whole or not there."""
        temporary = self.place("." + manifest["id"])
        for folder in (self.state_dir, self.folder):
            loaders.make_dirs(folder)
            os.chmod(folder, 0o700)
        if os.path.isdir(temporary):
            shutil.rmtree(temporary)
        os.mkdir(temporary, 0o700)
        os.mkdir(os.path.join(temporary, "files"), 0o700)
        try:
            for name, content in contents.items():
                loaders.write_atomic(os.path.join(temporary, "files", name), content, mode=0o600)
            text = snapshot_manifest.dumps(manifest).encode("utf-8")
            loaders.write_atomic(os.path.join(temporary, "manifest.json"), text, mode=0o600)
            os.rename(temporary, self.place(manifest["id"]))
            loaders.fsync_dir(self.folder)
        except (OSError, IOError):
            shutil.rmtree(temporary, ignore_errors=True)
            raise

    def remove(self, name):
        # renamed first: half a snapshot must not look like one
        os.rename(self.place(name), self.place("." + name))
        shutil.rmtree(self.place("." + name))

    def way_back(self, snapshot_id):
        """(snapshots to take back, contents by path), everything proved to be whole."""
        broken = sorted(name for name in self.damaged if name >= snapshot_id)
        if broken:
            raise snapshot_manifest.Damaged("snapshot %s is damaged: %s" % (broken[0], self.damaged[broken[0]]))
        chosen = snapshot_manifest.return_path(self.manifests, snapshot_id)
        contents = {}
        records, _units, sources = snapshot_manifest.merged(chosen)
        for record in records:
            if record["kind"] == "file":
                contents[record["path"]] = loaders.snapshot_content(self.state_dir, sources[record["path"]], record)
        return chosen, contents


def take(module, store):
    params = module.params
    present = store.get(params["id"])
    wanted = sorted(set(params["paths"]) | set(params["conf"]))
    if params["id"] in store.damaged:
        module.fail_json(msg="snapshot %s is damaged: %s" % (params["id"], store.damaged[params["id"]]))
    if present:
        missing = sorted(set(wanted) - {record["path"] for record in present["records"]})
        if missing:
            module.fail_json(msg="snapshot %s exists already, without %s" % (params["id"], ", ".join(missing)))
        return {"changed": False, "snapshots": [params["id"]]}
    records, contents = [], {}
    for number, path in enumerate(wanted):
        record, content = loaders.file_record(path)
        record["part"] = snapshot_manifest.part_of(path, params["conf"])
        if content is not None:
            record["stored"] = "%04d" % number
            contents[record["stored"]] = content
        records.append(record)
    units = {name: unit_state(name) for name in params["units"]}
    chain = params["chain"] or snapshot_manifest.next_chain(store.manifests)
    manifest = snapshot_manifest.new(params["id"], int(time.time()), records, units, params["meta"], chain, empty_folders())
    if not module.check_mode:
        store.take(manifest, contents)
    return {"changed": True, "snapshots": [params["id"]], "chain": manifest["chain"]}


def seal(module, store):
    name = module.params["id"]
    chosen = [one for one in store.manifests if one["state"] == "taken" and one["id"] <= name]
    if module.params["again"]:
        chosen = [one for one in snapshot_manifest.live(store.manifests) if one["id"] >= name]
    written = []
    for manifest in chosen:
        paths = [record["path"] for record in manifest["records"]]
        after = {path: snapshot_manifest.fingerprint(loaders.file_record(path)[0]) for path in paths}
        if manifest["state"] != "sealed" or manifest["after"] != after:
            manifest.update(state="sealed", after=after)
            written.append(manifest["id"])
            if not module.check_mode:
                store.write(manifest)
    removed = prune(module, store)["snapshots"] if store.get(name) and not module.params["again"] else []
    return {"changed": bool(written or removed), "snapshots": written, "pruned": removed}


def prune(module, store):
    removed = snapshot_manifest.prunable(store.manifests, module.params["keep"])
    if not module.check_mode:
        for name in removed:
            store.remove(name)
    return {"changed": bool(removed), "snapshots": removed}


def remove(module, store):
    name = module.params["id"]
    present = store.get(name)
    if not present and name not in store.damaged:
        return {"changed": False, "snapshots": []}
    if not module.params["force"] and (not present or name not in snapshot_manifest.prunable(store.manifests, 0)):
        module.fail_json(msg="snapshot %s is needed for a way back, or damaged; force removes it all the same" % name)
    if not module.check_mode:
        store.remove(name)
    return {"changed": True, "snapshots": [name]}


def check(module, store):
    chosen, _contents = store.way_back(module.params["id"])
    records = snapshot_manifest.merged(chosen)[0]
    present = {record["path"]: loaders.file_record(record["path"])[0] for record in records}
    return {
        "changed": False,
        "snapshots": [one["id"] for one in chosen],
        "foreign": snapshot_manifest.foreign(chosen, present),
    }


def restore(module, store):
    """Put files and units back; everything is proved and compared before the first write."""
    chosen, contents = store.way_back(module.params["id"])
    records, units, _sources = snapshot_manifest.merged(chosen)
    parts = module.params["only"] or snapshot_manifest.PARTS
    match = module.params["match"] or ["*"]
    records = [record for record in records if record["part"] in parts and matches(record["path"], match)]
    units = {name: state for name, state in units.items() if matches(name, match)}
    present = {}
    before_text, after_text = {}, {}
    for record in records:
        present[record["path"]], content = loaders.file_record(record["path"])
        before_text[record["path"]] = text_of(content, record["part"])
        after_text[record["path"]] = text_of(contents.get(record["path"]), record["part"])
    foreign = snapshot_manifest.foreign(chosen, present)
    if foreign and not module.params["force"]:
        module.fail_json(msg="changed by somebody since the rollout: %s; nothing was put back" % ", ".join(foreign), foreign=foreign)
    differing = [
        record for record in records if snapshot_manifest.fingerprint(record) != snapshot_manifest.fingerprint(present[record["path"]])
    ]
    changes = [
        change(
            module,
            "file:" + record["path"],
            snapshot_manifest.describe(present[record["path"]]),
            snapshot_manifest.describe(record),
        )
        for record in differing
    ]
    result = {"changed": False, "snapshots": [one["id"] for one in chosen], "foreign": foreign, "changes": changes}
    result["diff"] = [
        {"before_header": path, "after_header": path, "before": before_text[path], "after": after_text[path]}
        for path in [record["path"] for record in differing]
    ]
    steps = unit_steps(units, differing) if "units" in parts else []
    changes += [change(module, "unit:%s:%s" % (name, what), was, becomes) for name, what, was, becomes, _arguments, _early in steps]
    if not module.check_mode:
        run_steps(module, [step for step in steps if step[5]])
        for record in differing:
            put_back(record, contents.get(record["path"]))
        if any(record["part"] == "units" for record in differing):
            run_systemctl(module, ["daemon-reload"])
        run_steps(module, [step for step in steps if not step[5]])
        for folder in snapshot_manifest.folders(chosen) if "units" in parts else []:
            loaders.make_dirs(folder)
    whole = not module.params["only"] and not module.params["match"]
    unmarked = [one for one in chosen if one["state"] != "rolled_back"] if whole else []
    for manifest in unmarked:
        manifest["state"] = "rolled_back"
        if not module.check_mode:
            store.write(manifest)
    result["changed"] = bool(changes or unmarked)
    return result


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def change(module, thing, was, becomes):
    return {
        "host": module.params["host"],
        "thing": thing,
        "from": was,
        "to": becomes,
        "class": "none",
        "reason": "as before rollout " + module.params["id"],
        "source": "snapshot",
    }


def text_of(content, part):
    """Text for a diff; slurm.conf may hold passwords."""
    text = slurm_conf.to_text(content or b"")
    return slurm_conf.readable(slurm_conf.mask(text) if part == "conf" else text)


def unit_steps(units, differing):
    """What has to be done to units: (name, what, was, becomes, systemctl arguments, before the files are put back)."""
    steps = []
    touched = {systemd_unit.unit_of(record["path"]) for record in differing}
    for name, before in sorted(units.items()):
        now = unit_state(name)
        known = before["load_state"] == "loaded"
        was_enabled, is_enabled = [state["unit_file_state"] in ("enabled", "enabled-runtime") for state in (before, now)]
        if is_enabled and not was_enabled:
            steps.append(
                (
                    name,
                    "enabled",
                    now["unit_file_state"],
                    before["unit_file_state"] or "absent",
                    ["disable", name],
                    True,
                )
            )
        if was_enabled and not is_enabled:
            steps.append((name, "enabled", now["unit_file_state"] or "absent", "enabled", ["enable", name], False))
        if name in snapshot_manifest.DAEMONS:
            continue
        was_active, is_active = [state["active_state"] in ("active", "activating", "reloading") for state in (before, now)]
        timer = name.endswith(".timer")
        if is_active and (not known or (timer and not was_active)):
            steps.append((name, "active", "active", "inactive", ["stop", name], True))
        elif timer and was_active and (not is_active or name in touched):
            steps.append((name, "active", now["active_state"], "active", ["--no-block", "restart", name], False))
    return steps


def run_steps(module, steps):
    for step in steps:
        run_systemctl(module, step[4])


def run_systemctl(module, arguments):
    done = loaders.systemctl(arguments, 60)
    if done.rc != 0:
        module.fail_json(msg="systemctl %s: %s" % (" ".join(arguments), done.err.strip()))


def put_back(record, content):
    path = record["path"]
    if record["kind"] == "file":
        loaders.make_dirs(os.path.dirname(path))
        loaders.write_atomic(path, content, record["uid"], record["gid"], int(record["mode"], 8))
        return
    if record["kind"] == "link":
        loaders.make_dirs(os.path.dirname(path))
        temporary = path + ".hpcguard"
        os.symlink(record["target"], temporary)
        os.rename(temporary, path)
        return
    if os.path.lexists(path):
        os.unlink(path)
    for folder in record["missing_dirs"]:  # innermost first
        if os.path.isdir(folder) and not os.listdir(folder):
            os.rmdir(folder)


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "required": True,
                "choices": ["taken", "sealed", "checked", "restored", "pruned", "absent"],
            },
            "id": {"type": "str"},
            "paths": {"type": "list", "elements": "path", "default": []},
            "conf": {"type": "list", "elements": "path", "default": []},
            "units": {"type": "list", "elements": "str", "default": []},
            "meta": {"type": "dict", "default": {}},
            "chain": {"type": "str"},
            "only": {"type": "list", "elements": "str", "choices": list(snapshot_manifest.PARTS)},
            "match": {"type": "list", "elements": "str"},
            "force": {"type": "bool", "default": False},
            "again": {"type": "bool", "default": False},
            "keep": {"type": "int", "default": 10},
            "host": {"type": "str", "default": ""},
            "state_dir": {"type": "path", "default": "/var/lib/hpcguard"},
        },
        required_if=[("state", state, ["id"]) for state in ("taken", "sealed", "checked", "restored", "absent")],
        supports_check_mode=True,
    )
    name = module.params["id"]
    if name is not None and not snapshot_manifest.valid_id(name):
        module.fail_json(msg="%r cannot be the name of a snapshot" % name)
    if module.params["keep"] < 1:
        module.fail_json(msg="keep must be at least 1")
    store = Store(module.params["state_dir"])
    states = {"taken": take, "sealed": seal, "checked": check, "restored": restore, "pruned": prune, "absent": remove}
    try:
        result = states[module.params["state"]](module, store)
    except snapshot_manifest.Damaged as error:
        module.fail_json(msg="snapshot %s is refused: %s; nothing was touched" % (name, error))
    except (OSError, IOError, ValueError) as error:
        module.fail_json(msg="%s: %s" % (module.params["state"], error))
    result.setdefault("foreign", [])
    result.setdefault("changes", [])
    present = store.get(name) if name else None
    if present:
        result["meta"] = present["meta"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
