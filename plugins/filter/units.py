# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that turn the cluster fact into unit files, and look at units before they are written (control node)."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping

from ansible.errors import AnsibleFilterError

from ansible_collections.hpcguard.slurm.plugins.module_utils import standard_units, systemd_keys

_WORDS = {"auto": "auto", "true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def unit_files(fact: Mapping[str, t.Any], name: str, options: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Files and problems of one daemon's unit, see :func:`standard_units.unit_files`."""
    chosen = dict(options)
    word = str(chosen.get("wait", "auto")).lower()
    if word not in _WORDS:
        raise AnsibleFilterError(f"slurmd_wait_for_controller is {word!r}: it must be auto, true or false")
    chosen["wait"] = _WORDS[word]
    return standard_units.unit_files(fact, name, chosen)


def unit_problems(files: Iterable[Mapping[str, t.Any]], systemd: int, least: Mapping[str, int]) -> list[str]:
    """What stands against units that are about to be written, see :mod:`systemd_keys`.

    :param files: as for the module host_files; others than services and timers are left alone
    :param least: seconds that one run of a service may need
    """
    texts = {str(one["path"]).rsplit("/", 1)[-1]: str(one["content"]) for one in files if str(one["path"]).endswith((".service", ".timer"))}
    ignored = [line for name, text in sorted(texts.items()) for line in systemd_keys.key_problems(name, text, systemd)]
    return ignored + systemd_keys.timer_problems(texts, {name: int(seconds) for name, seconds in least.items()})


class FilterModule:
    """Names the filters for Ansible."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"unit_files": unit_files, "unit_problems": unit_problems}
