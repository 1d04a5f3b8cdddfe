# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print the cluster in one screen, and write it as JSON."""

from __future__ import annotations

import json
import pathlib
import time
import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.color import stringc
from ansible.utils.display import Display

from ansible_collections.hpcguard.slurm.plugins.plugin_utils import cluster_status, report_files

display = Display()
Vars = dict[str, t.Any]

COLORS = {"bad": "red", "good": "green"}
# Where Ansible finds no terminal it says 79; a log file has no such limit.
NO_TERMINAL, LOG_COLUMNS = 79, 100


class ActionModule(ActionBase):
    """Runs once, on the control node; the roles cluster and status left on each host what they saw."""

    TRANSFERS_FILES = False
    _requires_connection = False
    # the report is what this is for, so check mode writes it too
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: Vars | None = None) -> Vars:
        result: Vars = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        hostvars = task_vars["hostvars"]
        seen = {
            host: {"cluster": hostvars[host].get("hpcguard_cluster"), **(hostvars[host].get("__status_host") or {})}
            for host in task_vars["ansible_play_hosts_all"]
        }
        status = cluster_status.build(seen, dict(task_vars["groups"]))
        status = {"finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "collection": report_files.collection_version(), **status}
        folder = pathlib.Path(self._task.args.get("folder") or "reports").expanduser().resolve()
        text = json.dumps(status, ensure_ascii=False, indent=2, sort_keys=True)
        report_files.write(folder / "status.json", text + "\n")
        if self._task.args.get("format", "text") == "json":
            display.display(text)
        else:
            columns = display.columns if display.columns > NO_TERMINAL else LOG_COLUMNS
            for line, mood in cluster_status.screen(status, columns):
                display.display(stringc(line, COLORS[mood]) if mood else line)
        result.update(changed=False, status=status)
        return result
