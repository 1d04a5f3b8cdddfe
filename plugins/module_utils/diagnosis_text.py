# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings of a diagnosis as a terminal shows them, in Chinese, English or both. Pure."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import finding, text_columns

LABELS = (
    ("cause", u"原因", u"cause"), ("evidence", u"证据", u"reads"), ("missing", u"缺少", u"missing"), ("confidence", u"把握", u"sure"),
    ("who", u"处理", u"acts"), ("remedy", u"下一步", u"next"),
)  # fmt: skip
# What the columns are at least and at most, whatever the terminal says.
NARROW, WIDE = 30, 120


def report(findings, columns, language=None, words=None, paint=None):
    """Findings of a diagnosis as lines that fit a terminal: the verdict, why, what was seen, what was not, who acts, what next.

    :param language: "zh" or "en"; both without
    :param words: {value of ``confidence`` or ``who``: (Chinese, English)}
    :param paint: colours a text by a severity; without it there is no colour
    """
    columns = max(NARROW, min(columns, WIDE))
    label = max(text_columns.width_of(_label(row, language)) for row in LABELS) + 2
    lines = []
    for number, found in enumerate(findings[:finding.MAX_SHOWN], 1):
        head = u"%d. [%s]" % (number, finding.clean_text(found["host"]))
        told = [text_columns.wrap(text, columns - 3) for text in [head] + finding.said(found["title"], language)]
        if language and text_columns.width_of(told[0][0] + told[1][0]) < columns - 1:
            told = [text_columns.wrap(head + u" " + found["title"][language], columns - 3)]
        flat = [line for part in told for line in part]
        lines += [paint(line, found["severity"]) if paint else line for line in flat[:1]]
        lines += [u"   " + (paint(line, found["severity"]) if paint else line) for line in flat[1:]]
        for row in LABELS:
            texts = _texts(found, row[0], language, words or {})
            for place, text in enumerate(texts):
                parts = text_columns.wrap(finding.clean_text(text, 2000), max(12, columns - label - 3))
                for count, part in enumerate(parts):
                    lead = text_columns.fit(_label(row, language), label) if place == 0 and count == 0 else u" " * label
                    lines.append((u"   " + lead + part).rstrip())
    if len(findings) > finding.MAX_SHOWN:
        lines.append(u"%d more" % (len(findings) - finding.MAX_SHOWN))
    return lines


def _label(row, language):
    return {"zh": row[1], "en": row[2]}.get(language, u"%s %s" % (row[1], row[2]))


def _texts(found, part, language, words):
    """What stands behind a label."""
    if part == "evidence":
        return [u"%s: %s" % (one["source"], one["text"]) for one in found["evidence"]]
    if part == "missing":
        return [u"%s (%s)" % (one["name"], one["why"]) for one in found.get("missing", ())]
    value = found.get(part)
    if not value:
        return []
    if part in ("cause", "remedy"):
        return [text for text in finding.said(value, language) if text]
    zh, en = words.get(value, (value, value))
    return [{"zh": zh, "en": en}.get(language, zh if zh == en else u"%s / %s" % (zh, en))]
