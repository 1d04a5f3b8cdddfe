# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is changing the cluster just now: the lock that rollouts and the patrol share. Pure.

The lock is a small JSON file on the first controller::

    {"owner": {"place": "adm1 3f2c…", "process": "4242 99812", "who": "root", "doing": "deploy"},
     "since": epoch, "until": epoch}

It is a lease. A run renews it at every phase; a run that was killed leaves it behind, and then it
holds rollouts of *other* control nodes and the patrol off until it ends. On the control node that
held it, the next run sees that the process is gone and takes it over at once.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

from .finding import clean_text

PATH = "/run/hpcguard/rollout.lock"
# Whoever acts on nodes holds this one for as long as he looks at the other or acts (flock).
GUARD = "/run/hpcguard/patrol.lock"
OWNER_KEYS = ("place", "process", "who", "doing")


def loads(text):
    """The lock in a text, None when there is none. What cannot be read was not written by us and holds nobody off."""
    try:
        lock = json.loads(text or "")
        owner = {key: clean_text(lock["owner"][key], 200) for key in OWNER_KEYS}
        return {"owner": owner, "since": int(lock["since"]), "until": int(lock["until"])}
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def dumps(owner, since, until):
    """The text of a lock."""
    return json.dumps({"owner": owner, "since": int(since), "until": int(until)}, sort_keys=True) + "\n"


def same(owner, other):
    """True when two descriptions mean one process."""
    return owner["place"] == other["place"] and owner["process"] == other["process"]


def stands(lock, now):
    """True while a lock holds others off."""
    return lock is not None and now < lock["until"]


def may_take(lock, owner, now, gone=()):
    """Whether *owner* may take or renew the lock.

    :param gone: processes of the owner's own control node that are known to have ended, as in ``process``
    """
    if not stands(lock, now) or same(lock["owner"], owner):
        return True
    return lock["owner"]["place"] == owner["place"] and lock["owner"]["process"] in gone


def describe(lock, now):
    """Who holds it, in words."""
    owner = lock["owner"]
    process = (owner["process"].split() or ["?"])[0]
    place = (owner["place"].split() or ["?"])[0]
    minutes = max(0, now - lock["since"]) // 60
    return "%s by %s on %s (process %s), begun %d minutes ago" % (owner["doing"], owner["who"], place, process, minutes)
