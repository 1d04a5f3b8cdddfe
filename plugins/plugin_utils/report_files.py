# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports on the control node, and what they say of this collection."""

from __future__ import annotations

import os
import pathlib
import tempfile

import yaml

COLLECTION = pathlib.Path(__file__).resolve().parents[2]


def collection_version() -> str:
    """Of a checkout or of what was installed."""
    galaxy, manifest = COLLECTION / "galaxy.yml", COLLECTION / "MANIFEST.json"
    about = yaml.safe_load((galaxy if galaxy.exists() else manifest).read_text(encoding="utf-8"))
    return str(about.get("collection_info", about)["version"])


def write(path: pathlib.Path, text: str) -> None:
    """Whoever reads the report while it is written sees the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
