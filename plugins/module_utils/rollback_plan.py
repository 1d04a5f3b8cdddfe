# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which snapshot to go back to, on which hosts, and what the daemons have to do then. Pure.

Works on what ``snapshot_info`` lists for each host: ``{host: {snapshots: [...], back_to: id or None}}``.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import preflight, rollout_plan


def target(listed, wanted):
    """The id to go back to: the one asked for, else the first rollout of the chain that stands. None without any."""
    if wanted:
        known = any(one["id"] == wanted for host in listed.values() for one in host["snapshots"])
        return wanted if known else None
    standing = [host["back_to"] for host in listed.values() if host["back_to"]]
    return min(standing) if standing else None


def taken_back(host, snapshot_id, named=False):
    """The snapshots of one host that going back to *snapshot_id* takes back.

    :param named: the operator asked for this one, so it counts also where it was taken back before
    """
    return [
        one
        for one in host["snapshots"]
        if (one["id"] >= snapshot_id and one["state"] not in ("rolled_back", "damaged")) or (named and one["id"] == snapshot_id)
    ]


def actions(listed, snapshot_id, named=False):
    """{host: sorted actions} of every rollout that is taken back; hosts that took part in none are left out."""
    result = {}
    for name, host in listed.items():
        chosen = taken_back(host, snapshot_id, named)
        if chosen:
            result[name] = sorted({action for one in chosen for action in one["meta"].get("actions") or []})
    return result


def unsafe_keys(listed, snapshot_id):
    """Keys of slurm.conf among those changed that must not change while steps run."""
    keys = set()
    for host in listed.values():
        for one in taken_back(host, snapshot_id):
            keys.update(one["meta"].get("unsafe_keys") or [])
    return sorted(keys)


def problems(listed, wanted, snapshot_id, release):
    """Everything that stands against going back.

    :param release: {host: present release of Slurm as a list}
    """
    if snapshot_id is None:
        cause = "no host has a snapshot %s" % wanted if wanted else "no rollout stands: there is nothing to take back"
        return [
            preflight.problem(
                "cluster", cause, "ansible-playbook playbooks/snapshots.yml lists what there is", "没有可回滚的内容", "nothing to take back"
            )
        ]
    found = []
    for name in sorted(listed):
        for one in listed[name]["snapshots"]:
            if one["state"] == "damaged" and one["id"] >= snapshot_id:
                found.append(
                    preflight.problem(
                        name,
                        "snapshot %s is damaged: %s" % (one["id"], one["problem"]),
                        "choose a newer one with -e snapshot=ID, or leave the host out with --limit '!%s'" % name,
                        "快照已损坏",
                        "damaged snapshot",
                    )
                )
        for one in taken_back(listed[name], snapshot_id):
            then = one["meta"].get("slurm_version", "")
            if then and release.get(name) and then.split(".")[:2] != ["%d" % release[name][0], "%02d" % release[name][1]]:
                found.append(
                    preflight.problem(
                        name,
                        "the snapshot was taken under Slurm %s, now %d.%02d is installed: the old settings may stop the daemons"
                        % (then, release[name][0], release[name][1]),
                        "check the old slurm.conf by hand, then say -e rollback_force=true",
                        "Slurm 大版本已变更",
                        "another major release of Slurm",
                    )
                )
    return found


def job_problems(keys, jobs, policy):
    """Running jobs that stand against taking back keys that must not change under steps."""
    changes = [
        {"host": "cluster", "thing": "slurm.conf:" + key, "from": "as it is", "to": "as before", "class": "restart_without_steps"}
        for key in keys
    ]
    return preflight.job_problems(changes, jobs, policy)


def kept_keys(keys, jobs, policy):
    """Keys that stay as they are for now, since jobs are running and the policy is to defer."""
    return keys if policy == "defer" and rollout_plan.jobs_with_steps(jobs) else []
