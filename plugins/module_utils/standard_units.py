# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the units of Slurm's daemons must say, and the files that make them say it. Pure.

A unit that a package brought gets a drop-in with only what differs; a unit of the site's own
under /etc/systemd/system is written whole, with everything the site had put there carried over.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import systemd_keys, systemd_unit

# Other spellings of the same setting, which go when ours is written.
_ALIASES = {
    ("Service", "StartLimitInterval"): (
        ("Unit", "StartLimitInterval"),
        ("Unit", "StartLimitIntervalSec"),
        ("Service", "StartLimitIntervalSec"),
        ("Unit", "StartLimitBurst"),
        ("Service", "StartLimitBurst"),
    ),
}
# Settings that also set ours: ours has to come after them.
_SHADOWED_BY = {("Service", "TimeoutStartSec"): (("Service", "TimeoutSec"),)}

# A daemon notices these only when it starts; for the others daemon-reload is enough.
_AT_START = re.compile(r"^(Type|Exec\w+|Environment\w*|User|Group|Limit\w+|Delegate)$")

# Keys whose lines add up; an empty line takes back what came before.
_ADDITIVE = re.compile(r"^(After|Before|Wants|Requires|BindsTo|PartOf|Conflicts|Exec\w+|Environment\w*|Condition\w+)$")

# From here on slurmd waits for a controller by itself (CHANGELOG 24.05).
_SLURMD_WAITS = [24, 5]
# From here on the daemons know --systemd.
_SYSTEMD_OPTION = [23, 11]

_SERVER = re.compile(r"^[A-Za-z0-9_.:\[\]-]+$")

DATABASE_UNITS = ("mariadb.service", "mysqld.service", "mysql.service")
DROP_IN = "hpcguard.conf"
HEADER = "Managed by hpcguard.slurm, role %s: what the standard wants is written anew at each rollout."
CARRIED_OVER = "\nAll other settings are this site's own and were carried over."


class Setting:
    """One thing that a unit must say.

    ``how``: ``set`` the only value; ``default`` only where the unit says nothing; ``add`` words that must be
    among the present ones; ``once`` a command that must be there once, ``drop`` one that must not be there.
    The commands of ``once`` and ``drop`` are known by their program.
    """

    def __init__(self, section, key, value, how="set", why=""):
        self.section = section
        self.key = key
        self.value = value
        self.how = how
        self.why = why


# --- the standard -------------------------------------------------------------------------------


def slurmd(options, fact):
    """Settings of slurmd.service."""
    wait = options.get("wait", "auto")
    if wait == "auto":
        wait = list(fact["slurm"]["release"]) < _SLURMD_WAITS
    command = " ".join([options["wait_script"]] + list(fact["conf"]["servers"]))
    return [
        Setting("Unit", "After", "munge.service network-online.target remote-fs.target", "add"),
        Setting("Unit", "Wants", "munge.service network-online.target", "add"),
        Setting(
            "Service",
            "ExecStartPre",
            command,
            "once" if wait else "drop",
            "a configless slurmd needs an answering slurmctld",
        ),
        Setting("Service", "TimeoutStartSec", options["timeout_start_sec"], why="longer than the wait"),
        Setting("Service", "Restart", options["restart"], why="start it again, whatever ended it"),
        Setting("Service", "RestartSec", options["restart_sec"]),
        Setting(
            "Service", "StartLimitInterval", "0", why="never stop trying (the spelling that systemd 219 knows too)"
        ),
        Setting("Service", "KillMode", "process", why="jobs outlive slurmd"),
        Setting("Service", "Delegate", "yes", why="slurmd makes the cgroups of its jobs itself"),
        Setting("Service", "LimitNOFILE", "131072", "default"),
        Setting("Service", "LimitMEMLOCK", "infinity", "default"),
        Setting("Service", "LimitSTACK", "infinity", "default"),
        Setting("Service", "TasksMax", "infinity", "default"),
    ]


def slurmctld(options, fact):
    """Settings of slurmctld.service."""
    order = ["munge.service", "network-online.target"]
    if _is_here(fact, "slurmdbd") and _is_used(fact, "slurmdbd"):
        order.append("slurmdbd.service")
    loaded = (fact.get("controller") or {}).get("config", {})
    controllers = [key for key in loaded if key.startswith("SlurmctldHost")] or fact["conf"]["servers"]
    restart = options.get("restart") or ("on-failure" if len(controllers) > 1 else "always")
    why = "always would defeat the backup controller" if restart == "on-failure" else "start it again, whatever ended it"
    return [
        Setting("Unit", "After", " ".join(order), "add"),
        Setting("Unit", "Wants", " ".join(order), "add"),
        Setting("Service", "Restart", restart, why=why),
        Setting("Service", "RestartSec", options["restart_sec"]),
    ]


def slurmdbd(options, fact):
    """Settings of slurmdbd.service."""
    order = ["munge.service", "network-online.target"]
    order += [unit for unit in DATABASE_UNITS if _is_here(fact, unit)][:1]
    return [
        Setting("Unit", "After", " ".join(order), "add"),
        Setting("Unit", "Wants", "munge.service network-online.target", "add"),
        Setting("Service", "TimeoutStartSec", "0", why="no limit: a conversion of the database may take hours"),
        Setting("Service", "Restart", options["restart"], why="start it again, whatever ended it"),
        Setting("Service", "RestartSec", options["restart_sec"]),
        Setting(
            "Service", "StartLimitInterval", "0", why="never stop trying (the spelling that systemd 219 knows too)"
        ),
    ]


STANDARD = {"slurmd": slurmd, "slurmctld": slurmctld, "slurmdbd": slurmdbd}


def _is_here(fact, unit):
    known = fact["units"].get(unit) or fact["units"].get(unit.replace(".service", "")) or {}
    return known.get("load_state") == "loaded"


def _is_used(fact, unit):
    """False for a unit that a package brought and nobody uses: Wants= would start it all the same."""
    return bool(fact["units"][unit].get("main_pid")) or not _is_disabled(fact, unit)


def _is_disabled(fact, unit):
    known = fact["units"].get(unit) or {}
    return known.get("load_state") == "loaded" and known.get("unit_file_state") == "disabled"


def agree(unit_type, exec_start, release):
    """Type= and the daemon's own options as they must be together: (type, exec_start, why), why empty when they are.

    -D keeps a daemon in the foreground (Type=simple), --systemd (23.11 and newer) goes with Type=notify,
    neither makes it fork (Type=forking). Options hidden in a variable are not judged.
    """
    words = exec_start.split()
    foreground = any(re.match(r"^-[A-Za-z]*D", word) for word in words[1:])
    notifies = "--systemd" in words
    hidden = any(word.startswith("$") for word in words[1:])
    simple = unit_type in ("", "simple", "exec", "idle")
    if notifies and list(release) < _SYSTEMD_OPTION:
        words = [word for word in words if word != "--systemd"] + ([] if foreground else ["-D"])
        return "simple", " ".join(words), "this release does not know --systemd"
    if notifies:
        return ("notify", exec_start, "" if unit_type == "notify" else "--systemd tells systemd when it is ready")
    if foreground and not simple:
        return "simple", exec_start, "with -D the daemon stays in the foreground"
    if simple and not foreground and not hidden:
        return unit_type or "simple", exec_start + " -D", "without -D the daemon would fork and look as if it had ended"
    return unit_type or "simple", exec_start, ""


# --- from the standard to files -----------------------------------------------------------------


def unit_files(fact, name, options):
    """What makes a daemon's unit say what the standard wants.

    :param fact: cluster fact of the host
    :param name: slurmd, slurmctld or slurmdbd
    :param options: restart, restart_sec, timeout_start_sec, wait, wait_script, extra {section: {key: value}}
    :returns: {files: [for host_files], units: [for host_files], problems: [sentences], waits: whether the unit calls the
        wait script}
    """
    unit = fact["units"].get(name) or {"load_state": "not-found"}
    service = name + ".service"
    if unit["load_state"] != "loaded" or unit.get("text") is None:
        problems = ["%s is %s on this host" % (service, unit["load_state"])]
        return {"files": [], "units": [], "problems": problems, "waits": False}
    problems = [
        "controller name %r cannot stand in a unit" % server
        for server in fact["conf"]["servers"]
        if not _SERVER.match(server)
    ]
    if problems:
        return {"files": [], "units": [], "problems": problems, "waits": False}
    drop_in_path = "/etc/systemd/system/%s.d/%s" % (service, DROP_IN)
    foreign = [one for one in unit["drop_ins"] if one["path"] != drop_in_path]
    ours = [one for one in unit["drop_ins"] if one["path"] == drop_in_path]
    own = unit["style"] == "own"
    base = _entries([unit] if own else [unit] + foreign)
    settings = STANDARD[name](options, fact) + _agreement(base, fact["slurm"]["release"])
    # what an older systemd lacks is left out; what a site asks for in vain is told
    settings = [one for one in settings if systemd_keys.known(one.section, one.key, fact["systemd"])]
    extra = _extra(options)
    settings += extra
    if own:
        path, before, after = unit["fragment_path"], base, whole_unit(base, settings)
    else:
        path, before, after = drop_in_path, _entries(ours), drop_in_entries(base, settings)
    remarks = {(one.section, one.key): one.why for one in settings if one.how != "drop"}
    waits = any(one.how == "once" for one in settings)
    problems = ["no controller is known to wait for"] if waits and not fact["conf"]["servers"] else []
    problems += [
        "%s_unit_extra: systemd %d does not know %s= in [%s]" % (name, fact["systemd"], one.key, one.section)
        for one in extra
        if fact["systemd"] and not systemd_keys.known(one.section, one.key, fact["systemd"])
    ]
    changed = _changed_keys(before, after)
    at_start = any(_AT_START.match(key) for key in changed)
    return {
        "problems": problems
        + _overrides(settings, [one for one in foreign if own or _basename(one["path"]) > DROP_IN]),
        "waits": waits,
        "units": [{"name": "munge.service", "enabled": True}] if _is_disabled(fact, "munge") else [],
        "files": [
            {
                "path": path,
                "content": systemd_unit.render_unit(after, HEADER % name + (CARRIED_OVER if own else ""), remarks)
                if after
                else None,
                "state": "present" if after else "absent",
                "mode": "0644",
                "class": "restart_" + name if at_start else "reload_units",
                "reason": "unit settings: " + ", ".join(changed) if changed else "wording of the file",
            }
        ],
    }


def _entries(texts):
    return [entry for one in texts for entry in systemd_unit.parse_unit(one["text"])]


def _basename(path):
    return path.rsplit("/", 1)[-1]


def _agreement(entries, release):
    values = effective(entries)
    unit_type = (values.get(("Service", "Type")) or [""])[-1]
    commands = values.get(("Service", "ExecStart")) or []
    if len(commands) != 1:
        return []
    wanted_type, command, why = agree(unit_type, commands[0], release)
    if not why:
        return []
    # No remark: the next run finds nothing to correct and must write the same text.
    return [Setting("Service", "Type", wanted_type), Setting("Service", "ExecStart", command)]


def _extra(options):
    return [
        Setting(section, key, str(value))
        for section, pairs in sorted((options.get("extra") or {}).items())
        for key, value in sorted(pairs.items())
    ]


def effective(entries):
    """{(section, key): [values]}: lists add up, an empty value starts a list anew, other keys keep the last."""
    values = {}
    for section, key, value in entries:
        place = (section, key)
        if not value:
            values[place] = []
        elif _ADDITIVE.match(key):
            values.setdefault(place, []).append(value)
        else:
            values[place] = [value]
    return values


def whole_unit(entries, settings):
    """The unit with the settings in it. Applied to its own result it changes nothing."""
    for one in settings:
        place = (one.section, one.key)
        present = effective(entries).get(place, [])
        if one.how == "default" and present:
            continue
        gone = (place,) + (_ALIASES.get(place, ()) if one.how == "set" else ())
        kept = [entry for entry in entries if entry[:2] not in gone]
        # in the place of the old line, so that a second run finds everything where it is
        near = [known for known in gone + _SHADOWED_BY.get(place, ()) if known[0] == one.section]
        marks = [index for index, entry in enumerate(entries) if entry[:2] in near]
        position = sum(1 for entry in entries[: marks[-1] + 1] if entry[:2] not in gone) if marks else len(kept)
        entries = kept[:position] + [place + (value,) for value in _wanted_values(present, one)] + kept[position:]
    return entries


def drop_in_entries(base, settings):
    """Only what the unit does not say already."""
    values = effective(base)
    entries = []
    for one in settings:
        place = (one.section, one.key)
        present = values.get(place, [])
        wanted = _wanted_values(present, one)
        if one.how == "default" and present:
            continue
        if one.how == "add":
            missing = [word for word in one.value.split() if word not in " ".join(present).split()]
            if missing:
                entries.append(place + (" ".join(missing),))
        elif len(present) != len(wanted) or not all(same_value(a, b) for a, b in zip(present, wanted)):
            keep = len(present) if _ADDITIVE.match(one.key) and wanted[: len(present)] == present else 0
            if present and not keep and _ADDITIVE.match(one.key):
                entries.append(place + ("",))
            entries += [place + (value,) for value in wanted[keep:]]
    return entries


def _wanted_values(present, one):
    """The values of a key when one setting has been heeded."""
    if one.how == "add":
        words = " ".join(present).split()
        return [" ".join(words + [word for word in one.value.split() if word not in words])]
    if one.how in ("once", "drop"):
        program = one.value.split()[0]
        others = [value for value in present if program not in value.lstrip("-@!+: ").split()[:1]]
        if one.how == "drop":
            return others
        return present if one.value in present and len(present) == len(others) + 1 else others + [one.value]
    return [str(one.value)]


def same_value(one, other):
    """True when two spellings mean the same to systemd: ``10`` and ``10s``, ``yes`` and ``true``."""
    return one == other or _meaning(one) == _meaning(other)


def _meaning(value):
    word = value.strip().lower()
    if word in ("yes", "true", "on"):
        return "1"
    if word in ("no", "false", "off"):
        return "0"
    if re.match(r"^\d+$", word):
        return word if word in ("0", "1") else int(word) * 1000000
    if re.match(r"^(\d+\s*(us|ms|s|min|h|d)\s*)+$", word):
        return systemd_unit.parse_usec(word)
    return word


def _overrides(settings, drop_ins):
    """Other drop-ins that come after ours and say otherwise."""
    problems = []
    for drop_in in drop_ins:
        values = effective(systemd_unit.parse_unit(drop_in["text"]))
        for one in settings:
            said = values.get((one.section, one.key))
            if one.how == "set" and said and not same_value(said[-1], str(one.value)):
                problems.append(
                    "%s says %s=%s, the standard wants %s: change that line"
                    % (drop_in["path"], one.key, said[-1], one.value)
                )
    return problems


def _changed_keys(before, after):
    old, new = effective(before), effective(after)
    return sorted(
        {key for _section, key in set(old) | set(new) if old.get((_section, key)) != new.get((_section, key))}
    )
