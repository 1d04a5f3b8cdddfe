# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose what to go back to, and refuse if anything stands against it."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.hpcguard.slurm.plugins.module_utils import preflight, rollback_plan, rollout_plan
from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import clean_text, describe

display = Display()
Vars = dict[str, t.Any]


class ActionModule(ActionBase):
    """Runs once, on the control node; reads the snapshots and facts of all hosts."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: Vars | None = None) -> Vars:
        result: Vars = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        hostvars = task_vars["hostvars"]
        wanted: str = str(self._task.args.get("snapshot") or "")
        policy: str = self._task.args.get("running_jobs", "refuse")
        forced: bool = bool(self._task.args.get("force", False))

        hosts: list[str] = list(task_vars["ansible_play_hosts"])
        gone = [host for host in task_vars["ansible_play_hosts_all"] if host not in hosts]
        listed = {host: hostvars[host]["hpcguard_snapshots"] for host in hosts}
        facts = {host: hostvars[host]["hpcguard_cluster"] for host in hosts}
        views = [fact["controller"] for fact in facts.values() if fact.get("controller")]
        jobs = views[0]["jobs"] if views else []  # a backup controller tells of the same ones

        chosen = rollback_plan.target(listed, wanted)
        releases = {} if forced else {host: fact["slurm"]["release"] for host, fact in facts.items()}
        problems = rollback_plan.problems(listed, wanted, chosen, releases)
        for host in gone:
            problems.extend(preflight.host_problems(host, None, []))
        problems.extend(preflight.lock_problems({host: hostvars[host].get("hpcguard_lock") for host in hosts}))
        actions: dict[str, list[str]] = {}
        keys: list[str] = []
        if chosen:
            actions = rollback_plan.actions(listed, chosen, bool(wanted))
            keys = rollback_plan.unsafe_keys(listed, chosen)
            problems.extend(rollback_plan.job_problems(keys, jobs, policy))
        kept = rollback_plan.kept_keys(keys, jobs, policy)
        if problems:
            result.update(failed=True, msg="refused, nothing was touched:\n" + "\n".join(describe(problems)))
            return result

        display.display(f"\nWAY BACK / 回滚计划: {chosen}")
        for host in sorted(actions):
            display.display(clean_text(f"  {host}: {', '.join(actions[host]) or 'files only'}"))
        for key in kept:
            display.display(f"  slurm.conf:{key} stays for now: jobs are running; the next rollback completes it")
        result.update(
            changed=False,
            refused="",
            id=chosen,
            actions=actions,
            active=sorted(actions),
            kept=kept,
            jobs=rollout_plan.jobs_with_steps(jobs),
        )
        return result
