#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: queue_info
short_description: Tell why the pending jobs wait, and what is wrong with nodes or a user's jobs
version_added: 0.1.0
description:
  - Puts each pending job into one class, with the numbers that stand against it and the partitions that would take it.
  - Tells large jobs that starve, and what the evidence says of backfill, with cost and way back of each advice.
  - With O(node) or O(user) it tells of a node, or of a user's jobs and what they should ask for, instead.
  - Changes nothing.
options:
  bin_dir:
    description: Directory of Slurm's commands.
    type: path
    default: ""
  conf_path:
    description: The slurm.conf that they use.
    type: path
  node:
    description: NodeName, or a list such as V(n[1-3]), to tell of. V(all) for every node.
    type: str
    default: ""
  user:
    description: User to tell of.
    type: str
    default: ""
  since:
    description: Since when jobs that have ended count, in sacct's own words, such as V(now-7days) or V(2026-12-01).
    type: str
    default: now-7days
extends_documentation_fragment:
  - hpcguard.slurm.attributes
  - hpcguard.slurm.attributes.info
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Ask why jobs wait
  hpcguard.slurm.queue_info:
    bin_dir: /usr/bin

- name: Ask what a user's jobs should ask for
  hpcguard.slurm.queue_info:
    bin_dir: /usr/bin
    user: alice
    since: now-30days
"""

RETURN = r"""
findings:
  description: Each with verdict, evidence and its sources, who acts, and the next step.
  returned: success
  type: list
  elements: dict
  sample: [{id: job_oom, host: "101", confidence: certain, who: user}]
sources:
  description: What was read, and why the rest was not.
  returned: success
  type: list
  elements: dict
  sample: [{name: sacct, why: ""}]
classes:
  description: Number of pending jobs in each class.
  returned: for the queue
  type: dict
  sample: {wait: 12, change_request: 1}
"""

import re

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import (
    job_diagnosis,
    job_evidence,
    job_states,
    node_diagnosis,
    queue_diagnosis,
    rightsizing,
    scontrol_text,
)

# What reaches a command line starts with no dash and holds nothing but this.
WORD = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._:\[\],T+-]*$")


def queue(look, params):
    site = look.site()
    report = queue_diagnosis.report(site)
    cancelled = [tries[-1] for tries in look.accounting(["-a", "-X", "-S", params["since"], "-s", "CA"]).jobs]
    return {"findings": report["findings"] + queue_diagnosis.cancelled_spikes(cancelled), "classes": report["classes"]}


def nodes(look, params):
    args = ["-o", "show", "node"] + ([] if params["node"] == "all" else [params["node"]])
    done = look.call("scontrol", *args)
    look.source("scontrol", "" if done.rc == 0 else job_evidence.last_line(done.err) or "no answer")
    found = [node_diagnosis.explain(one) for one in scontrol_text.parse_nodes(done.out)]
    where = [] if params["node"] == "all" else ["-N", params["node"]]
    jobs = [tries[-1] for tries in look.accounting(["-a", "-X", "-S", params["since"], "-s", "F,NF"] + where).jobs]
    return {"findings": node_diagnosis.black_holes(jobs) + [one for one in found if one]}


def user(look, params):
    jobs = look.accounting(["-u", params["user"], "-S", params["since"]]).jobs
    ill = [tries for tries in jobs if job_states.kind(tries[-1]["state"]) == job_states.BAD]
    # a look at the logs is for one job
    sources = look.sources + [{"name": name, "why": "not read for many jobs"} for name in ("output", "slurmctld.log", "kernel")]
    known = job_diagnosis.seen(ill, sources=sources)
    advice = rightsizing.advise(jobs, look.config, look.partitions())
    return {"findings": (job_diagnosis.diagnose(params["user"], known) if ill else []) + advice}


def main():
    module = AnsibleModule(
        argument_spec={
            "bin_dir": {"type": "path", "default": ""},
            "conf_path": {"type": "path"},
            "node": {"type": "str", "default": ""},
            "user": {"type": "str", "default": ""},
            "since": {"type": "str", "default": "now-7days"},
        },
        mutually_exclusive=[("node", "user")],
        supports_check_mode=True,
    )
    params = module.params
    for name in ("node", "user", "since"):
        if params[name] and not WORD.match(params[name]):
            module.fail_json(msg="%s: %r holds what no such name does" % (name, params[name]))
    look = job_evidence.Look(params["bin_dir"], params["conf_path"])
    look.read_config()
    result = (nodes if params["node"] else user if params["user"] else queue)(look, params)
    missing = [one for one in look.sources if one["why"]]
    for one in result["findings"]:
        one.setdefault("missing", missing)
    module.exit_json(changed=False, sources=look.sources, **result)


if __name__ == "__main__":
    main()
