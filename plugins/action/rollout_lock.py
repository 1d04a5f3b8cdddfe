# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say who asks for the lock, and take it over from a run of this control node that has ended."""

from __future__ import annotations

import getpass
import os
import platform
import typing as t
from pathlib import Path

from ansible import context
from ansible.plugins.action import ActionBase

from ansible_collections.hpcguard.slurm.plugins.plugin_utils.old_python import plainly

Vars = dict[str, t.Any]


def process(pid: int) -> str:
    """A process so that a later one with its number is not taken for it; empty when there is none."""
    try:
        if not Path("/proc/self").exists():  # not Linux: the number has to do
            os.kill(pid, 0)
            return str(pid)
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    except PermissionError:
        return str(pid)
    began = stat.rpartition(")")[2].split()[19]
    return f"{pid} {began}"


def has_ended(one: str) -> bool:
    """True when there is no such process any more."""
    number = one.split(" ", 1)[0]
    return number.isdigit() and process(int(number)) != one


def place() -> str:
    """This control node, and the space in which its process numbers count."""
    space = ""
    for source in (Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")):
        try:
            space += " " + (os.readlink(source) if source.is_symlink() else source.read_text(encoding="utf-8").strip())
        except OSError:
            continue
    return platform.node() + space


class ActionModule(ActionBase):
    """Runs the module of the same name on the controller."""

    TRANSFERS_FILES = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: Vars | None = None) -> Vars:
        result: Vars = super().run(tmp, task_vars)
        playbooks = context.CLIARGS.get("args") or ("ansible",)
        owner = {
            # this is a worker; the run is its parent
            "process": process(os.getppid()),
            "place": place(),
            "who": os.environ.get("SUDO_USER") or getpass.getuser(),
            "doing": Path(str(playbooks[0])).stem,
        }
        arguments = {**self._task.args, "owner": owner}
        done: Vars = self._execute_module(module_args=arguments, task_vars=task_vars)
        holder = done.get("holder") or {}
        if done.get("held") is False and holder.get("place") == owner["place"] and has_ended(holder["process"]):
            done = self._execute_module(module_args={**arguments, "gone": [holder["process"]]}, task_vars=task_vars)
        result.update(plainly(done))
        return result
