# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell how long each exercise of a drill took."""

from __future__ import annotations

import json
import pathlib
import time
import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.color import stringc
from ansible.utils.display import Display

from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import clean_text, some
from ansible_collections.hpcguard.slurm.plugins.module_utils.text_columns import fit
from ansible_collections.hpcguard.slurm.plugins.plugin_utils import report_files

display = Display()
Vars = dict[str, t.Any]

TITLES = {
    "slurmd_crash": "slurmd 被杀死 / slurmd is killed",
    "health_check": "健康检查失败 / the health check fails",
    "controller_restart": "控制器重启 / slurmctld restarts",
    "cold_start": "冷启动 / cold start",
}
WELL = ("recovered", "not_run")
COLORS = {"recovered": "green", "failed": "red", "refused": "red"}


class ActionModule(ActionBase):
    """Runs once, on the control node; the exercises are registered on the hosts."""

    TRANSFERS_FILES = False
    _requires_connection = False
    # the report is what this is for, so check mode writes it too
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: Vars | None = None) -> Vars:
        result: Vars = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        told: list[Vars] = []
        for name in self._task.args["exercises"]:
            told.append(self._told(name, task_vars, going_well=all(one["outcome"] in WELL for one in told)))
        folder = pathlib.Path(self._task.args.get("folder") or "reports").expanduser().resolve()
        report = {"finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "exercises": told}
        report_files.write(folder / "drill.json", json.dumps(report, ensure_ascii=False, indent=2, sort_keys=True) + "\n")
        display.display(f"\nDRILL / 演练: {report['finished']}")
        for one in told:
            laps = ", ".join(f"{name} {number} s" for name, number in one["seconds"].items())
            if one["jobs"]:
                laps += f", 存活作业 jobs survived: {one['jobs']}"
            text = f"  {fit(TITLES[one['exercise']], 46)}  {one['host']}: {one['outcome']}  {one['reason'] or laps}"
            display.display(stringc(text, COLORS[one["outcome"]]) if one["outcome"] in COLORS else text)
        wrong = [one for one in told if one["outcome"] not in WELL]
        result.update(changed=False, failed=bool(wrong), exercises=told)
        result["msg"] = "; ".join(f"{one['exercise']} on {one['host']}: {one['outcome']}: {one['reason']}" for one in wrong) or "recovered"
        return result

    @staticmethod
    def _told(exercise: str, task_vars: Vars, going_well: bool) -> Vars:
        """One exercise, by what its module returned on the one host that did it."""
        seen = {host: task_vars["hostvars"][host] for host in task_vars["ansible_play_hosts_all"]}
        told: Vars = {"exercise": exercise, "host": "-", "outcome": "failed", "reason": "no host did it", "seconds": {}, "jobs": 0}
        if not going_well:
            told.update(outcome="left out", reason="something before it did not come back")
        for host, known in seen.items():
            done = known.get(f"__drill_{exercise}") or {}
            if "outcome" in done:
                seconds = done.get("seconds") or {}
                laps = seconds if isinstance(seconds, dict) else {"in service again after": seconds}
                told.update(
                    host=host,
                    outcome=done["outcome"],
                    reason=clean_text(done.get("reason") or ""),
                    jobs=int(done.get("jobs") or 0),
                    seconds={clean_text(name): float(number) for name, number in laps.items()},
                )
                break
        if exercise == "cold_start":
            # a host that did not stop proves nothing by being there
            outages = {host: known.get("__drill_outage") or {} for host, known in seen.items()}
            stayed = [f"{host}: {one['reason']}" for host, one in outages.items() if one.get("outcome") in ("failed", "refused")]
            if stayed:
                told.update(outcome="failed", reason=clean_text(some(stayed)))
        return told
