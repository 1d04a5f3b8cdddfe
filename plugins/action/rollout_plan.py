# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Join every host's changes into one plan, print it, and refuse if anything stands against it."""

from __future__ import annotations

import secrets
import time
import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.hpcguard.slurm.plugins.module_utils import preflight, rollout_plan, scontrol_text
from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import clean_text, describe
from ansible_collections.hpcguard.slurm.plugins.plugin_utils import rollout_input

display = Display()
Vars = dict[str, t.Any]


class ActionModule(ActionBase):
    """Runs once, on the control node; reads the facts of all hosts of the rollout."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: Vars | None = None) -> Vars:
        result: Vars = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        hostvars = task_vars["hostvars"]
        hosts: list[str] = list(task_vars["ansible_play_hosts_all"])
        groups: dict[str, list[str]] = task_vars["groups"]
        policy: str = self._task.args.get("running_jobs", "refuse")

        facts = {host: hostvars[host].get("hpcguard_cluster") if host in task_vars["ansible_play_hosts"] else None for host in hosts}
        controllers = groups.get("slurm_controller", [])
        computes = [host for host in groups.get("slurm_compute", []) if host in hosts]
        view = self._controller_view(hostvars, controllers)
        jobs = view["jobs"] if view else []

        changes: list[Vars] = []
        problems: list[Vars] = self._input_problems(task_vars, policy)
        interrupted: dict[str, list[str]] = {}
        for host in hosts:
            if facts[host] is None:
                continue
            for role_changes in hostvars[host].get("hpcguard_changes", {}).values():
                changes.extend(role_changes)
            problems.extend(hostvars[host].get("hpcguard_problems", []))
            interrupted.update(hostvars[host].get("hpcguard_interrupted", {}))

        problems.extend(preflight.lock_problems({host: hostvars[host].get("hpcguard_lock") for host in hosts}))
        problems.extend(self._inventory_problems(controllers, groups.get("slurm_compute", [])))
        for host in hosts:
            problems.extend(
                preflight.host_problems(host, facts[host], [name for name in preflight.DAEMONS if host in groups.get(name, [])])
            )
        for host in controllers[:1]:
            fact = hostvars[host].get("hpcguard_cluster") if host in hostvars else None
            if fact is not None:
                problems.extend(preflight.controller_problems(host, fact, [self._node_name(hostvars, name) for name in computes]))
        problems.extend(preflight.job_problems(changes, jobs, policy))

        deferred = rollout_plan.deferred_keys(changes, jobs, policy)
        changes = rollout_plan.without_keys(changes, deferred)
        here = [host for host in controllers if host in hosts]
        host_actions = rollout_plan.merged_actions(rollout_plan.actions(changes, here, computes), interrupted)
        left_out = [host for host in groups.get("slurm_compute", []) if host not in hosts]
        nodes = view["nodes"] if view else []
        names = {host: self._node_name(hostvars, host) for host in left_out}
        problems.extend(preflight.limited_problems(host_actions, left_out, nodes, names))
        problems.extend(preflight.interrupted_problems(host_actions, changes, jobs, policy))
        config = view["config"] if view else {}
        ready, late = preflight.ready_timeout(int(self._task.args["ready_timeout"]), config, changes, host_actions, jobs)
        problems.extend(late)
        unfinished = {host: fact["interrupted_since"] for host, fact in facts.items() if fact and fact["interrupted_since"]}
        # also where nothing is left to do: an interrupted rollout is sealed there
        active = sorted({change["host"] for change in changes} | set(host_actions) | set(unfinished))

        self._show(changes, host_actions, deferred, problems)
        errors = [found for found in problems if found["severity"] == "error"]
        rollout_id = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + "-" + secrets.token_hex(2)
        result.update(
            changed=False,
            # a run that finishes interrupted ones goes back to before them
            back_to=min([*unfinished.values(), rollout_id]),
            # no failure yet: the lock has to be given back first
            refused="refused, nothing was written:\n" + "\n".join(describe(errors)) if errors else "",
            ready_timeout=ready,
            id=rollout_id,
            plan=changes,
            actions=host_actions,
            active=active,
            deferred=deferred,
            unsafe_keys=[rollout_plan.conf_key(one) for one in changes if one["class"] == "restart_without_steps"],
            jobs=rollout_plan.jobs_with_steps(jobs),
            in_service=[node["name"] for node in nodes if scontrol_text.in_service(node) and "DRAIN" not in node["flags"]],
            out_of_service=[node["name"] for node in nodes if "DRAIN" in node["flags"]],
        )
        return result

    def _show(self, changes: list[Vars], host_actions: dict[str, list[str]], deferred: list[str], problems: list[Vars]) -> None:
        lines = rollout_plan.describe(changes, host_actions, deferred) or ["nothing to change / 无需变更"]
        display.display("\nPLAN / 变更计划")
        for line in lines:
            display.display("  " + clean_text(line))
        for found in problems:
            if found["severity"] == "warning":
                display.warning(clean_text(f"{found['host']}: {found['cause']}; remedy: {found['remedy']}"))

    @staticmethod
    def _controller_view(hostvars: Vars, controllers: list[str]) -> Vars | None:
        """What slurmctld says, from the first controller that could be asked."""
        for host in controllers:
            fact = hostvars[host].get("hpcguard_cluster") if host in hostvars else None
            if fact and fact.get("controller"):
                return t.cast(Vars, fact["controller"])
        return None

    @staticmethod
    def _node_name(hostvars: Vars, host: str) -> str:
        return t.cast(str, hostvars[host].get("cluster_node_name") or host)

    @staticmethod
    def _inventory_problems(controllers: list[str], computes: list[str]) -> list[Vars]:
        return [
            preflight.problem(
                "inventory",
                f"the inventory has no host in group {group}",
                f"put the hosts that run {daemon} into the group {group}",
                "清单缺少主机组",
                "empty inventory group",
            )
            for group, daemon, members in (
                ("slurm_controller", "slurmctld", controllers),
                ("slurm_compute", "slurmd", computes),
            )
            if not members
        ]

    def _input_problems(self, task_vars: Vars, policy: str) -> list[Vars]:
        """What the operator said that a rollout does not understand."""
        values = {name: self._templar.template(task_vars[name]) for name in rollout_input.CHECKS if name in task_vars}
        return [
            *rollout_input.unknown_variables(task_vars),
            *rollout_input.unknown_tags(task_vars.get("ansible_run_tags", []), task_vars.get("ansible_skip_tags", [])),
            *rollout_input.bad_values({**values, "slurm_running_jobs": policy}),
        ]
