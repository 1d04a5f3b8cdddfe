# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the evidence of all hosts by the checklist, print the table, write the report, fail when an item fails."""

from __future__ import annotations

import hashlib
import pathlib
import time
import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.color import stringc
from ansible.utils.display import Display

from ansible_collections.hpcguard.slurm.plugins.module_utils import checklist
from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import clean_text
from ansible_collections.hpcguard.slurm.plugins.plugin_utils import render, render_html, report_files

display = Display()
Vars = dict[str, t.Any]

COLLECTION = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = COLLECTION / "roles" / "health_check" / "files" / "slurm_health_check.sh"
COLORS = {"pass": "green", "fail": "red", "skip": "yellow"}
# Where Ansible finds no terminal it says 79; a log file has no such limit.
NO_TERMINAL, LOG_COLUMNS = 79, 120


class ActionModule(ActionBase):
    """Runs once, on the control node; the role verify registered the evidence on each host."""

    TRANSFERS_FILES = False
    _requires_connection = False
    # the report is what verify is for, so check mode writes it too
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: Vars | None = None) -> Vars:
        result: Vars = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        args: Vars = self._task.args
        wanted = {**args["wanted"], "nodes": self._node_names(task_vars)}
        wanted["script"] = {"path": wanted["script"], "sha256": hashlib.sha256(SCRIPT.read_bytes()).hexdigest()}
        seen = self._evidence(args, task_vars)
        items = checklist.judge(seen, wanted)
        meta = self._meta(seen, task_vars)

        folder = pathlib.Path(args.get("folder", "reports")).expanduser().resolve()
        texts = {
            "verify.json": render.to_json(items, meta),
            "verify.xml": render.junit(items, meta),
            "verify.html": render_html.page(items, meta),
        }
        for name, text in texts.items():
            report_files.write(folder / name, text)
        self._show(items, meta, folder)

        failed = [str(item["id"]) for item in items if item["verdict"] == "fail"]
        result.update(
            changed=False,
            failed=bool(failed) and bool(args.get("fail", True)),
            items=failed,
            failures=self._failures(items),
            summary=render.counts(items),
            report=str(folder / "verify.html"),
        )
        result["msg"] = (
            f"failed: {', '.join(failed)} of {len(items)} items, see the table above or {result['report']}"
            if failed
            else render.summary(items)
        )
        return result

    @staticmethod
    def _failures(items: list[Vars]) -> list[Vars]:
        """What failed where: {item, host, text}, the text fit for a message."""
        return [
            {"item": item["id"], "host": host, "text": clean_text(f"item {item['id']} on {host}: {one['reason']}")}
            for item in items
            for host, one in item["hosts"].items()
            if one["verdict"] == "fail"
        ]

    def _evidence(self, args: Vars, task_vars: Vars) -> Vars:
        """What the modules found, by the part that a host plays; a host without an answer says why."""
        hostvars, hosts = task_vars["hostvars"], task_vars["ansible_play_hosts_all"]
        groups: dict[str, list[str]] = task_vars["groups"]
        answers = {one.get("item"): one for one in args["controllers"].get("results", [])}
        controllers = {host: self._answer(answers.get(host)) for host in groups.get("slurm_controller", [])}
        seen: Vars = {"node": {}, "controller": controllers, "dbd": {}}
        for part, group in (("node", "slurm_compute"), ("dbd", "slurm_dbd")):
            for host in groups.get(group, []):
                if part == "dbd" and host in controllers:
                    seen[part][host] = controllers[host]
                elif host in hosts:
                    seen[part][host] = self._answer(hostvars[host].get(f"__verify_{part}"))
        for part in seen.values():
            # the roles are asked on hosts of the run only
            part.update({host: {**part[host], "drift": hostvars[host].get("__verify_drift", {})} for host in part if host in hosts})
        off = "no node is in service without a flag" if args.get("crash_test", True) else "switched off (verify_crash_test)"
        seen["probe"] = self._outcome(args.get("probe"), "the probe step is switched off (verify_step_probe)")
        seen["crash"] = {**self._outcome(args.get("crash"), off), "host": args.get("crash_host")}
        return seen

    @staticmethod
    def _answer(given: Vars | None) -> Vars:
        """The evidence that a module returned, or why there is none."""
        if given and "evidence" in given:
            return t.cast(Vars, given["evidence"])
        return ActionModule._no_answer(given or {"unreachable": True})

    @staticmethod
    def _no_answer(given: Vars) -> Vars:
        return {"error": clean_text(given.get("msg") or "no message"), "unreachable": bool(given.get("unreachable"))}

    @staticmethod
    def _outcome(given: Vars | None, off: str) -> Vars:
        """What a test came to; one that left no outcome was not run, or its host did not answer."""
        if given and "outcome" in given:
            return given
        if not given or given.get("skipped"):
            return {"outcome": "not_run", "reason": off}
        return {"outcome": "failed", **ActionModule._no_answer(given)}

    @staticmethod
    def _node_names(task_vars: Vars) -> dict[str, str]:
        hostvars = task_vars["hostvars"]
        return {host: str(hostvars[host].get("cluster_node_name", host)) for host in task_vars["groups"].get("slurm_compute", [])}

    def _meta(self, seen: Vars, task_vars: Vars) -> Vars:
        answered = [one for one in seen["controller"].values() if "error" not in one]
        config = answered[0]["config"]["values"] if answered else {}
        return {
            "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "cluster": clean_text(config.get("ClusterName", "unknown")),
            "slurm": clean_text(config.get("SLURM_VERSION", "unknown")),
            "collection": report_files.collection_version(),
            "check_mode": bool(task_vars.get("ansible_check_mode")),
            "hosts": list(task_vars["ansible_play_hosts_all"]),
        }

    @staticmethod
    def _show(items: list[Vars], meta: Vars, folder: pathlib.Path) -> None:
        columns = display.columns if display.columns > NO_TERMINAL else LOG_COLUMNS
        display.display(f"\nVERIFY / 验证: {meta['cluster']}, Slurm {meta['slurm']}, {meta['finished']}")
        for line in render.table(items, columns, lambda word, verdict: stringc(word, COLORS[verdict])):
            display.display(line)
        display.display(f"{render.summary(items)}\nreport / 报告: {folder / 'verify.html'}\n")
