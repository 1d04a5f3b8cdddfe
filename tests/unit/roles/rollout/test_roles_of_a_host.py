"""Which roles a host takes on, worked out by Ansible from the role's own variables."""

from __future__ import annotations

import re

from .conftest import ROLE, Play

INVENTORY = """
ctl mode=local
configless mode=configless
file mode=local
login mode=none
database mode=local

[slurm_controller]
ctl

[slurm_dbd]
database

[slurm_compute]
configless
file
"""

PLAYBOOK = f"""
- name: Say which roles each host takes on
  hosts: all
  gather_facts: false
  vars_files: [{ROLE}/vars/main.yml]
  vars:
    hpcguard_cluster: {{conf: {{mode: "{{{{ mode }}}}"}}}}
  tasks:
    - name: Say it
      ansible.builtin.debug:
        msg: "ROLES {{{{ inventory_hostname }}}}: {{{{ __rollout_my_roles | join(' ') }}}}."
"""


def test_case_24_and_case_30_no_host_gets_what_is_not_its_own(play: Play) -> None:
    """A configless node never gets a slurm.conf, a login node, in none of the groups, neither that nor a slurmd.

    A host of slurmdbd alone keeps the slurm.conf that its client commands read.
    """
    said = re.findall(r"ROLES (\w+): ([a-z_ ]*)\.", play(PLAYBOOK, INVENTORY))
    assert {host: roles.split() for host, roles in said} == {
        "ctl": ["slurmctld", "slurm_conf", "patrol"],
        "configless": ["health_check", "slurmd"],
        "file": ["health_check", "slurmd", "slurm_conf"],
        "login": [],
        "database": ["slurmdbd"],
    }
