# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm.conf as Slurm reads it, and as people may see it: without secrets. Pure.

:func:`parse` follows ``src/common/parse_config.c`` of 20.11 to 26.05:

- A comment starts at the first ``#`` that no backslash escapes, also inside quotes and in the middle of a word. It is cut
  off before the line is looked at for a continuation, so a comment never continues.
- A line ends in an odd number of backslashes: the next one is joined to it. Then every backslash stands for the character after it.
- ``Include`` counts at the very start of a line only. Relative names are looked for beside the including file, from 23.02 on
  beside slurm.conf. ``%c`` is the ClusterName read so far, in lower case.
- One global key a line, in any case of letters; the last line wins. Records (NodeName and the like) take the rest of their line.

Files are bytes. Inside, every byte is one character of the same number (latin-1), so no encoding can fail and none is lost.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import slurm_conf_keys as keys

# The blanks of C's isspace(): \s would also take others.
BLANKS = u" \t\n\x0b\x0c\r"
_PAIR = re.compile(
    u"[ \t\n\x0b\x0c\r]*([A-Za-z0-9_.]+)[ \t\n\x0b\x0c\r]*[-*+/]?=[ \t\n\x0b\x0c\r]*"
    u"(\"[^\"]*\"|[^ \t\n\x0b\x0c\r]+)(?=[ \t\n\x0b\x0c\r]|\\Z)"
)
_INCLUDE = re.compile(u"include[ \t\n\x0b\x0c\r]+([^ \t\n\x0b\x0c\r]*)", re.IGNORECASE)
_MAX_DEPTH = 20
MASK = u"********"


class Line:
    """One logical line: the physical ones that belong together, and what Slurm makes of them."""

    __slots__ = ("key", "kind", "number", "path", "problem", "quoted", "raw", "rest", "start", "target", "text", "value")

    def __init__(self, path, number, start, raw, text):
        self.path = path
        self.number = number  # of its first physical line
        self.start = start  # where raw begins in the file
        self.raw = raw
        self.text = text  # without comment, continuation and escapes
        self.kind = "blank"  # blank, pair, include or bad
        self.key = self.value = None
        self.target = self.problem = None  # the file that an Include means, and why it cannot be read
        self.rest = u""  # what follows the value; only records may have any
        self.quoted = False
        self._read()

    def _read(self):
        if not self.text.strip(BLANKS):
            return
        include = _INCLUDE.match(self.text)
        pair = _PAIR.match(self.text)
        if include:
            self.kind, self.value = "include", include.group(1)
            self.rest = self.text[include.end():]
        elif pair:
            self.kind, self.key = "pair", pair.group(1)
            self.value, self.quoted = _unquote(pair.group(2))
            self.rest = self.text[pair.end():]
        else:
            self.kind = "bad"

    @property
    def end(self):
        return self.start + len(self.raw)

    def value_span(self):
        """Where the value stands in raw, quotes included."""
        text, places = _unfold(self.raw)
        match = _PAIR.match(text)
        return places[match.start(2)][0], places[match.end(2) - 1][1]

    def shown(self):
        """The line as it may be shown."""
        if self.kind == "pair" and keys.is_secret(self.key):
            return u"%s=%s" % (self.key, MASK)
        text = self.text if self.kind == "pair" else self.raw.replace(u"\n", u" ")
        return readable(mask_rest(text.strip(BLANKS)))

    def attributes(self):
        """The keys and values of a record's line after the first, and the text that is neither."""
        found, rest = [], self.rest
        match = _PAIR.match(rest)
        while match:
            found.append((match.group(1), _unquote(match.group(2))[0]))
            rest = rest[match.end():]
            match = _PAIR.match(rest)
        return found, rest


class Conf:
    """A slurm.conf with its included files.

    - ``lines``: every line in the order in which Slurm reads it, included ones in place
    - ``files``: {path: text}; ``paths``: the same paths, main file first
    """

    def __init__(self, path, release):
        self.path = path
        self.release = tuple(release)
        self.lines = []
        self.files = {}
        self.paths = []
        self._by_key = {}

    def add(self, line):
        self.lines.append(line)
        if line.kind == "pair":
            self._by_key.setdefault(line.key.lower(), []).append(line)

    def occurrences(self, key):
        """The lines that set a key, in reading order."""
        return self._by_key.get(key.lower(), [])

    def value(self, key):
        """The value in force, None when the key is not set."""
        lines = self.occurrences(key)
        return lines[-1].value if lines else None

    def effective(self):
        """{key: value in force} of the global keys."""
        return {keys.canonical(lines[-1].key): lines[-1].value for key, lines in self._by_key.items() if not keys.is_record(key)}

    def main_lines(self):
        return [line for line in self.lines if line.path == self.path]


def to_text(content):
    """Bytes as text of one character a byte."""
    return content.decode("latin-1")


def to_bytes(text):
    """The way back from :func:`to_text`."""
    return text.encode("latin-1")


def readable(text):
    """Text of this module for people: its bytes taken as UTF-8."""
    return to_bytes(text).decode("utf-8", "replace")


def stored(text):
    """Text from people in the form of this module."""
    return to_text(text.encode("utf-8"))


def parse(path, read, release):
    """Read a slurm.conf.

    :param path: absolute path of the main file; paths too are in the form of this module
    :param read: function of a path that gives the file's bytes, None when there is no such file
    :param release: for example (22, 5)
    """
    conf = Conf(path, release)
    _read_file(conf, path, read, ())
    return conf


def _read_file(conf, path, read, parents):
    content = read(path)
    if content is None:
        return False
    if path not in conf.files:
        conf.files[path] = to_text(content)
        conf.paths.append(path)
    for line in split(path, conf.files[path]):
        conf.add(line)
        if line.kind == "include":
            line.target, line.problem = _include_target(conf, line)
            if line.problem:
                continue
            if line.target in parents + (path,) or len(parents) >= _MAX_DEPTH:
                line.problem = "includes itself"
            elif not _read_file(conf, line.target, read, parents + (path,)):
                line.problem = "is missing or no regular file"
    return True


def _include_target(conf, line):
    """The file that an Include means, and why it can be none."""
    name = line.value
    if not name:
        return None, "names no file"
    if u"%c" in name:
        cluster = conf.value("ClusterName")
        if not cluster:
            return None, "uses %c before ClusterName is set"
        name = name.replace(u"%c", cluster.lower())
    if u"*" in name:
        return None, "is a pattern, which Slurm does not expand"
    if not name.startswith(u"/"):
        base = line.path if conf.release < (23, 2) else conf.path
        name = base.rpartition(u"/")[0] + u"/" + name
    return name, None


def split(path, text):
    """The logical lines of a file."""
    lines = []
    start, number = 0, 1
    while start < len(text):
        end, count, parts = start, 0, []
        while True:
            newline = text.find(u"\n", end)
            stop = len(text) if newline < 0 else newline + 1
            part, continues = _cut(text[end:stop])
            parts.append(part)
            end = stop
            count += 1
            if not continues or end >= len(text):
                break
        raw = text[start:end]
        logical = u"".join(parts)
        lines.append(Line(path, number, start, raw, _unescape(logical) if u"\\" in logical else logical))
        start = end
        number += count
    return lines


def _cut(part):
    """A physical line without comment; and whether the next one continues it (then without its last backslash)."""
    nul = part.find(u"\0")  # to C it ends there
    if nul >= 0:
        part = part[:nul]
    if u"#" in part:
        backslashes = 0
        for index, char in enumerate(part):
            if char == u"#" and backslashes % 2 == 0:
                part = part[:index]
                break
            backslashes = backslashes + 1 if char == u"\\" else 0
    bare = part.rstrip(BLANKS)
    tail = len(bare) - len(bare.rstrip(u"\\"))
    if tail % 2:
        return bare[:-1], True
    return part, False


def _unescape(text):
    return re.sub(u"\\\\(.|\\Z)", u"\\1", text, flags=re.DOTALL)


def _unfold(raw):
    """The logical text of raw lines, and where each of its characters begins and ends in raw."""
    text, places = [], []
    start, escape = 0, None
    while start < len(raw):
        newline = raw.find(u"\n", start)
        stop = len(raw) if newline < 0 else newline + 1
        part, _continues = _cut(raw[start:stop])
        for place, char in enumerate(part, start):
            if char == u"\\" and escape is None:
                escape = place
                continue
            text.append(char)
            places.append((place if escape is None else escape, place + 1))
            escape = None
        start = stop
    return u"".join(text), places


def _unquote(word):
    if len(word) > 1 and word.startswith(u'"') and word.endswith(u'"') and u'"' not in word[1:-1]:
        return word[1:-1], True
    return word, False


def same_value(key, one, other, release):
    """True when Slurm makes the same of two values of a key."""
    if one == other or None in (one, other):
        return one == other
    kind = keys.kind(key, release)
    if kind in keys.NUMBERS:
        return number(one, kind) is not None and number(one, kind) == number(other, kind)
    if kind == "boolean":
        return boolean(one) is not None and boolean(one) == boolean(other)
    return key.lower() == "healthchecknodestate" and one.lower() == other.lower()


def number(value, kind):
    """What Slurm makes of a number (C's strtoul with base 0), None when it refuses it."""
    if value.lower() in (u"unlimited", u"infinite"):
        return keys.NUMBERS[kind]
    match = re.match(u"\\+?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)([kK]?)\\Z", value)
    if not match or (match.group(2) and kind == "uint16"):
        return None
    digits = match.group(1)
    base = 16 if digits[:2] in (u"0x", u"0X") else (8 if digits.startswith(u"0") else 10)
    result = int(digits, base) * (1024 if match.group(2) else 1)
    return result if result <= keys.NUMBERS[kind] else None


def boolean(value):
    """What Slurm makes of a truth value, None when it refuses it."""
    if value.lower() in (u"yes", u"up", u"true", u"1"):
        return True
    return False if value.lower() in (u"no", u"down", u"false", u"0") else None


def transplanted_names(conf):
    """{path: file name} of the files when they are moved into one directory."""
    return {path: u"slurm.conf" if path == conf.path else u"%d.conf" % number for number, path in enumerate(conf.paths)}


def transplanted(conf, folder):
    """The same configuration below another directory: {file name: text}. Line numbers stay."""
    names, moved = transplanted_names(conf), {}
    for path in conf.paths:
        targets = {line.start: line.target for line in conf.lines if line.path == path and line.kind == "include"}
        moved[names[path]] = u"".join(
            u"Include %s/%s%s" % (folder, names[targets[line.start]], u"\n" * line.raw.count(u"\n")) if line.start in targets else line.raw
            for line in split(path, conf.files[path])
        )
    return moved


# With a blank or a colon in place of the = too: somebody's slip is no reason to show it.
_SECRET_NAME = u"((?<![A-Za-z0-9_.])(?:%s)(?:[ \t]*[-*+/]?[=:][ \t]*|[ \t]+))" % u"|".join(keys.SECRETS)
_SECRET_VALUE = re.compile(_SECRET_NAME + u"(\"[^\"\n]*\"|\"[^\n]*|(?:\\\\.|[^ \t\r\n#\\\\])+)", re.IGNORECASE)
_SECRET_REST = re.compile(_SECRET_NAME + u".+", re.IGNORECASE)
# A password in a URL.
_SECRET_URL = re.compile(u"(://[^/ \t\r\n:@]*:)[^/ \t\r\n@]+(?=@)")


def mask(text):
    """Text with secrets blotted out, in settings and in comments alike."""
    return _SECRET_URL.sub(u"\\1" + MASK, _SECRET_VALUE.sub(u"\\1" + MASK, text))


def mask_rest(text):
    """The same for lines that may not be written as Slurm wants them: blotted out from a secret's name to the end."""
    return mask(_SECRET_REST.sub(u"\\1" + MASK, text))


def masked_value(key, value):
    """A value fit to be shown; None stays None."""
    if value is None:
        return None
    return MASK if keys.is_secret(key) else readable(mask(value))


def masked_file(conf, path, edits=()):
    """The text of a file for people, without secrets. A secret that an edit changed is marked, so that a diff shows it."""
    text = conf.files[path]
    changed = [edit.key.lower() for edit in edits]
    for line in reversed([line for line in split(path, text) if line.kind == "pair" and keys.is_secret(line.key)]):
        start, stop = line.value_span()
        mark = MASK + (u" (new)" if line.key.lower() in changed else u"")
        text = text[:line.start + start] + mark + text[line.start + stop:]
    return readable(mask(text))
