# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of a cluster that was kept by hand: what its controller says in, hosts and variables out. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import ipaddress
import itertools
import re
import typing as t

from ansible_collections.hpcguard.slurm.plugins.module_utils import checklist, scontrol_text, slurm_conf_values, slurm_layout, systemd_unit
from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import clean_text

Vars = dict[str, t.Any]

# Only these are taken over, so that no password can be; what is a host's own stands with the host.
CONNECTION = (
    "ansible_connection",
    "ansible_user",
    "ansible_port",
    "ansible_private_key_file",
    "ansible_ssh_private_key_file",
    "ansible_ssh_args",
    "ansible_ssh_common_args",
    "ansible_ssh_extra_args",
    "ansible_ssh_executable",
    "ansible_ssh_pipelining",
    "ansible_control_path",
    "ansible_control_path_dir",
    "ansible_become",
    "ansible_become_method",
    "ansible_become_user",
    "ansible_become_exe",
    "ansible_python_interpreter",
    "ansible_remote_tmp",
)
OWN = ("cluster_conf_path", "cluster_bin_dirs", "cluster_state_dir")
SECRETS = (
    "ansible_password",
    "ansible_ssh_pass",
    "ansible_ssh_password",
    "ansible_become_pass",
    "ansible_become_password",
    "ansible_ssh_private_key",
    "ansible_ssh_private_key_passphrase",
)
GROUPS = ("slurm_controller", "slurm_dbd", "slurm_compute")

_TELLS_A_SECRET = re.compile(r"sshpass|(pass(word|wd|phrase)?|secret|token)\s*[=:]", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,250}[A-Za-z0-9_])?")
_ADDRESS = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]{0,250}")
_NUMBERED = re.compile(r"(.*?)(\d+)(\D*)", re.ASCII)
_NOT_NAMES = {"all", "ungrouped", *GROUPS}
# Shorter runs read better name by name.
_SHORTEST_RANGE = 3

# Nodes that no rollout can count on, by the first flag or state that says so.
_LEFT_OUT = (
    ("FUTURE", "FUTURE: not there yet / 预留节点，尚未上线"),
    ("CLOUD", "CLOUD: comes and goes with the load / 云节点，随负载启停"),
    ("DYNAMIC_NORM", "DYNAMIC_NORM: registers by itself / 动态节点"),
    ("DYNAMIC_FUTURE", "DYNAMIC_FUTURE: registers by itself / 动态节点"),
    ("EXTERNAL", "EXTERNAL: has no slurmd / 外部节点，没有 slurmd"),
    ("POWERED_DOWN", "powered down / 已断电"),
    ("POWERING_DOWN", "powering down / 正在断电"),
    ("POWER_DOWN", "about to be powered down / 即将断电"),
)


class Refused(Exception):
    """There is nothing that an inventory could be made of."""


@dataclasses.dataclass(frozen=True)
class Source:
    """A host of the inventory that was given, and what it said when it was asked."""

    name: str
    variables: Vars = dataclasses.field(default_factory=dict)
    cluster: Vars | None = None
    more: Vars | None = None

    @property
    def view(self) -> Vars | None:
        """What slurmctld says, where this host could ask it."""
        view = (self.cluster or {}).get("controller")
        return view if view and view["ping"] and self.more else None

    def is_host(self, name: str) -> bool:
        return same_host(self.name, name) or same_host((self.cluster or {}).get("host", ""), name)


@dataclasses.dataclass
class Adopted:
    """The inventory as data: hosts of each group with their variables, what applies to all, and what remains to be said."""

    cluster: str
    version: str
    groups: dict[str, dict[str, Vars]]
    left_out: dict[str, list[str]]
    connection: Vars
    paths: Vars
    found_paths: Vars
    conf: Conf
    patrol: str | None
    patrol_interval: int
    notes: list[str]


@dataclasses.dataclass(frozen=True)
class Conf:
    """Keys of the standard: (key, live value, the standard's), and those that stay as they are, each with the reason."""

    shown: list[tuple[str, str, str]]
    settings: dict[str, tuple[t.Any, str]]
    leave: dict[str, str]


def same_host(one: str, other: str) -> bool:
    """Whether two names mean one host: equal, or one is the other without its domain."""
    one, other = one.lower(), other.lower()
    if one == other:
        return bool(one)
    return ("." in one) != ("." in other) and _label(one) == _label(other)


def _label(name: str) -> str:
    """What all names of a host have in common."""
    return name if is_address(name) else name.lower().split(".")[0]


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def ranges(names: c.Iterable[str]) -> list[str]:
    """Names in Ansible's notation, each run of numbers as one: ``n[001:120]``. The order stays."""
    found: list[str] = []

    def end_of_range(head: str, first: str, last: str, tail: str) -> None:
        if int(last) - int(first) + 1 >= _SHORTEST_RANGE:
            found.append(f"{head}[{first}:{last}]{tail}")
        else:
            found.extend(f"{head}{number:0{len(first)}}{tail}" for number in range(int(first), int(last) + 1))

    run: tuple[str, str, str, str] | None = None
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if run and match and _follows(run, match):
            run = (*run[:2], match[2], run[3])
            continue
        if run:
            end_of_range(*run)
        run = (match[1], match[2], match[2], match[3]) if match else None
        if not match:
            found.append(name)
    if run:
        end_of_range(*run)
    return found


def _follows(run: tuple[str, str, str, str], match: re.Match[str]) -> bool:
    head, first, last, tail = run
    # a range that begins with a zero has one width; another never grows one
    padded = first[0] == "0" and len(first) > 1
    width = len(first) if padded else 0
    return (match[1], match[3]) == (head, tail) and match[2] == f"{int(last) + 1:0{width}}" and (not padded or len(match[2]) == width)


def adopt(sources: c.Sequence[Source], standard: Vars, patrol_interval: int, known: c.Callable[[str], bool]) -> Adopted:
    """The inventory of the cluster that the given hosts belong to.

    :param standard: keys of slurm.conf and the values that a deploy would give them
    :param known: whether the control node knows a name
    """
    source = _speaker(sources)
    view, more, cluster = t.cast(Vars, source.view), t.cast(Vars, source.more), t.cast(Vars, source.cluster)
    config: dict[str, str] = view["config"]
    connection = {key: source.variables[key] for key in CONNECTION if key in source.variables}
    local = connection.pop("ansible_connection", None) if connection.get("ansible_connection") == "local" else None
    namer = _Namer(sources, connection, more["addresses"], known, local)

    groups: dict[str, dict[str, Vars]] = {group: {} for group in GROUPS}
    notes: list[str] = []
    for name, address in slurm_layout.controller_hosts(config):
        _put(groups, "slurm_controller", namer, name, address, notes)
    primary = next(iter(groups["slurm_controller"]), "")
    for name in slurm_layout.database_hosts(config):
        _put(groups, "slurm_dbd", namer, primary if name in ("localhost", "127.0.0.1", "::1") else name, name, notes)
    kept, left_out = _sort_out(more["nodes"])
    for node in kept:
        host = node.get("NodeHostName") or node["NodeName"]
        named = namer.place(host, node.get("NodeAddr") or host)
        variables = named.variables if not _mentioned(groups, named.name) else {}
        if named.name != node["NodeName"]:
            variables = {**variables, "cluster_node_name": node["NodeName"]}
        groups["slurm_compute"][named.name] = variables

    conf = _conf(config, standard, kept)
    return Adopted(
        cluster=config.get("ClusterName", ""),
        version=config.get("SLURM_VERSION", ""),
        groups=groups,
        left_out=left_out,
        connection=connection,
        paths={key: source.variables[key] for key in OWN if source.variables.get(key)},
        found_paths=_found_paths(cluster),
        conf=conf,
        patrol=_timer(more["timer"]),
        patrol_interval=patrol_interval,
        notes=notes + _notes(source, kept, left_out, groups, namer, conf),
    )


def _speaker(sources: c.Sequence[Source]) -> Source:
    """The host whose word counts: the primary controller where it was asked, else another that slurmctld answered."""
    answered = [(one, one.view["config"]) for one in sources if one.view]
    if not answered:
        raise Refused("no host could ask slurmctld: " + ("; ".join(_silent(one) for one in sources if one.cluster) or "no host answered"))
    clusters = sorted({config.get("ClusterName", "") for _one, config in answered})
    if len(clusters) > 1:
        raise Refused(f"the hosts belong to several clusters ({', '.join(clusters)}): use --limit with one controller")
    for name, _address in slurm_layout.controller_hosts(answered[0][1]):
        for one, _config in answered:
            if one.is_host(name):
                return one
    return answered[0][0]


def _silent(source: Source) -> str:
    view = (source.cluster or {}).get("controller") or {}
    return f"{source.name}: {view.get('error') or 'scontrol show node failed'}"


@dataclasses.dataclass(frozen=True)
class _Named:
    name: str
    variables: Vars


class _Namer:
    """Gives every host one name, Slurm's own, and says how to reach it where the name alone would not do."""

    def __init__(
        self, sources: c.Sequence[Source], common: Vars, addresses: dict[str, str], known: c.Callable[[str], bool], local: str | None
    ) -> None:
        self.common, self.addresses, self.known, self.local = common, addresses, known, local
        self.placed: dict[str, list[str]] = {}
        self.asked: dict[str, list[Source]] = {}
        for source in sources:
            for label in dict.fromkeys([_label(source.name), _label((source.cluster or {}).get("host", ""))]):
                self.asked.setdefault(label, []).append(source)
        self.unknown: list[str] = []
        self.looked_up: list[str] = []

    def place(self, name: str, address: str) -> _Named:
        """The host's name in the inventory, and the variables that it needs there."""
        placed = self.placed.setdefault(_label(name), [])
        for given in placed:
            if same_host(given, name):
                return _Named(given, {})
        placed.append(name)
        return _Named(name, self._variables(name, address))

    def _variables(self, name: str, address: str) -> Vars:
        source = next((one for one in self.asked.get(_label(name), []) if one.is_host(name)), None)
        if source is None:
            return self._address(name, address)
        if self.local and source.variables.get("ansible_connection") == "local":
            return {"ansible_connection": "local"}
        own = {
            key: source.variables[key] for key in CONNECTION if key in source.variables and source.variables[key] != self.common.get(key)
        }
        target = source.variables.get("ansible_host") or source.name
        return {**({"ansible_host": target} if target != name else {}), **own}

    def _address(self, name: str, address: str) -> Vars:
        if not self.known(address):
            found = self.addresses.get(address)
            if found:
                self.looked_up.append(name)
                return {"ansible_host": found}
            self.unknown.append(name)
        return {"ansible_host": address} if address != name else {}


def _mentioned(groups: dict[str, dict[str, Vars]], name: str) -> bool:
    return any(name in hosts for hosts in groups.values())


def _put(groups: dict[str, dict[str, Vars]], group: str, namer: _Namer, name: str, address: str, notes: list[str]) -> None:
    problem = _bad_name(name) or _bad_address(address)
    if problem:
        notes.append(f"{name} is not in {group}: {problem}")
        return
    named = namer.place(name, address)
    groups[group][named.name] = {} if _mentioned(groups, named.name) else named.variables


def _bad_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name.lower() in _NOT_NAMES:
        return "its name cannot be a host's name / 主机名无效"
    return ""


def _bad_address(address: str) -> str:
    return "" if _ADDRESS.fullmatch(address) else "its address is none / 地址无效"


def _sort_out(records: c.Sequence[dict[str, str]]) -> tuple[list[dict[str, str]], dict[str, list[str]]]:
    """Nodes for the inventory, and {reason: names} of those that do not belong into it."""
    hosts: dict[str, int] = {}
    for one in records:
        host = one.get("NodeHostName") or one["NodeName"]
        hosts[host] = hosts.get(host, 0) + 1
    kept: list[dict[str, str]] = []
    left_out: dict[str, list[str]] = {}
    for one in records:
        host = one.get("NodeHostName") or one["NodeName"]
        base, flags = scontrol_text.parse_state(one.get("State", ""))
        reason = next((told for word, told in _LEFT_OUT if word == base or word in flags), "")
        reason = reason or _bad_name(one["NodeName"]) or _bad_name(host) or _bad_address(one.get("NodeAddr") or host)
        if not reason and hosts[host] > 1:
            reason = f"several slurmd on {host}, which one unit a host cannot serve / 同一主机上有多个 slurmd"
        if reason:
            left_out.setdefault(reason, []).append(one["NodeName"])
        else:
            kept.append(one)
    return kept, left_out


def _found_paths(cluster: Vars) -> Vars:
    programs = [path for path in cluster["slurm"]["bin"].values() if path]
    found = {"cluster_conf_path": cluster["conf"]["path"], "cluster_bin_dirs": sorted({path.rsplit("/", 1)[0] for path in programs})}
    return {key: value for key, value in found.items() if value}


def _timer(show: Vars) -> str | None:
    """How the patrol's timer runs now, None where there is none."""
    if show.get("LoadState") != "loaded":
        return None
    periods = [systemd_unit.parse_usec(text) for text in checklist.PERIOD.findall(show.get("TimersMonotonic", ""))]
    seconds = min((period // 1000000 for period in periods if period), default=None)
    told = f"every {seconds} s" if seconds else f"not at a fixed interval ({show.get('TimersCalendar') or 'no period'})"
    return f"{show.get('UnitFileState') or 'unknown'}, {show.get('ActiveState') or 'unknown'}, {told}"


def _conf(config: dict[str, str], standard: Vars, nodes: c.Sequence[dict[str, str]]) -> Conf:
    """Live values beside the standard, and those that somebody chose for this cluster."""
    live = {key.lower(): scontrol_text.plain_value(value) for key, value in config.items()}
    shown = [(key, live.get(key.lower(), ""), str(value)) for key, value in standard.items()]
    wanted = {key.lower(): str(value) for key, value in standard.items()}
    conf = Conf(shown, {}, {})
    _own_program(live, wanted, conf)
    timeout = live.get("slurmdtimeout", "")
    if timeout.isdigit() and timeout != wanted.get("slurmdtimeout", timeout):
        conf.settings["SlurmdTimeout"] = int(timeout), "chosen for this cluster: how long a node may be silent before its jobs are ended"
    if wanted.get("defmempercpu", "").isdigit():
        _memory(live, int(wanted["defmempercpu"]), nodes, conf)
    return conf


def _own_program(live: dict[str, str], wanted: dict[str, str], conf: Conf) -> None:
    """A health check program of the site stays, together with when it runs, where it does run."""
    program, interval, states = (live.get(key, "") for key in ("healthcheckprogram", "healthcheckinterval", "healthchecknodestate"))
    runs = interval not in ("", "0") or states.upper() in slurm_conf_values.LONELY_STATES
    if not program or program == wanted.get("healthcheckprogram", program) or not runs:
        return
    why = "the site's own health check; without these three lines the standard's takes its place"
    conf.settings["HealthCheckProgram"] = program, why
    conf.settings["HealthCheckInterval"] = int(interval) if interval.isdigit() else interval, ""
    if states:
        conf.settings["HealthCheckNodeState"] = states, ""


def _memory(live: dict[str, str], wanted: int, nodes: c.Sequence[dict[str, str]], conf: Conf) -> None:
    """The default of memory for each CPU: kept where it is larger, and where the standard's would refuse jobs."""
    present, most = _amount(live.get("defmempercpu")), _amount(live.get("maxmempercpu"))
    for_node = _amount(live.get("defmempernode"))
    rooms = [(_room(one), one["NodeName"]) for one in nodes if _room(one) is not None]
    room, name = min(rooms, default=(None, ""), key=lambda pair: t.cast(int, pair[0]))
    if present and present > wanted:
        conf.settings["DefMemPerCPU"] = present, f"more than the standard's {wanted} MB, so somebody chose it"
        return
    if for_node and not present:
        conf.leave["DefMemPerCPU"] = f"DefMemPerNode={for_node} is set, and the two exclude one another"
        return
    if room is not None and room < wanted:
        why = f"{name} has {room} MB for each CPU: with {wanted} MB, jobs that say nothing of memory could not use all of its CPUs"
    elif most and most < wanted:
        why = f"MaxMemPerCPU={most} is less than the standard's {wanted} MB"
    else:
        return
    if present:
        conf.settings["DefMemPerCPU"] = present, why
    else:
        conf.leave["DefMemPerCPU"] = why


def _amount(value: str | None) -> int | None:
    return int(value) if value and value.isdigit() and int(value) else None


def _room(node: dict[str, str]) -> int | None:
    cpus, memory = _amount(node.get("CPUTot")), _amount(node.get("RealMemory"))
    return memory // cpus if cpus and memory else None


def _notes(
    source: Source,
    nodes: c.Sequence[dict[str, str]],
    left_out: dict[str, list[str]],
    groups: dict[str, dict[str, Vars]],
    namer: _Namer,
    conf: Conf,
) -> list[str]:
    """What the cluster could not say and an operator has to."""
    notes = []
    if not groups["slurm_compute"]:
        notes.append("no node is left for slurm_compute: hosts.yml says why")
    if namer.unknown:
        notes.append(f"how to reach {_some(namer.unknown)}: neither this host nor the controller knows an address. Set ansible_host")
    if namer.looked_up:
        notes.append(f"whether the address that the controller knows of {_some(namer.looked_up)} is the right one from here")
    silent = [one["NodeName"] for one in nodes if not scontrol_text.in_service(_state(one))]
    if silent:
        notes.append(f"whether {_some(silent)} will be back: not in service now")
    if "ansible_port" in source.variables and len(_all_hosts(groups)) > 1:
        notes.append(f"whether port {source.variables['ansible_port']} is right for every host")
    if "HealthCheckProgram" in conf.settings:
        notes.append("whether the site's own health check is to stay: while it does, the standard's never runs and item 5 of verify fails")
    notes.append("which mounts and directories a node needs: health_check_mounts, health_check_writable_dirs")
    notes.append("whether the SSH host keys are known here, and those of the nodes to root on the controller, for the patrol")
    return notes


def _state(node: dict[str, str]) -> Vars:
    base, flags = scontrol_text.parse_state(node.get("State", ""))
    return {"base": base, "flags": flags}


def _all_hosts(groups: dict[str, dict[str, Vars]]) -> set[str]:
    return set(itertools.chain.from_iterable(groups.values()))


def _some(names: c.Sequence[str], most: int = 5) -> str:
    short = ranges(names)
    more = f" and {len(short) - most} more" if len(short) > most else ""
    return clean_text(", ".join(short[:most]) + more)


def tells_a_secret(value: t.Any, secrets: c.Iterable[str]) -> bool:
    """Whether a variable of the connection holds a password, by its words or because it is one that was given."""
    text = str(value)
    return bool(_TELLS_A_SECRET.search(text)) or any(secret in text for secret in secrets if secret)
