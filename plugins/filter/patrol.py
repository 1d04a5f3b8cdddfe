# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The patrol's library: the collection's own parsers and tables, as files for a host (control node)."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable

MODULE_UTILS = pathlib.Path(__file__).resolve().parents[1] / "module_utils"
PACKAGE = "slurmguard"


def patrol_library(names: Iterable[str], folder: str) -> list[dict[str, str]]:
    """Files of the package ``slurmguard`` under *folder*, for the module host_files."""
    files = [{"path": f"{folder}/{PACKAGE}/__init__.py", "content": ""}]
    files += [
        {"path": f"{folder}/{PACKAGE}/{name}.py", "content": (MODULE_UTILS / f"{name}.py").read_text(encoding="utf-8")} for name in names
    ]
    return [{**one, "reason": "the patrol's library"} for one in files]


class FilterModule:
    """Names the filter for Ansible."""

    def filters(self) -> dict[str, object]:
        return {"patrol_library": patrol_library}
