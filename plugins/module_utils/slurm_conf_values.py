# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which values a key of slurm.conf takes, by release. Pure.

What Slurm refuses is one thing (:func:`value_problem`), what it takes in another way than meant the other (:func:`meaning_problem`).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import slurm_conf
from . import slurm_conf_keys as keys


class PluginKey:
    """A key that names plugins: their type, whether it takes a list, and whether the name alone is understood too."""

    def __init__(self, type_name, is_list=False, full_name_only=True):
        self.type = type_name
        self.is_list = is_list
        self.full_name_only = full_name_only


PLUGINS = {
    "AccountingStorageType": PluginKey("accounting_storage"),
    "AcctGatherEnergyType": PluginKey("acct_gather_energy", is_list=True, full_name_only=False),
    "AcctGatherFilesystemType": PluginKey("acct_gather_filesystem"),
    "AcctGatherInterconnectType": PluginKey("acct_gather_interconnect", is_list=True, full_name_only=False),
    "AcctGatherProfileType": PluginKey("acct_gather_profile"),
    "AuthAltTypes": PluginKey("auth", is_list=True),
    "AuthType": PluginKey("auth"),
    "BurstBufferType": PluginKey("burst_buffer"),
    "CliFilterPlugins": PluginKey("cli_filter", is_list=True, full_name_only=False),
    "CredType": PluginKey("cred"),
    "JobAcctGatherType": PluginKey("jobacct_gather"),
    "JobCompType": PluginKey("jobcomp"),
    "JobSubmitPlugins": PluginKey("job_submit", is_list=True, full_name_only=False),
    "MCSPlugin": PluginKey("mcs"),
    "MpiDefault": PluginKey("mpi", full_name_only=False),
    "PreemptType": PluginKey("preempt"),
    "PrEpPlugins": PluginKey("prep", is_list=True, full_name_only=False),
    "PriorityType": PluginKey("priority"),
    "ProctrackType": PluginKey("proctrack"),
    "SchedulerType": PluginKey("sched"),
    "SelectType": PluginKey("select"),
    "SwitchType": PluginKey("switch"),
    "TaskPlugin": PluginKey("task", is_list=True, full_name_only=False),
    "TopologyPlugin": PluginKey("topology"),
}
NODE_STATES = (
    ((20, 11), ("ALLOC", "ANY", "CYCLE", "IDLE", "MIXED")),
    ((23, 2), ("NONDRAINED_IDLE",)),
    ((25, 11), ("START_ONLY",)),
    ((26, 5), ("REBOOT_ONLY",)),
)
LONELY_STATES = ("START_ONLY", "REBOOT_ONLY")


def value_problem(key, value, kind):
    """Why Slurm would refuse a value of this kind: (cause, remedy), None when it takes it."""
    shown = slurm_conf.masked_value(key, value)
    if kind in keys.NUMBERS and slurm_conf.number(value, kind) is None:
        # the largest of 64 bits says nothing to anybody
        limit = u"whole number" if kind == "uint64" else u"number from 0 to %d" % keys.NUMBERS[kind]
        return u"%s is no %s" % (shown, limit), _as_number(key, value)
    if kind == "boolean" and slurm_conf.boolean(value) is None:
        return u"%s is neither yes nor no" % shown, "write yes or no"
    if PLUGINS.get(key) and PLUGINS[key].full_name_only and u"/" not in value and value.lower() != u"none":
        return u"%s names no kind of plugin" % shown, u"write %s/%s" % (PLUGINS[key].type, shown)
    return None


def meaning_problem(key, value, release):
    """Why Slurm would take a value, but not as it is meant: (cause, remedy), None when all is well."""
    shown = slurm_conf.readable(value)
    if key == "ReturnToService" and slurm_conf.number(value, "uint16") > 2:
        return u"%s has no meaning" % shown, "write 0, 1 or 2"
    if key == "HealthCheckProgram" and not value.startswith(u"/"):
        return u"%s is no absolute path" % shown, "write the program's whole path, without arguments"
    if key == "HealthCheckNodeState":
        return _node_state_problem(value, release)
    return None


def _as_number(key, value):
    """What a value with a unit would be without."""
    match = re.match(u"([0-9]+)[ ]*([A-Za-z]+)\\Z", value)
    if not match:
        return "write a plain number"
    amount, unit = int(match.group(1)), match.group(2).lower()
    if key in keys.MEGABYTES:
        factors = {u"m": 1, u"mb": 1, u"mib": 1, u"g": 1024, u"gb": 1024, u"gib": 1024, u"t": 1048576, u"tb": 1048576}
        if unit in factors:
            return "it counts in megabytes: write %d" % (amount * factors[unit])
    factors = {u"s": 1, u"sec": 1, u"m": 60, u"min": 60, u"h": 3600, u"d": 86400}
    if unit in factors and re.search(u"Timeout|Interval|Wait|Limit|Freq|Age", key):
        seconds = amount * factors[unit]
        if key in keys.MINUTES:
            return "it counts in minutes: write %d" % (seconds // 60)
        return "it counts in seconds: write %d" % seconds
    return "write a plain number, without a unit"


def known_states(release):
    """The words of HealthCheckNodeState; Slurm ignores others, and without any takes ANY."""
    return [state for start, states in NODE_STATES if release >= start for state in states]


def _node_state_problem(value, release):
    known = known_states(release)
    given = [word.upper() for word in value.split(u",") if word]
    unknown = [word for word in given if word not in known]
    if unknown:
        cause = u"Slurm %d.%02d ignores %s" % (release[0], release[1], slurm_conf.readable(u", ".join(unknown)))
        return cause, "use %s" % ", ".join(known)
    lonely = [word for word in given if word in LONELY_STATES and len(given) > 1]
    return (u"%s does not go with other words" % lonely[0], "use it alone") if lonely else None
