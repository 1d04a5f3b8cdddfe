# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a slurm.conf, or with the settings asked for, before a daemon sees them. Pure.

An *error* is what Slurm refuses, what loses jobs or state, or what would not do what was asked for. A *warning* is what Slurm
ignores or what surprises. Plugins and the state directory are given as data (see :class:`Host`); the parse test of scontrol,
which the module runs afterwards, judges the values that Slurm itself checks.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import finding, slurm_conf, slurm_conf_edit, slurm_conf_together
from . import slurm_conf_keys as keys
from .slurm_conf_values import PLUGINS, meaning_problem, value_problem

TITLES = {
    "conf_missing": (u"找不到 slurm.conf", "no such slurm.conf"),
    "conf_foreign": (u"该文件不是 slurm.conf", "not a slurm.conf"),
    "conf_syntax": (u"slurm.conf 语法错误", "a line that Slurm cannot read"),
    "conf_include": (u"Include 文件有问题", "an included file cannot be read"),
    "conf_unknown_key": (u"未知配置项", "unknown key"),
    "conf_value": (u"配置值无效", "bad value"),
    "conf_removed_key": (u"配置项已被移除", "key without effect"),
    "conf_duplicate": (u"配置项重复", "key set more than once"),
    "conf_plugin": (u"插件不存在", "no such plugin"),
    "conf_conflict": (u"配置项互相矛盾", "settings that do not go together"),
    "conf_partition": (u"分区设置覆盖全局值", "partitions override the setting"),
    "conf_accounting": (u"作业完成信息没有记录", "job completion is recorded nowhere"),
    "conf_state_dir": (u"StateSaveLocation 有问题", "StateSaveLocation is not safe"),
    "conf_mode": (u"slurm.conf 权限过宽", "slurm.conf may be changed by anybody"),
    "conf_refused_change": (u"不能自动修改的配置项", "a setting that no tool should change"),
    "conf_proof": (u"Slurm 拒绝该配置", "Slurm refuses the file"),
}


EXCLUSIVE_ON_PARTITIONS = {
    "DefMemPerCPU": "DefMemPerNode",
    "DenyAccounts": "AllowAccounts",
    "DenyQos": "AllowQos",
    "MaxMemPerCPU": "MaxMemPerNode",
}
# Words that stand for no plugin at all.
NO_PLUGIN = (u"none", u"openmpi")
VOLATILE = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/run")
RECORDED_BY_DBD = (
    "leave JobCompType alone: AccountingStorageType=accounting_storage/slurmdbd records every job's end; "
    "for a text file besides, set slurm_conf_jobcomp_file"
)


class Host:
    """What the module saw on the host.

    :param name: its name in findings
    :param plugins: names of the files in PluginDir, None when the directory is unknown
    :param state_dir: {is_dir, mode, free_bytes, free_inodes, has_state} of StateSaveLocation, None where slurmctld does not run
    :param modes: {path of a configuration file: its mode}
    :param absent_dirs: directories that settings need and that are not there
    """

    def __init__(self, name="", plugins=None, state_dir=None, modes=None, absent_dirs=()):
        self.name = name
        self.plugins = plugins
        self.state_dir = state_dir
        self.modes = modes or {}
        self.absent_dirs = absent_dirs


def shown_path(path):
    return None if path is None else slurm_conf.readable(path)


class Findings:
    """Collects findings about one host.

    :param asked: {lower-case key: variable that asks for it}; what concerns such a key is put down to the variable
    """

    def __init__(self, host, conf=None, asked=None):
        self.host = host
        self.conf = conf
        self.asked = asked or {}
        self.found = []

    def add(self, ident, severity, cause, remedy, line=None, path=None):
        place, number, evidences = path, None, []
        if line is not None:
            place, number = line.path, line.number
            evidences = [finding.evidence(u"%s:%d" % (shown_path(place), number), line.shown())]
        self.found.append(
            finding.finding(ident, severity, self.host, finding.title(*TITLES[ident]), cause, remedy, evidences, shown_path(place), number)
        )

    def about(self, ident, severity, key, cause, remedy):
        """A finding about the value of a key in the candidate."""
        if key.lower() in self.asked:
            self.add(ident, severity, u"%s: %s" % (self.asked[key.lower()], cause), remedy)
        else:
            self.add(ident, severity, cause, remedy, self.conf.occurrences(key)[-1])


def missing(path, host, exists):
    """The finding for a path that is no readable file."""
    out = Findings(host)
    out.add("conf_missing", "error", u"%s %s" % (shown_path(path), "is no regular file, or cannot be read" if exists else "does not exist"),
            "name the slurm.conf that the daemons use (slurm_conf_path)", path=path)
    return out.found


def try_plan(conf, wanted, host):
    """slurm_conf_edit.plan, with what cannot or must not be done as findings: (candidate, edits, findings)."""
    out = Findings(host)
    try:
        candidate, edits = slurm_conf_edit.plan(conf, wanted)
    except ValueError as error:
        out.add("conf_conflict", "error", "the settings cannot be written into %s: %s" % (shown_path(conf.path), error),
                "look at the lines above and below the place, or make the change by hand", path=conf.path)
        return conf, [], out.found
    for edit in edits:
        name, source = keys.change_class(edit.key, conf.release)
        if name == "refused":
            out.add("conf_refused_change", "error", "slurm_conf_settings.%s: changing it is no work for a tool (%s)" % (edit.key, source),
                    "make this change by hand, in a maintenance window, or leave the key out")
    return candidate, edits, out.found


# --- the settings asked for -------------------------------------------------------------------------------------------


def check_settings(settings, secrets, release, host, variable="slurm_conf_settings"):
    """Judge the settings asked for.

    :param settings: what the user gave, of whatever type
    :param secrets: the same for secret keys
    :param variable: the variable that they came from, for messages
    :returns: (list of (key, value in the form of slurm_conf, None to remove), findings)
    """
    out = Findings(host)
    wanted, seen = [], {}
    for given, secret in ((settings, False), (secrets, True)):
        if not isinstance(given, dict):
            out.add("conf_value", "error", "%s is no mapping of keys to values" % variable, "write it as KEY: value, one a line")
            continue
        for key in sorted(given, key=finding.to_text):
            name = u"%s.%s" % (variable, finding.to_text(key))
            problem = _key_problem(finding.to_text(key), release, secret)
            if problem:
                out.add("conf_unknown_key", "error", u"%s: %s" % (name, problem[0]), problem[1])
                continue
            canonical = keys.canonical(key)
            if canonical in seen:
                out.add("conf_value", "error", u"%s: the same key as %s" % (name, seen[canonical]), "keep one of them")
                continue
            seen[canonical] = name
            value, problem = _wanted_value(canonical, given[key], release)
            if problem:
                out.add("conf_value", "error", u"%s: %s" % (name, problem[0]), problem[1])
            else:
                wanted.append((canonical, value))
    return sorted(wanted, key=_writing_order), out.found


def _writing_order(pair):
    """Interval before program before node state, so that each is written below the one before it."""
    order = ("HealthCheckInterval", "HealthCheckProgram", "HealthCheckNodeState")
    return (order.index(pair[0]) if pair[0] in order else len(order), pair[0])


def _key_problem(key, release, secret):
    """Why a key cannot be set, and what to do: None when it can."""
    kind = keys.kind(key, release)
    if keys.is_record(key) or key.lower() == "include":
        return "describes a thing of its own and is no setting", "edit its lines in slurm.conf by hand"
    if kind in ("-", "ignored", "refused"):
        return _unknown(key, kind, release)
    if keys.is_secret(key) and not secret:
        return "is a secret", "pass it to the module as secret_settings, which are never shown or logged"
    if secret and not keys.is_secret(key):
        return "is no secret", "pass it to the module as settings"
    return None


def _unknown(key, kind, release, record=None):
    if kind == "refused" or kind == "ignored":
        return "has been removed from Slurm", "take it out"
    near = keys.similar(key, release, record)
    remedy = "did you mean %s?" % near if near else "see slurm.conf(5) of this release"
    cause = "Slurm %d.%02d knows no such key" % release[:2]
    if record:
        return "%s on a %s line" % (cause, record), remedy
    known = keys.known_from(key)
    return ("%s (%s)" % (cause, known), "take it out") if known else (cause, remedy)


def _wanted_value(key, value, release):
    """A value in the form of slurm_conf, and the problem with it (cause, remedy)."""
    kind = keys.kind(key, release)
    if value is None:
        return None, None
    if isinstance(value, bool):
        if kind == "boolean":
            return u"yes" if value else u"no", None
        return None, ("is the truth value %s" % value, "write what Slurm expects, in quotes: %s" % _expected(key, kind))
    if isinstance(value, (dict, list, tuple)):
        return None, ("is a list or a mapping", "write one value, as it stands in slurm.conf")
    text = finding.to_text(value)
    if text == u"(null)":  # how scontrol shows a key that is not set
        return None, None
    if not text.strip():
        return None, ("is empty", "give it a value, or null to take the key out of slurm.conf")
    if re.search(u"[\x00-\x1f\x7f]", text) or text != text.strip():
        return None, ("holds a line break, another control character or outer blanks", "write it on one line, without them")
    problem = value_problem(key, slurm_conf.stored(text), kind) or meaning_problem(key, slurm_conf.stored(text), release)
    if problem:
        return None, problem
    if kind in keys.NUMBERS and not re.match(u"(0|[1-9][0-9]*|unlimited|infinite)\\Z", text, re.IGNORECASE):
        return None, (u"is %s, which Slurm reads as %d" % (text, slurm_conf.number(text, kind)), "write it as a plain decimal number")
    if slurm_conf_edit.render(key, slurm_conf.stored(text)) is None:
        return None, ("cannot be written in slurm.conf", "leave out the double quotes")
    return slurm_conf.stored(text), None


def _expected(key, kind):
    if key == "ReturnToService":
        return "0, 1 or 2"
    return "a number" if kind in keys.NUMBERS else "text"


# --- the file ---------------------------------------------------------------------------------------------------------


def lint(conf, host, asked=None):
    """Everything wrong with a slurm.conf.

    :param conf: the candidate, from slurm_conf.parse
    :param host: a :class:`Host`
    :param asked: {key that the caller sets: variable that asks for it}; for these keys only what does as asked is good enough
    """
    out = Findings(host.name, conf, {key.lower(): name for key, name in (asked or {}).items()})
    for line in conf.lines:
        _LINE_CHECKS[line.kind](conf, line, out)
    needed = (("ClusterName", conf.value("ClusterName")), ("SlurmctldHost", conf.value("SlurmctldHost") or conf.value("ControlMachine")))
    if not any(value for _key, value in needed) and not _names_cluster(conf):
        return _foreign(conf, host.name, len(out.found))
    for key, value in needed:
        if not value and not any(key in one["cause"] for one in out.found):
            out.add("conf_value", "error", "%s is not set; Slurm does not start without it" % key, "set it", path=conf.path)
    _duplicates(conf, out)
    _plugins(conf, host, out)
    slurm_conf_together.check(conf, host.absent_dirs, out)
    if host.state_dir is not None:
        _state_dir(conf, host.state_dir, out)
    for path in conf.paths:
        if host.modes.get(path, 0) & 0o002:
            out.add("conf_mode", "warning", u"%s may be changed by anybody, and names programs that root runs" % shown_path(path),
                    u"chmod o-w %s" % shown_path(path), path=path)
    return out.found


def _foreign(conf, host, count):
    out = Findings(host)
    lines = ", and %d of its lines mean nothing to Slurm" % count if count else ""
    out.add("conf_foreign", "error", u"%s names neither a cluster nor a controller%s" % (shown_path(conf.path), lines),
            "name the slurm.conf that the daemons use (slurm_conf_path)", path=conf.path)
    return out.found


def _names_cluster(conf):
    return any(re.match(u"[ \t]*(ClusterName|SlurmctldHost|ControlMachine)[ \t]*=", line.raw, re.IGNORECASE) for line in conf.lines)


def _check_blank(_conf, line, out):
    if u"\0" in line.raw:
        out.add("conf_syntax", "error", "the line holds a NUL byte, where Slurm stops reading it", "remove it", line)


def _check_bad(_conf, line, out):
    text = line.text.strip(slurm_conf.BLANKS)
    empty = re.match(u"([A-Za-z0-9_.]+)[ \t]*[-*+/]?=\\Z", text)
    if line.start == 0 and text.startswith(u"\xef\xbb\xbf"):
        out.add("conf_syntax", "error", "the file begins with a byte order mark, which Slurm takes for text",
                "save it as UTF-8 without BOM", line)
    elif empty and u"#" in line.raw:
        out.add("conf_syntax", "error", "the value of %s is empty: everything from the first # on is a comment" % empty.group(1),
                "fill in the value; a # that belongs to it is written \\#", line)
    elif empty:
        out.add("conf_syntax", "error", "%s has no value" % empty.group(1), "give it one, or remove the line", line)
    elif re.match(u"(<{7}|={7}|>{7}|\\|{7})( |\\Z)", text):
        out.add("conf_syntax", "error", "a merge conflict was left in the file", "finish the merge and remove its markers", line)
    elif re.match(u"include[ \t]", text, re.IGNORECASE):
        out.add("conf_syntax", "error", "Include counts at the very start of a line only", "remove the blanks before it", line)
    else:
        out.add("conf_syntax", "error", "neither a setting, an Include nor a comment", "remove the line, or put a # before it", line)


def _check_include(conf, line, out):
    _check_blank(conf, line, out)
    name = slurm_conf.readable(line.target or line.value)
    if line.problem:
        out.add("conf_include", "error", u"Include %s: it %s" % (name, line.problem), "put the file there, or remove the line", line)
    elif line.rest.strip(slurm_conf.BLANKS):
        out.add("conf_syntax", "error", "there is more than one file name after Include", "one Include a line", line)
    elif _runs_over(line):
        out.add("conf_syntax", "error", "Slurm takes what follows for a part of the Include: no blank ends the file name",
                "put a blank before the #, and end the file with a line break", line)


def _runs_over(line):
    """True when Slurm, looking for the blank behind an Include's file name, runs into the comment or the end of the file."""
    if line.text[-1:] in slurm_conf.BLANKS:
        return False
    behind = line.raw[len(line.text) + 1:]
    name = re.match(u"[^%s]*" % slurm_conf.BLANKS, behind).end()
    return name == len(behind) or bool(behind[name:].strip(slurm_conf.BLANKS))


def _check_pair(conf, line, out):
    _check_blank(conf, line, out)
    if keys.is_record(line.key):
        _check_record(conf, line, out)
        return
    kind = keys.kind(line.key, conf.release)
    name = keys.canonical(line.key)
    if kind == "ignored" and (name != "FastSchedule" or line.value == u"1"):
        out.add("conf_removed_key", "warning", "%s has been removed from Slurm and has no effect" % name, "remove the line", line)
    elif kind in ("-", "refused", "ignored"):
        cause, remedy = _unknown(line.key, kind, conf.release)
        out.add("conf_unknown_key", "error", "%s: %s" % (line.key, cause), remedy, line)
    elif line.rest.strip(slurm_conf.BLANKS):
        out.add("conf_syntax", "error", "there is more on the line after the value of %s" % name,
                "one setting a line; a value with blanks goes in double quotes", line)
    elif not line.value:
        out.add("conf_value", "warning", "%s is set to nothing" % name, "remove the line", line)
    else:
        refused = value_problem(name, line.value, kind)
        problem = refused or meaning_problem(name, line.value, conf.release)
        if problem:
            out.add("conf_value", "error" if refused else "warning", u"%s: %s" % (name, problem[0]), problem[1], line)


def _check_record(conf, line, out):
    record = keys.canonical(line.key)
    if keys.kind(record, conf.release) == "-":
        out.add("conf_unknown_key", "error", "%s: %s" % (record, _unknown(record, "-", conf.release)[0]), "remove the line", line)
        return
    attributes, rest = line.attributes()
    for key, value in attributes:
        kind = keys.record_kind(record, key, conf.release)
        if kind == "-":
            cause, remedy = _unknown(key, kind, conf.release, record)
            out.add("conf_unknown_key", "error", "%s: %s" % (key, cause), remedy, line)
        else:
            problem = value_problem(key, value, kind)
            if problem:
                out.add("conf_value", "error", u"%s: %s" % (key, problem[0]), problem[1], line)
    if record == "PartitionName":
        _check_partition({key.lower() for key, _value in attributes}, line, out)
    if rest.strip(slurm_conf.BLANKS):
        unread = slurm_conf.readable(slurm_conf.mask_rest(rest.strip(slurm_conf.BLANKS))[:60])
        out.add("conf_syntax", "error", u"Slurm cannot read the line from here on: %s" % unread,
                "write KEY=value, values with blanks in double quotes", line)


def _check_partition(given, line, out):
    for key in sorted(EXCLUSIVE_ON_PARTITIONS):
        winner = EXCLUSIVE_ON_PARTITIONS[key]
        if {key.lower(), winner.lower()} <= given:
            cause = "%s is ignored because %s is set on the same line" % (key, winner)
            out.add("conf_conflict", "warning", cause, "keep one of them", line)


_LINE_CHECKS = {"blank": _check_blank, "bad": _check_bad, "include": _check_include, "pair": _check_pair}


def _duplicates(conf, out):
    for key in sorted(conf.effective()):
        lines = conf.occurrences(key)
        if len(lines) > 1 and keys.kind(key, conf.release) != "list":
            others = u", ".join(u"%s:%d" % (shown_path(line.path), line.number) for line in lines[:-1])
            out.add("conf_duplicate", "warning",
                    u"%s is set %d times; the last line counts, the others (%s) do not" % (key, len(lines), others),
                    "remove the others", lines[-1])


def _plugins(conf, host, out):
    """Each named plugin must be a file in PluginDir."""
    for key in sorted(PLUGINS):
        value, about = conf.value(key), PLUGINS[key]
        if not value or host.plugins is None:
            continue
        for name in value.split(u",") if about.is_list else [value]:
            name = name.strip()
            if u"/" not in name and not about.full_name_only:
                name = u"%s/%s" % (about.type, name)
            if u"/" not in name or name.lower().endswith(NO_PLUGIN) or name.replace(u"/", u"_") + u".so" in host.plugins:
                continue
            # before 23.02 slurmctld runs on without its plugin, from then on it does not start
            harmless = key == "JobCompType" and conf.release < (23, 2) and key.lower() not in out.asked
            out.about("conf_plugin", "warning" if harmless else "error", key,
                      u"%s: there is no such plugin on this host" % slurm_conf.readable(name), _plugin_remedy(key, name, host.plugins))


def _plugin_remedy(key, name, plugins):
    if key == "JobCompType" and u"slurmdbd" in name:
        return RECORDED_BY_DBD
    prefix = PLUGINS[key].type + "_"
    there = sorted(one[len(prefix):-3] for one in plugins if one.startswith(prefix) and one.endswith(".so"))
    return "use %s" % " or ".join("%s/%s" % (PLUGINS[key].type, one) for one in there) if there else "install it, or use another"


def state_location(conf):
    """Where slurmctld keeps the queue."""
    return conf.value("StateSaveLocation") or u"/var/spool"


def _state_dir(conf, state, out):
    """The job queue must survive the restart that a change may need."""
    path = slurm_conf.readable(state_location(conf))
    lines = conf.occurrences("StateSaveLocation")
    problem = None
    if any(path == place or path.startswith(place + "/") for place in VOLATILE):
        problem = "is emptied at a reboot or by tmp cleaners", "move the state to a directory on disk, by hand and with slurmctld stopped"
    elif not state["is_dir"]:
        problem = "is no directory here", "mount or create it"
    elif state["mode"] & 0o002:
        problem = "may be written by anybody", u"chmod o-w %s" % path
    elif state["free_bytes"] < 1 << 20 or state["free_inodes"] == 0:
        problem = "is full", "free some space first: slurmctld could not save the queue"
    elif not state["has_state"]:
        cause = "holds no state of slurmctld (no file clustername): its file system is not mounted, or it is not the one in use"
        problem = cause, "mount it"
    if problem:
        out.add("conf_state_dir", "error", u"StateSaveLocation %s %s; a restart of slurmctld could lose the queue" % (path, problem[0]),
                problem[1], lines[-1] if lines else None, conf.path)


# --- what Slurm itself says ---------------------------------------------------------------------------------------------


def complaints(output):
    """The lines with which a Slurm program complains, each once."""
    said = []
    for line in finding.clean_lines(slurm_conf.mask_rest(finding.to_text(output)), 50):
        found = re.search(r"\b(error|fatal): .*", line)
        if found and found.group(0) not in said:
            said.append(found.group(0))
    return said


def proof(rc, output, timed_out, before, host, path):
    """Judge the parse test of a candidate: complaints that the present file draws too only warn.

    :param before: complaints about the present file
    """
    out = Findings(host)
    said = complaints(output)
    fresh = [line for line in said if line not in before]
    if timed_out:
        out.add("conf_proof", "error", "scontrol did not finish reading the file",
                "look at what it waits for: an included file, a name service", path=path)
    elif rc != 0 or fresh:
        out.add("conf_proof", "error", "scontrol says: %s" % (" / ".join(fresh or said) or "nothing, but fails"),
                "see slurm.conf(5) on the key it names", path=path)
    for line in said if rc == 0 else []:
        if line in before:
            out.add("conf_proof", "warning", "scontrol says of the present file too: %s" % line, "see slurm.conf(5)", path=path)
    return out.found


def is_fine(findings):
    """True when none of them is an error."""
    return not any(one["severity"] == "error" for one in findings)
