# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator said that a rollout does not understand: variables, tags, values. Each as a problem of the preflight."""

from __future__ import annotations

import difflib
import pathlib
import typing as t
from collections.abc import Callable, Iterable, Mapping

import yaml

from ansible_collections.hpcguard.slurm.plugins.filter import rollout
from ansible_collections.hpcguard.slurm.plugins.module_utils import preflight, rollout_plan

Vars = dict[str, t.Any]

ROLES = pathlib.Path(__file__).resolve().parents[2] / "roles"
# Prefixes that nobody but this collection gives to a variable.
OWN_PREFIXES = ("health_check_", "slurm_conf_", "slurm_running_", "slurmd_", "slurmctld_", "slurmdbd_", "patrol_", "deploy_", "verify_")
# What Ansible, or the rollout, would stumble over in the middle of the run: variable -> check, what to write instead.
CHECKS: dict[str, tuple[Callable[[t.Any], object], str]] = {
    "deploy_batches": (rollout.rollout_batches, "use numbers and percentages: [1, 10%, 50%, 100%]"),
    "deploy_max_failures": (lambda value: rollout.allowed_failures(value, 1), "use a number or a percentage"),
    "slurm_running_jobs": (rollout_plan.RUNNING_JOBS_CHOICES.index, f"use one of {', '.join(rollout_plan.RUNNING_JOBS_CHOICES)}"),
}


def known_variables() -> set[str]:
    """Every variable that an argument specification of this collection names."""
    known: set[str] = set()
    for path in sorted(ROLES.glob("*/meta/argument_specs.yml")):
        specs = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        for entry in specs.get("argument_specs", {}).values():
            known.update(entry.get("options", {}))
    return known


def unknown_variables(names: Iterable[str]) -> list[Vars]:
    """Variables with a role's prefix that no role knows: nearly always a typing error."""
    known, found = known_variables(), []
    for name in sorted(names):
        if name in known or not name.startswith((*OWN_PREFIXES, "slurm_")):
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.6 if name.startswith(OWN_PREFIXES) else 0.9)
        if near or name.startswith(OWN_PREFIXES):  # slurm_ may well be somebody else's
            cause = f"no role of this collection has a variable named {name}"
            remedy = f"did you mean {near[0]}?" if near else "remove it, or see the roles' argument specifications"
            found.append(preflight.problem("variables", cause, remedy, "未知变量", "unknown variable"))
    return found


def unknown_tags(chosen: Iterable[str], skipped: Iterable[str] = ()) -> list[Vars]:
    """Tags that are no name of a role. Chosen, they would choose nothing; skipped, one that is not even like a role is another tool's."""
    skipped, found = list(skipped), []
    for tag in [*chosen, *skipped]:
        near = difflib.get_close_matches(tag, rollout.ROLES, n=1)
        if tag not in rollout.ROLES and tag not in rollout.EVERYTHING and (near or tag not in skipped):
            remedy = f"did you mean {near[0]}?" if near else f"tags are names of roles: {', '.join(rollout.ROLES)}"
            found.append(preflight.problem("tags", f"no role is named {tag!r}", remedy, "未知标签", "unknown tag"))
    return found


def bad_values(values: Mapping[str, t.Any]) -> list[Vars]:
    """Values of the variables of :data:`CHECKS` that are none.

    :param values: {variable: value, templates filled in}; those that are not set may be left out
    """
    found = []
    for name, (check, remedy) in CHECKS.items():
        try:
            if name in values:
                check(values[name])
        except (ValueError, TypeError, yaml.YAMLError) as error:
            cause = f"{name} is {values[name]!r}: {error}"
            found.append(preflight.problem("variables", cause, remedy, "变量取值无效", "bad value"))
    return found
