"""What a run that --limit narrows learns of the controllers outside it: the role cluster, which every rollout begins with."""

from __future__ import annotations

import re

import pytest

from .conftest import ROOT, Play

LOOK = """
from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule({"controller": {"type": "bool"}, "bin_dirs": {"type": "list"}, "state_dir": {"type": "path"}})
module.exit_json(cluster={"asked_as": "controller" if module.params["controller"] else "host", "interrupted": []})
"""

INVENTORY = """
[slurm_controller]
first ansible_connection=local
second ansible_connection=local
third ansible_host=127.0.0.1 ansible_port=1 ansible_connection=ssh

[slurm_compute]
node ansible_connection=local
"""

PLAYBOOK = """
- name: Look as a run of these hosts does
  hosts: %s
  gather_facts: false
  vars_files: [%s/roles/cluster/defaults/main.yml]
  tasks:
    - name: Include the tasks
      ansible.builtin.include_tasks: %s/roles/cluster/tasks/main.yml

    - name: Say what is known of each host
      ansible.builtin.debug:
        msg: "KNOWN {{ item }}: {{ hostvars[item].hpcguard_cluster.asked_as | default('nothing') }}."
      run_once: true
      loop: "{{ groups.all }}"
"""

ALL = {"first": "controller", "second": "controller", "third": "nothing"}


@pytest.mark.parametrize(
    ("hosts", "known"),
    [
        ("node", {**ALL, "node": "host"}),
        ("first:node", {**ALL, "node": "host"}),
        ("second:node", {**ALL, "node": "host"}),
        ("second", {**ALL, "node": "nothing"}),
    ],
)
def test_a_limited_run_knows_every_controller_that_answers(play: Play, hosts: str, known: dict[str, str]) -> None:
    """The checklist asks all of them with the programs and paths of each; one that is away stops nobody."""
    said = play(PLAYBOOK % (hosts, ROOT, ROOT), INVENTORY, {"cluster_info": LOOK})
    assert dict(re.findall(r"KNOWN (\w+): (\w+)\.", said)) == known
