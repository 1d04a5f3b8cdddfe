"""The inventory of a cluster kept by hand: who is in it, under which name, how reached, and which settings stay."""

from __future__ import annotations

import dataclasses
import pathlib
import time
import typing as t

import pytest
from ansible.plugins.inventory import expand_hostname_range

from ansible_collections.hpcguard.slurm.plugins.module_utils import scontrol_text
from ansible_collections.hpcguard.slurm.plugins.plugin_utils import adopt
from ansible_collections.hpcguard.slurm.plugins.plugin_utils.adopt import Source

FIXTURES = pathlib.Path(__file__).parents[3] / "fixtures" / "adopt"
STANDARD = {
    "HealthCheckInterval": 300,
    "HealthCheckProgram": "/usr/local/bin/slurm_health_check.sh",
    "HealthCheckNodeState": "ANY",
    "ReturnToService": 2,
    "SlurmdTimeout": 300,
    "JobAcctGatherType": "jobacct_gather/cgroup",
    "DefMemPerCPU": 1024,
}
CONFIG = {
    "ClusterName": "hpc",
    "SLURM_VERSION": "24.11.5",
    "SlurmctldHost[0]": "ctl",
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "AccountingStorageHost": "ctl",
    "SlurmdTimeout": "300 sec",
    "HealthCheckInterval": "0 sec",
    "HealthCheckProgram": "(null)",
    "HealthCheckNodeState": "ANY",
    "DefMemPerNode": "UNLIMITED",
}
Vars = dict[str, t.Any]


def node(name: str, state: str = "IDLE", **fields: str) -> dict[str, str]:
    return {"NodeName": name, "NodeAddr": name, "NodeHostName": name, "State": state, "CPUTot": "4", "RealMemory": "16000", **fields}


def source(
    nodes: list[dict[str, str]],
    config: Vars | None = None,
    name: str = "ctl",
    addresses: dict[str, str] | None = None,
    timer: Vars | None = None,
    **variables: t.Any,
) -> Source:
    """A controller and what it said."""
    programs = {"scontrol": "/opt/slurm/bin/scontrol", "sacct": None}
    view = {"ping": True, "config": {**CONFIG, **(config or {})}}
    cluster = {"host": "ctl", "controller": view, "conf": {"path": "/opt/slurm/etc/slurm.conf"}, "slurm": {"bin": programs}}
    return Source(name, variables, cluster, {"nodes": nodes, "addresses": addresses or {}, "timer": timer or {"LoadState": "not-found"}})


def adopted(*sources: Source, known: bool = True, standard: Vars | None = None) -> adopt.Adopted:
    return adopt.adopt(sources, standard or STANDARD, 900, lambda name: known)


# --- who is in it -------------------------------------------------------------------------------


def test_the_lab_as_recorded() -> None:
    """A legacy cluster of 22.05: three groups, addresses of the controller, and no setting that stays."""
    config = scontrol_text.parse_config((FIXTURES / "config-22.05.txt").read_text(encoding="utf-8"))
    nodes = scontrol_text.parse_records((FIXTURES / "node-22.05.txt").read_text(encoding="utf-8"))
    asked = source(nodes, {**dict.fromkeys(CONFIG, ""), **config}, name="10.9.9.11", addresses={"k8s-node-01": "10.9.9.21"})
    asked = dataclasses.replace(asked, cluster={**t.cast(Vars, asked.cluster), "host": "k8s-master-01"})
    found = adopted(asked, known=False)
    assert found.groups == {
        "slurm_controller": {"k8s-master-01": {"ansible_host": "10.9.9.11"}},
        "slurm_dbd": {"k8s-master-01": {}},
        "slurm_compute": {"k8s-node-01": {"ansible_host": "10.9.9.21"}, "k8s-node-02": {}, "k8s-node-03": {}},
    }
    assert (found.conf.settings, found.conf.leave, found.left_out) == ({}, {}, {})
    assert ("DefMemPerCPU", "100", "1024") in found.conf.shown
    assert any("k8s-node-02" in note and "ansible_host" in note for note in found.notes)


@pytest.mark.parametrize(
    ("config", "controllers", "databases"),
    [
        ({}, ["ctl"], ["ctl"]),
        ({"AccountingStorageType": "accounting_storage/none"}, ["ctl"], []),
        ({"AccountingStorageHost": "localhost"}, ["ctl"], ["ctl"]),
        ({"AccountingStorageHost": "db", "AccountingStorageBackupHost": "db2"}, ["ctl"], ["db", "db2"]),
        # the same host with its domain
        ({"AccountingStorageHost": "ctl.example.org"}, ["ctl"], ["ctl"]),
        ({"SlurmctldHost[1]": "ctl2"}, ["ctl", "ctl2"], ["ctl"]),
    ],
)
def test_controllers_and_databases(config: Vars, controllers: list[str], databases: list[str]) -> None:
    groups = adopted(source([node("n1")], config)).groups
    assert (list(groups["slurm_controller"]), list(groups["slurm_dbd"])) == (controllers, databases)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("IDLE+CLOUD+POWERED_DOWN", "CLOUD"),
        ("IDLE~+CLOUD", "CLOUD"),
        ("FUTURE", "FUTURE"),
        ("IDLE+FUTURE", "FUTURE"),
        ("IDLE+DYNAMIC_NORM", "DYNAMIC_NORM"),
        ("IDLE+EXTERNAL", "EXTERNAL"),
        ("IDLE+POWER", "powered down"),  # as 20.11 says it
        ("IDLE+POWERING_DOWN", "powering down"),
        ("IDLE!", "about to be powered down"),
    ],
)
def test_nodes_that_no_rollout_can_count_on_are_left_out(state: str, reason: str) -> None:
    found = adopted(source([node("n1"), node("c1", state)]))
    assert list(found.groups["slurm_compute"]) == ["n1"]
    ((told, names),) = found.left_out.items()
    assert told.startswith(reason) and names == ["c1"]


@pytest.mark.parametrize("state", ["DOWN*", "IDLE+DRAIN", "DOWN+NOT_RESPONDING", "IDLE+POWERING_UP", "UNKNOWN"])
def test_sick_nodes_belong_to_the_cluster(state: str) -> None:
    assert list(adopted(source([node("n1", state)])).groups["slurm_compute"]) == ["n1"]


def test_a_node_out_of_service_is_told() -> None:
    assert any("n2" in note and "not in service" in note for note in adopted(source([node("n1"), node("n2", "DOWN*")])).notes)


@pytest.mark.parametrize(
    "hostile",
    [
        node("{{ lookup('pipe','id') }}"),
        node("-oProxyCommand=id"),
        node("a b"),
        node("n1\n  evil"),
        node("all"),
        node("slurm_compute"),
        node("n[1:9]"),
        node("n1:22"),
        node("ü"),
        node("n2", NodeAddr="{{ x }}"),
        node("n2", NodeAddr="-oProxyCommand=id"),
        node("n2", NodeAddr="a b"),
        node("n2", NodeHostName="$(id)"),
    ],
)
def test_hostile_nodes_are_left_out(hostile: dict[str, str]) -> None:
    """What is neither a name nor an address reaches no ssh command line and no inventory."""
    found = adopted(source([node("n1"), hostile]))
    assert list(found.groups["slurm_compute"]) == ["n1"]
    assert list(found.left_out.values()) == [[hostile["NodeName"]]]


def test_a_hostile_controller_is_no_host() -> None:
    found = adopted(source([node("n1")], {"SlurmctldHost[1]": "-oProxyCommand=id", "AccountingStorageHost": "{{ x }}"}))
    assert list(found.groups["slurm_controller"]) == ["ctl"] and not found.groups["slurm_dbd"]
    assert any("slurm_dbd" in note for note in found.notes)


def test_several_slurmd_on_one_host_are_left_out() -> None:
    nodes = [node(f"v{number}", NodeHostName="big") for number in (1, 2)]
    found = adopted(source([node("n1"), *nodes]))
    assert list(found.groups["slurm_compute"]) == ["n1"]
    assert list(found.left_out.values()) == [["v1", "v2"]]


# --- names and addresses ------------------------------------------------------------------------


def test_names_and_addresses_that_differ() -> None:
    nodes = [
        node("n1", NodeHostName="host7", NodeAddr="10.0.0.7"),
        node("n2", NodeAddr="n2-ib"),
        node("ctl"),
    ]
    assert adopted(source(nodes)).groups["slurm_compute"] == {
        "host7": {"ansible_host": "10.0.0.7", "cluster_node_name": "n1"},
        "n2": {"ansible_host": "n2-ib"},
        "ctl": {},
    }


def test_a_controller_that_computes_is_one_host() -> None:
    """Its domain makes no second host of it, and Slurm's own name for the node is kept."""
    found = adopted(source([node("ctl")], {"SlurmctldHost[0]": "ctl.example.org", "AccountingStorageHost": "ctl"}))
    assert found.groups["slurm_controller"] == {"ctl.example.org": {"ansible_host": "ctl"}}
    assert found.groups["slurm_dbd"] == {"ctl.example.org": {}}
    assert found.groups["slurm_compute"] == {"ctl.example.org": {"cluster_node_name": "ctl"}}


def test_same_host() -> None:
    assert adopt.same_host("CTL", "ctl") and adopt.same_host("ctl", "ctl.example.org")
    assert not adopt.same_host("db.a.org", "db.b.org") and not adopt.same_host("", "")
    assert not adopt.same_host("10.0.0.1", "10") and not adopt.same_host("10.0.0.1", "10.0.0.2")


def test_the_address_in_the_configuration_of_a_backup_controller() -> None:
    found = adopted(source([node("n1")], {"SlurmctldHost[1]": "ctl2(10.0.0.2)"}))
    assert found.groups["slurm_controller"]["ctl2"] == {"ansible_host": "10.0.0.2"}


def test_how_the_controller_was_reached_stays_with_it() -> None:
    """The name that the operator used is its address; ansible_host, where given, counts more."""
    assert adopted(source([node("n1")], name="ctl.example.org")).groups["slurm_controller"] == {"ctl": {"ansible_host": "ctl.example.org"}}
    found = adopted(source([node("n1")], name="x", ansible_host="192.0.2.1"))
    assert found.groups["slurm_controller"] == {"ctl": {"ansible_host": "192.0.2.1"}}


def test_on_the_controller_itself() -> None:
    """A local connection is the controller's alone."""
    found = adopted(source([node("n1")], name="localhost", ansible_connection="local", ansible_user="root"))
    assert found.groups["slurm_controller"] == {"ctl": {"ansible_connection": "local"}}
    assert found.connection == {"ansible_user": "root"}


def test_connection_of_the_controller_is_everyones_but_for_those_that_have_their_own() -> None:
    other = Source("n1", {"ansible_user": "ops", "ansible_host": "192.0.2.7", "ansible_port": 22})
    found = adopted(source([node("n1"), node("n2")], ansible_user="root", ansible_port=22, ansible_host="192.0.2.1"), other)
    assert found.connection == {"ansible_user": "root", "ansible_port": 22}
    assert found.groups["slurm_compute"] == {"n1": {"ansible_host": "192.0.2.7", "ansible_user": "ops"}, "n2": {}}
    assert any("port 22" in note for note in found.notes)


def test_names_that_only_the_controller_knows() -> None:
    found = adopted(source([node("n1"), node("n2")], addresses={"n1": "10.0.0.1"}), known=False)
    assert found.groups["slurm_compute"] == {"n1": {"ansible_host": "10.0.0.1"}, "n2": {}}
    assert any(note.startswith("how to reach n2") for note in found.notes)


def test_paths_that_were_given_are_kept_and_those_found_are_told() -> None:
    found = adopted(source([node("n1")], cluster_conf_path="/a/slurm.conf"))
    assert found.paths == {"cluster_conf_path": "/a/slurm.conf"}
    assert found.found_paths == {"cluster_conf_path": "/opt/slurm/etc/slurm.conf", "cluster_bin_dirs": ["/opt/slurm/bin"]}


# --- whom to believe ----------------------------------------------------------------------------


def test_the_primary_controller_is_believed_first() -> None:
    login = source([node("n1")], name="login")
    login = dataclasses.replace(login, cluster={**t.cast(Vars, login.cluster), "host": "login"})
    assert list(adopted(login, source([node("n2")])).groups["slurm_compute"]) == ["n2"]
    assert list(adopted(login).groups["slurm_compute"]) == ["n1"]


def test_two_clusters_are_refused() -> None:
    with pytest.raises(adopt.Refused, match="several clusters"):
        adopted(source([node("n1")]), source([node("n2")], {"ClusterName": "other"}, name="ctl9"))


def test_no_answer_is_refused_and_says_why() -> None:
    silent = Source("n1", {}, {"controller": {"ping": False, "error": "connection refused"}}, None)
    with pytest.raises(adopt.Refused, match="n1: connection refused"):
        adopted(silent)


# --- settings that stay -------------------------------------------------------------------------


def conf(config: Vars, *nodes: dict[str, str], standard: Vars | None = None) -> tuple[Vars, list[str]]:
    found = adopted(source(list(nodes) or [node("n1")], config), standard=standard).conf
    return {key: value for key, (value, _why) in found.settings.items()}, list(found.leave)


SMALL = node("small", CPUTot="64", RealMemory="32000")


@pytest.mark.parametrize(
    ("config", "nodes", "settings", "leave"),
    [
        ({}, [], {}, []),
        ({"DefMemPerCPU": "100"}, [], {}, []),
        ({"DefMemPerCPU": "4000"}, [], {"DefMemPerCPU": 4000}, []),
        # 500 MB for each CPU: 1024 would leave CPUs idle
        ({"DefMemPerCPU": "400"}, [SMALL], {"DefMemPerCPU": 400}, []),
        ({}, [SMALL], {}, ["DefMemPerCPU"]),
        ({}, [node("n1"), dict(SMALL, State="FUTURE")], {}, []),
        ({"DefMemPerNode": "8000"}, [], {}, ["DefMemPerCPU"]),
        ({"MaxMemPerCPU": "512"}, [], {}, ["DefMemPerCPU"]),
        ({"SlurmdTimeout": "600 sec"}, [], {"SlurmdTimeout": 600}, []),
        ({"SlurmdTimeout": "0 sec"}, [], {"SlurmdTimeout": 0}, []),
        ({"ReturnToService": "0", "JobAcctGatherType": "jobacct_gather/linux"}, [], {}, []),
    ],
)
def test_what_somebody_chose_stays(config: Vars, nodes: list[dict[str, str]], settings: Vars, leave: list[str]) -> None:
    assert conf(config, *nodes) == (settings, leave)


def test_a_health_check_of_the_site_stays_with_its_rhythm() -> None:
    own = {"HealthCheckProgram": "/opt/nhc/nhc", "HealthCheckInterval": "600 sec", "HealthCheckNodeState": "IDLE,CYCLE"}
    assert conf(own)[0] == {"HealthCheckProgram": "/opt/nhc/nhc", "HealthCheckInterval": 600, "HealthCheckNodeState": "IDLE,CYCLE"}
    # it never runs, so it is nobody's choice
    assert conf({**own, "HealthCheckInterval": "0 sec"}) == ({}, [])
    assert "HealthCheckProgram" in conf({**own, "HealthCheckInterval": "0 sec", "HealthCheckNodeState": "START_ONLY"})[0]


def test_a_cluster_at_the_standard_needs_no_setting() -> None:
    config = {key: str(value) for key, value in STANDARD.items()} | {"HealthCheckInterval": "300 sec", "SlurmdTimeout": "300 sec"}
    assert conf(config) == ({}, [])


def test_a_standard_without_the_keys_decides_nothing() -> None:
    assert conf({"SlurmdTimeout": "600 sec", "DefMemPerCPU": "4000"}, standard={"ReturnToService": 2}) == ({}, [])


@pytest.mark.parametrize(
    ("show", "told"),
    [
        ({"LoadState": "not-found"}, None),
        (
            {
                "LoadState": "loaded",
                "UnitFileState": "enabled",
                "ActiveState": "active",
                "TimersMonotonic": "{ OnUnitActiveUSec=5min ; next_elapse=1h }",
            },
            "enabled, active, every 300 s",
        ),
        (
            {
                "LoadState": "loaded",
                "UnitFileState": "disabled",
                "ActiveState": "inactive",
                "TimersCalendar": "{ OnCalendar=hourly ; next_elapse=n/a }",
            },
            "disabled, inactive, not at a fixed interval ({ OnCalendar=hourly ; next_elapse=n/a })",
        ),
    ],
)
def test_the_timer_as_it_runs_now(show: Vars, told: str | None) -> None:
    assert adopted(source([node("n1")], timer=show)).patrol == told


# --- secrets ------------------------------------------------------------------------------------


def test_secrets_are_known_by_word_and_by_value() -> None:
    assert adopt.tells_a_secret("-o ProxyCommand='sshpass -p x ssh b'", [])
    assert adopt.tells_a_secret("-o X=hunter2", ["hunter2"])
    assert not adopt.tells_a_secret("-o PreferredAuthentications=publickey -o PasswordAuthentication=no", ["hunter2", ""])


def test_nothing_that_is_taken_over_can_be_a_password() -> None:
    assert not set(adopt.CONNECTION) & set(adopt.SECRETS)


# --- ranges -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "short"),
    [
        ([f"node{number:03}" for number in range(1, 1000)], ["node[001:999]"]),
        ([f"n{number}" for number in range(8, 13)], ["n[8:12]"]),
        (["n08", "n09", "n10"], ["n[08:10]"]),
        # two digits with a zero grow no third
        (["n08", "n09", *[f"n{number}" for number in range(10, 102)]], ["n[08:99]", "n100", "n101"]),
        (["n1", "n2"], ["n1", "n2"]),
        (["n1", "n01", "n2"], ["n1", "n01", "n2"]),
        (["r1n1-ib", "r1n2-ib", "r1n3-ib", "r2n4-ib"], ["r1n[1:3]-ib", "r2n4-ib"]),
        (["login", "n3", "n2", "n1", "7", "8", "9"], ["login", "n3", "n2", "n1", "[7:9]"]),
        ([], []),
    ],
)
def test_ranges(names: list[str], short: list[str]) -> None:
    assert adopt.ranges(names) == short
    expanded = [name for one in short for name in (expand_hostname_range(one) if "[" in one else [one])]
    assert expanded == names


def test_three_thousand_nodes() -> None:
    """Two seconds are a hundred times what it takes, and far less than comparing every name with every other would."""
    names = [f"r{rack:02}n{number:02}" for rack in range(1, 51) for number in range(1, 61)]
    begun = time.monotonic()
    given = [Source(name, {"ansible_user": "root"}) for name in names]
    found = adopted(source([node(name) for name in names], ansible_user="root"), *given)
    assert time.monotonic() - begun < 2
    assert list(found.groups["slurm_compute"]) == names
    assert len(adopt.ranges(names)) == 50
