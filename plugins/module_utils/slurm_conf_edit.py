# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Edits of slurm.conf that touch nothing but what they mean to. Pure."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import slurm_conf
from . import slurm_conf_keys as keys

_COMMENTED = re.compile(u"[ \t]*#[# \t]*([A-Za-z0-9_.]+)[ \t]*=[ \t]*[^ \t]*[ \t]*(?:#.*)?\\Z", re.DOTALL)
_WORDS = re.compile(u"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

# Keys that an operator expects side by side, in this order.
_NEIGHBOURS = (
    ("SlurmctldTimeout", "SlurmdTimeout", "HealthCheckInterval", "HealthCheckProgram", "HealthCheckNodeState", "ReturnToService"),
    ("SelectType", "SelectTypeParameters", "DefMemPerNode", "DefMemPerCPU", "MaxMemPerNode", "MaxMemPerCPU"),
    ("AccountingStorageType", "AccountingStorageHost", "JobCompType", "JobCompLoc", "JobAcctGatherType", "JobAcctGatherFrequency"),
)


def render(key, value, quoted=False):
    """``Key=value`` as it has to be written to be read as this value; None when there is no way to write it."""
    escaped = value.replace(u"\\", u"\\\\").replace(u"#", u"\\#")
    text = u'%s="%s"' % (key, escaped) if quoted or re.search(u"[ \t\x0b\x0c]", value) else u"%s=%s" % (key, escaped)
    lines = slurm_conf.split(u"", text + u"\n")
    if len(lines) == 1 and lines[0].kind == "pair" and lines[0].value == value and not lines[0].rest.strip(slurm_conf.BLANKS):
        return text
    return None


class Edit:
    """What was done for one key: before and after are values, None for not set."""

    def __init__(self, key, before, after, line, superseded):
        self.key = key
        self.before = before
        self.after = after
        self.line = line  # that counted, as it was; of a new key the new one
        self.superseded = superseded  # numbers of earlier lines of the same file that become comments

    def place(self):
        text = u"%s line %d" % (slurm_conf.readable(self.line.path), self.line.number)
        if self.superseded:
            text += u"; earlier lines turned into comments: %s" % u", ".join(u"%d" % number for number in self.superseded)
        return text


def plan(conf, wanted):
    """Bring keys to the wanted values.

    :param conf: what :func:`slurm_conf.parse` gave
    :param wanted: list of (key, value as :mod:`slurm_conf` holds it, or None to remove the key)
    :returns: (the candidate as another Conf, list of Edit)
    :raises ValueError: when the result would not be what was asked for
    """
    edits, now = [], conf
    for key, value in wanted:
        key = keys.canonical(key)
        before, lines, superseded = now.value(key), now.occurrences(key), []
        if slurm_conf.same_value(key, before, value, now.release):
            continue
        if value is None:
            splices = [(line.path, line.start, line.end, u"") for line in lines]
        elif before is None:
            splices = [_insertion(now, key, value)]
        else:
            superseded = [line.number for line in _earlier(conf.occurrences(key))]
            splices = [_replacement(lines[-1], value)] + [_supersession(line) for line in _earlier(lines)]
        now = _apply(now, splices)
        edits.append(Edit(key, before, value, (conf.occurrences(key) or [None])[-1], superseded))
    _prove(conf, now, edits)
    for edit in edits:
        edit.line = edit.line or now.occurrences(edit.key)[-1]
    return now, edits


def _earlier(lines):
    """Those of the lines before the last that stand in its file."""
    found = {}
    for line in lines[:-1]:
        if line.path == lines[-1].path and line.start != lines[-1].start:
            found[line.start] = line  # a file may be included twice
    return [found[start] for start in sorted(found)]


def _replacement(line, value):
    """Change a line where it stands."""
    start, stop = line.value_span()
    text = render(u"k", value, line.quoted) or render(u"k", value)
    if text is None:
        raise ValueError("%s cannot hold this value" % line.key)
    return line.path, line.start + start, line.start + stop, text[2:]


def _supersession(line):
    """Make a comment of a line that does not count; a secret goes altogether."""
    return line.path, line.start, line.end, u"" if keys.is_secret(line.key) else _commented(line.raw)


def _commented(raw):
    """Raw lines as comments; each of them, since a comment does not continue."""
    return re.sub(u"(?m)^(?=[\\s\\S])", u"#", raw)


def _insertion(conf, key, value):
    """Set a key that is not set anywhere."""
    text = conf.files[conf.path]
    line, after = _anchor(conf, key)
    sample = line.raw if line and line.raw.endswith(u"\n") else text.partition(u"\n")[0] + u"\n"
    eol = u"\r\n" if sample.endswith(u"\r\n") else u"\n"
    new = render(key, value)
    if new is None:
        raise ValueError("%s cannot hold this value" % key)
    offset = len(text) if line is None else (line.end if after else line.start)
    missing = eol if offset and text[offset - 1] != u"\n" else u""
    return conf.path, offset, offset, missing + new + eol


def _anchor(conf, key):
    """The line of the main file beside which a new key goes, and whether after it (else before); (None, True) for the end."""
    lines = [line for line in conf.main_lines() if not line.raw.rstrip(slurm_conf.BLANKS).endswith(u"\\")]
    settings = [line for line in lines if line.kind == "pair" and not keys.is_record(line.key)]
    kin = sorted((_shared_words(key, line.key), line.start, line) for line in settings)
    commented = [line for line in lines if line.kind == "blank" and _commented_key(line.raw) == key.lower()]
    if commented:
        return commented[-1], True
    if kin and kin[-1][0] > 1:
        return kin[-1][2], True
    by_key = {line.key.lower(): line for line in settings}
    for name in _neighbours(key):
        if name.lower() in by_key:
            return by_key[name.lower()], True
    if kin and kin[-1][0]:
        return kin[-1][2], True
    hosts = [line for line in lines if line.kind == "pair" and line.key.lower() == "slurmctldhost"]
    records = [line for line in lines if line.kind == "pair" and line not in settings and line not in hosts]
    early = [line for line in lines if line in settings + hosts and not (records and line.start > records[0].start)]
    places = early or settings or [line for line in lines if line.kind == "include"]
    if places:
        return places[-1], True
    return _head(lines, records[0]) if records else (None, True)


def _neighbours(key):
    """The keys beside which a key belongs, nearest first."""
    for names in _NEIGHBOURS:
        if key in names:
            index = names.index(key)
            return list(reversed(names[:index])) + list(names[index + 1:])
    return []


def _head(lines, record):
    """The first of the comments that stand directly above a line, or the line itself."""
    index = lines.index(record)
    while index and lines[index - 1].kind == "blank" and lines[index - 1].raw.strip(slurm_conf.BLANKS):
        index -= 1
    return lines[index], False


def _commented_key(raw):
    match = _COMMENTED.match(raw.rstrip(slurm_conf.BLANKS))
    return match.group(1).lower() if match else None


def _shared_words(one, other):
    """How many words two keys begin with in common: JobCompType and JobCompLoc share two."""
    count = 0
    for mine, theirs in zip(_WORDS.findall(one), _WORDS.findall(keys.canonical(other))):
        if mine.lower() != theirs.lower():
            break
        count += 1
    return count


def _apply(conf, splices):
    files = dict(conf.files)
    for path, start, end, text in sorted(set(splices), reverse=True):
        files[path] = files[path][:start] + text + files[path][end:]
    contents = {path: slurm_conf.to_bytes(text) for path, text in files.items()}
    return slurm_conf.parse(conf.path, contents.get, conf.release)


def _prove(before, after, edits):
    """The candidate must say what was asked for, and about everything else what the file said before."""
    touched = {edit.key.lower(): edit.after for edit in edits}
    for key, value in touched.items():
        if after.value(key) != value:
            raise ValueError("%s would be %r" % (keys.canonical(key), after.value(key)))
    untouched = [
        [(line.path, line.kind, line.key, line.text.rstrip(slurm_conf.BLANKS)) for line in conf.lines
         if line.kind != "blank" and not (line.kind == "pair" and line.key.lower() in touched)]
        for conf in (before, after)
    ]
    if untouched[0] != untouched[1]:
        raise ValueError("other lines would be read differently")
