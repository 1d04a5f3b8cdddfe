"""The daemons of the controller, brought back by Ansible itself with a module ``daemon`` that only notes what it was asked."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from .conftest import ROLE, Play

DAEMON = """
import os
from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule({name: {"type": "str"} for name in ("name", "action", "timeout")})
with open(os.environ["ASKED"], "a") as asked:
    asked.write("%(action)s %(name)s\\n" % module.params)
if module.params["name"] == os.environ["SILENT"]:
    module.fail_json(msg="was not ready within 1 seconds")
module.exit_json(changed=True, main_pid=7)
"""

PLAYBOOK = f"""
- name: Bring the daemons back as a phase does
  hosts: all
  gather_facts: false
  vars_files: [{ROLE}/vars/main.yml]
  vars:
    deploy_ready_timeout: 1
    __rollout_actions: "{{{{ asked_for.split(',') }}}}"
  tasks:
    - name: Bring them back
      block:
        - name: Include the tasks
          ansible.builtin.include_tasks: {ROLE}/tasks/controller_daemons.yml
      rescue:
        - name: Keep what went wrong
          ansible.builtin.debug:
            msg: "KEPT {{{{ ansible_failed_result.msg }}}}"
"""

Bring = t.Callable[..., tuple[list[str], str]]


@pytest.fixture
def bring(play: Play, tmp_path: pathlib.Path) -> Bring:
    """``bring(silent, HOST=actions)``: what the daemons were asked, in order, and what the run said."""

    def run(silent: str = "", **actions: str) -> tuple[list[str], str]:
        asked = tmp_path / "asked"
        asked.write_text("")
        hosts = [f'{host} ansible_connection=local asked_for="{words}"' for host, words in actions.items()]
        inventory = "\n".join([*hosts, "[slurm_controller]", "ctl", *(["backup"] if "backup" in actions else []), ""])
        said = play(PLAYBOOK, inventory, {"daemon": DAEMON}, ASKED=str(asked), SILENT=silent)
        return asked.read_text().splitlines(), said

    return run


TWO_HOSTS = {"ctl": "restart_slurmctld,reconfigure", "db": "restart_slurmdbd"}
ONE_HOST = {"ctl": "restart_slurmctld,restart_slurmdbd,reconfigure"}


@pytest.mark.parametrize("hosts", [TWO_HOSTS, ONE_HOST])
def test_case_49_slurmctld_is_restarted_after_slurmdbd_answers(bring: Bring, hosts: dict[str, str]) -> None:
    """Whatever the order of the inventory, and on one host as on two."""
    assert bring(**hosts)[0] == ["restart slurmdbd", "restart slurmctld", "reconfigure slurmctld"]


@pytest.mark.parametrize("hosts", [TWO_HOSTS, ONE_HOST])
def test_case_49_slurmctld_is_not_touched_while_its_slurmdbd_is_silent(bring: Bring, hosts: dict[str, str]) -> None:
    """It is alive and has the state: also where slurmdbd failed on a host of its own."""
    asked, said = bring(silent="slurmdbd", **hosts)
    assert asked == ["restart slurmdbd"]
    assert "KEPT was not ready within 1 seconds" in said
    if "db" in hosts:
        assert "KEPT slurmctld was not touched, since slurmdbd did not come back on db" in said


TWO_CONTROLLERS = dict.fromkeys(("ctl", "backup"), "restart_slurmctld,reconfigure")


def test_both_controllers_are_restarted_and_one_reconfigures(bring: Bring) -> None:
    """A standby takes no such request, and it reads its file when it takes over (backup.c run_backup())."""
    assert bring(**TWO_CONTROLLERS)[0] == ["restart slurmctld", "restart slurmctld", "reconfigure slurmctld"]


def test_the_backup_controller_is_left_alone_while_the_primary_is_silent(bring: Bring) -> None:
    """It works with what it has, and restarted into the same trouble the cluster would have none."""
    asked, said = bring(silent="slurmctld", **TWO_CONTROLLERS)
    assert asked == ["restart slurmctld"]
    assert "KEPT slurmctld was not touched, since it did not come back on ctl" in said
