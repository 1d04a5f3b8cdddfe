# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The thirteen items of the SOP's checklist, judged on the evidence of all hosts. Pure.

Nothing passes by default: what could not be read fails, what does not apply is skipped with its reason.

``seen``, the evidence::

    {node: {HOST: ...}, controller: {HOST: ...}, dbd: {HOST: ...},   from verify_info, or {"error": text, unreachable: true};
                                          drift: {ROLE: {changes: [of the plan], problem: text}}, what a rollout would change
     probe: result of step_probe, crash: result of crash_test with its host}

``wanted``, what the rollout's variables ask for::

    {settings: {Key: value}, deferred: [Key], nodes: {HOST: NodeName}, out_of_service: [NodeName],
     script: {path, sha256}, heartbeat: path, wait_script: path, wait: auto|true|false, patrol_interval: seconds,
     restart: {UNIT: {restart, restart_sec}}}
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import scontrol_text, systemd_unit, verify_evidence
from .finding import checklist_item, clean_lines, clean_text, evidence, host_result, some, title

TITLES = {
    1: title(u"健康检查参数已生效", "HealthCheck settings in force"),
    2: title(u"配置已分发到每个节点", "settings distributed to every node"),
    3: title(u"检查脚本已部署且未被改动", "script deployed and unaltered"),
    4: title(u"脚本在 slurmd 环境中通过", "script passes in slurmd's environment"),
    5: title(u"slurmd 启动后已执行检查", "script has run since slurmd's start"),
    6: title(u"所有节点在服务中", "every node in service"),
    7: title(u"巡检定时器按期运行", "patrol timer runs on schedule"),
    8: title(u"守护进程自动重启", "Restart=always"),
    9: title(u"启动前已等待 slurmctld", "wait script ran at the last start"),
    10: title(u"slurmctld 在 slurmdbd 之后", "slurmctld ordered after slurmdbd"),
    11: title(u"ReturnToService 已生效", "ReturnToService in force"),
    12: title(u"作业资源统计已生效", "job accounting in force, recording"),
    13: title(u"崩溃恢复测试", "crash test: slurmd comes back"),
}

HEALTH_KEYS = ("HealthCheckInterval", "HealthCheckProgram", "HealthCheckNodeState")
# Every setting that an item looks at.
KEYS = HEALTH_KEYS + ("ReturnToService", "JobAcctGatherType")

# What the scripts log; operators search the journal for these words.
HEALTH_PASSED = u"HealthCheck 通过"
CONTROLLER_READY = u"slurmctld 已就绪"

# From here on slurmd waits for a controller by itself (CHANGELOG 24.05).
SLURMD_WAITS = [24, 5]
# The script's own budget (facts 4.1) and the tolerance for clocks that differ a little.
DRY_RUN_LIMIT = 45
CLOCK_SLACK = 5

# Exit statuses of unmunge that are no word on the key: read, too old by now, read before; no such program (126, 127).
CREDENTIAL_TAKEN, CREDENTIAL_PROVES_NOTHING = 0, (15, 17, 126, 127)

WORKING = ("IDLE", "MIXED", "ALLOCATED")
UNWELL_FLAGS = ("DRAIN", "FAIL", "NOT_RESPONDING", "INVALID_REG", "REBOOT_ISSUED")
POWER_FLAGS = ("POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWERING_UP")

PERIOD = re.compile(r"\bOnUnit(?:In)?[aA]ctiveU?Sec=([^;}]+)")
_DEPLOY = "ansible-playbook playbooks/deploy.yml"


def judge(seen, wanted):
    """All thirteen items in order."""
    return [checklist_item(number, TITLES[number], check(seen, wanted)) for number, check in sorted(_CHECKS.items())]


def needs_probe(config, settings):
    """True when only a step of our own can prove item 12: the plugin is loaded, accounting goes to slurmdbd."""
    return not _differing(config, settings, ["JobAcctGatherType"]) and _accounting(config)


# --- shared -------------------------------------------------------------------------------------

def _each(hosts, check, wanted):
    """The verdict of ``check(ev, wanted, host)`` on every host; a host that gave no evidence fails."""
    results = {}
    for host, ev in hosts.items():
        if "error" in ev:
            results[host] = _no_evidence(ev)
        else:
            results[host] = check(ev, wanted, host)
    return results


def _no_evidence(ev):
    if ev.get("unreachable"):
        shown = [evidence("ansible", ev["error"])]
        return host_result("fail", "the host did not answer", shown, "make it answer over SSH, then verify again")
    return host_result("fail", "the host could not be looked at: %s" % ev["error"], [], "mend what the error names, then verify again")


def _differing(config, settings, keys):
    """{Key: (in force, wanted)} of the keys that somebody wants. Lists of words may stand in any order."""
    wanted = {key: settings[key] for key in keys if settings.get(key) is not None}
    differing = scontrol_text.differing_values(config, wanted)
    return {key: pair for key, pair in differing.items() if _words(pair[0]) != _words(pair[1])}


def _reason(differing, keys):
    return ", ".join("%s is %s, wanted %s" % (key, differing[key][0] or "not set", differing[key][1]) for key in keys if key in differing)


def _words(value):
    return sorted(word.strip().lower() for word in (value or "").split(","))


def _accounting(config):
    return "slurmdbd" in config.get("AccountingStorageType", "")


def _settings_in_force(ev, wanted, keys):
    """Verdict on some keys of ``scontrol show config``."""
    config = ev["config"]
    if config["rc"] != 0 or not config["values"]:
        return host_result(
            "fail",
            "slurmctld does not answer",
            [evidence("scontrol show config", "rc %s %s" % (config["rc"], config["err"]))],
            "journalctl -u slurmctld; start it, then run verify.yml again",
        )
    settings = wanted["settings"]
    keys = [key for key in keys if settings.get(key) is not None]
    shown = [evidence("scontrol show config", "%s = %s" % (key, config["values"].get(key, "(not there)"))) for key in keys]
    if not keys:
        return host_result("skip", "not wanted by slurm_conf_settings or slurm_conf_leave")
    differing = _differing(config["values"], settings, keys)
    if not differing:
        return host_result("pass", ", ".join("%s=%s" % (key, settings[key]) for key in keys), shown)
    reason = _reason(differing, keys)
    if set(differing) <= set(wanted.get("deferred", [])):
        return host_result("skip", "deferred, since jobs are running: " + reason, shown)
    return host_result("fail", reason, shown, "%s, or change slurm.conf and run: scontrol reconfigure" % _DEPLOY)


def _evidence_of_run(source, done):
    """A program's exit status and the end of what it printed."""
    lines = clean_lines(done.get("out", ""), 6) + clean_lines(done.get("err", ""), 4)
    took = " after %.1f s" % done["seconds"] if "seconds" in done else ""
    return [evidence(source, "exit status %s%s" % (done["rc"], took))] + [evidence(source, line) for line in lines]


def _ago(seconds):
    return "%d s ago" % seconds if seconds < 600 else "%d min ago" % (seconds // 60)


def _strays(ev, role, judged_elsewhere=()):
    """What a rollout would change of a role's files and of what starts at boot: (sentences, evidence, things).

    :param judged_elsewhere: things that the item tells by itself
    """
    if "drift" not in ev:  # the host is not part of the run
        return [], [], []
    asked = ev["drift"].get(role, {"problem": "the role was not asked"})
    if asked["problem"]:
        return ["the files could not be compared: %s" % asked["problem"]], [], []
    strays = [one for one in asked["changes"] if one["thing"] not in judged_elsewhere]
    files = [one["thing"][len("file:") :] for one in strays if one["thing"].startswith("file:")]
    units = [one["thing"].split(":")[1] for one in strays if one["thing"].startswith("unit:") and one["thing"].endswith(":enabled")]
    are, them = ("is", "it") if len(files) == 1 else ("are", "them")
    told = ["%s %s not as a rollout writes %s" % (some(files), are, them)] if files else []
    told += ["%s would not start at boot" % unit for unit in units]
    shown = [evidence(one["thing"].split(":")[1], "%s, wanted %s" % (one["from"], one["to"])) for one in strays]
    return told, shown if told else [], files + units


def _put_back(things):
    """The remedy for what is not as a rollout left it."""
    return "look at the difference: %s --check --diff; put back by: %s" % (_DEPLOY, _DEPLOY) + (
        " (%s)" % ", ".join(things[:3]) if things else ""
    )


# --- 1, 11: settings in force -------------------------------------------------------------------

def _health_settings(seen, wanted):
    return _each(seen["controller"], lambda ev, want, host: _settings_in_force(ev, want, HEALTH_KEYS), wanted)


def _return_to_service(seen, wanted):
    return _each(seen["controller"], lambda ev, want, host: _settings_in_force(ev, want, ["ReturnToService"]), wanted)


# --- 2: the same files everywhere ---------------------------------------------------------------

def _distributed(seen, wanted):
    controllers = [host for host, ev in sorted(seen["controller"].items()) if "error" not in ev]
    reference = seen["controller"][controllers[0]]["conf"]["files"] if controllers else {}
    # a backup controller reads its own file when it takes over
    hosts = dict(seen["node"], **{host: seen["controller"][host] for host in controllers[1:]})
    return _each(hosts, lambda ev, want, host: _same_files(ev["conf"], reference, want), wanted)


def _same_files(conf, reference, wanted):
    if not reference:
        return host_result("fail", "the controller's files could not be read", [], "bring the controller back, then run verify.yml again")
    here = {_basename(path): (path, digest) for path, digest in conf["files"].items()}
    shown, problems = [], []
    for path, digest in sorted(reference.items()):
        found = here.get(_basename(path))
        if found is None:
            problems.append("%s is missing on this host" % _basename(path))
            continue
        shown.append(evidence(found[0], "sha256 %s" % found[1]))
        if found[1] != digest:
            problems.append("%s differs from the controller's %s" % (found[0], path))
            shown.append(evidence("controller: " + path, "sha256 %s" % digest))
    for path, digest in sorted((conf.get("left_over") or {}).items()):
        if digest != reference.get(_of_name(reference, "slurm.conf")):
            problems.append("%s is left over and differs: client commands on this host read it" % path)
    if problems:
        remedy = "scontrol reconfigure on the controller; remove a left-over slurm.conf from a configless node"
        if "left_over" not in conf:  # a file of the host's own, which no reconfigure brings
            remedy = "%s; if that changes nothing here, compare the two files, then: scontrol reconfigure" % _DEPLOY
        return host_result("fail", "; ".join(problems), shown, remedy)
    shown += [evidence(conf["path"], "%s=%s" % (key, conf["values"][key])) for key in HEALTH_KEYS if key in conf["values"]]
    reason = _reason(_differing(conf["values"], wanted["settings"], HEALTH_KEYS), HEALTH_KEYS)
    if reason:
        return host_result("fail", "same file as the controller's, but %s" % reason, shown, _DEPLOY)
    return host_result("pass", "%d files as on the controller" % len(reference), shown)


def _basename(path):
    return path.rsplit("/", 1)[-1]


def _of_name(paths, name):
    return next((path for path in sorted(paths) if _basename(path) == name), None)


# --- 3, 4, 5: the health check script -----------------------------------------------------------

def _script_unaltered(seen, wanted):
    def check(ev, want, host):
        script, path = ev["script"], want["script"]["path"]
        if script["kind"] == "absent":
            return host_result("fail", "%s is not there" % path, [], _DEPLOY)
        shown = [
            evidence(path, "%s, owner %s:%s, mode %s" % (script["kind"], script.get("uid"), script.get("gid"), script.get("mode"))),
            evidence(path, "sha256 %s, wanted %s" % (script.get("sha256"), want["script"]["sha256"])),
        ]
        problems = []
        if script["kind"] != "file":
            problems.append("is no regular file")
        else:
            if (script["uid"], script["gid"]) != (0, 0):
                problems.append("is not owned by root:root")
            if script["mode"] != "0755":
                problems.append("has mode %s instead of 0755" % script["mode"])
            if script["sha256"] != want["script"]["sha256"]:
                problems.append("was altered, or comes from another release")
        if script["problem"]:
            problems.append(script["problem"])
        strays, seen_strays, things = _strays(ev, "health_check", ("file:" + path,))
        if problems or strays:
            told = (["%s %s" % (path, ", ".join(problems))] if problems else []) + strays
            return host_result("fail", "; ".join(told), shown + seen_strays, _put_back(things))
        return host_result("pass", "root:root 0755, unaltered, and so are its settings", shown)

    return _each(seen["node"], check, wanted)


def _script_passes(seen, wanted):
    def check(ev, want, host):
        path, done = want["script"]["path"], ev["dry_run"]
        if done is None:
            absent = ev["script"]["kind"] == "absent"
            why = "is not there" if absent else "%s: not run as root" % (ev["script"]["problem"] or "is no regular file")
            return host_result("fail", "%s %s" % (path, why), [], _DEPLOY)
        shown = _evidence_of_run("env -i SLURMD_NODENAME=%s %s --dry-run" % (ev["node"], path), done)
        if done["timed_out"]:
            why = "no answer within %d s: slurmd would kill it" % DRY_RUN_LIMIT
            return host_result("fail", why, shown, "find what hangs: bash -x %s --dry-run" % path)
        if done["rc"] != 0:
            last = clean_lines(done["out"] + "\n" + done["err"], 1)
            said = clean_text(last[-1], 120) if last else "without a word"
            remedy = "mend what the check names; %s --list shows what it looks at" % path
            return host_result("fail", "exit status %s: %s" % (done["rc"], said), shown, remedy)
        if done["sha256_after"] != ev["script"].get("sha256"):
            return host_result("fail", "%s changed while it ran" % path, shown, "find who writes to it")
        return host_result("pass", "exit status 0 after %.1f s" % done["seconds"], shown)

    return _each(seen["node"], check, wanted)


def _has_run(seen, wanted):
    interval = int(wanted["settings"].get("HealthCheckInterval") or 0)
    states = [word for word in _words(wanted["settings"].get("HealthCheckNodeState")) if word not in ("", "any", "cycle")]

    def check(ev, want, host):
        if not interval:
            return host_result("skip", "HealthCheckInterval is not wanted")
        if "reboot_only" in states:
            return host_result("skip", "HealthCheckNodeState=REBOOT_ONLY: it runs after a reboot only")
        beat, path = verify_evidence.heartbeat((ev["heartbeat"] or {}).get("text")), want["heartbeat"]
        age = ev["now"] - beat["epoch"]
        remedy = "on the node: systemctl status slurmd munge; slurmctld starts the check, so see also: scontrol ping"
        if ev["heartbeat"] is None:
            return host_result("fail", "%s is not there: slurmd has never run the script since boot" % path, [], remedy)
        if not beat["epoch"]:
            return host_result("fail", "%s holds no time" % path, [evidence(path, ev["heartbeat"]["text"])], remedy)
        failed = beat.get("failed", "")
        shown = [evidence(path, "epoch=%d rc=%s verdict=%s failed=%s" % (beat["epoch"], beat.get("rc"), beat.get("verdict"), failed))]
        if ev["journal"].get("health"):
            shown.append(evidence("journalctl -u slurmd", ev["journal"]["health"]))
        if age < -CLOCK_SLACK:
            why = "the last run lies %d s in the future" % -age
            return host_result("fail", why, shown, "set the clock of the node right (chronyc tracking)")
        # a node that is in none of the wanted states is not checked, however long
        if age > 2 * interval + 120 and not states:
            return host_result("fail", "the last run was %s, due every %d s" % (_ago(age), interval), shown, remedy)
        if not ev["started"] or beat["epoch"] < ev["started"]:
            return host_result("fail", "no run since slurmd started, the last was %s" % _ago(age), shown, remedy)
        if beat.get("rc") != "0":
            return host_result("fail", "the last run found: %s" % (failed or "rc %s" % beat.get("rc")), shown, "mend what the check names")
        return host_result("pass", u"%s, %s" % (HEALTH_PASSED, _ago(age)), [evidence("slurmd", HEALTH_PASSED)] + shown)

    return _each(seen["node"], check, wanted)


# --- 6: nodes -----------------------------------------------------------------------------------

def _nodes_in_service(seen, wanted):
    names = wanted["nodes"]
    results = _each(seen["controller"], _node_list, wanted)
    answers = [ev["nodes"] for host, ev in sorted(seen["controller"].items()) if "error" not in ev and ev["nodes"]["rc"] == 0]
    known = {node["name"]: node for node in answers[0]["list"]} if answers else None
    for host, ev in seen["node"].items():
        refused = _credential_refused(ev.get("credential"))
        if refused:
            results[host] = refused
        elif known is None:
            results[host] = host_result("fail", "slurmctld could not be asked", [], "journalctl -u slurmctld")
        elif names.get(host, host) not in known:
            results[host] = host_result(
                "fail", "slurmctld knows no node %s" % names.get(host, host), [], "set cluster_node_name, or add the node to slurm.conf"
            )
        else:
            results[host] = _node_state(known[names.get(host, host)], wanted)
    return results


def _credential_refused(read):
    """A failure where the node's munge refuses the controller's credential, though each host reads its own."""
    if read is None or read["rc"] == CREDENTIAL_TAKEN or read["rc"] in CREDENTIAL_PROVES_NOTHING:
        return None
    said = clean_text(read["err"].strip(), 120)
    shown = [evidence("unmunge, a credential of the controller's", "exit status %s %s" % (read["rc"], said))]
    remedy = (
        "see that /etc/munge/munge.key and the clock are the controller's; then restart munge on every host, "
        "since it reads its key at its start only, and after that Slurm's daemons"
    )
    return host_result("fail", "munge refuses the controller's credential: %s" % (said or "no word why"), shown, remedy)


def _node_list(ev, wanted, host):
    if ev["nodes"]["rc"] != 0 or not ev["nodes"]["list"]:
        shown = [evidence("scontrol -o show node", "rc %s %s" % (ev["nodes"]["rc"], ev["nodes"]["err"]))]
        return host_result("fail", "slurmctld does not answer", shown, "journalctl -u slurmctld")
    known = set(wanted["nodes"].values())
    strangers = sorted(node["name"] for node in ev["nodes"]["list"] if node["base"] != "FUTURE" and node["name"] not in known)
    if strangers:
        why = "not in the inventory group slurm_compute: %s" % ", ".join(strangers)
        return host_result("fail", why, [], "add the hosts to the inventory, or take the nodes out of slurm.conf")
    return host_result("pass", "%d nodes, as in the inventory" % len(ev["nodes"]["list"]))


def _node_state(node, wanted):
    shown = [evidence("scontrol -o show node", "%s State=%s Reason=%s" % (node["name"], node["state"], node["reason"] or "none"))]
    flags = set(node["flags"])
    if flags & set(POWER_FLAGS):
        return host_result("skip", "powered down by Slurm (%s)" % node["state"], shown)
    unwell = sorted(flags & set(UNWELL_FLAGS))
    if node["base"] in WORKING and not unwell:
        return host_result("pass", node["state"], shown)
    reason = "%s, reason: %s" % (node["state"], node["reason"] or "none given")
    if node["base"] in WORKING and unwell == ["DRAIN"] and node["name"] in wanted.get("out_of_service", []):
        return host_result("skip", "drained before this rollout: " + reason, shown)
    if scontrol_text.is_ours(node["reason"]):
        remedy = "mend what the reason names; the health check undrains the node by itself"
        if "rollout in progress" in node["reason"]:
            remedy = "a rollout was interrupted: run playbooks/deploy.yml again, or playbooks/rollback.yml"
    elif "NOT_RESPONDING" in flags or node["base"] == "DOWN":
        remedy = "on the node: systemctl status slurmd munge; then, on the controller: scontrol reconfigure"
    else:
        remedy = "when its reason is settled: scontrol update nodename=%s state=undrain" % node["name"]
    return host_result("fail", reason, shown, remedy)


# --- 7: patrol timer ----------------------------------------------------------------------------

def _patrol_timer(seen, wanted):
    return _each(seen["controller"], _timer, wanted)


def _timer(ev, wanted, host):
    timer, service, period = ev["timer"], ev["service"], int(wanted["patrol_interval"])

    def said(show, keys):
        return ", ".join("%s=%s" % (key, show.get(key, "")) for key in keys)

    shown = [
        evidence("systemctl show slurm-cluster-health.timer", said(timer, ("UnitFileState", "ActiveState", "SubState"))),
        evidence("systemctl show slurm-cluster-health.service", said(service, ("ActiveState", "SubState", "Result"))),
    ]
    if ev["next_elapse"] is not None:
        shown.append(evidence("slurm-cluster-health.timer", "next run in %d s" % ev["next_elapse"]))
    problems = []
    if timer.get("LoadState") != "loaded":
        return host_result("fail", "slurm-cluster-health.timer is %s" % timer.get("LoadState", "unknown"), shown, _DEPLOY)
    if timer.get("UnitFileState") != "enabled":
        problems.append("the timer is %s, it would not start at boot" % (timer.get("UnitFileState") or "not enabled"))
    periods = [systemd_unit.parse_usec(text) for text in PERIOD.findall(timer.get("TimersMonotonic", ""))]
    if periods and period * 1000000 not in periods:
        problems.append("it runs every %d s, wanted %d s" % ((periods[0] or 0) / 1e6, period))
    # systemd may fire a timer this much later than it says
    slack = sum(systemd_unit.parse_usec(timer.get(key)) or 0 for key in ("AccuracyUSec", "RandomizedDelayUSec")) / 1e6 + CLOCK_SLACK
    running = service.get("ActiveState") == "activating"
    if service.get("ActiveState") == "active":
        problems.append("RemainAfterExit: the service stays active after its run, so the timer never fires again")
    elif timer.get("ActiveState") != "active" or timer.get("SubState") not in ("waiting", "running"):
        problems.append("the timer is %s/%s" % (timer.get("ActiveState"), timer.get("SubState")))
    elif not running and (ev["next_elapse"] is None or not -slack <= ev["next_elapse"] <= period + slack):
        problems.append("no next run" if ev["next_elapse"] is None else "the next run is %d s away" % ev["next_elapse"])
    if service.get("LoadState") != "loaded":
        problems.append("slurm-cluster-health.service is %s" % service.get("LoadState", "unknown"))
    elif not running:
        problems += _last_run(timer, service, ev["uptime"], 2 * period + slack)
    strays, seen_strays, things = _strays(ev, "patrol", ("unit:slurm-cluster-health.timer:enabled",))
    if problems or strays:
        remedy = _put_back(things) if strays else _DEPLOY
        told, shown = "; ".join(problems + strays), shown + seen_strays
        return host_result("fail", told, shown, "%s; journalctl -u slurm-cluster-health.service" % remedy)
    when = "running now" if running else "every %d s, next run in %d s" % (period, ev["next_elapse"])
    return host_result("pass", when + ("" if "drift" in ev else "; files not compared, this host is not part of the run"), shown)


def _last_run(timer, service, uptime, limit):
    """Problems of the patrol's last run. A timer started only now has had none, and that is no fault."""
    if service.get("Result", "success") != "success":
        return ["the last run ended with %s" % service["Result"]]
    started = int(service.get("ExecMainStartTimestampMonotonic") or 0) or int(timer.get("ActiveEnterTimestampMonotonic") or 0)
    if not started or uptime - started / 1e6 > limit:
        return ["no run within the last %d s" % limit]
    return []


# --- 8, 9, 10: units ----------------------------------------------------------------------------

def _restarts(seen, wanted):
    controllers = max([ev.get("controllers", 1) for ev in seen["controller"].values()] or [1])
    policy = {unit: dict(values) for unit, values in wanted["restart"].items()}
    # with a backup controller "always" would defeat the takeover (facts S31)
    policy["slurmctld"]["restart"] = policy["slurmctld"]["restart"] or ("on-failure" if controllers > 1 else "always")
    parts = {}
    for kind, unit in (("node", "slurmd"), ("controller", "slurmctld"), ("dbd", "slurmdbd")):
        for host, ev in seen[kind].items():
            result = _no_evidence(ev) if "error" in ev else _restart_policy(unit, ev[unit], policy[unit])
            parts.setdefault(host, []).append(result)
            if _asleep_after_boot(ev.get("munge", {})):
                parts[host].append(_munge(ev["munge"]))
    return {host: _joined(results) for host, results in parts.items()}


def _asleep_after_boot(show):
    return show.get("LoadState") in ("loaded", "masked") and show.get("UnitFileState") in ("disabled", "masked", "masked-runtime")


def _munge(show):
    shown = [evidence("systemctl show munge", "LoadState=%s, UnitFileState=%s" % (show["LoadState"], show["UnitFileState"]))]
    remedy = "systemctl unmask munge, if nobody means it to be off" if show["LoadState"] == "masked" else "systemctl enable munge"
    return host_result("fail", "munge: it is %s and would not start with the host" % show["UnitFileState"], shown, remedy)


def _joined(results):
    """Results of several units of one host as one."""
    failed = [result for result in results if result["verdict"] == "fail"]
    first = (failed or results)[0]
    lines = [line for result in results for line in result["evidence"]]
    reasons = []
    for result in failed or results:
        if result["reason"] not in reasons:
            reasons.append(result["reason"])
    return host_result(first["verdict"], "; ".join(reasons), lines, first["remedy"])


def _restart_policy(unit, show, policy):
    keys = ["Restart", "RestartUSec", "NeedDaemonReload"] + (["KillMode"] if unit == "slurmd" else [])
    limits = sorted(key for key in show if key.startswith("StartLimitInterval") or key == "StartLimitBurst")
    shown = [evidence("systemctl show %s" % unit, ", ".join("%s=%s" % (key, show.get(key, "")) for key in keys + limits))]
    if show.get("LoadState") != "loaded":
        if show.get("MainPID", "0") != "0":
            remedy = "put %s.service back, then: systemctl daemon-reload" % unit
            return host_result("fail", "%s runs, but the file of its unit is gone" % unit, shown, remedy)
        return host_result("fail", "%s.service is %s" % (unit, show.get("LoadState", "unknown")), shown, "install %s on this host" % unit)
    problems = []
    if show.get("Restart") != policy["restart"]:
        problems.append("Restart=%s, wanted %s" % (show.get("Restart"), policy["restart"]))
    if systemd_unit.parse_usec(show.get("RestartUSec")) != int(policy["restart_sec"]) * 1000000:
        problems.append("RestartSec=%s, wanted %ss" % (show.get("RestartUSec"), policy["restart_sec"]))
    if show.get("UnitFileState") == "disabled" and unit != "slurmdbd":  # of slurmdbd item 10 tells
        problems.append("it is disabled and would not start with the host")
    if show.get("NeedDaemonReload") != "no":
        problems.append("the unit file changed and systemd has not read it (systemctl daemon-reload)")
    if unit != "slurmd" and show.get("ActiveState") not in ("active", "activating", "reloading"):
        # nothing else tells of it: the other controller answers for one that is dead
        problems.append("it is %s, the daemon does not run" % show.get("ActiveState", "unknown"))
    if unit == "slurmd":
        if show.get("KillMode") != "process":
            problems.append("KillMode=%s: a restart would end the jobs" % show.get("KillMode"))
        if not any(show.get(key) == "0" for key in limits):
            problems.append("the start limit is on: systemd would give up trying")
    if problems:
        remedy = _DEPLOY if show.get("ActiveState") == "active" else "journalctl -u %s; systemctl start %s; then %s" % (unit, unit, _DEPLOY)
        return host_result("fail", "%s: %s" % (unit, ", ".join(problems)), shown, remedy)
    return host_result("pass", "%s: Restart=%s after %ss" % (unit, policy["restart"], policy["restart_sec"]), shown)


def _waited(seen, wanted):
    return _each(seen["node"], _wait_script_ran, wanted)


def _wait_script_ran(ev, wanted, host):
    show, path, asked_for = ev["slurmd"], wanted["wait_script"], str(wanted["wait"]).lower()
    call, line, done = verify_evidence.wait_call(show, path), ev["journal"].get("ready"), ev.get("wait_run")
    if call is None and (asked_for in ("false", "no") or (asked_for == "auto" and list(ev["release"]) >= SLURMD_WAITS)):
        return host_result("skip", "slurmd %s waits for slurmctld by itself" % ".".join("%02d" % part for part in ev["release"]))
    if call is None:
        shown = [evidence("systemctl show slurmd -p ExecStartPre", show.get("ExecStartPre") or "(empty)")]
        return host_result("fail", "slurmd's unit does not call %s" % path, shown, _DEPLOY)
    source = "systemctl show slurmd -p ExecStartPre"
    shown = [evidence(source, "%s code=%s status=%s stop_time=%s" % (path, call["code"], call["status"], call["stop"] or "forgotten"))]
    shown += [evidence("journalctl -u slurmd", line)] if line else []
    shown += _evidence_of_run("%s, run by verify" % path, done) if done else []
    others = [one["thing"] for one in ev.get("drift", {}).get("slurmd", {}).get("changes", []) if one["thing"] != "file:" + path]
    strays, seen_strays, _things = _strays(ev, "slurmd", others)
    if strays:  # how it ended says nothing of a script that is another
        return host_result("fail", "; ".join(strays), shown + seen_strays, _put_back([path]))
    start = verify_evidence.date_of(show.get("ExecMainStartTimestamp", ""))
    if not start:
        return host_result("fail", "slurmd does not run", shown, "systemctl start slurmd; journalctl -u slurmd")
    if call["stop"]:
        if call["code"] == "exited" and call["status"].split("/")[0] == "0" and call["stop"] <= start:
            return host_result("pass", u"%s before slurmd started" % CONTROLLER_READY, shown + [evidence(path, CONTROLLER_READY)])
        reason = "the wait script ended with %s %s" % (call["code"], call["status"])
        return host_result("fail", reason, shown, "journalctl -u slurmd; on the controller: scontrol ping")
    if line:
        return host_result("pass", u"%s before slurmd started (journal)" % CONTROLLER_READY, shown)
    if done and done["rc"] == 0:
        return host_result("pass", u"%s: run now, since no record of slurmd's last start is left" % CONTROLLER_READY, shown)
    reason = "nothing shows that %s ran when slurmd started" % path
    return host_result("fail", reason, shown, "on the controller: scontrol ping; journalctl -u slurmd")


def _after_slurmdbd(seen, wanted):
    return _each(seen["controller"], lambda ev, want, host: _dbd_order(ev, host in seen["dbd"]), wanted)


def _dbd_order(ev, in_group):
    ctld, dbd, account = ev["slurmctld"], ev["slurmdbd"], ev["accounting"]
    if ev["config"]["rc"] == 0 and not _accounting(ev["config"]["values"]):
        return host_result("skip", "this cluster keeps no accounting through slurmdbd")
    shown = [
        evidence("systemctl show slurmdbd", "LoadState=%s, UnitFileState=%s" % (dbd.get("LoadState", ""), dbd.get("UnitFileState", ""))),
        evidence("sacctmgr -n show cluster", "rc %s %s" % (account["rc"], " ".join(clean_lines(account["out"] or account["err"], 3)))),
    ]
    here = in_group or (dbd.get("LoadState") == "loaded" and dbd.get("UnitFileState") == "enabled")
    unlisted = "sacctmgr does not list the cluster %s" % ev["config"]["values"].get("ClusterName", "")
    if not here:
        if account["rc"] != 0 or not account["listed"]:
            remedy = "on its host: systemctl status slurmdbd; then, if the cluster is not listed: sacctmgr add cluster"
            return host_result("fail", "slurmdbd runs on another host, and " + unlisted, shown, remedy)
        return host_result("skip", "slurmdbd runs on another host (the cluster is registered there): systemd orders only its own", shown)
    problems = []
    if dbd.get("LoadState") != "loaded":
        problems.append("slurmdbd.service is %s" % dbd.get("LoadState", "unknown"))
    elif dbd.get("UnitFileState") != "enabled":
        problems.append("slurmdbd.service is %s" % (dbd.get("UnitFileState") or "not enabled"))
    for key in ("After", "Wants"):
        if "slurmdbd.service" in ctld.get(key, "").split():
            shown.append(evidence("systemctl show slurmctld", "%s has slurmdbd.service" % key))
        else:
            problems.append("%s of slurmctld lacks slurmdbd.service" % key)
    if account["rc"] != 0 or not account["listed"]:
        problems.append(unlisted)
    if problems:
        return host_result("fail", "; ".join(problems), shown, "%s; systemctl status slurmdbd" % _DEPLOY)
    return host_result("pass", "After and Wants hold slurmdbd.service, the cluster is registered", shown)


# --- 12, 13: seen to work -----------------------------------------------------------------------

def _accounting_records(seen, wanted):
    def check(ev, want, host):
        result = _settings_in_force(ev, want, ["JobAcctGatherType"])
        if result["verdict"] != "pass":
            return result
        if not _accounting(ev["config"]["values"]):
            return host_result("skip", "in force, but this cluster keeps no accounting that would show it", result["evidence"])
        return _recording(ev["recorded"], seen["probe"], result)

    return _each(seen["controller"], check, wanted)


def _recording(recorded, probe, result):
    shown = result["evidence"]
    rows = recorded["rows"] or probe.get("rows") or []
    if rows:
        source = "sacct" if recorded["rows"] else "sacct, job %s run by verify" % probe.get("job")
        shown = shown + [evidence(source, "step %s MaxRSS %s" % (row["step"], row["max_rss"])) for row in rows[:3]]
        return host_result("pass", "%s; step %s has MaxRSS %s" % (result["reason"], rows[0]["step"], rows[0]["max_rss"]), shown)
    if probe.get("outcome") == "not_recorded":
        remedy = "slurmd.log of %s; the cgroup controllers memory and cpuacct must be there" % (probe.get("node") or "the node")
        return host_result("fail", probe["reason"], shown, remedy)
    why = probe.get("error") or probe.get("reason") or "no probe step was run"
    return host_result("skip", "in force, recording not proved: no step since the daemons' start, and %s" % why, shown)


def _crash_test(seen, wanted):
    crash = seen["crash"]
    host, outcome = crash.get("host"), crash["outcome"]
    if not host:
        return crash["reason"]
    if "error" in crash:
        return {host: _no_evidence(crash)}
    shown = [evidence(line["source"], line["text"]) for line in crash.get("evidence", [])]
    if outcome == "recovered":
        kept = "%d of %d steps kept" % (crash["kept"], crash["steps"]) if crash["steps"] else "no job was running, so none could be lost"
        reason = "back in service after %.1f s, %s" % (crash["seconds"], kept)
        return {host: host_result("pass", reason, shown)}
    if outcome == "not_run":
        return {host: host_result("skip", crash["reason"], shown)}
    remedy = _DEPLOY if outcome == "refused" else "journalctl -u slurmd on %s" % host
    return {host: host_result("fail", crash.get("reason") or "the test gave no result", shown, remedy)}


_CHECKS = {
    1: _health_settings,
    2: _distributed,
    3: _script_unaltered,
    4: _script_passes,
    5: _has_run,
    6: _nodes_in_service,
    7: _patrol_timer,
    8: _restarts,
    9: _waited,
    10: _after_slurmdbd,
    11: _return_to_service,
    12: _accounting_records,
    13: _crash_test,
}
