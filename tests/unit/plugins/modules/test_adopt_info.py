"""What a controller is asked for an inventory: every node, also those to come, and addresses that others can use."""

from __future__ import annotations

import socket
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders
from ansible_collections.hpcguard.slurm.plugins.modules import adopt_info

CONFIG = {"SlurmctldHost[0]": "ctl(ctl-mgmt)", "AccountingStorageType": "accounting_storage/slurmdbd", "AccountingStorageHost": "db"}
SHOWN = (
    "NodeName=n1 Arch=x86_64 CPUTot=2 NodeAddr=10.0.0.1 NodeHostName=h1 RealMemory=4000 State=IDLE "
    "Reason=x State=y [root@2026-11-30T23:20:00]\n"
    "NodeName=n2 CPUTot=1 RealMemory=1 State=FUTURE\n"
)
Run = t.Callable[..., dict[str, t.Any]]


def answers(monkeypatch: pytest.MonkeyPatch, shown: loaders.Result, addresses: dict[str, list[str]]) -> list[t.Any]:
    """Stand in for scontrol and the resolver; what scontrol was called with."""
    calls: list[t.Any] = []

    def run(argv: list[str], timeout: float, env: t.Any = None, max_bytes: int = 0, stdin: t.Any = None) -> loaders.Result:
        calls.append((argv, env, max_bytes))
        return shown

    def getaddrinfo(name: str, *_rest: t.Any) -> list[t.Any]:
        if name not in addresses:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET6 if ":" in one else socket.AF_INET, 1, 6, "", (one, 0)) for one in addresses[name]]

    monkeypatch.setattr(loaders, "run", run)
    monkeypatch.setattr(loaders, "systemctl_show", lambda unit, properties: {"LoadState": "loaded"})
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return calls


def test_nodes_addresses_and_timer(run_module: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"10.0.0.1": ["10.0.0.1"], "ctl-mgmt": ["fd00::1", "10.1.0.1"], "db": ["127.0.1.1"], "n2": ["::1"]}
    calls = answers(monkeypatch, loaders.Result(0, SHOWN), given)
    result = run_module("adopt_info", scontrol="/opt/bin/scontrol", conf_path="/a/slurm.conf", config=CONFIG)
    assert not result["failed"] and not result["changed"]
    assert result["nodes"] == [
        {"NodeName": "n1", "NodeAddr": "10.0.0.1", "NodeHostName": "h1", "State": "IDLE", "CPUTot": "2", "RealMemory": "4000"},
        {"NodeName": "n2", "State": "FUTURE", "CPUTot": "1", "RealMemory": "1"},
    ]
    # no address of the loop, which is another host everywhere else
    assert result["addresses"] == {"10.0.0.1": "10.0.0.1", "ctl-mgmt": "10.1.0.1"}
    argv, environment, limit = calls[0]
    assert argv == ["/opt/bin/scontrol", "-o", "--future", "show", "node"] and environment == {"SLURM_CONF": "/a/slurm.conf"}
    assert limit > 3000 * 2000


def test_a_scontrol_that_fails_is_told(run_module: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, loaders.Result(1, "", "slurm_load_node error: \x1b[31mUnable to contact"), {})
    result = run_module("adopt_info", scontrol="/opt/bin/scontrol", config=CONFIG)
    assert result["failed"] and "Unable to contact" in result["msg"] and "\x1b" not in result["msg"]


def test_a_resolver_that_hangs_ends_the_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 20))
    monkeypatch.setattr(loaders, "now", lambda: next(clock))
    monkeypatch.setattr(adopt_info, "address_of", lambda name: name)
    assert adopt_info.addresses_of(["a", "b", "c"]) == {"a": "a"}
