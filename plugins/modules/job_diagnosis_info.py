#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: job_diagnosis_info
short_description: Tell why a job ended, or has not begun
version_added: 0.1.0
description:
  - Gathers what sacct, scontrol, the logs and the job's own output say of a job, and comes to a verdict.
  - Of a user's jobs it tells those that went wrong, from what sacct says alone.
  - A source that could not be read is named and makes the verdict less sure. Changes nothing.
options:
  part:
    description:
      - V(controller) comes to a verdict, and names the nodes that have more to say.
      - V(node) returns what one of them has, as RV(lines) and RV(sources), for a second look of the controller.
    type: str
    choices: [controller, node]
    default: controller
  job:
    description: Id of the job, such as V(101), V(101_3) of an array, V(101+1) of a het job, V(101.batch).
    type: str
    default: ""
  user:
    description: A user to tell of instead.
    type: str
    default: ""
  since:
    description: Since when jobs of O(user) that have ended count, in sacct's own words, such as V(now-7days) or V(2026-12-01).
    type: str
    default: now-7days
  lines:
    description: RV(lines) of the nodes.
    type: list
    elements: dict
    default: []
  sources:
    description: RV(sources) of the nodes.
    type: list
    elements: dict
    default: []
  jobs:
    description: RV(jobs) of the controller, for a node.
    type: list
    elements: dict
    default: []
  owner:
    description: RV(owner) of the controller, for a node. Only files of this user are read.
    type: str
    default: ""
  config:
    description: RV(config) of the controller, for a node.
    type: dict
    default: {}
  node_name:
    description: NodeName of this host, for a node.
    type: str
    default: ""
extends_documentation_fragment:
  - hpcguard.slurm.attributes
  - hpcguard.slurm.attributes.info
  - hpcguard.slurm.slurm_commands
author:
  - hpcguard contributors (@hpcguard)
"""

EXAMPLES = r"""
---
- name: Ask why job 101 failed
  hpcguard.slurm.job_diagnosis_info:
    job: "101"
    bin_dir: /usr/bin

- name: Ask what a user's jobs failed of
  hpcguard.slurm.job_diagnosis_info:
    user: alice
    bin_dir: /usr/bin
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
jobs:
  description: The jobs that went wrong, for the nodes.
  returned: on a controller, for a job
  type: list
  elements: dict
owner:
  description: Uid of the job's user.
  returned: on a controller, for a job
  type: str
  sample: "1001"
config:
  description: Where the nodes keep their logs.
  returned: on a controller, for a job
  type: dict
hosts:
  description: NodeNames that have more to say.
  returned: on a controller, for a job
  type: list
  elements: str
lines:
  description: Lines of logs and output.
  returned: on a node
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hpcguard.slurm.plugins.module_utils import job_diagnosis, job_evidence, job_states, quantities, sacct_text

LOGS = ("SlurmdLogFile", "AccountingStorageType")
# A look at these is for one job.
UNREAD = ("output", "slurmctld.log", "slurmd.log", "kernel")


def controller(look, params):
    known = look.job(params["job"], params["lines"], params["sources"])
    hosts = []
    for job in known["trouble"]:
        hosts += [name for name in quantities.hosts(job["failed_node"] or job["node_list"]) if name not in hosts]
    return {
        "findings": job_diagnosis.diagnose(params["job"], known),
        "jobs": known["trouble"],
        "owner": known["owner"],
        "config": {key: look.config[key] for key in LOGS if key in look.config},
        "hosts": hosts[: job_evidence.MOST_NODES],
    }


def node(look, params):
    look.config = params["config"]
    if params["jobs"]:
        look.look_at_node(params["jobs"], params["node_name"])
        look.read_output(params["jobs"], params["owner"])
    return {"lines": look.lines}


def user(look, params):
    look.read_config()
    jobs = look.accounting(["-u", params["user"], "-S", params["since"]]).jobs
    ill = [tries for tries in jobs if job_states.kind(tries[-1]["state"]) == job_states.BAD]
    for name in UNREAD:
        look.source(name, "not read for many jobs")
    return {"findings": job_diagnosis.diagnose(params["user"], job_diagnosis.seen(ill, sources=look.sources)) if ill else []}


def main():
    module = AnsibleModule(
        argument_spec={
            "part": {"type": "str", "choices": ["controller", "node"], "default": "controller"},
            "job": {"type": "str", "default": ""},
            "user": {"type": "str", "default": ""},
            "since": {"type": "str", "default": "now-7days"},
            "bin_dir": {"type": "path", "default": ""},
            "conf_path": {"type": "path"},
            "lines": {"type": "list", "elements": "dict", "default": []},
            "sources": {"type": "list", "elements": "dict", "default": []},
            "jobs": {"type": "list", "elements": "dict", "default": []},
            "owner": {"type": "str", "default": ""},
            "config": {"type": "dict", "default": {}},
            "node_name": {"type": "str", "default": ""},
        },
        mutually_exclusive=[("job", "user")],
        required_one_of=[("job", "user")],
        supports_check_mode=True,
    )
    params = module.params
    if params["user"]:
        for name in ("user", "since"):
            if not sacct_text.is_word(params[name]):
                module.fail_json(msg="%s: %r holds what no such name does" % (name, params[name]))
    elif not sacct_text.parse_id(params["job"]):
        module.fail_json(msg="%r is no job id" % params["job"])
    look = job_evidence.Look(params["bin_dir"], params["conf_path"])
    result = (user if params["user"] else node if params["part"] == "node" else controller)(look, params)
    module.exit_json(changed=False, sources=look.sources, **result)


if __name__ == "__main__":
    main()
