# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rollout has to do, worked out from the changes that the roles report. Pure.

A *change* is the dictionary described in docs/architecture.md::

    {host, thing, from, to, class, reason, source}

The classes, weakest first, are those of :data:`CLASSES`. A change of slurm.conf is
reported by the controller, but may ask for a restart on every compute node.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

CLASSES = (
    "none",
    "reload_units",
    "reconfigure",
    "restart_slurmdbd",
    "restart_slurmctld",
    "restart_slurmd",
    "restart_without_steps",
    "refused",
)

RUNNING_JOBS_CHOICES = ("refuse", "defer", "drain")

# Steps may exist in these job states (squeue(1), JOB STATE CODES).
STATES_WITH_STEPS = ("RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT")


def is_conf_change(change):
    """True for a change of a key of slurm.conf."""
    return change["thing"].startswith("slurm.conf:")


def conf_key(change):
    """The key of a slurm.conf change."""
    return change["thing"].split(":", 1)[1]


def jobs_with_steps(jobs):
    """Jobs of the cluster fact that may have running steps."""
    return [job for job in jobs if job["state"] in STATES_WITH_STEPS]


def unsafe_changes(changes, jobs):
    """Changes that must not be made while the given jobs run (empty when no job runs)."""
    if not jobs_with_steps(jobs):
        return []
    return [change for change in changes if change["class"] == "restart_without_steps"]


def deferred_keys(changes, jobs, policy):
    """Keys of slurm.conf that this rollout leaves as they are."""
    if policy != "defer":
        return []
    return sorted({conf_key(change) for change in unsafe_changes(changes, jobs) if is_conf_change(change)})


def without_keys(changes, keys):
    """The changes that remain when some keys of slurm.conf are left as they are."""
    return [change for change in changes if not (is_conf_change(change) and conf_key(change) in keys)]


def actions(changes, controllers, computes):
    """The daemons to act upon, per host.

    A slurm.conf of a compute node's own concerns the slurmd there: a reconfigure, or, in a run without a controller, a restart.

    :param changes: changes of all hosts
    :param controllers: hosts running slurmctld that take part in the rollout
    :param computes: hosts running slurmd that take part in the rollout
    :returns: {host: sorted list out of reconfigure, restart_slurmctld, restart_slurmd, restart_slurmdbd, without_steps}
    """
    wanted = {}

    def add(host, action):
        wanted.setdefault(host, set()).add(action)

    for change in changes:
        kind = change["class"]
        own = is_conf_change(change) and change["host"] not in controllers
        if kind == "restart_slurmdbd":
            add(change["host"], "restart_slurmdbd")
        elif kind == "restart_slurmctld" and not own:
            add_all(add, controllers if is_conf_change(change) else [change["host"]], "restart_slurmctld")
        elif kind == "restart_slurmd" and not is_conf_change(change):
            add(change["host"], "restart_slurmd")
        elif kind in ("restart_slurmd", "restart_without_steps"):
            if not own:
                add_all(add, controllers, "restart_slurmctld")
            add_all(add, [change["host"]] if own else computes, "restart_slurmd")
            if kind == "restart_without_steps":
                add_all(add, controllers, "without_steps")
        if is_conf_change(change):
            # Configless nodes get the new file by it: slurmctld hands its file out at a reconfigure,
            # not when it starts (facts S41).
            add_all(add, controllers, "reconfigure")
            if not controllers:
                add(change["host"], "restart_slurmd")
    return {host: sorted(names) for host, names in wanted.items()}


def add_all(add, hosts, action):
    """Call add(host, action) for each host."""
    for host in hosts:
        add(host, action)


def merged_actions(*many):
    """Union of several results of :func:`actions`: an interrupted rollout's and this one's."""
    wanted = {}
    for one in many:
        for host, names in one.items():
            if names:
                wanted.setdefault(host, set()).update(names)
    return {host: sorted(names) for host, names in wanted.items()}


def describe(changes, host_actions, deferred):
    """The plan as lines of text: one a change, grouped by equal changes over hosts, then one a daemon action."""
    lines = []
    groups = []
    index = {}
    for change in changes:
        key = (change["thing"], str(change["from"]), str(change["to"]), change["class"])
        if key not in index:
            index[key] = len(groups)
            groups.append((change, []))
        groups[index[key]][1].append(change["host"])
    for change, hosts in groups:
        lines.append("%s  [%s]" % (change["thing"], change["class"]))
        lines.append("    on     %s" % ", ".join(sorted(hosts)))
        lines.append("    from   %s" % (change["from"],))
        lines.append("    to     %s" % (change["to"],))
        lines.append("    because %s (%s)" % (change["reason"], change["source"]))
    for key in deferred:
        lines.append("slurm.conf:%s  [deferred: jobs are running]" % key)
    for action in ("restart_slurmdbd", "restart_slurmctld", "reconfigure", "restart_slurmd"):
        hosts = sorted(host for host, names in host_actions.items() if action in names)
        if hosts:
            lines.append("%s on %s" % (action.replace("_", " "), ", ".join(hosts)))
    return lines
