# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for the phases of a rollout (control node)."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping

import yaml

PHASES = ("snapshot", "stage", "controller", "compute", "patrol", "prove")


def rollout_batches(value: t.Any) -> list[int | str]:
    """``serial`` for the compute nodes: numbers and percentages, also when ``-e`` gave them as text.

    :raises ValueError: for anything that Ansible would stumble over in the middle of the run
    """
    if isinstance(value, str):
        value = yaml.safe_load(value)
    batches = []
    for one in value if isinstance(value, list) else [value]:
        text = str(one).strip()
        number = text[:-1] if text.endswith("%") else text
        if isinstance(one, bool) or not number.isdigit() or int(number) < 1:
            raise ValueError(f"{one!r} is neither a number of nodes nor a percentage")
        batches.append(text if text.endswith("%") else int(text))
    if not batches:
        raise ValueError("no batch at all")
    return batches


def allowed_failures(limit: int | str, nodes: int) -> int:
    """How many compute nodes may fail without the whole rollout being taken back.

    :param limit: a number, or a percentage of the nodes like ``5%`` (rounded down)
    """
    text = str(limit).strip()
    return nodes * int(text[:-1]) // 100 if text.endswith("%") else int(text)


def _missing(variables: Mapping[str, t.Any], phase: str, is_compute: bool) -> list[str]:
    """Phases before *phase* that a host did not come through."""
    needed = PHASES[: PHASES.index(phase)] if phase in PHASES else PHASES
    return [name for name in needed if name not in variables.get("hpcguard_reached", []) and (is_compute or name != "compute")]


def rollout_left_behind(
    hosts: Iterable[str],
    hostvars: Mapping[str, Mapping[str, t.Any]],
    groups: Mapping[str, Iterable[str]],
    phase: str,
    gone: Iterable[str] = (),
    limit: int | str = 0,
) -> list[str]:
    """Compute nodes that failed in their own phase, as long as there are no more of them than the limit allows.

    They were brought back one by one; the rollout goes on without them.
    """
    hosts, gone = list(hosts), set(gone)
    central = {*groups.get("slurm_controller", []), *groups.get("slurm_dbd", [])}
    nodes = [host for host in hosts if host in groups.get("slurm_compute", []) and host not in central]
    behind = []
    for host in nodes:
        variables = hostvars[host]
        # one of a later batch has not failed, it waits for its turn
        had_its_turn = phase != "compute" or variables.get("hpcguard_failed") or host in gone
        its_own_fault = not variables.get("hpcguard_stop") and not _missing(variables, "compute", True)
        if had_its_turn and its_own_fault and "compute" not in variables.get("hpcguard_reached", []):
            behind.append(host)
    return behind if len(behind) <= allowed_failures(limit, len(nodes)) else []


def rollout_trouble(
    hosts: Iterable[str],
    hostvars: Mapping[str, Mapping[str, t.Any]],
    groups: Mapping[str, Iterable[str]],
    phase: str,
    gone: Iterable[str] = (),
    limit: int | str = 0,
) -> list[str]:
    """Why phase *phase* must not begin: one sentence a host that did not come through the phases before.

    :param hosts: hosts of the rollout
    :param groups: the inventory's groups; hosts running slurmd are the only ones to take phase ``compute``
    :param gone: hosts that dropped out of the present play
    :param limit: see :func:`allowed_failures`
    """
    hosts, gone = list(hosts), set(gone)
    behind = rollout_left_behind(hosts, hostvars, groups, phase, gone, limit)
    failed, lost, stopped = [], [], []
    for host in hosts:
        variables = hostvars[host]
        missing = _missing(variables, phase, host in groups.get("slurm_compute", []))
        if host in behind:
            continue
        if variables.get("hpcguard_failed"):
            failed.append(str(variables["hpcguard_failed"]))
        elif host in gone:
            lost.append(f"{host}: unreachable")
        elif missing:
            stopped.append(f"{host}: stopped or unreachable in phase {missing[0]}")
    # hosts that stopped because another failed are no news
    return failed + lost or stopped


ROLES = ("slurmdbd", "slurmctld", "slurm_conf", "patrol", "health_check", "slurmd")
# Words of Ansible's own that choose everything.
EVERYTHING = {"all", "always", "tagged", "untagged"}
# Item 8 looks at the unit of each host, whichever that is.
UNITS, UNIT_ROLES = 8, {"slurmdbd", "slurmctld", "slurmd"}
# Items of the checklist that cannot hold where one of these roles was left out.
NEEDED_FOR = {
    1: {"slurm_conf"},
    2: {"slurm_conf"},
    3: {"health_check"},
    4: {"health_check"},
    5: {"slurm_conf", "health_check"},
    7: {"patrol"},
    9: {"slurmd"},
    10: {"slurmctld"},
    11: {"slurm_conf"},
    12: {"slurm_conf"},
}


def rollout_tagged(roles: Iterable[str], run_tags: Iterable[str], skip_tags: Iterable[str] = ()) -> list[str]:
    """The roles that ``--tags`` and ``--skip-tags`` leave; tags are names of roles."""
    wanted = set(run_tags)
    return [role for role in roles if (wanted & EVERYTHING or role in wanted) and role not in set(skip_tags)]


def rollout_disproved(
    failures: Iterable[Mapping[str, t.Any]],
    hosts: Iterable[str],
    roles: Iterable[str],
    run_tags: Iterable[str] = ("all",),
    skip_tags: Iterable[str] = (),
) -> list[str]:
    """What failed in the checklist and is this run's to answer for, in words.

    :param failures: {item, host, text}, from the action checklist_report
    :param hosts: hosts of the run
    :param roles: roles that were applied to any of them
    """
    hosts, roles = set(hosts), set(roles)
    left_out = set(ROLES) - set(rollout_tagged(ROLES, run_tags, skip_tags))
    excused = {item for item, needed in NEEDED_FOR.items() if needed - roles} | ({UNITS} if left_out & UNIT_ROLES else set())
    return [str(one["text"]) for one in failures if one["host"] in hosts and one["item"] not in excused]


def rollout_outcome(
    plan: Mapping[str, t.Any],
    hostvars: Mapping[str, Mapping[str, t.Any]],
    hosts: Iterable[str],
    trouble: Iterable[str],
    behind: Iterable[str],
    gone: Iterable[str],
) -> str:
    """Why the run fails at its end, and how it left each host; empty when the rollout stands everywhere.

    :param hosts: hosts of the rollout
    :param trouble: what :func:`rollout_trouble` said last
    :param behind: compute nodes that failed alone
    :param gone: hosts that could not be reached any more
    """
    hosts, gone, behind, trouble = list(hosts), list(gone), list(behind), list(trouble)
    lines = []
    if trouble:
        undone = [line for host in hosts for line in hostvars[host].get("hpcguard_undone", [])]
        stuck = {host for host in hosts if hostvars[host].get("hpcguard_undone")} | set(gone)
        back = [host for host in hosts if host not in stuck and "snapshot" in hostvars[host].get("hpcguard_reached", [])]
        lines.append(f"The rollout {plan['id']} failed." if hosts else "Nothing had to change, but the checklist failed.")
        lines += [f"cause: {line}" for line in trouble]
        if back:
            lines.append(f"taken back on: {', '.join(back)}")
        if undone:
            lines.append("NOT wholly taken back, run playbooks/rollback.yml when this is mended:")
            lines += [f"  {line}" for line in undone]
    elif behind or gone:
        lines.append(f"The rollout {plan['id']} stands, but not everywhere.")
        lines += [f"left out: {hostvars[host].get('hpcguard_failed') or host + ': unreachable'}" for host in behind]
    if gone:
        lines.append(f"not reached any more, the next deploy or rollback puts them right: {', '.join(gone)}")
    return "\n".join(lines)


def node_names(hosts: Iterable[str], hostvars: Mapping[str, Mapping[str, t.Any]]) -> list[str]:
    """NodeName of each host, also of those that a limited run leaves out."""
    names = []
    for host in hosts:
        variables = hostvars[host]
        names.append(str(variables.get("hpcguard_node_name") or variables.get("cluster_node_name") or host))
    return names


def changed_since(hosts: Iterable[str], hostvars: Mapping[str, Mapping[str, t.Any]], name: str) -> list[str]:
    """``host: path`` of every file that somebody changed since the rollout.

    :param name: variable under which each host keeps what the module snapshot said
    """
    return [f"{host}: {path}" for host in hosts for path in hostvars[host].get(name, {}).get("foreign", [])]


def not_done(hosts: Iterable[str], hostvars: Mapping[str, Mapping[str, t.Any]], name: str) -> list[str]:
    """Hosts on which a task failed or that were lost over it; where it was skipped there was nothing to do.

    :param name: variable under which each host keeps what the task came to
    """
    results = {host: hostvars[host].get(name, {}) for host in hosts}
    return [host for host, result in results.items() if result.get("failed") or result.get("unreachable")]


STATES = {
    "sealed": "stands, rollback.yml takes it back",
    "taken": "was interrupted: deploy.yml finishes it, rollback.yml takes it back",
    "rolled_back": "was taken back",
    "damaged": "DAMAGED",
}


def snapshot_lines(snapshots: Iterable[Mapping[str, t.Any]]) -> list[str]:
    """One line a snapshot, oldest first, fit to be read."""
    return [
        f"{one['id']}  {STATES[one['state']]}{': ' + one['problem'] if one['problem'] else ''}  ({len(one['paths'])} files)"
        for one in snapshots
    ] or ["no snapshot"]


class FilterModule:
    """Names the filters for Ansible."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {
            "rollout_batches": rollout_batches,
            "rollout_tagged": rollout_tagged,
            "rollout_disproved": rollout_disproved,
            "rollout_trouble": rollout_trouble,
            "rollout_left_behind": rollout_left_behind,
            "rollout_outcome": rollout_outcome,
            "changed_since": changed_since,
            "not_done": not_done,
            "node_names": node_names,
            "snapshot_lines": snapshot_lines,
        }
