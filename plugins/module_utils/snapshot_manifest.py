# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a snapshot says, whether it can be believed, and what going back to it means. Pure.

A snapshot belongs to one rollout and says how its files were *before*; sealing adds how they were after it.

* ``taken``: the rollout began and has not ended; seen by a later run, it was interrupted
* ``sealed``: the rollout stands
* ``rolled_back``: its files were put back

Rollouts that follow one another without a way back between them form a *chain*, named after its first one.
Ids begin with the time, so their order is the order of the rollouts.

A record: ``{path, part, kind, mode, uid, gid, sha256, stored, target, missing_dirs}`` with kind ``file``, ``link``
or ``absent`` and part ``conf``, ``units`` or ``scripts`` (the stages of a return). ``folders`` are directories that were
empty and would go with the last link in them.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import hashlib
import json
import re

FORMAT = 1
PARTS = ("conf", "units", "scripts")
# These are restarted in order and with care by the module daemon, never by a return of files.
DAEMONS = ("slurmd.service", "slurmctld.service", "slurmdbd.service", "munge.service")

_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,100}$")
_ABSENT = "absent"


class Damaged(Exception):
    """The snapshot cannot be believed."""


def valid_id(name):
    """True for an id that is safe as the name of a directory."""
    return bool(_ID.match(name))


def sha256(content):
    """Hexadecimal checksum of bytes."""
    return hashlib.sha256(content).hexdigest()


def part_of(path, conf=()):
    """The stage of a return to which a path belongs."""
    if path in conf or path.rsplit("/", 1)[-1] == "slurm.conf":
        return "conf"
    return "units" if "/systemd/system/" in path else "scripts"


def new(snapshot_id, created, records, units, meta, chain=None, folders=()):
    """The manifest of a snapshot that has just been taken."""
    return {
        "format": FORMAT,
        "id": snapshot_id,
        "chain": chain or snapshot_id,
        "created": created,
        "state": "taken",
        "records": records,
        "units": units,
        "folders": list(folders),
        "meta": meta,
        "after": {},
    }


def dumps(manifest):
    """The text of a manifest, with a checksum over everything in it."""
    body = {key: value for key, value in manifest.items() if key != "checksum"}
    body["checksum"] = _checksum(body)
    return json.dumps(body, indent=1, sort_keys=True) + "\n"


def _checksum(body):
    return sha256(json.dumps(body, sort_keys=True).encode("utf-8"))


def loads(text, snapshot_id):
    """The manifest in a text; raises :class:`Damaged` when it is not what was written."""
    if text is None:
        raise Damaged("it has no manifest")
    try:
        manifest = json.loads(text)
        given = manifest.pop("checksum")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Damaged("its manifest cannot be read")
    if given != _checksum(manifest):
        raise Damaged("its manifest does not match its checksum")
    if manifest.get("format") != FORMAT:
        raise Damaged("its format %r is not known" % manifest.get("format"))
    if manifest["id"] != snapshot_id:
        raise Damaged("it says that its id is %s" % manifest["id"])
    return manifest


def fingerprint(record):
    """What must be equal for a path to count as unchanged."""
    if record["kind"] == "file":
        return " ".join([record["sha256"], record["mode"], str(record["uid"]), str(record["gid"])])
    return "link " + record["target"] if record["kind"] == "link" else _ABSENT


def describe(record):
    """A record in a few words, for changes and diffs."""
    if record["kind"] == "file":
        return "sha256:%s mode %s owner %s:%s" % (record["sha256"][:12], record["mode"], record["uid"], record["gid"])
    return "link to " + record["target"] if record["kind"] == "link" else _ABSENT


# --- several snapshots --------------------------------------------------------------------------


def live(manifests):
    """Those whose rollout still has its effect, oldest first."""
    return sorted((one for one in manifests if one["state"] != "rolled_back"), key=lambda one: one["id"])


def next_chain(manifests):
    """Chain that a new snapshot joins, None when it begins one."""
    present = live(manifests)
    return present[-1]["chain"] if present else None


def return_path(manifests, snapshot_id):
    """The snapshots that going back to the state before ``snapshot_id`` takes back, oldest first.

    Going back to one that was taken back already is possible when it is named.
    """
    return sorted(
        (one for one in manifests if one["id"] == snapshot_id or (one["id"] > snapshot_id and one["state"] != "rolled_back")),
        key=lambda one: one["id"],
    )


def merged(manifests):
    """How paths and units were before the first of these snapshots: the oldest record of each counts.

    :returns: (records in order, {unit: {unit_file_state, active_state}}, {path: id of the snapshot})
    """
    records, units, sources = [], {}, {}
    for one in sorted(manifests, key=lambda manifest: manifest["id"]):
        for record in one["records"]:
            if record["path"] not in sources:
                sources[record["path"]] = one["id"]
                records.append(record)
        for unit, state in one["units"].items():
            units.setdefault(unit, state)
    return records, units, sources


def folders(manifests):
    """Directories that were there, and empty, before the first of these snapshots."""
    return min(manifests, key=lambda manifest: manifest["id"]).get("folders", []) if manifests else []


def foreign(manifests, present):
    """Paths that somebody else changed since: neither as before nor as the rollouts left them.

    :param present: {path: present record}
    """
    before = {record["path"]: fingerprint(record) for record in merged(manifests)[0]}
    after = {}
    for one in sorted(manifests, key=lambda manifest: manifest["id"]):
        # what an unsealed rollout left behind is not known
        for record in one["records"]:
            after[record["path"]] = one["after"].get(record["path"])
    return sorted(path for path, record in present.items() if after.get(path) and fingerprint(record) not in (before[path], after[path]))


def prunable(manifests, keep):
    """Ids that may go: beyond the newest ``keep`` and not needed for any way back.

    A live snapshot is needed unless all it says is also said by the one before it that stays.
    """
    ordered = sorted(manifests, key=lambda one: one["id"])
    beyond = ordered[:-keep] if keep else ordered
    last_good = [one["id"] for one in ordered if one["state"] == "sealed"][-1:]
    told = set()
    gone = []
    for one in ordered:
        says = {record["path"] for record in one["records"]} | set(one["units"])
        stands = one["state"] != "rolled_back"
        needed = stands and (one["state"] == "taken" or one["id"] in last_good or not says <= told)
        if one in beyond and not needed:
            gone.append(one["id"])
        elif stands:
            told = says
    return gone


def interrupted_actions(manifests):
    """Actions on daemons that interrupted rollouts had meant to take on this host."""
    names = set()
    for one in manifests:
        if one["state"] == "taken":
            names.update(one["meta"].get("actions") or [])
    return sorted(names)


def interrupted_since(manifests):
    """Id of the oldest rollout that was interrupted here, empty when none was."""
    return min([one["id"] for one in manifests if one["state"] == "taken"] or [""])


def deferred(manifests):
    """Keys of slurm.conf that the newest rollout that stands left for a later one."""
    sealed = [one for one in live(manifests) if one["state"] == "sealed"]
    return list(sealed[-1]["meta"].get("deferred") or []) if sealed else []
