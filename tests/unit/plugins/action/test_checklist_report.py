"""The action that judges: takes the evidence of the hosts, writes three files, fails when an item fails."""

from __future__ import annotations

import hashlib
import json
import pathlib
import types
import typing as t
from xml.etree import ElementTree

import pytest
from ansible.plugins.action import ActionBase

from ansible_collections.hpcguard.slurm.plugins.action import checklist_report as action

FIXTURES = pathlib.Path(__file__).parents[3] / "fixtures" / "verify"
MASTER, NODES = "k8s-master-01", ["k8s-node-01", "k8s-node-02", "k8s-node-03"]
Vars = dict[str, t.Any]


class Shown:
    """Stands in for Ansible's display."""

    columns = 79

    def __init__(self) -> None:
        self.lines: list[str] = []

    def display(self, text: str) -> None:
        self.lines += text.split("\n")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Shown:
    made = Shown()
    monkeypatch.setattr(action, "display", made)
    monkeypatch.setattr(action, "stringc", lambda text, color: text)
    monkeypatch.setattr(ActionBase, "run", lambda self, tmp=None, task_vars=None: {})
    # the script that was on the hosts when the evidence was recorded
    monkeypatch.setattr(hashlib, "sha256", lambda content: types.SimpleNamespace(hexdigest=lambda: digest("deployed-22.05")))
    monkeypatch.setattr(action, "SCRIPT", pathlib.Path(__file__))
    return made


def evidence(name: str) -> Vars:
    return t.cast(Vars, json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8")))


def digest(name: str) -> str:
    return t.cast(str, evidence(name)["node"][NODES[0]]["script"]["sha256"])


def report(seen: Vars, folder: pathlib.Path, asked: Vars | None = None, **more: t.Any) -> Vars:
    """Run the action as the role does, every host in the play.

    :param asked: further variables of hosts, what the roles were asked among them
    """
    args = {
        "folder": str(folder),
        "controllers": {"results": [{"item": MASTER, "evidence": seen["controller"][MASTER]}]},
        "probe": seen["probe"],
        "crash": seen["crash"],
        "crash_test": True,
        "crash_host": NODES[0],
        "wanted": {
            "settings": {
                "HealthCheckInterval": "300",
                "HealthCheckProgram": "/usr/local/bin/slurm_health_check.sh",
                "HealthCheckNodeState": "ANY",
                "ReturnToService": "2",
                "JobAcctGatherType": "jobacct_gather/cgroup",
            },
            "deferred": [],
            "out_of_service": [],
            "script": "/usr/local/bin/slurm_health_check.sh",
            "heartbeat": "/run/hpcguard/health_check.last",
            "wait_script": "/usr/local/bin/wait-for-slurmctld.sh",
            "wait": "auto",
            # ansible-core 2.16 hands numbers over as text
            "patrol_interval": "900",
            "restart": {
                "slurmd": {"restart": "always", "restart_sec": "10"},
                "slurmctld": {"restart": "", "restart_sec": "10"},
                "slurmdbd": {"restart": "always", "restart_sec": "10"},
            },
        },
        **more,
    }
    nothing = {"changes": [], "problem": ""}
    hostvars: Vars = {MASTER: {"__verify_drift": {"patrol": nothing}}}
    for host in NODES:
        given = seen["node"].get(host)
        hostvars[host] = {"__verify_node": {"evidence": given} if given else {"unreachable": True, "msg": "No route"}}
        if given:
            hostvars[host]["__verify_drift"] = {"health_check": nothing, "slurmd": nothing}
    for host, variables in (asked or {}).items():
        hostvars[host].update(variables)
    task_vars = {
        "ansible_play_hosts_all": [MASTER, *NODES],
        "groups": {"slurm_controller": [MASTER], "slurm_dbd": [MASTER], "slurm_compute": NODES},
        "hostvars": hostvars,
    }
    module = action.ActionModule.__new__(action.ActionModule)
    module._task = types.SimpleNamespace(args=args)
    return module.run(task_vars=task_vars)


def test_a_cluster_at_the_standard(shown: Shown, tmp_path: pathlib.Path) -> None:
    result = report(evidence("deployed-22.05"), tmp_path / "reports")
    assert (result["failed"], result["summary"]) == (False, {"pass": 13, "fail": 0, "skip": 0})
    written = json.loads((tmp_path / "reports" / "verify.json").read_text(encoding="utf-8"))
    assert [item["id"] for item in written["items"]] == list(range(1, 14))
    assert {"id", "verdict", "hosts", "title", "reason"} <= set(written["items"][0])
    assert (written["cluster"], written["slurm"]) == ("hpc", "22.05.8")
    assert ElementTree.parse(tmp_path / "reports" / "verify.xml").getroot()[0].get("failures") == "0"
    assert "13 of 13 passed" in "\n".join(shown.lines)
    assert sorted(path.name for path in (tmp_path / "reports").iterdir()) == ["verify.html", "verify.json", "verify.xml"]


def test_what_a_role_would_change_reaches_the_item(shown: Shown, tmp_path: pathlib.Path) -> None:
    """And a host of the run whose role could not even be asked does not pass."""
    change = {"thing": "file:/usr/local/bin/wait-for-slurmctld.sh", "from": "sha256:1", "to": "sha256:2"}
    drift = {"health_check": {"changes": [], "problem": ""}, "slurmd": {"changes": [change], "problem": ""}}
    asked = {NODES[0]: {"__verify_drift": drift}, MASTER: {"__verify_drift": {}}}
    result = report(evidence("deployed-22.05"), tmp_path, asked)
    assert result["items"] == ["7", "9"]


def test_the_legacy_cluster_fails_and_the_report_is_there_all_the_same(shown: Shown, tmp_path: pathlib.Path) -> None:
    result = report(evidence("legacy-22.05"), tmp_path)
    assert result["failed"] is True
    assert result["msg"].startswith("failed: 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13 of 13 items")
    assert (tmp_path / "verify.html").read_text(encoding="utf-8").count('class="badge fail"') >= 12


def test_a_host_that_did_not_answer_fails_by_name(shown: Shown, tmp_path: pathlib.Path) -> None:
    seen = evidence("deployed-22.05")
    del seen["node"][NODES[1]]
    result = report(seen, tmp_path)
    assert result["msg"].startswith("failed: 2, 3, 4, 5, 8, 9 of 13 items")
    assert "k8s-node-02: the host did not answer" in "\n".join(shown.lines)


def test_a_controller_that_did_not_answer(shown: Shown, tmp_path: pathlib.Path) -> None:
    """As in a loop of Ansible: the item has no evidence, or the whole task was skipped."""
    for controllers in ({"results": [{"item": MASTER, "unreachable": True, "msg": "No route"}]}, {"skipped": True}):
        result = report(evidence("deployed-22.05"), tmp_path, controllers=controllers)
        assert result["msg"].startswith("failed: 1, 2, 6, 7, 8, 10, 11, 12 of 13 items")


@pytest.mark.parametrize(
    ("enabled", "host", "words"), [(False, "", "switched off (verify_crash_test)"), (True, "", "no node is in service without a flag")]
)
def test_a_crash_test_that_was_not_made(shown: Shown, tmp_path: pathlib.Path, enabled: bool, host: str, words: str) -> None:
    result = report(evidence("deployed-22.05"), tmp_path, crash={"skipped": True, "changed": False}, crash_test=enabled, crash_host=host)
    assert result["summary"] == {"pass": 12, "fail": 0, "skip": 1}
    assert words in "\n".join(shown.lines)


def test_a_crash_test_whose_host_went_away(shown: Shown, tmp_path: pathlib.Path) -> None:
    result = report(evidence("deployed-22.05"), tmp_path, crash={"unreachable": True, "msg": "Connection closed"})
    assert result["msg"].startswith("failed: 13 of 13 items")


def test_an_older_report_is_replaced_whole(shown: Shown, tmp_path: pathlib.Path) -> None:
    (tmp_path / "verify.json").write_text("x" * 10**6, encoding="utf-8")
    report(evidence("deployed-22.05"), tmp_path)
    json.loads((tmp_path / "verify.json").read_text(encoding="utf-8"))
