# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a cluster in one screen (SOP chapter 7): what counts of it, and how it is shown. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hpcguard.slurm.plugins.module_utils import quantities, scontrol_text
from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import clean_text
from ansible_collections.hpcguard.slurm.plugins.module_utils.text_columns import fit, wrap

Vars = dict[str, t.Any]
Line = tuple[str, str]  # text, and "good", "bad" or ""

SETTINGS = (
    "HealthCheckInterval",
    "HealthCheckProgram",
    "HealthCheckNodeState",
    "ReturnToService",
    "SlurmdTimeout",
    "JobAcctGatherType",
    "JobCompType",
    "DefMemPerCPU",
)
# Units that are to run, by the group of the host; a unit that is not there at all is no finding on a controller.
UNITS = {"slurm_controller": ("munge", "slurmctld"), "slurm_dbd": ("munge", "slurmdbd"), "slurm_compute": ("munge", "slurmd")}
RUNS = "active/running"
# A health check is late after two intervals and the time that a run may take.
LATE = 120
LABEL = 30


def build(seen: Vars, groups: dict[str, list[str]]) -> Vars:
    """What counts, of what was seen: {host: {cluster: the cluster fact or None, health, snapshot, patrol, ledger}}."""
    reached = {host: look for host, look in seen.items() if look.get("cluster")}
    views = {host: look["cluster"]["controller"] for host, look in reached.items() if look["cluster"].get("controller")}
    view = next((view for view in views.values() if view["ping"]), None)
    config = {key: scontrol_text.plain_value(value) for key, value in (view or {"config": {}})["config"].items()}
    nodes = view["nodes"] if view else []
    return {
        "cluster": clean_text(config.get("ClusterName", "unknown")),
        "not_reached": sorted(set(seen) - set(reached)),
        "slurm": _by({host: look["cluster"]["slurm"]["version"] or "unknown" for host, look in reached.items()}),
        "controllers": {host: {"answers": view["ping"], "error": clean_text(view.get("error", ""))} for host, view in views.items()},
        "settings": {key: clean_text(config[key]) for key in SETTINGS if key in config},
        "services": _services(reached, groups),
        "nodes": {
            "total": len(nodes),
            "in_service": sum(_takes_jobs(node) for node in nodes),
            "out": _by_state([node for node in nodes if not _takes_jobs(node)]),
        },
        "jobs": _by({job["id"]: clean_text(job["state"]) for job in (view["jobs"] if view else [])}, count=True),
        "health": _health({host: reached[host] for host in groups.get("slurm_compute", []) if host in reached}, config),
        "patrol": {host: look["patrol"] for host, look in reached.items() if look.get("patrol")},
        "rollout": {
            "newest": _by({host: "{id} {state}".format(**look["snapshot"]) for host, look in reached.items() if look.get("snapshot")}),
            "interrupted": sorted(host for host, look in reached.items() if look["cluster"]["interrupted"]),
            "deferred": sorted({clean_text(key) for look in reached.values() for key in look["cluster"]["deferred"]}),
        },
        "ledger": sorted((one for look in reached.values() for one in look.get("ledger") or []), key=lambda one: one["time"]),
    }


def _by(values: c.Mapping[str, str], count: bool = False) -> Vars:
    """{value: the names that have it}, or how many."""
    found: dict[str, list[str]] = {}
    for name, value in sorted(values.items()):
        found.setdefault(value, []).append(name)
    return {value: len(names) if count else names for value, names in found.items()}


def _takes_jobs(node: Vars) -> bool:
    return scontrol_text.in_service(node) and not {"DRAIN", "FAIL", "MAINT", "MAINTENANCE"}.intersection(node["flags"])


def _by_state(nodes: list[Vars]) -> list[Vars]:
    """Nodes with the same state, reason and author are one entry."""
    found: dict[tuple[str, ...], Vars] = {}
    for node in nodes:
        told = {key: clean_text(node[key]) for key in ("state", "reason", "reason_user")}
        entry = found.setdefault(tuple(told.values()), {**told, "since": clean_text(node["reason_time"]), "nodes": []})
        entry["nodes"].append(clean_text(node["name"]))
    return list(found.values())


def _services(reached: Vars, groups: dict[str, list[str]]) -> Vars:
    """{unit: {state: hosts}} of the units that a host's groups ask for."""
    states: dict[str, dict[str, str]] = {}
    for group, names in UNITS.items():
        for host in groups.get(group, []):
            for name in names if host in reached else ():
                unit = reached[host]["cluster"]["units"][name]
                told = f"{unit['active_state']}/{unit['sub_state']}" if unit["load_state"] == "loaded" else unit["load_state"]
                if unit["unit_file_state"] == "disabled":
                    told += " (disabled)"
                states.setdefault(name, {})[host] = clean_text(told)
    return {name: _by(hosts) for name, hosts in states.items()}


def _health(hosts: Vars, config: Vars) -> Vars:
    """{verdict: hosts}: pass, failed checks, late, or none."""
    interval = config.get("HealthCheckInterval", "0")
    limit = 2 * int(interval) + LATE if interval.isdigit() and int(interval) else None
    told = {}
    for host, look in hosts.items():
        beat = look.get("health")
        if not beat:
            told[host] = "none"
        elif limit is not None and beat["age"] > limit:
            told[host] = "late"
        else:
            told[host] = "pass" if beat["verdict"] == "pass" else f"failed: {beat['failed']}"
    return _by(told)


# --- the screen ---------------------------------------------------------------------------------


def screen(status: Vars, columns: int) -> list[Line]:
    """The lines, each with its mood."""
    lines: list[Line] = [("", ""), (f"STATUS / 状态: {status['cluster']}, {status['finished']}", ""), ("-" * columns, "")]

    def row(zh: str, en: str, text: str, mood: str = "") -> None:
        parts = wrap(text, columns - LABEL - 2) or [""]
        label = fit(f"{zh} {en}", LABEL)
        lines.extend((f"{label if number == 0 else ' ' * LABEL}  {part}", mood) for number, part in enumerate(parts))

    if status["not_reached"]:
        row("未连接", "not reached", _names(status["not_reached"]), "bad")
    for host, one in status["controllers"].items():
        row("控制器", "slurmctld", f"{host}: " + ("应答 answers" if one["answers"] else f"不应答 does not answer: {one['error']}"),
            "good" if one["answers"] else "bad")  # fmt: skip
    for version, hosts in status["slurm"].items():
        row("版本", "Slurm", f"{version}: {_names(hosts)}")
    if status["settings"]:
        row("生效配置", "in force", ", ".join(f"{key}={value}" for key, value in status["settings"].items()))
    for name, states in status["services"].items():
        for state, hosts in states.items():
            row("服务", name, f"{state}: {_names(hosts)}", "" if state == RUNS else "bad")
    nodes = status["nodes"]
    if not any(one["answers"] for one in status["controllers"].values()):
        row("节点", "nodes", "未知，slurmctld 不应答 unknown, no slurmctld answers", "bad")
    else:
        row(
            "节点",
            "nodes",
            f"{nodes['in_service']}/{nodes['total']} 节点就绪 in service",
            "good" if 0 < nodes["total"] == nodes["in_service"] else "bad",
        )
    for one in nodes["out"]:
        who = f" [{one['reason_user']}@{one['since']}]" if one["reason"] else ""
        row("", "out of service", f"{_names(one['nodes'])}: {one['state']} {one['reason'] or '(no reason)'}{who}", "bad")
    if status["jobs"]:
        row("作业", "jobs", ", ".join(f"{number} {state}" for state, number in status["jobs"].items()))
    words = {"pass": "HealthCheck 通过", "late": "过期 late: no run for two intervals", "none": "无记录 no record"}
    for verdict, hosts in status["health"].items():
        row(
            "健康检查",
            "health check",
            f"{words.get(verdict, 'HealthCheck 失败 ' + verdict)}: {_names(hosts)}",
            "" if verdict == "pass" else "bad",
        )
    for host, one in status["patrol"].items():
        # a timer has no next time while what it started is at work
        at_work = one["active"] == "active/running"
        soon = f"{one['next']} s 后 next in {one['next']} s"
        when = "正在巡检 at work now" if at_work else "不再触发 never again" if one["next"] is None else soon
        fine = (at_work or one["next"] is not None) and one["result"] == "success"
        row("巡检", "patrol", f"{host}: {one['active']}, {one['enabled']}, {when}, 上次 last: {one['result']}", "" if fine else "bad")
    rollout = status["rollout"]
    for newest, hosts in rollout["newest"].items():
        row("快照", "newest snapshot", f"{newest}: {_names(hosts)}")
    if rollout["interrupted"]:
        row(
            "变更中断",
            "interrupted rollout",
            f"{_names(rollout['interrupted'])}: deploy.yml 完成或 rollback.yml 撤销 finishes or undoes it",
            "bad",
        )
    if rollout["deferred"]:
        row("待完成", "deferred", ", ".join(rollout["deferred"]) + ": deploy.yml", "bad")
    for one in status["ledger"]:
        row(
            "记录",
            f"ledger {quantities.utc(one['time'])}",
            f"{one['node']} {one['event']} (layer {one['layer']}): {one['what']}: {one['why']}",
        )
    lines.append(("-" * columns, ""))
    return lines


def _names(names: list[str]) -> str:
    return quantities.fold(names)
