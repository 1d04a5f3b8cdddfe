"""Module node_state against a slurmctld that keeps states and may lie about success."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders

from .conftest import Run


class Slurmctld:
    """Nodes with state and reason, changed by ``scontrol update``."""

    def __init__(self, **nodes: tuple[str, str]) -> None:
        self.nodes = {name.replace("_", "-"): list(value) for name, value in nodes.items()}
        self.updates: list[list[str]] = []
        self.late = 0  # so many answers still show the old state
        self.rc = 0
        self.pending: list[tuple[list[str], str, str]] = []

    def scontrol(self, program: str, args: list[str], timeout: float, conf: str | None = None) -> loaders.Result:
        if args[:2] == ["-o", "show"]:
            self._settle()
            lines = [
                f"NodeName={name} State={state} Partitions=p Reason={reason or 'none'} [root@2026-12-01T00:00:00]"
                for name, (state, reason) in self.nodes.items()
            ]
            return loaders.Result(0, "\n".join(lines))
        assert args[0] == "update"
        self.updates.append(list(args))
        words = dict(word.split("=", 1) for word in args[1:])
        self.pending.append((words["nodename"].split(","), words["state"], words.get("reason", "")))
        return loaders.Result(self.rc, err="Socket timed out" if self.rc else "")

    def _settle(self) -> None:
        if self.late > 0:
            self.late -= 1
            return
        for names, state, reason in self.pending:
            for name in names:
                base = self.nodes[name][0].split("+")[0]
                self.nodes[name] = (
                    [base + "+DRAIN", reason] if state == "drain" else [base.replace("DOWN", "IDLE") if state == "resume" else base, ""]
                )
        self.pending = []


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., Slurmctld]:
    def make(**nodes: tuple[str, str]) -> Slurmctld:
        fake = Slurmctld(**nodes)
        monkeypatch.setattr(loaders, "scontrol", fake.scontrol)
        monkeypatch.setattr("time.sleep", lambda seconds: None)
        return fake

    return make


def test_drain_four_ways_in_one_request(run_module: Run, cluster: t.Callable[..., Slurmctld]) -> None:
    """Check mode asks for nothing, the run asks once for all, both are quiet afterwards."""
    fake = cluster(n1=("IDLE", ""), n2=("MIXED", ""))
    call = {"nodes": ["n1", "n2"], "state": "drain", "reason": "HC: rollout", "host": "ctl"}
    foretold = run_module("node_state", check=True, **call)
    assert foretold["changed"] and fake.updates == []
    done = run_module("node_state", **call)
    assert done["changes"] == foretold["changes"] and done["changes"][0]["thing"] == "node:n1:state"
    assert fake.updates == [["update", "nodename=n1,n2", "state=drain", "reason=HC: rollout"]]
    for check in (True, False):
        assert not run_module("node_state", check=check, **call)["changed"]


def test_case_31_what_others_set_stays(run_module: Run, cluster: t.Callable[..., Slurmctld]) -> None:
    """A drain by hand is neither overwritten nor lifted, and is told."""
    fake = cluster(n1=("IDLE+DRAIN", "dimm swap"), n2=("IDLE+DRAIN", "HC: rollout"), n3=("DOWN", "bad psu"))
    for state in ("drain", "undrain", "resume"):
        extra = {"reason": "HC: rollout"} if state == "drain" else {}
        result = run_module("node_state", nodes=["n1", "n3"], state=state, **extra)
        assert not result["changed"] and [one["name"] for one in result["left_alone"]] == ["n1", "n3"]
    assert fake.updates == []
    assert run_module("node_state", nodes=["n1", "n2", "n3"], state="undrain")["changed"]
    assert fake.updates == [["update", "nodename=n2", "state=undrain"]]
    assert fake.nodes["n1"] == ["IDLE+DRAIN", "dimm swap"] and fake.nodes["n2"] == ["IDLE", ""]


def test_a_rollout_leaves_the_health_checks_drain(run_module: Run, cluster: t.Callable[..., Slurmctld]) -> None:
    """With a reason only exactly that drain is taken back."""
    fake = cluster(n1=("IDLE+DRAIN", "HC: root_ro"))
    assert not run_module("node_state", nodes=["n1"], state="undrain", reason="HC: rollout")["changed"]
    assert fake.updates == []


def test_a_request_that_timed_out_but_was_applied(run_module: Run, cluster: t.Callable[..., Slurmctld]) -> None:
    """What counts is the state read back, not the status of the request."""
    fake = cluster(n1=("IDLE", ""))
    fake.rc = 1
    assert run_module("node_state", nodes=["n1"], state="drain", reason="HC: x")["changed"]
    assert len(fake.updates) == 1


def test_a_request_that_is_applied_late_is_repeated(run_module: Run, cluster: t.Callable[..., Slurmctld]) -> None:
    """Asked again until slurmctld shows it."""
    fake = cluster(n1=("IDLE", ""))
    fake.late = 3
    assert run_module("node_state", nodes=["n1"], state="drain", reason="HC: x")["changed"]
    assert fake.nodes["n1"][0] == "IDLE+DRAIN"


def test_a_request_that_is_never_applied_fails(run_module: Run, cluster: t.Callable[..., Slurmctld]) -> None:
    """Bounded, and it says which node and what scontrol said."""
    fake = cluster(n1=("IDLE", ""))
    fake.rc, fake.late = 1, 10**9
    result = run_module("node_state", nodes=["n1"], state="drain", reason="HC: x", timeout=0)
    assert result["failed"] and "n1" in result["msg"] and "Socket timed out" in result["msg"]


def test_waiting_for_jobs_is_bounded(run_module: Run, cluster: t.Callable[..., Slurmctld]) -> None:
    """Names the nodes on which jobs still run when the time is up."""
    cluster(n1=("MIXED", ""), n2=("IDLE", ""))
    result = run_module("node_state", nodes=["n1", "n2"], state="drain", reason="HC: x", wait_for_jobs=0)
    assert result["changed"]
    cluster(n1=("MIXED+DRAIN", "HC: x"), n2=("IDLE+DRAIN", "HC: x"))
    result = run_module("node_state", nodes=["n1", "n2"], state="drain", reason="HC: x", wait_for_jobs=-1)
    assert result["failed"] and "n1" in result["msg"] and "n2" not in result["msg"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"nodes": ["n9"], "state": "drain", "reason": "HC: x"}, "n9"),
        ({"nodes": ["n1"], "state": "drain", "reason": "maintenance"}, "HC:"),
        ({"nodes": ["n1"], "state": "drain"}, "reason"),
        ({"nodes": ["n1"], "state": "down"}, "down"),
    ],
)
def test_refused(run_module: Run, cluster: t.Callable[..., Slurmctld], arguments: dict[str, t.Any], told: str) -> None:
    """Unknown nodes, reasons without the tag, and DOWN (A33: it kills jobs) are refused."""
    fake = cluster(n1=("IDLE", ""))
    result = run_module("node_state", **arguments)
    assert result["failed"] and told in result["msg"] and fake.updates == []


def test_the_gate_tells_who_fell_ill_and_excuses_what_somebody_meant(run_module: Run, cluster: t.Callable[..., Slurmctld]) -> None:
    fake = cluster(
        n1=("IDLE", ""),
        n2=("MIXED+DRAIN", "new disk"),
        n3=("IDLE+DRAIN", "HC: rollout in progress"),
        n4=("IDLE+DRAIN", "HC: disk full"),
        n5=("DOWN+NOT_RESPONDING", "Not responding"),
        n6=("DOWN+DRAIN", "new disk"),
    )
    nodes = ["n1", "n2", "n3", "n4", "n5", "n6"]
    seen = run_module("node_state", nodes=nodes, state="in_service", reason="HC: rollout in progress", timeout=0)
    assert not seen["changed"] and fake.updates == []
    assert [one.split(" ")[0] for one in seen["unwell"]] == ["n4", "n5", "n6"]
    assert seen["unwell"][0] == "n4 is IDLE+DRAIN (HC: disk full)"
    assert run_module("node_state", nodes=[], state="in_service")["unwell"] == []


def test_case_57_the_gate_lets_a_batch_go_on_while_nodes_wait_for_their_slurmd(
    run_module: Run, cluster: t.Callable[..., Slurmctld]
) -> None:
    cluster(n1=("IDLE+DRAIN+INVALID_REG", "gres/gpu count reported lower than configured (0 < 8)"), n2=("DOWN+INVALID_REG", "Low CPUs"))
    assert run_module("node_state", nodes=["n1", "n2"], state="in_service", timeout=0)["unwell"] == []
