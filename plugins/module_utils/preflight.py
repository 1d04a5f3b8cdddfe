# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that stands against a rollout, found before anything is written. Pure.

The judgement works on the cluster facts (docs/architecture.md) of all hosts at once, so
that an operator reads one list instead of running into one problem after the other.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import rollout_plan, scontrol_text

OLDEST, NEWEST = (20, 11), (26, 5)
NEEDED_FREE_MB = 20
DAEMONS = {"slurm_controller": "slurmctld", "slurm_dbd": "slurmdbd", "slurm_compute": "slurmd"}


def problem(host, cause, remedy, title_zh, title_en, severity="error", path=None, line=None):
    """A Finding (docs/architecture.md) of the preflight."""
    return {
        "id": "preflight",
        "severity": severity,
        "host": host,
        "title": {"zh": title_zh, "en": title_en},
        "evidence": [],
        "cause": cause,
        "remedy": remedy,
        "file": path,
        "line": line,
    }


def host_problems(host, fact, groups):
    """Problems of one host.

    :param fact: its cluster fact, None when it could not be looked at
    :param groups: those of slurm_controller, slurm_dbd, slurm_compute that it is in
    """
    if fact is None:
        return [
            problem(
                host,
                "the host did not answer over SSH",
                "bring it back, or leave it out with --limit '!%s'; the next run puts it right" % host,
                "主机无法连接",
                "host unreachable",
            )
        ]
    found = []
    slurm = fact["slurm"]
    only_dbd = list(groups) == ["slurm_dbd"]
    if not slurm["version"] or not (slurm["bin"].get("scontrol") or only_dbd):
        found.append(
            problem(
                host,
                "no scontrol was found in the unit's directory, PATH, /usr or /usr/local/slurm",
                "set cluster_bin_dirs to the directory that holds Slurm's programs",
                "未找到 Slurm",
                "Slurm not found",
            )
        )
        return found
    if not OLDEST <= tuple(slurm["release"]) <= NEWEST:
        found.append(
            problem(
                host,
                "Slurm %s is outside the supported releases 20.11 to 26.05" % slurm["version"],
                "use a release of the collection that supports it",
                "Slurm 版本不受支持",
                "unsupported Slurm release",
            )
        )
    if fact["conf"]["mode"] == "none" and not only_dbd:
        found.append(
            problem(
                host,
                "%s does not exist" % fact["conf"]["given"]
                if fact["conf"].get("given")
                else "neither a slurm.conf nor a configuration server was found",
                "set cluster_conf_path to the slurm.conf that the daemons use; without one Slurm's commands and slurmd need "
                "--conf-server, SLURM_CONF_SERVER, a DNS SRV record or, from 23.11 on, sackd",
                "未找到 slurm.conf",
                "no slurm.conf",
            )
        )
    if fact["munge"] is False:
        found.append(
            problem(
                host,
                "munge could not make and read a credential here",
                "systemctl status munge; check /etc/munge/munge.key and the clock",
                "munge 不可用",
                "munge does not work",
            )
        )
    if fact["free_mb"] is not None and fact["free_mb"] < NEEDED_FREE_MB:
        found.append(
            problem(
                host,
                "only %d MB are free where snapshots are kept" % fact["free_mb"],
                "free at least %d MB under /var/lib" % NEEDED_FREE_MB,
                "磁盘空间不足",
                "no room for a snapshot",
            )
        )
    if fact["conf"].get("left_over"):
        found.append(
            problem(
                host,
                "%s is left over on a configless node: client commands and the health check read it, slurmd does not"
                % fact["conf"]["left_over"],
                "remove it, unless somebody means it to be there",
                "无配置节点上残留 slurm.conf",
                "a slurm.conf is left over",
                severity="warning",
                path=fact["conf"]["left_over"],
            )
        )
    slurmd = fact["units"].get("slurmd", {})
    if "slurm_compute" in groups and slurmd.get("load_state") != "loaded" and not slurmd.get("main_pid"):
        found.append(
            problem(
                host,
                "the host is in slurm_compute but has no slurmd.service",
                "install slurmd, or take the host out of the group",
                "没有 slurmd 单元",
                "no slurmd unit",
            )
        )
    daemons = [DAEMONS[group] for group in groups]
    return found + fileless_problems(host, fact, daemons) + unit_problems(host, fact, daemons)


def fileless_problems(host, fact, daemons):
    """Daemons that run though the file of their unit is gone: nothing would start them again."""
    return [
        problem(
            host,
            "%s runs (process %d), but the file of its unit is gone" % (name, fact["units"][name]["main_pid"]),
            "put %s.service back (from the package or a backup), then: systemctl daemon-reload" % name,
            "单元文件已丢失, 守护进程仍在运行",
            "the unit file is gone",
        )
        for name in daemons
        if fact["units"].get(name, {}).get("load_state") == "not-found" and fact["units"][name].get("main_pid")
    ]


def unit_problems(host, fact, daemons):
    """Daemons of a host whose unit runs none: started by hand they would hold the port when the unit is restarted."""
    return [
        problem(
            host,
            "%s.service is %s and runs no process here" % (name, fact["units"][name]["active_state"]),
            "see systemctl status %s; a %s that was started by hand has to be ended (kill its process id), then: systemctl start %s"
            % (name, name, name),
            "守护进程不是由 systemd 运行",
            "the unit runs no process",
        )
        for name in daemons
        if fact["units"].get(name, {}).get("load_state") == "loaded" and not fact["units"][name]["main_pid"]
    ]


def lock_problems(locks):
    """Another run that is at work.

    :param locks: {host: what the module rollout_lock said there, None where it did not ask}
    """
    return [
        problem(
            host,
            "at work already: %s" % lock["busy"],
            "wait for it; if it is known to be over, say -e deploy_break_lock=true",
            "已有变更在进行",
            "another run is at work",
        )
        for host, lock in sorted(locks.items())
        if lock and lock.get("busy")
    ]


# slurmd is away twice when it has to be brought back, and it takes some seconds to register.
SHORTEST_WAIT, MARGIN = 30, 20


def ready_timeout(wanted, config, changes, host_actions, jobs):
    """How long slurmd may take to be ready, and problems where SlurmdTimeout leaves no time.

    slurmctld sets a node DOWN, and ends its jobs, when its slurmd did not answer for SlurmdTimeout seconds (slurm.conf(5); 0 is never).

    :param wanted: seconds that the operator allows
    :param config: what slurmctld has loaded
    :returns: (seconds, problems)
    """
    limits = [config.get("SlurmdTimeout", "0")]
    limits += [str(one["to"]) for one in changes if rollout_plan.is_conf_change(one) and rollout_plan.conf_key(one) == "SlurmdTimeout"]
    known = [int(text.split()[0]) for text in limits if text.split() and text.split()[0].isdigit()]
    shortest = min([one for one in known if one > 0] or [0])
    restarts = any("restart_slurmd" in actions for actions in host_actions.values())
    if not shortest or not restarts:
        return wanted, []
    allowed = (shortest - MARGIN) // 2
    if allowed >= SHORTEST_WAIT:
        return min(wanted, allowed), []
    if not rollout_plan.jobs_with_steps(jobs):
        return min(wanted, SHORTEST_WAIT), []
    return SHORTEST_WAIT, [
        problem(
            "cluster",
            "SlurmdTimeout is %d s: a slurmd that does not come up at once would cost its node and its running jobs" % shortest,
            "raise SlurmdTimeout to 300 first (scontrol reconfigure takes it in), or wait for the jobs",
            "SlurmdTimeout 过短",
            "SlurmdTimeout leaves no time for a restart",
        )
    ]


def controller_problems(host, fact, computes):
    """Problems seen by the controller: does it answer, does it know the nodes, are they in service."""
    view = fact.get("controller")
    if not view or not view["ping"]:
        return [
            problem(
                host,
                "scontrol ping got no answer from slurmctld: %s" % ((view or {}).get("error") or "not asked"),
                "mend what it says, or start slurmctld (journalctl -u slurmctld), before rolling out",
                "slurmctld 未响应",
                "slurmctld does not answer",
            )
        ]
    found = []
    if "slurmdbd" in view["config"].get("AccountingStorageType", "") and not view["cluster_registered"]:
        found.append(
            problem(
                host,
                "accounting goes through slurmdbd, but sacctmgr does not list the cluster",
                "check slurmdbd, then: sacctmgr -i add cluster %s" % view["config"].get("ClusterName", "NAME"),
                "slurmdbd 未登记该集群",
                "cluster not registered with slurmdbd",
            )
        )
    known = {node["name"]: node for node in view["nodes"]}
    for name in computes:
        node = known.get(name)
        if node is None:
            found.append(
                problem(
                    name,
                    "slurmctld knows no node of this name",
                    "set cluster_node_name for the host if its NodeName differs from its inventory name",
                    "slurmctld 不认识该节点",
                    "unknown node",
                )
            )
        elif node["base"] in ("DOWN", "UNKNOWN") or "NOT_RESPONDING" in node["flags"]:
            found.append(
                problem(
                    name,
                    "the node is %s (%s): its recovery could not be told from a failed rollout"
                    % (node["state"], node["reason"] or "no reason"),
                    "bring it back first (systemctl status slurmd munge), or leave it out with --limit '!%s'" % name,
                    "节点不在服务中",
                    "node out of service",
                )
            )
    return found


def job_problems(changes, jobs, policy):
    """Jobs that stand against a change, unless the policy says how to go on."""
    if policy != "refuse":
        return []
    unsafe = rollout_plan.unsafe_changes(changes, jobs)
    if not unsafe:
        return []
    running = rollout_plan.jobs_with_steps(jobs)
    names = ", ".join("%s (%s, %s, on %s)" % (job["id"], job["name"], job["user"], job["nodes"]) for job in running[:20])
    if len(running) > 20:
        names += " and %d more" % (len(running) - 20)
    # where every node has a slurm.conf of its own, the same change stands in many files
    folded = {}
    for change in unsafe:
        folded.setdefault((change["thing"], str(change["from"]), str(change["to"])), change)
    return [
        problem(
            change["host"],
            "%s: %s -> %s must not change while steps run; running: %s" % (change["thing"], change["from"], change["to"], names),
            "wait for the jobs, or say -e slurm_running_jobs=defer (all but this change) or "
            "-e slurm_running_jobs=drain (drain the nodes and wait)",
            "有作业正在运行",
            "jobs are running",
        )
        for _key, change in sorted(folded.items())
    ]


def limited_problems(host_actions, computes, nodes, names):
    """Nodes in service that a limited run leaves out of a change that every slurmd has to take on at once.

    :param computes: inventory names of the hosts left out
    :param nodes: nodes as slurmctld sees them
    :param names: {inventory name: NodeName}
    """
    if not any("without_steps" in actions for actions in host_actions.values()):
        return []
    working = {node["name"] for node in nodes if scontrol_text.in_service(node) and "DRAIN" not in node["flags"]}
    return [
        problem(
            host,
            "the run is limited and leaves the node out, but a setting changes that every slurmd must be restarted for",
            "include it, or drain it first (scontrol update nodename=%s state=drain reason=...)" % names[host],
            "受限运行遗漏了在役节点",
            "a node in service is left out",
        )
        for host in computes
        if names[host] in working
    ]


def interrupted_problems(host_actions, changes, jobs, policy):
    """Jobs that stand against finishing an interrupted rollout: its restarts are not among the changes any more."""
    pending = sorted(host for host, actions in host_actions.items() if "without_steps" in actions)
    running = rollout_plan.jobs_with_steps(jobs)
    if policy == "drain" or not pending or not running or rollout_plan.unsafe_changes(changes, jobs):
        return []
    return [
        problem(
            pending[0],
            "an interrupted rollout changed a setting that must not change while steps run, and the restarts are still due; running: %s"
            % ", ".join("%s (%s, %s, on %s)" % (job["id"], job["name"], job["user"], job["nodes"]) for job in running[:20]),
            "wait for the jobs, say -e slurm_running_jobs=drain, or take it back with playbooks/rollback.yml",
            "中断的变更尚未完成且有作业正在运行",
            "an interrupted rollout is pending while jobs run",
        )
    ]
