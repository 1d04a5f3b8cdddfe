"""The daemons of the controller, brought back by Ansible itself with a module ``daemon`` that only notes what it was asked."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]

DAEMON = """
import json, os
from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule({name: {"type": "str"} for name in ("name", "action", "timeout")})
with open(os.environ["ASKED"], "a") as asked:
    asked.write("%(action)s %(name)s\\n" % module.params)
if module.params["name"] == os.environ.get("SILENT"):
    module.fail_json(msg="was not ready within 1 seconds")
module.exit_json(changed=True, main_pid=7)
"""

PLAYBOOK = """
- name: Bring the daemons back as a phase does
  hosts: all
  gather_facts: false
  vars_files: [{vars}]
  vars:
    deploy_ready_timeout: 1
    __rollout_actions: "{{{{ asked_for.split(',') }}}}"
  tasks:
    - name: Bring them back
      block:
        - name: Include the tasks
          ansible.builtin.include_tasks: {tasks}
      rescue:
        - name: Keep what went wrong
          ansible.builtin.debug:
            msg: "KEPT {{{{ ansible_failed_result.msg }}}}"
"""


class Site:
    """An inventory of local hosts and what their daemons were asked."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        collection = root / "ansible_collections" / "hpcguard" / "slurm" / "plugins"
        (collection / "modules").mkdir(parents=True)
        (collection / "modules" / "daemon.py").write_text(DAEMON)
        for part in ("filter", "module_utils"):
            (collection / part).symlink_to(ROOT / "plugins" / part)
        self.play = root / "play.yml"
        rollout = ROOT / "roles" / "rollout"
        self.play.write_text(PLAYBOOK.format(vars=rollout / "vars" / "main.yml", tasks=rollout / "tasks" / "controller_daemons.yml"))

    def run(self, silent: str = "", **actions: str) -> tuple[list[str], str]:
        """What the daemons were asked, in order, and what the run said."""
        asked = self.root / "asked"
        asked.write_text("")
        lines = [f'{host} ansible_connection=local asked_for="{words}"' for host, words in actions.items()]
        (self.root / "inventory").write_text("\n".join([*lines, "[slurm_controller]", "ctl", ""]))
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": "/nowhere",
            "ANSIBLE_COLLECTIONS_PATH": str(self.root),
            "ANSIBLE_LOCAL_TEMP": str(self.root / "local"),
            "ANSIBLE_REMOTE_TEMP": str(self.root / "remote"),
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            "ASKED": str(asked),
            "SILENT": silent,
        }
        command = [sys.executable, "-m", "ansible", "playbook", "-i", str(self.root / "inventory"), str(self.play)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return asked.read_text().splitlines(), done.stdout


@pytest.fixture
def site(tmp_path: pathlib.Path) -> Site:
    return Site(tmp_path)


def test_case_49_slurmctld_is_restarted_after_slurmdbd_answers(site: Site) -> None:
    """Whatever the order of the inventory, and on one host as on two."""
    assert site.run(ctl="restart_slurmctld,reconfigure", db="restart_slurmdbd")[0] == [
        "restart slurmdbd",
        "restart slurmctld",
        "reconfigure slurmctld",
    ]
    assert site.run(ctl="restart_slurmctld,restart_slurmdbd")[0] == ["restart slurmdbd", "restart slurmctld"]


@pytest.mark.parametrize(
    "hosts", [{"ctl": "restart_slurmctld,reconfigure", "db": "restart_slurmdbd"}, {"ctl": "restart_slurmctld,restart_slurmdbd"}]
)
def test_case_49_slurmctld_is_not_touched_while_its_slurmdbd_is_silent(site: Site, hosts: dict[str, str]) -> None:
    """It is alive and has the state: also where slurmdbd failed on a host of its own."""
    asked, said = site.run(silent="slurmdbd", **hosts)
    assert asked == ["restart slurmdbd"]
    assert "KEPT was not ready within 1 seconds" in said
    if "db" in hosts:
        assert "KEPT slurmctld was not touched, since slurmdbd did not come back on db" in said
