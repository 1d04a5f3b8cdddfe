"""The adopted inventory as files: Ansible itself reads back what was meant, whatever the cluster said."""

from __future__ import annotations

import dataclasses
import pathlib
import typing as t

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible.vars.manager import VariableManager
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hpcguard.slurm.plugins.plugin_utils import adopt, adopt_files

HOSTILE = "{{ 1 + 1 }}"
Vars = dict[str, t.Any]


def found(**changes: t.Any) -> adopt.Adopted:
    plain = adopt.Adopted(
        cluster="hpc",
        version="24.11.5",
        groups={
            "slurm_controller": {"ctl": {"ansible_host": "ctl.example.org"}},
            "slurm_dbd": {"ctl": {}},
            "slurm_compute": {"n1": {}, "n2": {}, "n3": {}, "gpu": {"cluster_node_name": "gpu-0"}, "n5": {}},
        },
        left_out={"CLOUD: comes and goes": ["c1", "c2", "c3", "x\n- evil"]},
        connection={"ansible_user": "root", "ansible_become": True, "ansible_port": 2222},
        paths={},
        found_paths={"cluster_conf_path": "/etc/slurm/slurm.conf", "cluster_bin_dirs": ["/usr/bin", "/usr/sbin"]},
        conf=adopt.Conf([("SlurmdTimeout", "600", "300"), ("ReturnToService", "", "2")], {"SlurmdTimeout": (600, "chosen")}, {"X": "why"}),
        patrol="enabled, active, every 300 s",
        patrol_interval=900,
        notes=[],
    )
    return dataclasses.replace(plain, **changes)


def read_back(inventory: adopt.Adopted, folder: pathlib.Path) -> tuple[InventoryManager, DataLoader]:
    for name, text in adopt_files.files(inventory).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    loader = DataLoader()
    return InventoryManager(loader=loader, sources=[str(folder)]), loader


def test_ansible_reads_back_hosts_groups_and_their_order(tmp_path: pathlib.Path) -> None:
    manager, _loader = read_back(found(), tmp_path)
    groups = manager.get_groups_dict()
    assert {group: groups[group] for group in adopt.GROUPS} == {
        "slurm_controller": ["ctl"],
        "slurm_dbd": ["ctl"],
        "slurm_compute": ["n1", "n2", "n3", "gpu", "n5"],
    }
    assert manager.get_host("gpu").vars["cluster_node_name"] == "gpu-0"
    assert manager.get_host("ctl").vars["ansible_host"] == "ctl.example.org"


def test_ranges_stand_for_many_hosts(tmp_path: pathlib.Path) -> None:
    nodes: dict[str, Vars] = {f"node{number:04}": {} for number in range(1, 3001)}
    inventory = found(groups={"slurm_controller": {"ctl": {}}, "slurm_dbd": {}, "slurm_compute": nodes})
    text = adopt_files.files(inventory)["hosts.yml"]
    assert "    node[0001:3000]:\n" in text and len(text.splitlines()) < 30
    manager, _loader = read_back(inventory, tmp_path)
    assert manager.get_groups_dict()["slurm_compute"] == list(nodes)
    assert "slurm_dbd" in manager.groups


def variables(inventory: adopt.Adopted) -> Vars:
    """What is in force, with comments gone."""
    merged: Vars = {}
    for name, text in adopt_files.files(inventory).items():
        if name.startswith("group_vars/"):
            merged |= yaml.safe_load(text) or {}
    return merged


def test_variables_in_force_and_those_that_are_only_told() -> None:
    assert variables(found()) == {
        "ansible_user": "root",
        "ansible_become": True,
        "ansible_port": 2222,
        "slurm_conf_settings": {"SlurmdTimeout": 600},
        "slurm_conf_leave": ["X"],
    }
    texts = adopt_files.files(found())
    assert "# cluster_bin_dirs: [/usr/bin, /usr/sbin]\n" in texts["group_vars/all/cluster.yml"]
    assert "# cluster_conf_path: /etc/slurm/slurm.conf\n" in texts["group_vars/all/cluster.yml"]
    assert "# SlurmdTimeout    600 -> stays\n" in texts["group_vars/all/slurm_conf.yml"]
    assert "# ReturnToService  (not set) -> 2\n" in texts["group_vars/all/slurm_conf.yml"]
    assert "# patrol_interval: 900\n" in texts["group_vars/all/patrol.yml"]


def test_a_cluster_without_anything_special_has_no_variable_in_force() -> None:
    assert variables(found(connection={}, conf=adopt.Conf([], {}, {}))) == {}
    assert "group_vars/all/patrol.yml" not in adopt_files.files(found(patrol=None))


def test_what_was_given_is_in_force_and_what_was_found_beside_it_is_told() -> None:
    text = adopt_files.files(found(paths={"cluster_conf_path": "/a b/slurm.conf"}))["group_vars/all/cluster.yml"]
    assert yaml.safe_load(text) == {"cluster_conf_path": "/a b/slurm.conf"}
    assert "/etc/slurm/slurm.conf" not in text and "# cluster_bin_dirs:" in text


def test_templates_are_marked_so_that_ansible_never_fills_them_in(tmp_path: pathlib.Path) -> None:
    conf = adopt.Conf([], {"HealthCheckProgram": (HOSTILE, HOSTILE)}, {})
    inventory = found(conf=conf, paths={"cluster_conf_path": HOSTILE, "cluster_bin_dirs": [HOSTILE]}, connection={"ansible_user": "{% x"})
    manager, loader = read_back(inventory, tmp_path)
    # to see that a template would be filled in
    (tmp_path / "group_vars" / "all" / "zz.yml").write_text(f"mine: '{HOSTILE}'\n", encoding="utf-8")
    inforce = VariableManager(loader=loader, inventory=manager).get_vars(host=manager.get_host("ctl"))
    names = ("mine", "slurm_conf_settings", "cluster_conf_path", "cluster_bin_dirs", "ansible_user")
    filled = [Templar(loader=loader, variables=inforce).template(inforce[name]) for name in names]
    assert str(filled[0]) == "2"
    assert filled[1:] == [{"HealthCheckProgram": HOSTILE}, HOSTILE, [HOSTILE], "{% x"]


@pytest.mark.parametrize(
    "text", ["yes", "no", "null", "~", "012", "1e3", "0x10", "1:20", "", " x ", "a: b", "# x", "- x", "\x1b[2Jx", "é\u202ey", "'", "!x"]
)
def test_words_that_yaml_would_take_for_something_else(text: str) -> None:
    dumped = adopt_files.dump({"key": text})
    assert yaml.safe_load(dumped) == {"key": text}
    assert all(line.isprintable() for line in dumped.splitlines())


ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


class Reader(yaml.SafeLoader):
    """Takes the mark for what is under it."""


Reader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(t.cast(yaml.ScalarNode, node)))


@settings(deadline=None, max_examples=60)
@given(ANY_TEXT, ANY_TEXT)
def test_every_file_is_yaml_that_says_what_was_meant_whatever_the_text(value: str, remark: str) -> None:
    """Neither a value nor a comment can add a line, a key or an escape sequence."""
    inventory = found(
        cluster=remark,
        version=remark,
        left_out={remark: [remark]},
        connection={"ansible_user": value},
        paths={"cluster_conf_path": value},
        found_paths={"cluster_bin_dirs": [remark]},
        conf=adopt.Conf([("K", remark, remark)], {"HealthCheckProgram": (value, remark)}, {"K": remark}),
        patrol=remark,
    )
    texts = adopt_files.files(inventory)
    read = {name: yaml.load(text, Reader) for name, text in texts.items()}
    assert read["group_vars/all/connection.yml"] == {"ansible_user": value}
    assert read["group_vars/all/cluster.yml"] == {"cluster_conf_path": value}
    assert read["group_vars/all/slurm_conf.yml"] == {"slurm_conf_settings": {"HealthCheckProgram": value}, "slurm_conf_leave": ["K"]}
    assert read.get("group_vars/all/patrol.yml") is None
    assert list(read["hosts.yml"]) == list(adopt.GROUPS)
    assert not any(character < " " and character != "\n" for text in texts.values() for character in text)
