# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text for a terminal, where a Chinese character is two columns wide. Pure."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import unicodedata


def width_of(text):
    """Columns that a terminal needs for the text: two for a Chinese character, none for a combining one."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def fit(text, columns):
    """The text in exactly so many columns: cut with an ellipsis, or filled with blanks."""
    if width_of(text) > columns:
        while width_of(text) > columns - 1:
            text = text[:-1]
        text += u"\u2026"
    return text + u" " * (columns - width_of(text))


def wrap(text, columns):
    """The text in lines of at most so many columns, broken at blanks where there are any."""
    lines = [u""]
    for word in text.split():
        while width_of(word) > columns:
            head = next((size for size in range(len(word), 0, -1) if width_of(word[:size]) <= columns), 1)
            lines.append(word[:head])
            word = word[head:]
        joined = u"%s %s" % (lines[-1], word) if lines[-1] else word
        if width_of(joined) <= columns:
            lines[-1] = joined
        else:
            lines.append(word)
    return [line for line in lines if line]
