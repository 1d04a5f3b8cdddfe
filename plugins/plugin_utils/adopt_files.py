# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An adopted inventory as files. Every value goes through a YAML dumper, every comment through :func:`clean_text`."""

from __future__ import annotations

import typing as t

import yaml

from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import clean_text
from ansible_collections.hpcguard.slurm.plugins.plugin_utils import adopt

Vars = dict[str, t.Any]
JINJA = ("{{", "{%", "{#")


class _Unsafe(str):
    """Text that Ansible must not take for a template."""


class _Dumper(yaml.SafeDumper):
    """Plain YAML, lists indented, nothing instead of null."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: t.Any) -> bool:
        return True


_Dumper.add_representer(_Unsafe, lambda dumper, value: dumper.represent_scalar("!unsafe", str(value), style="'"))
_Dumper.add_representer(type(None), lambda dumper, _value: dumper.represent_scalar("tag:yaml.org,2002:null", ""))


def dump(value: t.Any) -> str:
    """A value as YAML that Ansible reads back as it is."""
    return str(yaml.dump(_guarded(value), Dumper=_Dumper, default_flow_style=False, sort_keys=False, width=4096))


def _guarded(value: t.Any) -> t.Any:
    """Text that could be a template, marked."""
    if isinstance(value, dict):
        return {key: _guarded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_guarded(one) for one in value]
    return _Unsafe(value) if isinstance(value, str) and any(mark in value for mark in JINJA) else value


def comment(text: str, indent: int = 0) -> str:
    return f"{' ' * indent}# {clean_text(text)}\n"


def commented(value: Vars) -> str:
    """Variables as comments, each on one line."""
    return "".join(comment(f"{key}: {_flow(one)}") for key, one in value.items())


def _flow(value: t.Any) -> str:
    text = str(yaml.dump(_guarded(value), Dumper=_Dumper, default_flow_style=True, width=4096))
    return text.removesuffix("\n").removesuffix("\n...")


def files(found: adopt.Adopted) -> dict[str, str]:
    """{path in the inventory's directory: text}"""
    texts = {
        "hosts.yml": _hosts(found),
        "group_vars/all/connection.yml": _connection(found),
        "group_vars/all/cluster.yml": _cluster(found),
        "group_vars/all/slurm_conf.yml": _slurm_conf(found),
    }
    if found.patrol:
        texts["group_vars/all/patrol.yml"] = _patrol(found)
    return texts


def _hosts(found: adopt.Adopted) -> str:
    text = "---\n" + comment(f"The cluster {found.cluster} (Slurm {found.version}) as its controller knew it; yours to edit. 主机清单")
    for group, title in (
        ("slurm_controller", "Hosts running slurmctld, the primary first. 控制节点（主在前）"),
        ("slurm_dbd", "The host running slurmdbd. 记账节点"),
        ("slurm_compute", "Hosts running slurmd. 计算节点"),
    ):
        text += "\n" + comment(title) + dump({group: {"hosts": _entries(found.groups[group])}})
    if found.left_out:
        text += "\n" + comment("Nodes that slurmctld knows and that are left out. 未纳入的节点")
    for reason, names in found.left_out.items():
        text += comment(reason)
        text += "".join(comment(f"  {name}") for name in adopt.ranges(names))
    return text


def _entries(hosts: dict[str, Vars]) -> Vars:
    """Hosts that need no variables as ranges, the others one by one."""
    entries: Vars = {}
    plain: list[str] = []
    for name, variables in hosts.items():
        if variables:
            entries.update(dict.fromkeys(adopt.ranges(plain)))
            plain = []
            entries[name] = variables
        else:
            plain.append(name)
    entries.update(dict.fromkeys(adopt.ranges(plain)))
    return entries


def _connection(found: adopt.Adopted) -> str:
    text = "---\n" + comment("How Ansible reaches the hosts, as it reached the controller. Passwords are never written here. 连接方式")
    return text + (dump(found.connection) if found.connection else comment("ansible_user: root"))


def _cluster(found: adopt.Adopted) -> str:
    text = "---\n" + comment("Found by looking at the running cluster at every run; set it only where that fails. 默认自动探测")
    text += dump(found.paths) if found.paths else ""
    return text + commented({key: value for key, value in found.found_paths.items() if key not in found.paths})


def _slurm_conf(found: adopt.Adopted) -> str:
    conf = found.conf
    text = "---\n" + comment("What slurmctld had loaded, and what a deploy sets. 现值与标准值")
    width = max([len(key) for key, _live, _standard in conf.shown], default=0)
    for key, live, standard in conf.shown:
        stays = "stays" if key in conf.leave or key in conf.settings else standard
        text += comment(f"{key:<{width}}  {live or '(not set)'} -> {stays}")
    text += "\n" + comment("Values of your own go over the standard; null takes a key out. 在标准值之上覆盖，null 表示删除该键")
    text += comment("slurm_conf_settings: {DefMemPerCPU: 2000, KillWait: 60}") if not conf.settings else "slurm_conf_settings:\n"
    for key, (value, why) in conf.settings.items():
        text += comment(why, 2) if why else ""
        text += _indented(dump({key: value}))
    text += "\n" + comment("Keys of the standard that stay as slurm.conf has them. 保持现状的键")
    text += comment("slurm_conf_leave: [JobAcctGatherType]") if not conf.leave else "slurm_conf_leave:\n"
    for key, why in conf.leave.items():
        text += comment(why, 2) + _indented(dump([key]).lstrip())
    return text


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def _patrol(found: adopt.Adopted) -> str:
    return (
        "---\n"
        + comment(f"slurm-cluster-health.timer now: {found.patrol}. 巡检定时器现状")
        + commented({"patrol_interval": found.patrol_interval})
    )
