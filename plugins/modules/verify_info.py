#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: verify_info
short_description: Gather what the checklist needs to know of a host
version_added: 0.1.0
description:
  - Gathers in one call the raw evidence for the thirteen items of the checklist that concern this host.
  - Judges nothing; M(hpcguard.slurm.checklist_report) does. Changes nothing. The health check script is run with
    C(--dry-run), and the wait script where nothing else shows that it ran; both only when nobody but root can have
    written them.
options:
  part:
    description:
      - What the host is asked as. A host may be asked more than once.
      - V(credential) makes a credential of munge for O(munge_credential) of other hosts. It is good for some minutes and for one
        use on each host.
    type: str
    choices: [node, controller, dbd, credential]
    required: true
  node_name:
    description: NodeName of this host.
    type: str
  conf:
    description: RV(hpcguard.slurm.cluster_info#module:cluster.conf) of the host.
    type: dict
    default: {}
  programs:
    description: RV(hpcguard.slurm.cluster_info#module:cluster.slurm) of the host, its C(bin).
    type: dict
    default: {}
  release:
    description: Release of Slurm as two numbers.
    type: list
    elements: int
    default: []
  settings:
    description: Settings of slurm.conf as they should be in force.
    type: dict
    default: {}
  script:
    description: Path of the health check script.
    type: path
    default: /usr/local/bin/slurm_health_check.sh
  heartbeat:
    description: File in which the health check leaves time and verdict of its last run.
    type: path
    default: /run/hpcguard/health_check.last
  wait_script:
    description: Path of the script that waits for slurmctld before slurmd starts.
    type: path
    default: /usr/local/bin/wait-for-slurmctld.sh
  first_beat:
    description: Seconds that the first run of the health check may take after slurmd's start or a new interval.
    type: int
    default: 60
  munge_credential:
    description:
      - A credential that another host's munge made, to be read by this host's. Whether both have the same key no host can tell alone.
      - Nothing is read unless given.
    type: str
    default: ""
extends_documentation_fragment:
  - hpcguard.slurm.attributes
  - hpcguard.slurm.attributes.info
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Gather the evidence of a compute node
  hpcguard.slurm.verify_info:
    part: node
    node_name: k8s-node-01
    conf: "{{ hpcguard_cluster.conf }}"
    settings:
      HealthCheckInterval: 300

- name: Make a credential for the nodes to read
  hpcguard.slurm.verify_info:
    part: credential
  no_log: true
  register: made
"""

RETURN = r"""
evidence:
  description: Raw evidence, in the shape that C(module_utils/checklist.py) judges.
  returned: success
  type: dict
  sample: {started: 1796000000, script: {kind: file, mode: "0755"}}
"""

import hashlib
import os
import stat
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import (
    checklist,
    loaders,
    scontrol_text,
    slurm_conf,
    slurm_layout,
    verify_evidence,
)

UNIT_PROPERTIES = (
    "LoadState", "UnitFileState", "ActiveState", "SubState", "Result", "MainPID", "Restart", "RestartUSec", "KillMode",
    "NeedDaemonReload", "StartLimitInterval", "StartLimitIntervalSec", "StartLimitIntervalUSec", "StartLimitBurst",
    "ExecStartPre", "ExecMainStartTimestamp", "ExecMainStartTimestampMonotonic", "InactiveExitTimestamp",
    "ActiveEnterTimestamp", "ActiveEnterTimestampMonotonic", "After", "Wants",
    "TimersMonotonic", "NextElapseUSecMonotonic", "NextElapseUSecRealtime", "AccuracyUSec", "RandomizedDelayUSec",
)  # fmt: skip
SHOWN_KEYS = ("ClusterName", "SLURM_VERSION", "AccountingStorageType", "JobAcctGatherFrequency")
LIMIT = 20
WAIT_LIMIT = 90
# A day of steps is proof enough, and a small question to the database.
STEPS_SINCE = 86400


def show(unit):
    return loaders.systemctl_show(unit, UNIT_PROPERTIES)


def epoch_of(stamp):
    """Local time as systemd prints it (``Tue 2026-12-01 10:00:00 CET``) in seconds since the epoch, 0 for none."""
    words = [word for word in stamp.split() if word[:1].isdigit()]
    try:
        return time.mktime(time.strptime(" ".join(words[:2]), "%Y-%m-%d %H:%M:%S"))
    except ValueError:
        return 0


def digest_of(path):
    content = loaders.read_bytes(path, 1 << 22)
    return None if content is None else hashlib.sha256(content).hexdigest()


def journal_line(unit, since, words):
    """The newest line of a unit's journal with these words, empty when there is none."""
    argv = ["journalctl", "--no-pager", "--quiet", "--output=short-iso", "--reverse", "--lines=2000", "--unit=" + unit]
    done = loaders.run(argv + ["--since=@%d" % since], LIMIT)
    return next((line for line in done.out.splitlines() if words in line), "")


def timed_run(argv, limit):
    begun = loaders.now()
    done = loaders.run(argv, limit, max_bytes=1 << 16)
    return {"rc": done.rc, "out": done.out, "err": done.err, "timed_out": done.timed_out, "seconds": round(loaders.now() - begun, 2)}


# --- compute node -------------------------------------------------------------------------------


def look_at_script(path):
    try:
        status = os.lstat(path)
    except OSError:
        return {"kind": "absent", "problem": ""}
    record = {
        "kind": "file" if stat.S_ISREG(status.st_mode) else ("link" if stat.S_ISLNK(status.st_mode) else "other"),
        "uid": status.st_uid,
        "gid": status.st_gid,
        "mode": "%04o" % stat.S_IMODE(status.st_mode),
        "problem": loaders.path_problem(path),
    }
    if record["kind"] == "file":
        record["sha256"] = digest_of(path)
        if not record["problem"] and (status.st_uid != 0 or status.st_mode & 0o022):
            record["problem"] = "may be written by others than root"
    return record


def dry_run(params, script):
    """Run the script as slurmd would, without draining. Never a file that others than root could have written."""
    if script["kind"] != "file" or script["problem"]:
        return None
    argv = ["/usr/bin/env", "-i", "SLURMD_NODENAME=" + params["node_name"], params["script"], "--dry-run"]
    done = timed_run(argv, checklist.DRY_RUN_LIMIT)
    done["sha256_after"] = digest_of(params["script"])
    return done


def start_of(show):
    """When a daemon was started. From Slurm 23.11 on a reconfigure puts a new process into the running service: that is no start."""
    service = max(epoch_of(show.get(key, "")) for key in ("InactiveExitTimestamp", "ActiveEnterTimestamp"))
    process = epoch_of(show.get("ExecMainStartTimestamp", ""))
    return min(process, service or process)


def look_at_heartbeat(params, started, conf):
    """The last beat. Right after slurmd's start, or after a new interval, the first one is waited for."""
    path, since = params["heartbeat"], started
    interval = int(params["settings"].get("HealthCheckInterval") or 0)
    due = started + params["first_beat"]
    if conf and os.path.exists(conf) and os.stat(conf).st_mtime > started + 5:  # handed out later, by a reconfigure
        due = os.stat(conf).st_mtime + interval + params["first_beat"]
    worth_it = interval and started and os.path.exists(params["script"])
    while True:
        text = loaders.read_text(path, 4096)
        if not worth_it or verify_evidence.heartbeat(text)["epoch"] >= since or time.time() >= due:
            return None if text is None else {"text": text}
        time.sleep(0.5)


def look_at_conf(path, release):
    """Digests of a slurm.conf with all that it includes, and what it says of the health check."""
    conf = slurm_conf.parse(path, loaders.read_bytes, release) if path else slurm_conf.Conf(path, release)
    values = {key: conf.value(key) for key in checklist.HEALTH_KEYS + ("ClusterName",)}
    return {
        "path": path,
        "files": {name: digest_of(name) for name in conf.paths},
        "values": {key: slurm_conf.readable(value) for key, value in values.items() if value is not None},
    }


def look_at_node_conf(conf, release):
    """The configuration that slurmd uses: what slurmctld handed out, or the local file."""
    if conf.get("mode") != "configless":
        return look_at_conf(conf.get("path"), release)
    folder = os.path.realpath("/run/slurm/conf") if os.path.islink("/run/slurm/conf") else conf.get("cache_dir")
    left_over = conf.get("left_over")
    return dict(
        look_at_conf(os.path.join(folder, "slurm.conf") if folder else None, release),
        left_over={left_over: digest_of(left_over)} if left_over else {},
    )


def look_at_wait(path, slurmd):
    """Traces of the wait script's last run. Where neither systemd nor the journal has any, it is run now."""
    call = verify_evidence.wait_call(slurmd, path)
    if call is None:
        return {"ready": "", "run": None}
    line = journal_line("slurmd", epoch_of(slurmd.get("InactiveExitTimestamp", "")), checklist.CONTROLLER_READY)
    script = look_at_script(path)
    forgotten = not call["stop"] and not line and script["kind"] == "file" and not script["problem"]
    return {"ready": line, "run": timed_run(slurm_layout.words(call["argv"]), WAIT_LIMIT) if forgotten else None}


def make_credential():
    """A credential without content; empty where munge is not used or does not answer."""
    made = loaders.run(["munge", "-n"], LIMIT)
    return {"credential": made.out if made.rc == 0 else ""}


def read_credential(credential):
    """How munge takes another host's credential: None when there was none to read."""
    if not credential:
        return None
    done = loaders.run(["unmunge", "-n"], LIMIT, stdin=credential)
    return {"rc": done.rc, "err": done.err[:300]}


def look_at_node(params):
    credential = read_credential(params["munge_credential"])
    slurmd = show("slurmd.service")
    started = start_of(slurmd)
    conf = look_at_node_conf(params["conf"], params["release"])
    # before the dry run, so that this run can be no proof of slurmd's
    beat = look_at_heartbeat(params, started, conf["path"])
    now = time.time()
    wait = look_at_wait(params["wait_script"], slurmd)
    script = look_at_script(params["script"])
    return {
        "node": params["node_name"],
        "release": params["release"],
        "now": now,
        "munge": show("munge.service"),
        "credential": credential,
        "slurmd": slurmd,
        "started": started,
        "conf": conf,
        "heartbeat": beat,
        "script": script,
        "journal": {"health": journal_line("slurmd", started, checklist.HEALTH_PASSED) if started else "", "ready": wait["ready"]},
        "wait_run": wait["run"],
        "dry_run": dry_run(params, script),
    }


# --- controller ---------------------------------------------------------------------------------


class Controller:
    """What slurmctld, its accounting and the patrol say."""

    def __init__(self, params):
        self.params = params

    def ask(self, program, *args):
        path = self.params["programs"].get(program)
        if not path:
            return loaders.Result(127, err="%s was not found" % program)
        return loaders.scontrol(path, args, LIMIT, self.params["conf"].get("path"))

    def look(self):
        shown = self.ask("scontrol", "show", "config")
        config = scontrol_text.parse_config(shown.out) if shown.rc == 0 else {}
        listed = self.ask("scontrol", "-o", "show", "node")
        nodes = scontrol_text.parse_nodes(listed.out) if listed.rc == 0 else []
        timer = show("slurm-cluster-health.timer")
        slurmctld = show("slurmctld.service")
        now, uptime = time.time(), loaders.now()
        conf = look_at_conf(self.params["conf"].get("path"), self.params["release"])
        probe = checklist.needs_probe(config, self.params["settings"])
        recorded = self.recorded_steps(slurmctld) if probe else {"rows": []}
        keys = set(SHOWN_KEYS).union(self.params["settings"])
        return {
            "release": self.params["release"],
            "now": now,
            "uptime": uptime,
            "config": {
                "rc": shown.rc,
                "err": shown.err[:1000],
                # only these: others may hold secrets
                "values": {key: value for key, value in config.items() if key in keys},
            },
            "controllers": len([key for key in config if key.startswith("SlurmctldHost[")]) or 1,
            "conf": conf,
            "nodes": {"rc": listed.rc, "err": listed.err[:1000], "list": nodes},
            "munge": show("munge.service"),
            "slurmctld": slurmctld,
            "slurmdbd": show("slurmdbd.service"),
            "timer": timer,
            "service": show("slurm-cluster-health.service"),
            "next_elapse": verify_evidence.next_elapse(timer, now, uptime, epoch_of),
            "accounting": self.accounting(config.get("ClusterName") or conf["values"].get("ClusterName", "")),
            "recorded": recorded,
            "needs_probe": probe and not recorded["rows"],
        }

    def accounting(self, cluster):
        """Whether slurmdbd answers and knows the cluster; it keeps names in lower case."""
        done = self.ask("sacctmgr", "-n", "-P", "show", "cluster", "format=cluster")
        listed = cluster.lower() in done.out.lower().split()
        return {"rc": done.rc, "out": done.out[:1000], "err": done.err[:1000], "listed": listed}

    def recorded_steps(self, slurmctld):
        """Steps whose memory was sampled, begun since slurmctld's start.

        The setting cannot change without that start, so a slurmd that was restarted later asks for no new proof.
        """
        since = max(epoch_of(slurmctld.get("ExecMainStartTimestamp", "")), time.time() - STEPS_SINCE)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since))
        done = self.ask("sacct", "-n", "-P", "-a", "-S", stamp, "-o", "JobID,Start,State,MaxRSS")
        return {"since": stamp, "rc": done.rc, "rows": verify_evidence.recorded_steps(done.out, stamp)[:3]}


def main():
    module = AnsibleModule(
        argument_spec={
            "part": {"type": "str", "required": True, "choices": ["node", "controller", "dbd", "credential"]},
            "node_name": {"type": "str"},
            "conf": {"type": "dict", "default": {}},
            "programs": {"type": "dict", "default": {}},
            "release": {"type": "list", "elements": "int", "default": []},
            "settings": {"type": "dict", "default": {}},
            "script": {"type": "path", "default": "/usr/local/bin/slurm_health_check.sh"},
            "heartbeat": {"type": "path", "default": "/run/hpcguard/health_check.last"},
            "wait_script": {"type": "path", "default": "/usr/local/bin/wait-for-slurmctld.sh"},
            "first_beat": {"type": "int", "default": 60},
            "munge_credential": {"type": "str", "default": "", "no_log": True},
        },
        required_if=[("part", "node", ("node_name",))],
        supports_check_mode=True,
    )
    look = {
        "node": look_at_node,
        "controller": lambda params: Controller(params).look(),
        "dbd": lambda params: {"slurmdbd": show("slurmdbd.service"), "munge": show("munge.service")},
        "credential": lambda params: make_credential(),
    }[module.params["part"]]
    try:
        evidence = look(module.params)
    except (OSError, IOError) as error:  # a host too sick to be looked at is a result, and the report has to say so
        evidence = {"error": str(error)}
    module.exit_json(changed=False, evidence=evidence)


if __name__ == "__main__":
    main()
