# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checklist's result as a terminal table, JSON and JUnit XML. Text in it has been cleaned before."""

from __future__ import annotations

import collections.abc as c
import json
import typing as t
from xml.etree import ElementTree

from ansible_collections.hpcguard.slurm.plugins.module_utils.text_columns import fit, width_of, wrap

Item = dict[str, t.Any]
Meta = dict[str, t.Any]
# Colours a word by its verdict; the identity where colours are off.
Paint = c.Callable[[str, str], str]

WORDS = {"pass": "PASS", "fail": "FAIL", "skip": "SKIP"}
INDENT = 10
HOSTS_SHOWN = 10


def counts(items: c.Iterable[Item]) -> dict[str, int]:
    """How many items passed, failed and were skipped."""
    verdicts = [item["verdict"] for item in items]
    return {verdict: verdicts.count(verdict) for verdict in WORDS}


def summary(items: c.Sequence[Item]) -> str:
    """The result in one line, in both languages."""
    number = counts(items)
    return (
        f"{number['pass']} of {len(items)} passed, {number['fail']} failed, {number['skip']} skipped"
        f" / {len(items)} 项中通过 {number['pass']}，失败 {number['fail']}，跳过 {number['skip']}"
    )


def to_json(items: c.Sequence[Item], meta: Meta) -> str:
    """The machine's copy: ``{..., summary, items}``."""
    return json.dumps({**meta, "summary": counts(items), "items": items}, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


# --- terminal -----------------------------------------------------------------------------------


def table(items: c.Sequence[Item], columns: int, paint: Paint) -> list[str]:
    """One line an item; under a failed or skipped one the hosts, their reasons and what to do."""
    zh = max(width_of(item["title"]["zh"]) for item in items)
    en = max(width_of(item["title"]["en"]) for item in items)
    rest = columns - (INDENT + zh + en + 13)
    lines = ["-" * columns]
    for item in items:
        good = sum(result["verdict"] == "pass" for result in item["hosts"].values())
        # "0/0" would read as if something had been counted
        count = f"{good:>3}/{len(item['hosts']):<3}" if item["hosts"] else "   -"
        # painted apart, since colours are characters without width
        word = paint(WORDS[item["verdict"]], item["verdict"])
        line = f"{item['id']:>3}  {word}  {fit(item['title']['zh'], zh)}  {fit(item['title']['en'], en)}  {count}"
        if item["verdict"] == "pass" and rest > 20:
            line += "  " + fit(item["reason"], rest)
        lines.append(line.rstrip())
        if item["verdict"] != "pass":
            lines += _reasons(item, columns)
    return [*lines, "-" * columns]


def _reasons(item: Item, columns: int) -> list[str]:
    """Why an item failed or was skipped: hosts with the same reason together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for host, result in sorted(item["hosts"].items()):
        if result["verdict"] == item["verdict"]:
            groups.setdefault((result["reason"], result["remedy"]), []).append(host)
    if not groups:
        groups[item["reason"], ""] = []
    lines = []
    for (reason, remedy), hosts in groups.items():
        names = ", ".join(hosts[:HOSTS_SHOWN]) + (f" and {len(hosts) - HOSTS_SHOWN} more" if len(hosts) > HOSTS_SHOWN else "")
        for text, mark in ((f"{names}: {reason}" if names else reason, "  "), (remedy, "> ")):
            for number, part in enumerate(wrap(text, columns - INDENT - 2)):
                lines.append(" " * INDENT + (mark if number == 0 else "  ") + part)
    return lines


# --- JUnit --------------------------------------------------------------------------------------


def junit(items: c.Sequence[Item], meta: Meta) -> str:
    """JUnit XML: one case for each item and host."""
    suite = ElementTree.Element("testsuite", name="hpcguard.slurm verify", timestamp=meta["finished"], hostname=meta["cluster"])
    number = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for item in items:
        for host, result in sorted(item["hosts"].items()) or [("", {**item, "evidence": [], "remedy": ""})]:
            name = f"{item['id']:02d} {item['title']['en']} / {item['title']['zh']}" + (f" [{host}]" if host else "")
            case = ElementTree.SubElement(suite, "testcase", classname=f"verify.{item['id']:02d}", name=name)
            number["tests"] += 1
            text = "\n".join(f"{line['source']}: {line['text']}" for line in result["evidence"])
            if result["verdict"] == "fail":
                number["failures"] += 1
                failure = ElementTree.SubElement(case, "failure", message=result["reason"], type="fail")
                failure.text = f"{text}\nremedy: {result['remedy']}"
            elif result["verdict"] == "skip":
                number["skipped"] += 1
                ElementTree.SubElement(case, "skipped", message=result["reason"])
            else:
                ElementTree.SubElement(case, "system-out").text = text
    for key, value in number.items():
        suite.set(key, str(value))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
