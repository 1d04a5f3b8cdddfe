# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where Slurm lives on a host and where its daemons take their configuration from. Pure.

Sources: slurmd(8) and slurmctld(8) on ``-f`` and ``--conf-server``, slurm.conf(5) on ENVIRONMENT,
configless_slurm.html on the order of precedence.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os.path
import re
import shlex

DEFAULT_PORT = "6817"
USUAL_PREFIXES = ("/usr/local/slurm", "/opt/slurm", "/usr/local", "/usr")
PROGRAMS = ("scontrol", "sinfo", "squeue", "sacct", "sacctmgr", "srun")

_VERSION = re.compile(r"\b(\d+)\.(\d+)(?:\.(\d+))?(?:-?[\w.]+)?")


def parse_version(text):
    """The version in what ``scontrol --version`` prints (``slurm-wlm 22.05.8``), and its release.

    :returns: ("22.05.8", [22, 5]), or ("", [])
    """
    match = _VERSION.search(text)
    if not match:
        return "", []
    return match.group(0), [int(match.group(1)), int(match.group(2))]


def words(command):
    """A command line as words; a line that no shell would take is split at blanks."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def option(argv, short, long_name):
    """Value of the last option of a daemon's command line (``-f X``, ``-fX``, ``--conf-server=X``), None without."""
    found = None
    for index, word in enumerate(argv):
        following = argv[index + 1] if index + 1 < len(argv) else None
        if word in ("--" + long_name, "-" + short if short else None):
            found = following
        elif word.startswith("--" + long_name + "="):
            found = word.split("=", 1)[1]
        elif short and word.startswith("-" + short) and not word.startswith("--") and len(word) > 2:
            found = word[2:]
    return found


def conf_servers(value):
    """``ctl1,ctl2:7000`` of --conf-server as ["ctl1:6817", "ctl2:7000"]."""
    servers = []
    for item in (value or "").split(","):
        item = item.strip()
        if not item:
            continue
        bare_ipv6 = item.count(":") > 1 and not item.startswith("[")
        has_port = not bare_ipv6 and re.search(r":\d+$", item)
        servers.append(item if has_port else "%s:%s" % ("[%s]" % item if bare_ipv6 else item, DEFAULT_PORT))
    return servers


def candidate_dirs(given, exec_starts):
    """Directories that may hold Slurm's programs, best first.

    :param given: directories that the operator named
    :param exec_starts: command lines of the daemons' units
    """
    dirs = list(given)
    for command in exec_starts:
        argv = words(command)
        if argv and argv[0].startswith("/"):
            prefix = os.path.dirname(os.path.dirname(argv[0]))
            dirs += [os.path.join(prefix, "bin"), os.path.join(prefix, "sbin")]
    for prefix in USUAL_PREFIXES:
        dirs += [os.path.join(prefix, "bin"), os.path.join(prefix, "sbin")]
    unique = []
    for name in dirs:
        if name not in unique:
            unique.append(name)
    return unique


def candidate_confs(argv, environment, bin_dir):
    """Paths at which a daemon of this host would read its slurm.conf, in Slurm's own order."""
    paths = [option(argv, "f", "conf"), environment.get("SLURM_CONF"), "/etc/slurm/slurm.conf"]
    if bin_dir:
        paths.append(os.path.join(os.path.dirname(bin_dir), "etc", "slurm.conf"))
    paths += [os.path.join(prefix, "etc", "slurm.conf") for prefix in USUAL_PREFIXES]
    return [path for path in paths if path]


def parse_environment_file(text):
    """KEY=value lines of a systemd EnvironmentFile."""
    values = {}
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith(("#", ";")) and "=" in line:
            key, value = line.split("=", 1)
            value = value.strip()
            if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
                value = value[1:-1]
            values[key.strip()] = value
    return values


def expand(argv, environment):
    """The words of ExecStart with ``$NAME`` (split at blanks) and ``${NAME}`` (kept whole) filled in, as systemd does."""
    result = []
    for word in argv:
        if re.match(r"^\$\w+$", word):
            result += words(environment.get(word[1:], ""))
        else:
            result.append(re.sub(r"\$\{(\w+)\}", lambda match: environment.get(match.group(1), ""), word))
    return result


def controllers(config, port=None):
    """Every controller of the loaded configuration as "host:port", the primary first.

    ``SlurmctldHost[1] = ctl2(10.0.0.2)`` names a host and, in parentheses, an address.
    """
    port = (port or config.get("SlurmctldPort", DEFAULT_PORT)).split("-")[0]
    return ["%s:%s" % (name, port) for name, _address in controller_hosts(config)]


def controller_hosts(config):
    """Every controller of the loaded configuration as (name, address), the primary first."""
    values = [config[key] for key in sorted(config) if re.match(r"^SlurmctldHost\[\d+\]$", key)]
    parts = [value.partition("(") for value in values]
    return [(name.strip(), address.rstrip(" )") or name.strip()) for name, _bracket, address in parts]


def database_hosts(config):
    """Hosts of slurmdbd that the loaded configuration names, the backup last; none without slurmdbd."""
    if "slurmdbd" not in config.get("AccountingStorageType", ""):
        return []
    names = [config.get("AccountingStorage%sHost" % part, "") for part in ("", "Backup")]
    return [name for name in names if name not in ("", "(null)")]
