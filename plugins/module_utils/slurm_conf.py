# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm.conf as Slurm reads it, and edits that touch nothing but what they mean to. Pure.

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
_COMMENTED = re.compile(u"[ \t]*#[# \t]*([A-Za-z0-9_.]+)[ \t]*=[ \t]*[^ \t]*[ \t]*(?:#.*)?\\Z", re.DOTALL)
_WORDS = re.compile(u"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MAX_DEPTH = 20
MASK = u"********"

# Keys that an operator expects side by side, in this order.
_NEIGHBOURS = (
    ("SlurmctldTimeout", "SlurmdTimeout", "HealthCheckInterval", "HealthCheckProgram", "HealthCheckNodeState", "ReturnToService"),
    ("SelectType", "SelectTypeParameters", "DefMemPerNode", "DefMemPerCPU", "MaxMemPerNode", "MaxMemPerCPU"),
    ("AccountingStorageType", "AccountingStorageHost", "JobCompType", "JobCompLoc", "JobAcctGatherType", "JobAcctGatherFrequency"),
)


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


def render(key, value, quoted=False):
    """``Key=value`` as it has to be written to be read as this value; None when there is no way to write it."""
    escaped = value.replace(u"\\", u"\\\\").replace(u"#", u"\\#")
    text = u'%s="%s"' % (key, escaped) if quoted or re.search(u"[ \t\x0b\x0c]", value) else u"%s=%s" % (key, escaped)
    lines = split(u"", text + u"\n")
    if len(lines) == 1 and lines[0].kind == "pair" and lines[0].value == value and not lines[0].rest.strip(BLANKS):
        return text
    return None


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


class Edit:
    """What was done for one key: before and after are values, None for not set."""

    def __init__(self, key, before, after, line, superseded):
        self.key = key
        self.before = before
        self.after = after
        self.line = line  # that counted, as it was; of a new key the new one
        self.superseded = superseded  # numbers of earlier lines of the same file that become comments

    def place(self):
        text = u"%s line %d" % (readable(self.line.path), self.line.number)
        if self.superseded:
            text += u"; earlier lines turned into comments: %s" % u", ".join(u"%d" % number for number in self.superseded)
        return text


def plan(conf, wanted):
    """Bring keys to the wanted values.

    :param conf: what :func:`parse` gave
    :param wanted: list of (key, value in the form of this module, or None to remove the key)
    :returns: (the candidate as another Conf, list of Edit)
    :raises ValueError: when the result would not be what was asked for
    """
    edits, now = [], conf
    for key, value in wanted:
        key = keys.canonical(key)
        before, lines, superseded = now.value(key), now.occurrences(key), []
        if same_value(key, before, value, now.release):
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
    lines = [line for line in conf.main_lines() if not line.raw.rstrip(BLANKS).endswith(u"\\")]
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
    while index and lines[index - 1].kind == "blank" and lines[index - 1].raw.strip(BLANKS):
        index -= 1
    return lines[index], False


def _commented_key(raw):
    match = _COMMENTED.match(raw.rstrip(BLANKS))
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
    contents = {path: to_bytes(text) for path, text in files.items()}
    return parse(conf.path, contents.get, conf.release)


def _prove(before, after, edits):
    """The candidate must say what was asked for, and about everything else what the file said before."""
    touched = {edit.key.lower(): edit.after for edit in edits}
    for key, value in touched.items():
        if after.value(key) != value:
            raise ValueError("%s would be %r" % (keys.canonical(key), after.value(key)))
    untouched = [
        [(line.path, line.kind, line.key, line.text.rstrip(BLANKS)) for line in conf.lines
         if line.kind != "blank" and not (line.kind == "pair" and line.key.lower() in touched)]
        for conf in (before, after)
    ]
    if untouched[0] != untouched[1]:
        raise ValueError("other lines would be read differently")


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
