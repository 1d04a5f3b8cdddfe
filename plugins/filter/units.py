# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that turns the cluster fact into unit files (control node)."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ansible.errors import AnsibleFilterError

from ansible_collections.hpcguard.slurm.plugins.module_utils import standard_units

_WORDS = {"auto": "auto", "true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def unit_files(fact: Mapping[str, t.Any], name: str, options: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Files and problems of one daemon's unit, see :func:`standard_units.unit_files`."""
    chosen = dict(options)
    word = str(chosen.get("wait", "auto")).lower()
    if word not in _WORDS:
        raise AnsibleFilterError(f"slurmd_wait_for_controller is {word!r}: it must be auto, true or false")
    chosen["wait"] = _WORDS[word]
    return standard_units.unit_files(fact, name, chosen)


class FilterModule:
    """Names the filters for Ansible."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"unit_files": unit_files}
