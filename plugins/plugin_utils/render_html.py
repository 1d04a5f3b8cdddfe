# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checklist's result or a diagnosis as one HTML page that needs nothing else: no script, no font, no picture from outside."""

from __future__ import annotations

import collections.abc as c
import pathlib
import typing as t

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from . import render

# What a word of a finding means: (Chinese, English).
Words = dict[str, tuple[str, str]]
# The colours of the checklist's verdicts, by severity.
BADGES = {"error": "fail", "warning": "skip", "info": "pass"}


def page(items: c.Sequence[render.Item], meta: render.Meta) -> str:
    """The checklist's page."""
    return _filled("checklist.html.j2", items=items, meta=meta, counts=render.counts(items), words=render.WORDS)


def findings(
    found: c.Sequence[render.Item], meta: render.Meta, words: dict[str, tuple[str, str]], classes: dict[str, tuple[str, str]]
) -> str:
    """The page of a diagnosis; *words* tells confidence and who acts in both languages, *classes* those of waiting jobs."""
    return _filled("findings.html.j2", findings=found, meta=meta, words=words, classes=classes, badges=BADGES)


def _filled(template: str, **values: t.Any) -> str:
    """The whole page. Every value is escaped, so text from a host can only ever be read."""
    environment = Environment(
        loader=FileSystemLoader(pathlib.Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)
