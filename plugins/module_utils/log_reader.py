# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads logs of any size in bounded time and memory: by time where the lines bear it, rotated and compressed files too.

Besides loaders and slurm_conf_host the part of module_utils that touches files.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import gzip
import json
import os
import select
import signal
import stat

from . import job_logs, loaders

CHUNK = 1 << 20
# Of one file: what is read of a window of time, and of a compressed file, which cannot be searched.
MOST_BYTES, MOST_UNPACKED = 64 << 20, 256 << 20
MOST_LINES = 400
MOST_FILES = 6
# A line longer than this is cut.
LONGEST = 4096


class Unread(Exception):
    """Why a source was not read."""


class TimeUp(Unread):
    """It was read in part."""


def _open(path):
    """A regular file, opened without ever waiting for a pipe's other end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, IOError) as error:
        raise Unread("%s: %s" % (path, error.strerror))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Unread("%s: no regular file" % path)
    return os.fdopen(descriptor, "rb")


def _stamp_after(handle, offset, size):
    """(time of the first line with one that begins behind ``offset``, where it begins), (None, size) without one."""
    handle.seek(offset)
    text = handle.read(min(64 << 10, size - offset))
    position = 0
    if offset:
        position = text.find(b"\n") + 1
        if not position:
            return None, size
    while position < len(text):
        match = job_logs.STAMP_BYTES.match(text[position : position + 32])
        if match:
            return match.group(1), offset + position
        following = text.find(b"\n", position)
        if following < 0:
            break
        position = following + 1
    return None, size


def seek(handle, size, when):
    """Where the first line at or after a time begins. Lines are in the order of their times but for a few seconds."""
    low, high = 0, size
    while high - low > 64 << 10:
        middle = (low + high) // 2
        seen, place = _stamp_after(handle, middle, size)
        if seen is None or seen >= when or place >= high:
            high = middle
        else:
            low = place
    return low


def _blocks(handle, limit):
    """Whole lines of a stream in blocks of about one megabyte."""
    rest, left = b"", limit
    while left > 0:
        chunk = handle.read(min(CHUNK, left))
        if not chunk:
            break
        left -= len(chunk)
        cut = chunk.rfind(b"\n")
        if cut < 0:
            rest = (rest + chunk)[-CHUNK:]
            continue
        yield rest + chunk[: cut + 1]
        rest = chunk[cut + 1 :]
    if rest:
        yield rest


def _matching(blocks, pattern, end, deadline):
    """Lines of the blocks that the pattern finds, until one is later than ``end``; a look at the clock each block."""
    for block in blocks:
        if loaders.now() > deadline:
            raise TimeUp("not read to its end, the time was up")
        for match in pattern.finditer(block):
            begin = block.rfind(b"\n", 0, match.start()) + 1
            stop = block.find(b"\n", match.end())
            yield block[begin : stop if stop >= 0 else len(block)][:LONGEST]
        first = job_logs.STAMP_BYTES.match(block[:32])
        if first and end and first.group(1) > end:
            return


def _search(path, pattern, begin, end, deadline, kept):
    """Add the lines of one file to ``kept``; returns what was left out, empty when nothing was."""
    with _open(path) as handle:
        if path.endswith(".gz"):
            unpacked = gzip.GzipFile(fileobj=handle)
            try:
                _keep(_matching(_blocks(unpacked, MOST_UNPACKED), pattern, end, deadline), begin, end, kept)
            except (IOError, EOFError, ValueError) as error:
                raise Unread("%s: %s" % (path, error))
            return ""
        size = os.fstat(handle.fileno()).st_size
        first = _stamp_after(handle, 0, size)[0] if size else None
        if first is None:
            # nothing tells the time: the newest part is what there is to look at
            handle.seek(max(0, size - MOST_BYTES))
            _keep(_matching(_blocks(handle, MOST_BYTES), pattern, b"", deadline), b"", b"", kept)
            return "only its last %d MB" % (MOST_BYTES >> 20) if size > MOST_BYTES else ""
        low = seek(handle, size, begin) if begin else 0
        high = min(size, seek(handle, size, end + b"~") + (128 << 10)) if end else size
        spans, left_out = [(low, high)], ""
        if high - low > MOST_BYTES:
            # a long job: how it began and, above all, how it ended
            spans = [(low, low + MOST_BYTES // 4), (high - MOST_BYTES * 3 // 4, high)]
            left_out = "%d MB in the middle of the job's time" % ((high - low - MOST_BYTES) >> 20)
        for low, high in spans:
            handle.seek(low)
            _keep(_matching(_blocks(handle, high - low), pattern, end, deadline), begin, end, kept)
        return left_out


def _keep(lines, begin, end, kept):
    last = None
    for line in lines:
        stamp = job_logs.STAMP_BYTES.match(line)
        told = stamp.group(1) if stamp else None
        if line == last or (told and ((begin and told < begin) or (end and told > end))):
            continue
        last = line
        kept.append(line)
        if len(kept) > MOST_LINES:
            # the beginning and the end tell most
            del kept[MOST_LINES // 4]


def rotated(path, begin, end):
    """The files of a log that may hold lines of a time, oldest first: the log itself and what rotation made of it."""
    folder, name = os.path.split(path)
    try:
        names = [one for one in os.listdir(folder or ".") if one == name or one.startswith((name + ".", name + "-"))]
    except (OSError, IOError):
        # a directory may be closed to a reader whom the file in it is not
        return [path]
    found = []
    for one in names:
        try:
            found.append((os.stat(os.path.join(folder, one)).st_mtime, os.path.join(folder, one)))
        except (OSError, IOError):
            continue
    found.sort()
    chosen = []
    for index, (modified, one) in enumerate(found):
        began = found[index - 1][0] if index else 0
        if (begin is None or modified >= begin - 1) and (end is None or began <= end):
            chosen.append(one)
    return chosen[-MOST_FILES:] or [path]


def search(path, pattern, begin="", end="", epochs=(None, None), seconds=5.0):
    """Lines of a log that a pattern (bytes) finds between two times (ISO, local): (lines, what was left out).

    :param epochs: the same times as seconds since 1970, for choosing among rotated files
    """
    kept, notes, deadline = [], [], loaders.now() + seconds
    files = rotated(path, *epochs)
    unread = []
    for one in files:
        try:
            left_out = _search(one, pattern, begin.encode("ascii"), end.encode("ascii"), deadline, kept)
            if left_out:
                notes.append("%s: %s" % (one, left_out))
        except TimeUp as why:
            (notes if kept else unread).append("%s: %s" % (one, why.args[0]))
        except Unread as why:
            unread.append(why.args[0])
    if len(unread) == len(files):
        raise Unread("; ".join(unread[:2]))
    return [line.decode("utf-8", "replace") for line in kept], "; ".join(notes + unread)


def owned_tail(path, uid, max_bytes=16384):
    """The end of a user's own file: (text, why it was not read).

    The path is the user's word, and root may read what the user may not: nothing is read that is not the user's own.
    """
    try:
        # Python 2 under LC_ALL=C knows no other names than ASCII's
        name = path if isinstance(path, bytes) else path.encode("utf-8")
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW)
    except (TypeError, ValueError):
        return "", "%s: no path" % path.replace("\0", "?")
    except (OSError, IOError) as error:
        return "", "%s: %s" % (path, "is a symbolic link" if error.errno == errno.ELOOP else error.strerror)
    status = os.fstat(descriptor)
    foreign = "no regular file" if not stat.S_ISREG(status.st_mode) else "not a file of the job's user" if str(status.st_uid) != uid else ""
    if foreign:
        os.close(descriptor)
        return "", "%s: %s" % (path, foreign)
    with os.fdopen(descriptor, "rb") as handle:
        handle.seek(max(0, status.st_size - max_bytes))
        return handle.read(max_bytes).decode("utf-8", "replace"), ""


def apart(work, seconds):
    """What ``work()`` returns, done in a process of its own, since a file on a hung mount never answers; None when it did not."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as stream:
                stream.write(json.dumps(work()).encode("ascii"))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    answer, deadline = b"", loaders.now() + seconds
    try:
        while True:
            if not select.select([reader], [], [], max(0, deadline - loaders.now()))[0]:
                os.kill(child, signal.SIGKILL)
                return None
            chunk = os.read(reader, 65536)
            if not chunk:
                break
            answer += chunk
    finally:
        os.close(reader)
        _reap(child)
    return json.loads(answer.decode("ascii")) if answer else None


def _reap(child):
    """Take the child's end; one in uninterruptible sleep is left to init."""
    give_up = loaders.now() + 1
    while loaders.now() < give_up:
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        select.select([], [], [], 0.01)
