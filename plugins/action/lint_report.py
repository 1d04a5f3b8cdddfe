# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print what the role lint found on all hosts, and fail when an error is among it."""

from __future__ import annotations

import typing as t

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.color import stringc
from ansible.utils.display import Display

from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import describe, folded

display = Display()
Vars = dict[str, t.Any]

# Worst first: severity -> heading, colour, word.
SEVERITIES = {
    "error": ("ERRORS / 错误", "red", "error"),
    "warning": ("WARNINGS / 警告", "yellow", "warning"),
    "info": ("NOTES / 提示", "cyan", "note"),
}


def number_of(things: list[t.Any], word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"


class ActionModule(ActionBase):
    """Runs once, on the control node; the role lint registered on each host what it found."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: Vars | None = None) -> Vars:
        result: Vars = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        looks = [
            look
            for host in task_vars["ansible_play_hosts"]
            for look in (task_vars["hostvars"][host].get(name) for name in ("__lint_file", "__lint_host"))
            if look and "findings" in look
        ]
        findings = folded([one for look in looks for one in look["findings"]])
        found = {severity: [one for one in findings if one["severity"] == severity] for severity in SEVERITIES}
        for severity, (heading, color, _word) in SEVERITIES.items():
            if found[severity]:
                display.display(stringc(f"\n{heading}: {len(found[severity])}", color))
                for line in describe(found[severity]):
                    display.display(line)

        files = [path for look in looks for path in look["files"]]
        counts = ", ".join(number_of(found[severity], word) for severity, (_heading, _color, word) in SEVERITIES.items())
        told = f"slurm.conf: {counts} in {number_of(files, 'file')}" if looks else "no slurm.conf was looked at"
        display.display(f"\n{told}\n")
        strict = boolean(self._task.args.get("strict", False))
        result.update(changed=False, failed=not looks or bool(found["error"]) or (strict and bool(found["warning"])), msg=told)
        return result
