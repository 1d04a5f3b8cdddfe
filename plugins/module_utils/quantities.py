# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory, time, TRES and lists of hosts as Slurm's commands print them, as numbers and names. Pure."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import calendar
import re
import time

INFINITE = float("inf")
# A list may name a million hosts in twenty characters.
MOST_HOSTS = 20000

_ENDLESS = ("UNLIMITED", "INFINITE")
_MEMORY = re.compile(r"^([0-9]+(?:\.[0-9]+)?)([BKMGTPE]?)i?B?([cn]?)$")
_MB = {"B": 1.0 / (1 << 20), "K": 1.0 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3, "E": 1024.0**4}
_CLOCK = re.compile(r"^(?:([0-9]+)-)?([0-9]+)(?::([0-9]+))?(?::([0-9]+))?(?:\.[0-9]+)?$")
_NUMBER = re.compile(r"^[0-9]+(\.[0-9]+)?$")
_STAMP = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")
_LAST_NUMBER = re.compile(r"^(.*?)([0-9]*)([^0-9]*)$", re.DOTALL)
_COUNT = re.compile(r"^([0-9]+(?:\.[0-9]+)?)([KMGT]?)$")


def memory_mb(text, unit="M"):
    """(MB, "c", "n" or "") of a size, (None, "") of what is none.

    :param unit: what a bare number counts: MB in a request, bytes in what --noconvert prints of MaxRSS

    20.11 says in ReqMem whether the size is meant for each cpu ("4000Mc") or each node ("16Gn").
    """
    word = text.strip()
    if word.upper() in _ENDLESS:
        return INFINITE, ""
    match = _MEMORY.match(word)
    if not match:
        return None, ""
    return float(match.group(1)) * _MB[match.group(2) or unit], match.group(3)


def seconds(text):
    """Seconds of "D-HH:MM:SS", "D-HH", "HH:MM:SS" or "MM:SS"; a bare number counts minutes. None of what is none."""
    word = text.strip()
    if word.upper() in _ENDLESS:
        return INFINITE
    match = _CLOCK.match(word)
    if not match:
        return None
    days, first, second, third = match.groups()
    if days is not None:
        parts = (first, second or 0, third or 0)
    elif third is not None:
        parts = (first, second, third)
    else:
        parts = (0, first, second or 0)
    hours, minutes, rest = [int(part) for part in parts]
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + rest


def whole(text):
    """A number that may be written 2K, or "2-4" of which the first counts; None of what is none."""
    word = text.strip().split("-")[0]
    if word.upper() in _ENDLESS:
        return INFINITE
    match = _COUNT.match(word)
    return int(float(match.group(1)) * {"": 1, "K": 1024, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}[match.group(2)]) if match else None


def tres(text):
    """``cpu=2,mem=100M,gres/gpu=1`` as {name: number}; memory in MB."""
    found = {}
    for part in text.split(","):
        name, separator, value = part.strip().partition("=")
        if not separator:
            continue
        number = memory_mb(value)[0] if name == "mem" else (float(value) if _NUMBER.match(value) else whole(value))
        if number is not None:
            found[name.lower()] = number
    return found


def show_mb(number):
    """A size as an option of sbatch takes it."""
    if number is None:
        return u"?"
    if number == INFINITE:
        return u"UNLIMITED"
    if number >= 1024:
        value = number / 1024.0
        return u"%dG" % value if value == int(value) else u"%.1fG" % value
    return u"%dM" % number if number >= 10 or number == int(number) else u"%.1fM" % number


def option_mb(number):
    """A size as an option of sbatch takes it, rounded up: whole GB from 4 GB on, 256 MB from 1 GB on, else 64 MB."""
    step = 1024 if number >= 4096 else 256 if number >= 1024 else 64
    rounded = int(-(-number // step) * step)
    return u"%dG" % (rounded // 1024) if rounded % 1024 == 0 else u"%dM" % rounded


def show_seconds(number):
    """A length of time as an option of sbatch takes it."""
    if number is None:
        return u"?"
    if number == INFINITE:
        return u"UNLIMITED"
    days, rest = divmod(int(number), 86400)
    clock = u"%02d:%02d:%02d" % (rest // 3600, rest % 3600 // 60, rest % 60)
    return u"%d-%s" % (days, clock) if days else clock


def stamp(text):
    """A time stamp of Slurm (ISO, local time) as comparable text, empty of what is none ("Unknown", "None")."""
    match = _STAMP.match(text.strip())
    return match.group(1) if match else ""


def epoch(text):
    """Seconds of a stamp on a clock of its own, for differences; None of what is none."""
    try:
        return calendar.timegm(time.strptime(stamp(text), "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        return None


def later(text, delta):
    """A stamp so many seconds later (earlier, when negative); empty of what is none."""
    begun = epoch(text)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(begun + delta)) if begun is not None else ""


def hosts(text):
    """``n[01-03,7],g[1-2]b`` as names, in order; what is no list stays as it is written."""
    names = []
    for part in _split(text.strip()):
        names += _expand(part, MOST_HOSTS - len(names))
        if len(names) >= MOST_HOSTS:
            break
    return names


def fold(names):
    """Names as one list, those that differ in their last number together: ``n[01-03,07],login``. The other way of :func:`hosts`."""
    groups = {}
    for name in names:
        head, number, tail = _LAST_NUMBER.match(name).groups()
        groups.setdefault((head, tail, len(number)), set()).add(number)
    parts = []
    for (head, tail, width), numbers in sorted(groups.items()):
        if len(numbers) == 1:
            parts.append(head + numbers.pop() + tail)
            continue
        runs = []
        for number in sorted(int(number) for number in numbers):
            if runs and number == runs[-1][1] + 1:
                runs[-1][1] = number
            else:
                runs.append([number, number])
        told = ["%0*d" % (width, first) + ("-%0*d" % (width, last) if last > first else "") for first, last in runs]
        parts.append("%s[%s]%s" % (head, ",".join(told), tail))
    return ",".join(parts)


def utc(number):
    """A time since the epoch as a date, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(number))


def _split(text):
    """Parts at the commas that stand in no brackets."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "," and depth <= 0:
            parts.append(current)
            current = ""
        else:
            current += char
    return [part for part in parts + [current] if part]


def _expand(text, most):
    head, bracket, rest = text.partition("[")
    inner, closed, tail = rest.partition("]")
    if not bracket or not closed:
        return [text][: max(0, most)]
    middles = []
    for piece in inner.split(","):
        first, dash, last = piece.partition("-")
        if dash and first.isdigit() and last.isdigit():
            top = min(int(last), int(first) + most)
            middles += ["%0*d" % (len(first), number) for number in range(int(first), top + 1)]
        else:
            middles.append(piece)
        if len(middles) >= most:
            break
    tails = _expand(tail, most) if tail else [""]
    return [head + middle + end for middle in middles for end in tails][: max(0, most)]
