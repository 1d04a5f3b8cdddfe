# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print what a diagnosis found, and write it as JSON and as a page."""

from __future__ import annotations

import json
import pathlib
import time
import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.color import stringc
from ansible.utils.display import Display

from ansible_collections.hpcguard.slurm.plugins.module_utils import diagnosis_text, job_diagnosis, job_reasons
from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import clean_text
from ansible_collections.hpcguard.slurm.plugins.plugin_utils import render_html, report_files

display = Display()
Vars = dict[str, t.Any]

COLORS = {"error": "red", "warning": "yellow", "info": "cyan"}
WORDS = {**job_diagnosis.SURE, **job_diagnosis.WHO}
# Where Ansible finds no terminal it says 79; a log file has no such limit.
NO_TERMINAL, LOG_COLUMNS = 79, 120


class ActionModule(ActionBase):
    """Runs once, on the control node."""

    TRANSFERS_FILES = False
    _requires_connection = False
    # the report is what a diagnosis is for, so check mode writes it too
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: Vars | None = None) -> Vars:
        result: Vars = super().run(tmp, task_vars)
        args: Vars = self._task.args
        findings, classes = list(args["findings"]), dict(args.get("classes") or {})
        meta = {
            "question": clean_text(args["question"]),
            "cluster": clean_text(args.get("cluster") or "unknown"),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "collection": report_files.collection_version(),
            "classes": classes,
        }
        folder = pathlib.Path(args.get("folder") or "reports").expanduser().resolve()
        told = {**meta, "findings": findings, "sources": list(args.get("sources") or [])}
        report_files.write(folder / "diagnose.json", json.dumps(told, ensure_ascii=False, indent=2, sort_keys=True) + "\n")
        report_files.write(folder / "diagnose.html", render_html.findings(findings, meta, WORDS, job_reasons.CLASSES))
        self._show(findings, meta, folder)
        result.update(changed=False, number=len(findings), report=str(folder / "diagnose.html"), msg=f"{len(findings)} findings")
        return result

    @staticmethod
    def _show(findings: list[Vars], meta: Vars, folder: pathlib.Path) -> None:
        columns = display.columns if display.columns > NO_TERMINAL else LOG_COLUMNS
        display.display(f"\nDIAGNOSE / 诊断: {meta['cluster']}, {meta['question']}, {meta['finished']}")
        for name, number in meta["classes"].items():
            display.display(f"{number:>6}  {' / '.join(job_reasons.CLASSES[name])}")
        for line in diagnosis_text.report(findings, columns, words=WORDS, paint=lambda text, severity: stringc(text, COLORS[severity])):
            display.display(line)
        if not findings:
            display.display("没有发现 / nothing was found")
        display.display(f"report / 报告: {folder / 'diagnose.html'}\n")
