"""Where Slurm lives: versions, command lines, servers and environment files as found in the wild."""

from __future__ import annotations

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import slurm_layout


@pytest.mark.parametrize(
    ("text", "version", "release"),
    [
        ("slurm-wlm 22.05.8\n", "22.05.8", [22, 5]),
        ("slurm 21.08.8-2", "21.08.8-2", [21, 8]),
        ("slurm 26.05.5", "26.05.5", [26, 5]),
        ("slurm 23.11.0-0rc1", "23.11.0-0rc1", [23, 11]),
        ("", "", []),
        ("bash: no such program", "", []),
    ],
)
def test_version_of_each_packaging(text: str, version: str, release: list[int]) -> None:
    assert slurm_layout.parse_version(text) == (version, release)


@pytest.mark.parametrize(
    ("command", "value"),
    [
        ("slurmd --conf-server c1:6817 -D -s", "c1:6817"),
        ("slurmd --conf-server=c1,c2", "c1,c2"),
        ("slurmd -D -s", None),
        ("slurmd -D --conf-server a --conf-server b", "b"),
    ],
)
def test_conf_server_option(command: str, value: str | None) -> None:
    assert slurm_layout.option(command.split(), "", "conf-server") == value


def test_conf_file_option_in_both_spellings() -> None:
    assert slurm_layout.option(["slurmctld", "-D", "-f", "/a/slurm.conf"], "f", "conf") == "/a/slurm.conf"
    assert slurm_layout.option(["slurmctld", "-f/a/slurm.conf"], "f", "conf") == "/a/slurm.conf"


@pytest.mark.parametrize(
    ("value", "servers"),
    [
        ("c1", ["c1:6817"]),
        ("c1:7000,c2", ["c1:7000", "c2:6817"]),
        ("fe80::1", ["[fe80::1]:6817"]),
        ("[fe80::1]:7000", ["[fe80::1]:7000"]),
        (None, []),
        (" , ", []),
    ],
)
def test_conf_servers(value: str | None, servers: list[str]) -> None:
    assert slurm_layout.conf_servers(value) == servers


def test_programs_are_looked_for_beside_the_daemon_first() -> None:
    dirs = slurm_layout.candidate_dirs([], ["/usr/local/slurm/sbin/slurmd -D", "", "/usr/sbin/slurmctld"])
    assert dirs[:2] == ["/usr/local/slurm/bin", "/usr/local/slurm/sbin"]
    assert len(dirs) == len(set(dirs))


def test_confs_in_the_order_in_which_slurm_looks() -> None:
    paths = slurm_layout.candidate_confs(["slurmctld", "-f", "/x.conf"], {"SLURM_CONF": "/y.conf"}, "/opt/s/bin")
    assert paths[:4] == ["/x.conf", "/y.conf", "/etc/slurm/slurm.conf", "/opt/s/etc/slurm.conf"]


def test_environment_file_and_expansion() -> None:
    values = slurm_layout.parse_environment_file('# comment\nSLURMD_OPTIONS="--conf-server c1:6817"\n;x\nEMPTY=\n')
    assert values == {"SLURMD_OPTIONS": "--conf-server c1:6817", "EMPTY": ""}
    assert slurm_layout.expand(["slurmd", "-D", "$SLURMD_OPTIONS"], values) == ["slurmd", "-D", "--conf-server", "c1:6817"]
    assert slurm_layout.expand(["x", "$UNSET", "a${UNSET}b"], values) == ["x", "ab"]


def test_a_line_that_no_shell_would_take_does_not_raise() -> None:
    assert slurm_layout.words("slurmd 'unclosed") == ["slurmd", "'unclosed"]


def test_controllers_of_the_loaded_configuration() -> None:
    config = {"SlurmctldHost[0]": "c1", "SlurmctldHost[1]": "c2(10.0.0.2)", "SlurmctldPort": "6817-6820", "X": "y"}
    assert slurm_layout.controllers(config) == ["c1:6817", "c2:6817"]


def test_hosts_that_the_loaded_configuration_names() -> None:
    config = {
        "SlurmctldHost[0]": "c1",
        "SlurmctldHost[1]": "c2(10.0.0.2)",
        "AccountingStorageHost": "db",
        "AccountingStorageBackupHost": "(null)",
    }
    assert slurm_layout.controller_hosts(config) == [("c1", "c1"), ("c2", "10.0.0.2")]
    assert slurm_layout.database_hosts({**config, "AccountingStorageType": "accounting_storage/slurmdbd"}) == ["db"]
    # without slurmdbd Slurm still tells a host: its default
    assert slurm_layout.database_hosts({**config, "AccountingStorageType": "accounting_storage/none"}) == []
