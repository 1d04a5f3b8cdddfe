# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Python on the managed host that this ansible-core does not run on, said in one sentence."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ansible.release import __version__

Vars = dict[str, t.Any]


def plainly(result: Mapping[str, t.Any]) -> Vars:
    """What a module returned; where Python could not even read Ansible's own wrapper, what to do instead of the traceback."""
    said = str(result.get("module_stderr") or "") + str(result.get("module_stdout") or "")
    if not result.get("failed") or "SyntaxError" not in said or "AnsiballZ_" not in said:
        return dict(result)
    return {
        "failed": True,
        "changed": False,
        "msg": f"ansible-core {__version__} does not run on the Python of this host: roll out with ansible-core 2.16, "
        "which does on 2.7 and 3.6, or name a newer Python in ansible_python_interpreter",
    }
