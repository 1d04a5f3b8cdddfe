"""The action that writes the inventory: nothing is overwritten unasked, nothing half written, no secret taken over."""

from __future__ import annotations

import os
import pathlib
import socket
import typing as t

import pytest
from ansible import context
from ansible.plugins.action import ActionBase

from ansible_collections.hpcguard.slurm.plugins.action import adopt_inventory as action

Vars = dict[str, t.Any]
LOOK = {
    "cluster": {
        "host": "ctl",
        "conf": {"path": "/etc/slurm/slurm.conf"},
        "slurm": {"bin": {"scontrol": "/usr/bin/scontrol"}},
        "controller": {"ping": True, "config": {"ClusterName": "hpc", "SLURM_VERSION": "22.05.8", "SlurmctldHost[0]": "ctl"}},
    }
}
MORE = {"nodes": [{"NodeName": "10.0.0.5", "State": "IDLE"}], "addresses": {}, "timer": {}}


class Shown:
    """Stands in for Ansible's display."""

    def __init__(self) -> None:
        self.text = ""

    def display(self, text: str) -> None:
        self.text += text + "\n"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    made = Shown()
    monkeypatch.setattr(action, "display", made)
    monkeypatch.setattr(ActionBase, "run", lambda self, tmp=None, task_vars=None: {})
    monkeypatch.setattr(context, "CLIARGS", {})
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args: [()])
    return made


def adopt(folder: pathlib.Path | str, check: bool = False, force: bool = False, **variables: t.Any) -> Vars:
    """Run the action for one controller with these variables of the connection."""
    plugin = action.ActionModule.__new__(action.ActionModule)
    arguments = {"dir": str(folder), "force": force, "standard": {"SlurmdTimeout": 300}, "patrol_interval": "900"}
    plugin._task = type("Task", (), {"args": arguments, "check_mode": check})()
    hostvars = {"ctl.example.org": {"__adopt_look": LOOK, "__adopt_more": MORE, **variables}}
    return plugin.run(
        None, {"ansible_play_hosts": list(hostvars), "groups": {"all": list(hostvars)}, "hostvars": hostvars, "playbook_dir": "playbooks"}
    )


def files(folder: pathlib.Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()}


FILES = ["group_vars/all/cluster.yml", "group_vars/all/connection.yml", "group_vars/all/slurm_conf.yml", "hosts.yml"]


def test_writes_and_says_what_comes_next(shown: Shown, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "a" / "b"
    result = adopt(folder)
    assert result["changed"] and result["written"] == result["files"] == sorted(files(folder)) == FILES
    assert {oct(path.stat().st_mode & 0o777) for path in folder.rglob("*.yml")} == {"0o644"}
    assert f"ansible-playbook -i {folder} hpcguard.slurm.verify --check\n" in shown.text
    assert f"ansible-playbook -i {folder} hpcguard.slurm.deploy --check --diff\n" in shown.text
    assert result["hosts"]["slurm_controller"] == ["ctl"]


def test_a_second_run_changes_nothing(shown: Shown, tmp_path: pathlib.Path) -> None:
    adopt(tmp_path)
    for force in (False, True):
        assert not adopt(tmp_path, force=force)["changed"]


def test_check_mode_writes_nothing_and_tells_the_same(shown: Shown, tmp_path: pathlib.Path) -> None:
    foretold = adopt(tmp_path / "new", check=True)
    assert foretold["changed"] and not (tmp_path / "new").exists() and "would write" in shown.text
    done = adopt(tmp_path / "new")
    assert (foretold["diff"], foretold["written"]) == (done["diff"], done["written"])
    assert {one["after_header"]: one["after"] for one in done["diff"]} == {
        str(tmp_path / "new" / name): text for name, text in files(tmp_path / "new").items()
    }


def test_one_file_in_the_way_stops_all(shown: Shown, tmp_path: pathlib.Path) -> None:
    (tmp_path / "hosts.yml").write_text("mine", encoding="utf-8")
    for check in (True, False):
        result = adopt(tmp_path, check=check)
        assert result["failed"] and "hosts.yml" in result["msg"] and "adopt_force" in result["msg"]
        assert files(tmp_path) == {"hosts.yml": "mine"}
    assert adopt(tmp_path, force=True)["changed"] and "slurm_controller" in files(tmp_path)["hosts.yml"]


def test_a_link_in_the_way_counts_too_and_is_not_written_through(shown: Shown, tmp_path: pathlib.Path) -> None:
    folder, target = tmp_path / "inventory", tmp_path / "target"
    folder.mkdir()
    (folder / "hosts.yml").symlink_to(target)
    assert adopt(folder)["failed"]
    adopt(folder, force=True)
    assert not target.exists() and not (folder / "hosts.yml").is_symlink()


def test_a_write_that_fails_leaves_no_part(shown: Shown, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full when the last of the files is made."""
    calls = iter(range(1, 100))

    def fsync(_descriptor: int) -> None:
        if next(calls) == len(FILES):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    result = adopt(tmp_path)
    assert result["failed"] and "No space left" in result["msg"] and files(tmp_path) == {}


def test_an_empty_directory_name_is_refused(shown: Shown) -> None:
    assert adopt("")["failed"]


def test_secrets_are_neither_written_nor_shown(shown: Shown, tmp_path: pathlib.Path) -> None:
    secret: Vars = {
        "ansible_become_password": "hunter2",
        "ansible_ssh_extra_args": "-o X=hunter2",
        "ansible_ssh_common_args": "sshpass -p x ssh",
    }
    (tmp_path / "group_vars/all").mkdir(parents=True)
    (tmp_path / "group_vars/all/connection.yml").write_text("ansible_become_password: hunter2\n", encoding="utf-8")
    result = adopt(tmp_path, force=True, ansible_user="ops", **secret)
    assert "hunter2" not in str(files(tmp_path)) + str(result) + shown.text and "sshpass" not in str(files(tmp_path))
    assert "ansible_user: ops" in files(tmp_path)["group_vars/all/connection.yml"]
    for name in secret:
        assert f"{name}: secrets are not written" in shown.text


def test_the_command_line_is_taken_over_and_variables_count_more(
    shown: Shown, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"remote_user": "ops", "become": True, "private_key_file": "/k", "connection": "ssh", "become_ask_pass": True}
    monkeypatch.setattr(context, "CLIARGS", given)
    adopt(tmp_path, ansible_ssh_private_key_file="/mine")
    text = files(tmp_path)["group_vars/all/connection.yml"]
    assert "ansible_user: ops\n" in text and "ansible_become: true\n" in text and "ansible_ssh_private_key_file: /mine\n" in text
    assert "ansible_connection" not in text
    assert "give -K again" in shown.text


def test_a_template_that_was_not_filled_in_is_left_out(shown: Shown, tmp_path: pathlib.Path) -> None:
    adopt(tmp_path, ansible_remote_tmp="{{ nosuch }}")
    assert "nosuch" not in str(files(tmp_path))


def test_other_files_of_the_inventory_are_named(shown: Shown, tmp_path: pathlib.Path) -> None:
    (tmp_path / "host_vars").mkdir()
    for name in ("old.ini", "host_vars/n1.yml", "README.md"):
        (tmp_path / name).write_text("", encoding="utf-8")
    adopt(tmp_path)
    assert "counts too: host_vars/n1.yml, old.ini\n" in shown.text


def test_hostile_text_steers_no_terminal(shown: Shown, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {**LOOK["cluster"]["controller"]["config"], "SlurmctldHost[1]": "\x1b]0;x\x07evil\x1b[2J", "ClusterName": "a\x1b[31mb"}  # type: ignore[index]
    cluster = {**LOOK["cluster"], "controller": {"ping": True, "config": config}}
    monkeypatch.setitem(LOOK, "cluster", cluster)
    result = adopt(tmp_path)
    assert "\x1b" not in shown.text + str(result["notes"]) + str(files(tmp_path))
    assert "evil" in shown.text


def test_no_answer_writes_nothing(shown: Shown, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOOK, "cluster", {**LOOK["cluster"], "controller": {"ping": False, "error": "Unable to contact"}})
    result = adopt(tmp_path)
    assert result["failed"] and "Unable to contact" in result["msg"] and files(tmp_path) == {}


def test_a_resolver_that_hangs_is_asked_no_more(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def getaddrinfo(name: str, _port: None) -> list[tuple[()]]:
        asked.append(name)
        return [()]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    resolver = action._Resolver()
    assert resolver.knows("a") and resolver.knows("10.0.0.1") and asked == ["a"]
    resolver.end = 0
    assert not resolver.knows("b") and resolver.knows("10.0.0.2") and asked == ["a"]
