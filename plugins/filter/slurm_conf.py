# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that put the settings of slurm.conf together (control node)."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ansible_collections.hpcguard.slurm.plugins.module_utils import slurm_conf_keys

Settings = Mapping[str, t.Any]


def override(standard: Settings, settings: Settings) -> dict[str, t.Any]:
    """The standard with a site's settings over it; keys are the same in whatever case, as for Slurm."""
    given = {str(key).lower() for key in settings}
    return {key: value for key, value in standard.items() if key.lower() not in given} | dict(settings)


def plain(settings: Settings) -> dict[str, t.Any]:
    """The settings whose values may be shown."""
    return {key: value for key, value in settings.items() if not slurm_conf_keys.is_secret(str(key))}


def secret(settings: Settings) -> dict[str, t.Any]:
    """The settings whose values must not be shown."""
    return {key: value for key, value in settings.items() if slurm_conf_keys.is_secret(str(key))}


class FilterModule:
    """Names the filters for Ansible."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"slurm_conf_override": override, "slurm_conf_plain": plain, "slurm_conf_secret": secret}
