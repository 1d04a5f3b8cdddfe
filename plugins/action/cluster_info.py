# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first look at a host, which is also where a Python that is too old shows."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.hpcguard.slurm.plugins.plugin_utils.old_python import plainly

Vars = dict[str, t.Any]


class ActionModule(ActionBase):
    """Runs the module of the same name."""

    TRANSFERS_FILES = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: Vars | None = None) -> Vars:
        result: Vars = super().run(tmp, task_vars)
        result.update(plainly(self._execute_module(task_vars=task_vars)))
        return result
