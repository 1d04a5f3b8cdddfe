# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this collection says about a cluster, in the shapes of docs/architecture.md. Pure.

Text that comes from a host (reasons, paths, logs, output of programs) passes through
:func:`clean_text` before anyone sees it, so that it can neither steer a terminal nor hide itself.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

LIMIT = 400
MAX_LINES = 10
MAX_SHOWN = 30

# Whole terminal sequences, in 7 and 8 bit spelling, before their single characters:
# CSI (colour, cursor), then the strings OSC, DCS, SOS, PM, APC (titles, links), then any other escape.
_SEQUENCES = re.compile(
    u"(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    u"|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"
    u"|\x1b[ -/]*[0-~]?"
)
_BLANKS = re.compile(u"\r\n|[\t\n\x0b\x0c\r\x85\u2028\u2029]")
# Control characters, marks that reverse or hide text, and what XML cannot hold.
_UNSEEN = re.compile(u"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]")


def to_text(value):
    """Any value as text; bytes that are no UTF-8 become replacement characters."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, type(u"")) else u"%s" % (value,)


def clean_text(value, limit=LIMIT):
    """One line of harmless, visible text, at most ``limit`` characters long."""
    text = _BLANKS.sub(u" ", _SEQUENCES.sub(u"", to_text(value)))
    text = _UNSEEN.sub(u"\ufffd", text).rstrip()
    return text if len(text) <= limit else text[: limit - 1] + u"\u2026"


def clean_lines(value, max_lines=MAX_LINES):
    """The last lines of a program's output, harmless; says how many were left out."""
    # a sequence may run over a line's end, so the sequences go first
    lines = [clean_text(line) for line in _SEQUENCES.sub(u"", to_text(value)).splitlines()]
    lines = [line for line in lines if line.strip()]
    if len(lines) > max_lines:
        return [u"(%d lines left out)" % (len(lines) - max_lines)] + lines[-max_lines:]
    return lines


def evidence(source, text):
    """One line of evidence and where it was seen."""
    return {"source": clean_text(source), "text": clean_text(text)}


def title(zh, en):
    """A title in both languages."""
    return {"zh": to_text(zh), "en": to_text(en)}


def finding(ident, severity, host, titles, cause, remedy, evidences=(), path=None, line=None, **more):
    """A problem, as preflight, lint, troubleshooting and diagnosis report it.

    :param severity: ``error``, ``warning`` or ``info``
    :param titles: see :func:`title`; cause and remedy may come in both languages, too
    :param evidences: list of :func:`evidence`
    :param more: what a diagnosis adds: who acts, how sure it is, which sources were missing
    """
    found = {
        "id": ident,
        "severity": severity,
        "host": host,
        "title": titles,
        "evidence": list(evidences),
        "cause": _clean_said(cause),
        "remedy": _clean_said(remedy),
        "file": path,
        "line": line,
    }
    found.update(more)
    return found


def _clean_said(text):
    return {name: clean_text(value) for name, value in text.items()} if isinstance(text, dict) else clean_text(text)


def said(text, language=None):
    """A title, cause or remedy as lines, in both languages unless one is asked for; one line where both are the same."""
    if not isinstance(text, dict):
        return [text]
    if language:
        return [text[language]]
    return [text["zh"], text["en"]] if text["zh"] != text["en"] else [text["en"]]


def folded(findings):
    """Findings that differ in nothing but the host as one, which names the hosts."""
    hosts, order = {}, []
    for one in findings:
        rest = repr(sorted((key, value) for key, value in one.items() if key != "host"))
        if rest not in hosts:
            order.append((rest, one))
        hosts.setdefault(rest, []).append(one["host"])
    return [dict(first, host=some(hosts[alike])) for alike, first in order]


def some(names):
    """Names of hosts or files, the first few of many."""
    unique = sorted(set(names))
    return u", ".join(unique[:3]) + (u" and %d more" % (len(unique) - 3) if len(unique) > 3 else u"")


def describe(findings):
    """The findings as numbered lines a tired operator can work through."""
    lines = []
    for number, found in enumerate(findings[:MAX_SHOWN], 1):
        place = u""
        if found.get("file"):
            place = u" %s%s" % (found["file"], u":%s" % found["line"] if found.get("line") else u"")
        lines.append(u"%d. [%s]%s %s / %s" % (number, found["host"], place, found["title"]["zh"], found["title"]["en"]))
        lines.append(u"   cause:  %s" % found["cause"])
        lines.extend(u"   reads:  %s" % one["text"] for one in found["evidence"])
        lines.append(u"   remedy: %s" % found["remedy"])
    if len(findings) > MAX_SHOWN:
        lines.append(u"and %d more" % (len(findings) - MAX_SHOWN))
    # job names and paths are somebody else's words
    return [clean_text(line, 4000) for line in lines]


def host_result(verdict, reason="", evidences=(), remedy=""):
    """What a check came to on one host; ``verdict`` is ``pass``, ``fail`` or ``skip``."""
    return {
        "verdict": verdict,
        "reason": clean_text(reason),
        "evidence": list(evidences),
        "remedy": clean_text(remedy) if verdict == "fail" else u"",
    }


def checklist_item(number, titles, found):
    """An item of the checklist: it fails where one host fails, and passes only where one passed.

    :param found: {host: :func:`host_result`}, or a sentence that says why no host was looked at
    """
    hosts = found if isinstance(found, dict) else {}
    verdicts = {result["verdict"] for result in hosts.values()}
    verdict = "fail" if "fail" in verdicts else ("pass" if "pass" in verdicts else "skip")
    return {
        "id": number,
        "title": titles,
        "verdict": verdict,
        "reason": _summary(hosts, verdict) if hosts else clean_text(found or "no host in this run is concerned"),
        "hosts": hosts,
    }


def _summary(hosts, verdict):
    """The reasons behind the verdict, equal ones of several hosts said once."""
    groups, order = {}, []
    for host in sorted(hosts):
        result = hosts[host]
        if result["verdict"] == verdict and result["reason"]:
            if result["reason"] not in groups:
                order.append(result["reason"])
            groups.setdefault(result["reason"], []).append(host)
    parts = []
    for reason in order:
        # who passed does not matter, who failed does
        parts.append(reason if verdict == "pass" or len(hosts) == 1 else u"%s: %s" % (some(groups[reason]), reason))
    return clean_text(u"; ".join(parts))
