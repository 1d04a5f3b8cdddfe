# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checklist's result as one HTML page that needs nothing else: no script, no font, no picture from outside."""

from __future__ import annotations

import collections.abc as c
import pathlib

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from . import render

TEMPLATE = "checklist.html.j2"


def page(items: c.Sequence[render.Item], meta: render.Meta) -> str:
    """The whole page. Every value is escaped, so text from a host can only ever be read."""
    environment = Environment(
        loader=FileSystemLoader(pathlib.Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(TEMPLATE).render(items=items, meta=meta, counts=render.counts(items), words=render.WORDS)
