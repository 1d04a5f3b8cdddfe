# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm.conf on a host: its files, the plugins and directories it names, and what scontrol says of it.

Like loaders it touches the host; it is apart because the patrol needs none of it.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import shutil
import stat
import tempfile

from . import loaders, slurm_conf, slurm_conf_lint, slurm_conf_together, slurm_layout

PROOF_TIMEOUT = 30
VERSION_TIMEOUT = 20


class Reader:
    """Reads each file once, so that all of a module works on the same state. Paths are text of slurm_conf."""

    def __init__(self, elsewhere=None):
        """
        :param elsewhere: {path: where its content is read from instead}
        """
        self.contents = {}
        given = (elsewhere or {}).items()
        self.elsewhere = {slurm_conf.stored(u"%s" % path): slurm_conf.stored(u"%s" % place) for path, place in given}

    def __call__(self, path):
        if path not in self.contents:
            try:
                self.contents[path] = loaders.read_bytes(slurm_conf.to_bytes(self.elsewhere.get(path, path)))
            except (OSError, IOError):
                self.contents[path] = None
        return self.contents[path]


def look(name, conf, plugin_dir, controller):
    """The facts that the lint needs, as its Host.

    :param plugin_dir: where slurm.conf names no PluginDir; None when it is not known
    :param controller: whether slurmctld runs here, so that its directories can be looked at
    """
    places = conf.value("PluginDir") or slurm_conf.stored(u"%s" % (plugin_dir or u""))
    plugin_dirs = [path for path in slurm_conf.to_bytes(places).split(b":") if os.path.isdir(path)]
    plugins = {one.decode("latin-1") for path in plugin_dirs for one in os.listdir(path)} if plugin_dirs else None
    present = [path for path in conf.paths if os.path.exists(slurm_conf.to_bytes(path))]
    modes = {path: stat.S_IMODE(os.stat(slurm_conf.to_bytes(path)).st_mode) for path in present}
    log_dir = slurm_conf_together.job_completion_dir(conf)
    absent = [log_dir] if controller and not os.path.isdir(slurm_conf.to_bytes(log_dir)) else []
    state_dir = _state_dir(slurm_conf.to_bytes(slurm_conf_lint.state_location(conf))) if controller else None
    return slurm_conf_lint.Host(name, plugins, state_dir, modes, absent)


def _state_dir(path):
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


def parse_test(scontrol, conf):
    """What scontrol says of a configuration: (rc, output with the real file names, timed out)."""
    folder = tempfile.mkdtemp(prefix="hpcguard.")
    try:
        for name, text in slurm_conf.transplanted(conf, folder).items():
            descriptor = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(slurm_conf.to_bytes(text))
        done = loaders.scontrol(scontrol, ["show", "hostlist", "a"], PROOF_TIMEOUT, os.path.join(folder, "slurm.conf"))
    finally:
        shutil.rmtree(folder)
    output = done.out + "\n" + done.err
    for path, name in slurm_conf.transplanted_names(conf).items():
        output = output.replace(os.path.join(folder, name), slurm_conf.readable(path))
    return done.rc, output, done.timed_out


def find_version(scontrol=None):
    """The version of Slurm on this host, empty when there is none; the daemons tell it also where slurm.conf is broken."""
    programs = [os.path.join(folder, name) for folder in slurm_layout.candidate_dirs([], []) for name in ("slurmctld", "slurmd")]
    for program in programs + ([scontrol] if scontrol else []):
        if os.access(program, os.X_OK):
            version = slurm_layout.parse_version(loaders.run([program, "-V"], VERSION_TIMEOUT).out)[0]
            if version:
                return version
    return ""
