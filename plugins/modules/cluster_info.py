#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: cluster_info
short_description: Look at a host of a Slurm cluster
version_added: 0.1.0
description:
  - Gathers in one call what the roles and playbooks of this collection have to know of a host.
  - Versions, paths, where the daemons take their configuration from, the units, whether munge works, running steps,
    and, where slurmctld runs, the loaded configuration, nodes and jobs.
  - Changes nothing.
options:
  controller:
    description: Also ask slurmctld for its configuration, nodes and jobs.
    type: bool
    default: false
  conf_path:
    description: The slurm.conf that the daemons use, where it cannot be found by itself.
    type: path
  bin_dirs:
    description: Directories searched first for Slurm's programs.
    type: list
    elements: path
    default: []
  state_dir:
    description: Directory of snapshots and rollout state.
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
- name: Look at the host
  hpcguard.slurm.cluster_info:
    controller: "{{ inventory_hostname in groups.slurm_controller }}"
  register: look
"""

RETURN = r"""
cluster:
  description: The cluster fact of the host, as C(docs/architecture.md) describes it.
  returned: success
  type: dict
  contains:
    slurm:
      description: Version, release and programs.
      type: dict
      sample: {version: "22.05.8", release: [22, 5]}
    conf:
      description: Mode V(configless), V(local) or V(none), path, files and servers.
      type: dict
    units:
      description: State and text of the units.
      type: dict
    controller:
      description: Loaded configuration, nodes and jobs; null on other hosts.
      type: dict
"""

import os
import platform

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import (
    finding,
    loaders,
    scontrol_text,
    slurm_conf,
    slurm_layout,
    snapshot_manifest,
    standard_units,
    systemd_unit,
)

DAEMONS = ("slurmd", "slurmctld", "slurmdbd")
OTHER_UNITS = standard_units.DATABASE_UNITS + (
    "munge",
    "slurm-cluster-health.timer",
    "slurm-cluster-health.service",
    "slurm-cluster-health-bootstrap.service",
)
SECRET_PARTS = ("pass", "authinfo", "authaltparameters", "jwks", "key")
LIMIT = 20
# EL8 hides its own.
SYSTEM_PYTHONS = ("/usr/bin/python3", "/usr/libexec/platform-python", "/usr/bin/python2.7", "/usr/bin/python2", "/usr/bin/python")


def look_at_units():
    boot_epoch = loaders.boot_epoch()
    units = {}
    for name in DAEMONS + OTHER_UNITS:
        show = loaders.systemctl_show(name, systemd_unit.SHOW_PROPERTIES)
        text, drop_ins = None, []
        if name in DAEMONS:
            if show.get("FragmentPath"):
                text = loaders.read_text(show["FragmentPath"])
            drop_ins = [{"path": path, "text": loaders.read_text(path) or ""} for path in show.get("DropInPaths", "").split()]
        units[name] = systemd_unit.unit_fact(show, text, drop_ins, boot_epoch)
        units[name]["environment"] = environment_of(show)
    return units


def environment_of(show):
    """What the unit's Environment= and EnvironmentFile= set, as far as Slurm's daemons read it."""
    values = {}
    for word in slurm_layout.words(show.get("Environment", "")):
        key, separator, value = word.partition("=")
        if separator:
            values[key] = value
    files = show.get("EnvironmentFiles") or show.get("EnvironmentFile") or ""
    for line in files.splitlines():
        text = loaders.read_text(line.split(" (")[0].lstrip("-").strip())
        values.update(slurm_layout.parse_environment_file(text or ""))
    return {key: value for key, value in values.items() if key.startswith("SLURM")}


def daemon_argv(unit):
    """The command line of a running daemon, or the one its unit would start."""
    if unit["main_pid"]:
        try:
            with open("/proc/%d/cmdline" % unit["main_pid"], "rb") as handle:
                words = handle.read().decode("utf-8", "replace").split("\0")[:-1]
        except (OSError, IOError):
            words = []
        # while ExecStartPre runs the main process is not the daemon
        if words and os.path.basename(words[0]) in DAEMONS:
            return words
    return slurm_layout.expand(slurm_layout.words(unit["exec_start"]), unit["environment"])


def find_programs(given, units):
    dirs = slurm_layout.candidate_dirs(given, [units[name]["exec_start"] for name in DAEMONS])
    programs = {}
    for name in slurm_layout.PROGRAMS:
        paths = [os.path.join(directory, name) for directory in dirs]
        programs[name] = next((path for path in paths if os.access(path, os.X_OK)), None)
    return programs


def look_at_conf(given, units, programs, controller):
    argv = daemon_argv(units["slurmd"])
    servers = slurm_layout.conf_servers(slurm_layout.option(argv, "", "conf-server"))
    cache = os.path.realpath("/run/slurm/conf") if os.path.islink("/run/slurm/conf") else None
    daemon = "slurmctld" if controller else "slurmd"
    bin_dir = os.path.dirname(programs["scontrol"]) if programs["scontrol"] else None
    # what the operator names counts, also when it is not there: preflight refuses it then
    paths = [given] if given else slurm_layout.candidate_confs(daemon_argv(units[daemon]), units[daemon]["environment"], bin_dir)
    # the directory resolved, the name as Slurm opens it: a relative Include is looked for beside the name
    found = next((name for name in paths if os.path.exists(name)), None)
    path = os.path.join(os.path.realpath(os.path.dirname(found)), os.path.basename(found)) if found else None
    configless = not controller and (servers or (cache and not path))
    return {
        "mode": "configless" if configless else ("local" if path else "none"),
        # a slurm.conf left over on a configless node is read by client commands only (cases.md 24)
        "path": None if configless else path,
        "given": given,
        "left_over": path if configless else None,
        "servers": servers,
        "cache_dir": cache,
    }


def find_version(units, programs):
    """The daemons are asked first: unlike scontrol, they tell their version also where slurm.conf is broken."""
    commands = [[slurm_layout.words(units[name]["exec_start"])[:1], "-V"] for name in DAEMONS]
    commands += [[[programs["scontrol"]] if programs["scontrol"] else [], "--version"]]
    for program, option in commands:
        version, release = slurm_layout.parse_version(loaders.run(program + [option], LIMIT).out) if program else ("", [])
        if version:
            return version, release
    return "", []


def munge_works():
    made = loaders.run(["munge", "-n"], 5)
    if made.rc != 0:
        return False
    return loaders.run(["unmunge"], 5, stdin=made.out).rc == 0


def look_at_controller(programs, conf_path):
    def ask(*args):
        return loaders.scontrol(programs[args[0]], args[1:], LIMIT, conf_path)

    pinged = ask("scontrol", "ping") if programs["scontrol"] else loaders.Result(127, err="no scontrol")
    if pinged.rc != 0:
        error = finding.clean_text((pinged.err or pinged.out).strip().replace("\n", "; "))
        return {"ping": False, "error": error, "config": {}, "nodes": [], "jobs": [], "cluster_registered": False}
    config = scontrol_text.parse_config(ask("scontrol", "show", "config").out)
    jobs = ask("squeue", "--noheader", "--format=" + scontrol_text.SQUEUE_FORMAT) if programs["squeue"] else None
    registered = False
    if programs["sacctmgr"] and "slurmdbd" in config.get("AccountingStorageType", ""):
        listed = ask("sacctmgr", "-n", "-P", "show", "cluster", "format=cluster")
        registered = listed.rc == 0 and config.get("ClusterName") in listed.out.split()
    return {
        "ping": True,
        "config": {key: value for key, value in config.items() if not any(part in key.lower() for part in SECRET_PARTS)},
        "nodes": scontrol_text.parse_nodes(ask("scontrol", "-o", "show", "node").out),
        "jobs": scontrol_text.parse_jobs(jobs.out) if jobs and jobs.rc == 0 else [],
        "cluster_registered": registered,
    }


def system_python():
    """The interpreter for what stays on the host; not the one of this run, which may be anybody's."""
    return next((path for path in SYSTEM_PYTHONS if os.access(path, os.X_OK)), SYSTEM_PYTHONS[0])


def free_megabytes(path):
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    stat = os.statvfs(path)
    return stat.f_bavail * stat.f_frsize // (1 << 20)


def plugin_dir(view, programs):
    """PluginDir as loaded, or the place where a package puts it."""
    if view and view["config"].get("PluginDir"):
        return view["config"]["PluginDir"].split(":")[0]
    if not programs["scontrol"]:
        return None
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(programs["scontrol"])))
    machine = "%s-linux-gnu" % platform.machine()
    places = [os.path.join(prefix, lib, name) for lib in ("lib64", "lib", "lib/" + machine) for name in ("slurm", "slurm-wlm")]
    return next((place for place in places if os.path.isdir(place)), None)


def main():
    module = AnsibleModule(
        argument_spec={
            "controller": {"type": "bool", "default": False},
            "conf_path": {"type": "path"},
            "bin_dirs": {"type": "list", "elements": "path", "default": []},
            "state_dir": {"type": "path", "default": "/var/lib/hpcguard"},
        },
        supports_check_mode=True,
    )
    params = module.params
    units = look_at_units()
    programs = find_programs(params["bin_dirs"], units)
    conf = look_at_conf(params["conf_path"], units, programs, params["controller"])
    version, release = find_version(units, programs)
    view = look_at_controller(programs, conf["path"]) if params["controller"] else None
    files = slurm_conf.parse(conf["path"], loaders.read_bytes, release) if conf["path"] else None
    # an edit goes through a symbolic link, so both ends of it count
    conf["files"] = sorted(set(files.paths) | {os.path.realpath(name) for name in files.paths}) if files else []
    if view and view["ping"]:
        conf["servers"] = slurm_layout.controllers(view["config"])
    elif files and not conf["servers"]:
        port = files.value("SlurmctldPort") or slurm_layout.DEFAULT_PORT
        names = [line.value for line in files.occurrences("SlurmctldHost")]
        conf["servers"] = slurm_layout.controllers(
            {"SlurmctldHost[%d]" % number: name for number, name in enumerate(names)}, port
        )
    manifests = loaders.snapshots(params["state_dir"])[0]
    systemd = loaders.run(["systemctl", "--version"], LIMIT).out.split()
    module.exit_json(
        changed=False,
        cluster={
            "host": platform.node(),
            "python": platform.python_version(),
            "system_python": system_python(),
            "systemd": int(systemd[1]) if len(systemd) > 1 and systemd[1].isdigit() else 0,
            "slurm": {"version": version, "release": release, "bin": programs, "plugin_dir": plugin_dir(view, programs)},
            "conf": conf,
            "units": units,
            "munge": munge_works(),
            "steps": len(loaders.slurmstepds()),
            "free_mb": free_megabytes(params["state_dir"]),
            "interrupted": snapshot_manifest.interrupted_actions(manifests),
            "interrupted_since": snapshot_manifest.interrupted_since(manifests),
            "deferred": snapshot_manifest.deferred(manifests),
            "controller": view,
        },
    )


if __name__ == "__main__":
    main()
