# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of slurm.conf that do not go together, each of which Slurm takes by itself. Pure."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import slurm_conf, slurm_conf_values
from . import slurm_conf_keys as keys

# Keys that have no effect beside another: {the one: the one that counts}.
EXCLUSIVE = {
    "BackupAddr": "SlurmctldHost",
    "BackupController": "SlurmctldHost",
    "ControlAddr": "SlurmctldHost",
    "ControlMachine": "SlurmctldHost",
    "DefMemPerCPU": "DefMemPerNode",
    "MaxMemPerCPU": "MaxMemPerNode",
}
# What counts where slurm.conf says nothing.
DEFAULTS = {"HealthCheckTimeout": 60, "MessageTimeout": 10, "MinJobAge": 300, "SlurmdTimeout": 300, "UnkillableStepTimeout": 60}


def check(conf, absent_dirs, out):
    """Tell of everything that does not go together.

    :param conf: the candidate, from slurm_conf.parse
    :param absent_dirs: directories that settings need and that are not there
    :param out: slurm_conf_lint.Findings
    """
    _exclusive(conf, out)
    _health_check(conf, out)
    _timeouts(conf, out)
    _memory(conf, out)
    _gathering(conf, out)
    _accounting(conf, absent_dirs, out)


def _number_of(conf, key):
    """The number in force, None when the key is not set, or to nothing that is one."""
    value, kind = conf.value(key), keys.kind(key, conf.release)
    return slurm_conf.number(value, kind) if value is not None and kind in keys.NUMBERS else None


def _in_force(conf, key):
    found = _number_of(conf, key)
    return DEFAULTS[key] if found is None else found


def _exclusive(conf, out):
    for key in sorted(EXCLUSIVE):
        winner = EXCLUSIVE[key]
        if conf.value(key) is not None and conf.value(winner) is not None:
            severity = "error" if key.lower() in out.asked else "warning"
            remedy = "keep one of them" + (": set the other to null in slurm_conf_settings" if out.asked else "")
            out.about("conf_conflict", severity, key, "%s is ignored because %s is set" % (key, winner), remedy)


def _health_check(conf, out):
    program, interval = conf.value("HealthCheckProgram"), _number_of(conf, "HealthCheckInterval")
    state = (conf.value("HealthCheckNodeState") or u"ANY").upper()
    at_start = state in slurm_conf_values.LONELY_STATES and state in slurm_conf_values.known_states(conf.release)
    if program and not interval and not at_start:
        out.about("conf_conflict", "error", "HealthCheckProgram",
                  "with HealthCheckInterval 0 or unset the program never runs, not even when slurmd starts",
                  "set HealthCheckInterval, for example to 300")
    elif interval and not program:
        out.about("conf_conflict", "warning", "HealthCheckInterval", "there is no HealthCheckProgram to run", "set HealthCheckProgram")
    elif interval and conf.release >= (26, 5) and _in_force(conf, "HealthCheckTimeout") >= interval:
        out.about("conf_conflict", "warning", "HealthCheckInterval",
                  "the program may run for %d s (HealthCheckTimeout), which is not less than the interval of %d s"
                  % (_in_force(conf, "HealthCheckTimeout"), interval), "a longer interval, or a shorter HealthCheckTimeout")


def _timeouts(conf, out):
    """Times that Slurm takes one by one, but that make no sense, or not together."""
    message, node = _in_force(conf, "MessageTimeout"), _in_force(conf, "SlurmdTimeout")
    if message > 100:
        out.about("conf_value", "warning", "MessageTimeout", "MessageTimeout %d: whoever asks a dead host waits as long" % message,
                  "100 or less")
    if node == 0:
        out.about("conf_value", "warning", "SlurmdTimeout",
                  "with SlurmdTimeout 0 a node that stops answering is never set DOWN, and its jobs hang", "the default is 300")
    elif node <= message:
        out.about("conf_conflict", "warning", "SlurmdTimeout" if conf.value("SlurmdTimeout") else "MessageTimeout",
                  "SlurmdTimeout %d is not more than MessageTimeout %d: one slow answer sets a node DOWN and ends its jobs"
                  % (node, message), "a longer SlurmdTimeout; the default is 300")
    # from 24.05 on the default grows with MessageTimeout
    fixed = conf.value("UnkillableStepTimeout") is not None
    if (fixed or conf.release < (24, 5)) and _in_force(conf, "UnkillableStepTimeout") < 5 * message:
        out.about("conf_conflict", "warning", "UnkillableStepTimeout" if fixed else "MessageTimeout",
                  "UnkillableStepTimeout %d is less than five times MessageTimeout %d: nodes may be drained with \"Kill task failed\""
                  % (_in_force(conf, "UnkillableStepTimeout"), message), "UnkillableStepTimeout=%d" % (5 * message))
    if _in_force(conf, "MinJobAge") < 2:
        out.about("conf_value", "warning", "MinJobAge", "MinJobAge is at least 2; Slurm takes 2 instead", "write 2 or more")


def _memory(conf, out):
    """DefMemPerCPU: does it count, and can a job still start."""
    key, amount = "DefMemPerCPU", _number_of(conf, "DefMemPerCPU")
    if not amount or conf.value("DefMemPerNode") is not None:
        return
    if not memory_is_consumable(conf):
        out.about("conf_conflict", "warning", key, "it reserves no memory for a job unless SelectTypeParameters has one of CR_..._Memory",
                  "SelectTypeParameters=CR_Core_Memory")
    nodes = list(_nodes(conf))
    small = [name for name, memory in nodes if memory < amount]
    if small and amount != keys.NUMBERS["uint64"]:
        where = "every node" if len(small) == len(nodes) else slurm_conf.readable(u", ".join(small[:5]))
        out.about("conf_conflict", "error" if len(small) == len(nodes) else "warning", key,
                  u"%d is more than RealMemory of %s (1 where it is not set): "
                  u"no job that leaves its memory open can run there" % (amount, where),
                  "set RealMemory on the NodeName lines, or a smaller DefMemPerCPU")
    _overriding(conf, key, out)


def memory_is_consumable(conf):
    """True when jobs get memory assigned."""
    modern = conf.release >= (23, 11)
    select = (conf.value("SelectType") or (u"select/cons_tres" if modern else u"select/linear")).lower()
    parameters = conf.value("SelectTypeParameters")
    if parameters is None:
        return u"cons" in select and conf.release >= (21, 8)
    return u"memory" in parameters.lower()


def _nodes(conf):
    """(name, RealMemory) of each NodeName line; what NodeName=DEFAULT says holds for the lines below it."""
    default = 1
    for line in conf.occurrences("NodeName"):
        given = {key.lower(): value for key, value in line.attributes()[0]}
        memory = slurm_conf.number(given["realmemory"], "uint64") if "realmemory" in given else None
        memory = default if memory is None else memory
        if line.value.upper() == u"DEFAULT":
            default = memory
        else:
            yield line.value, memory


def _overriding(conf, key, out):
    """Say which partitions have a value of their own."""
    own, default, total = [], False, 0
    for record in conf.occurrences("PartitionName"):
        given = [name.lower() for name, _value in record.attributes()[0]]
        has = default or "defmempercpu" in given or "defmempernode" in given
        if record.value.upper() == u"DEFAULT":
            default = has
            continue
        total += 1
        if has:
            own.append(record.value)
    if own:
        which = "every partition" if len(own) == total else slurm_conf.readable(u"partition " + u", ".join(own))
        out.about("conf_partition", "info", key, u"%s has a default for memory of its own, which counts instead" % which,
                  "nothing, if that is meant")


def job_completion_dir(conf):
    """Where jobcomp/filetxt writes its file."""
    return (conf.value("JobCompLoc") or u"/var/log/slurm_jobcomp.log").rpartition(u"/")[0] or u"/"


def _gathering(conf, out):
    """What JobAcctGatherType and its parameters need of other keys."""
    gather = (conf.value("JobAcctGatherType") or u"none").lower()
    proctrack, task = conf.value("ProctrackType") or u"proctrack/cgroup", conf.value("TaskPlugin") or u""
    if gather == u"jobacct_gather/cgroup" and proctrack != u"proctrack/cgroup":
        out.about("conf_conflict", "warning", "JobAcctGatherType",
                  u"it needs the cgroups that proctrack/cgroup makes, but ProctrackType is %s" % slurm_conf.readable(proctrack),
                  "ProctrackType=proctrack/cgroup")
    key, parameters = "JobAcctGatherParams", (conf.value("JobAcctGatherParams") or u"").lower()
    shared = [word for word in (u"usepss", u"noshared") if word in parameters]
    if len(shared) > 1:
        out.about("conf_conflict", "error", key, "UsePSS and NoShared exclude each other; no daemon starts with both", "keep one of them")
    elif shared and u"linux" not in gather:
        out.about("conf_conflict", "warning", key, "UsePSS and NoShared count for jobacct_gather/linux only", "take it out")
    if u"overmemorykill" in parameters and u"cgroup" in task:
        out.about("conf_conflict", "warning", key,
                  "slurmd does not start with OverMemoryKill where task/cgroup limits memory (ConstrainRAMSpace in cgroup.conf)",
                  "take OverMemoryKill out")


def _accounting(conf, absent_dirs, out):
    completion, folder = conf.value("JobCompType") or u"none", job_completion_dir(conf)
    if completion == u"jobcomp/filetxt" and folder in absent_dirs:
        out.about("conf_value", "error", "JobCompType", u"there is no directory %s for its file; slurmctld would not start"
                  % slurm_conf.readable(folder), "create it, owned by SlurmUser")
    if u"slurmdbd" not in (conf.value("AccountingStorageType") or u"") and completion.endswith(u"none"):
        out.add("conf_accounting", "warning", "neither AccountingStorageType nor JobCompType records that jobs end",
                "set AccountingStorageType=accounting_storage/slurmdbd, or slurm_conf_jobcomp_file", path=conf.path)
