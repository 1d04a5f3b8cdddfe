"""Modules snapshot and snapshot_info: whole or refused, byte for byte back, chains and stages."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import loaders
from ansible_collections.hpcguard.slurm.plugins.modules import snapshot

from .conftest import Run

A, B, C = "20261201T000000Z-aaaa", "20261202T000000Z-bbbb", "20261203T000000Z-cccc"


class Host:
    """Files of a host under a temporary directory, and a systemd that remembers what it was asked."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.state = str(root / "state")
        self.conf = root / "slurm.conf"
        self.unit = root / "etc" / "systemd" / "system" / "slurmd.service"
        self.timer = root / "etc" / "systemd" / "system" / "patrol.timer"
        self.script = root / "sbin" / "hc.sh"
        self.unit.parent.mkdir(parents=True)
        self.conf.write_bytes(b"SlurmdTimeout=300\r\n# \xff\n")
        self.conf.chmod(0o640)
        self.unit.write_text("[Service]\nRestart=on-failure\n")
        self.units: dict[str, dict[str, str]] = {"slurmd.service": {"LoadState": "loaded", "UnitFileState": "disabled"}}
        self.calls: list[list[str]] = []

    @property
    def common(self) -> dict[str, t.Any]:
        return {"state_dir": self.state, "host": "n1"}

    @property
    def record(self) -> dict[str, t.Any]:
        return {
            "conf": [str(self.conf)],
            "paths": [str(self.unit), str(self.timer), str(self.script)],
            "units": ["slurmd.service", "patrol.timer"],
            **self.common,
        }

    def tree(self) -> dict[str, t.Any]:
        found: dict[str, t.Any] = {}
        for path in sorted(self.root.rglob("*")):
            if str(path).startswith(self.state):
                continue
            status = path.lstat()
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            found[str(path)] = (content, status.st_mode, status.st_uid, status.st_gid)
        return found

    def deploy(self, mark: str) -> None:
        self.conf.write_text(f"SlurmdTimeout=300 # {mark}\n")
        self.conf.chmod(0o600)
        self.unit.write_text(f"[Service]\nRestart=always # {mark}\n")
        self.timer.write_text("[Timer]\n")
        self.script.parent.mkdir(exist_ok=True)
        self.script.write_text(mark)
        self.units["slurmd.service"]["UnitFileState"] = "enabled"
        self.units["patrol.timer"] = {"LoadState": "loaded", "UnitFileState": "enabled", "ActiveState": "active"}

    def systemctl(self, args: list[str], timeout: int = 30) -> loaders.Result:
        self.calls.append(list(args))
        unit = self.units.setdefault(args[-1], {})
        if "disable" in args:
            unit["UnitFileState"] = "disabled"
        if "stop" in args:
            unit["ActiveState"] = "inactive"
        return loaders.Result(0)


@pytest.fixture
def host(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(tmp_path)
    monkeypatch.setattr(loaders, "systemctl", made.systemctl)
    monkeypatch.setattr(loaders, "systemctl_show", lambda unit, properties=None: {"LoadState": "not-found", **made.units.get(unit, {})})
    return made


def rollout(run: Run, host: Host, name: str, mark: str) -> None:
    assert run("snapshot", state="taken", id=name, **host.record)["changed"]
    host.deploy(mark)
    assert run("snapshot", state="sealed", id=name, **host.common)["changed"]


def test_taking_four_ways(run_module: Run, host: Host) -> None:
    """Check mode writes nothing, the run records, the second run of either finds it there."""
    assert run_module("snapshot", check=True, state="taken", id=A, **host.record)["changed"]
    assert not os.path.exists(host.state)
    assert run_module("snapshot", state="taken", id=A, **host.record)["changed"]
    for check in (True, False):
        assert not run_module("snapshot", check=check, state="taken", id=A, **host.record)["changed"]
    assert os.stat(host.state).st_mode & 0o777 == 0o700
    copies = [path for path in pathlib.Path(host.state).rglob("*") if path.is_file()]
    assert copies and all(path.stat().st_mode & 0o077 == 0 for path in copies), "no copy is readable by others"


def test_restored_byte_for_byte(run_module: Run, host: Host) -> None:
    """Content, mode, absence, created directories and enabled units: all as before; four ways."""
    before = host.tree()
    rollout(run_module, host, A, "one")
    deployed = host.tree()
    foretold = run_module("snapshot", check=True, state="restored", id=A, **host.common)
    assert host.tree() == deployed and host.calls == []
    done = run_module("snapshot", state="restored", id=A, **host.common)
    assert host.tree() == before
    assert done["changes"] == foretold["changes"]
    assert [change["thing"] for change in done["changes"] if change["thing"].startswith("unit:")] == [
        "unit:patrol.timer:enabled",
        "unit:patrol.timer:active",
        "unit:slurmd.service:enabled",
    ]
    assert host.calls == [["disable", "patrol.timer"], ["stop", "patrol.timer"], ["disable", "slurmd.service"], ["daemon-reload"]]
    for check in (True, False):
        assert not run_module("snapshot", check=check, state="restored", id=A, **host.common)["changed"]


def test_case_15_a_way_back_takes_every_included_file(run_module: Run, host: Host) -> None:
    """One that brought only slurm.conf back would not be the state from before."""
    site = host.root / "site.conf"
    site.write_text("MaxJobCount=1\n")
    before = host.tree()
    record = {**host.record, "conf": [str(host.conf), str(site)]}
    run_module("snapshot", state="taken", id=A, **record)
    host.deploy("one")
    site.write_text("<<<<<<< HEAD\n")
    run_module("snapshot", state="sealed", id=A, **host.common)
    assert run_module("snapshot", state="restored", id=A, **host.common)["changed"]
    assert host.tree() == before


def test_stages(run_module: Run, host: Host) -> None:
    """slurm.conf first and alone; only the call without parts marks the rollout as taken back."""
    before = host.tree()
    rollout(run_module, host, A, "one")
    done = run_module("snapshot", state="restored", id=A, only=["conf"], **host.common)
    assert [change["thing"] for change in done["changes"]] == [f"file:{host.conf}"]
    assert run_module("snapshot_info", state_dir=host.state)["snapshots"][0]["state"] == "sealed"
    assert run_module("snapshot", state="restored", id=A, **host.common)["changed"]
    assert host.tree() == before
    assert run_module("snapshot_info", state_dir=host.state)["snapshots"][0]["state"] == "rolled_back"


def test_two_deploys_and_one_way_back(run_module: Run, host: Host) -> None:
    """The second deploy joins the chain of the first, and going back to it ends before the first change."""
    before = host.tree()
    rollout(run_module, host, A, "one")
    between = host.tree()
    rollout(run_module, host, B, "two")
    listed = run_module("snapshot_info", state_dir=host.state)
    assert [one["chain"] for one in listed["snapshots"]] == [A, A] and listed["back_to"] == A
    assert run_module("snapshot", check=True, state="restored", id=B, **host.common)["snapshots"] == [B]
    run_module("snapshot", state="restored", id=listed["back_to"], **host.common)
    assert host.tree() == before
    assert run_module("snapshot_info", state_dir=host.state)["back_to"] is None

    rollout(run_module, host, C, "one")
    assert run_module("snapshot_info", state_dir=host.state)["back_to"] == C, "a new chain begins after a way back"
    assert host.tree() == between


def test_back_to_a_chosen_rollout(run_module: Run, host: Host) -> None:
    """Going back to the second of two leaves the first in place."""
    rollout(run_module, host, A, "one")
    between = host.tree()
    rollout(run_module, host, B, "two")
    run_module("snapshot", state="restored", id=B, **host.common)
    assert host.tree() == between
    assert run_module("snapshot_info", state_dir=host.state)["back_to"] == A


def test_a_host_without_the_snapshot(run_module: Run, host: Host) -> None:
    """A host that took part in none of the rollouts has nothing to put back; one that joined later goes back too."""
    assert not run_module("snapshot", state="restored", id=A, **host.common)["changed"]
    before = host.tree()
    rollout(run_module, host, B, "late")
    assert run_module("snapshot", state="restored", id=A, **host.common)["snapshots"] == [B]
    assert host.tree() == before


@pytest.mark.parametrize("harm", ["content", "manifest", "copy gone", "manifest gone"])
def test_a_damaged_snapshot_is_refused_before_anything_is_touched(run_module: Run, host: Host, harm: str) -> None:
    """Each kind of damage, each call."""
    rollout(run_module, host, A, "one")
    deployed = host.tree()
    folder = pathlib.Path(host.state) / "snapshots" / A
    copy = next((folder / "files").iterdir())
    if harm == "content":
        copy.write_bytes(copy.read_bytes() + b"x")
    elif harm == "copy gone":
        copy.unlink()
    elif harm == "manifest":
        text = (folder / "manifest.json").read_text()
        (folder / "manifest.json").write_text(text.replace('"mode": "0640"', '"mode": "0644"'))
        assert (folder / "manifest.json").read_text() != text
    else:
        (folder / "manifest.json").unlink()
    for state in ("checked", "restored"):
        result = run_module("snapshot", state=state, id=A, **host.common)
        assert result["failed"] and "refused" in result["msg"]
    assert host.tree() == deployed and host.calls == []
    assert run_module("snapshot_info", state_dir=host.state)["snapshots"][0]["state"] == "damaged"


def test_damage_of_a_later_one_stops_the_way_back(run_module: Run, host: Host) -> None:
    """What a broken later snapshot had recorded is not known, so the chain is not taken back without a word."""
    rollout(run_module, host, A, "one")
    rollout(run_module, host, B, "two")
    (pathlib.Path(host.state) / "snapshots" / B / "manifest.json").write_text("{")
    assert run_module("snapshot", state="restored", id=A, **host.common)["failed"]


def test_changes_of_others_are_told_and_not_overwritten(run_module: Run, host: Host) -> None:
    """S77: present is neither the result of the rollout nor the state before it."""
    rollout(run_module, host, A, "one")
    assert run_module("snapshot", state="checked", id=A, **host.common)["foreign"] == []
    host.conf.write_text("SlurmdTimeout=900\n")
    assert run_module("snapshot", state="checked", id=A, **host.common)["foreign"] == [str(host.conf)]
    refused = run_module("snapshot", state="restored", id=A, **host.common)
    assert refused["failed"] and str(host.conf) in refused["msg"] and host.conf.read_text() == "SlurmdTimeout=900\n"
    assert run_module("snapshot", state="restored", id=A, force=True, **host.common)["changed"]
    assert host.conf.read_bytes().startswith(b"SlurmdTimeout=300\r\n")


def test_an_interrupted_rollout_is_seen_and_completed(run_module: Run, host: Host) -> None:
    """Taken, neither sealed nor taken back: the next run sees what was meant, and sealing it seals both."""
    run_module("snapshot", state="taken", id=A, meta={"actions": ["restart_slurmd"]}, **host.record)
    host.deploy("half")
    assert run_module("snapshot_info", state_dir=host.state)["interrupted_actions"] == ["restart_slurmd"]
    assert run_module("snapshot", state="checked", id=A, **host.common)["foreign"] == [], "what it left is not known"
    rollout(run_module, host, B, "whole")
    listed = run_module("snapshot_info", state_dir=host.state)
    assert [one["state"] for one in listed["snapshots"]] == ["sealed", "sealed"]
    assert listed["interrupted_actions"] == [] and listed["back_to"] == A


def test_left_for_later_is_sealed_again(run_module: Run, host: Host) -> None:
    """A return that leaves a part for later keeps its way back open, and what it left is no change of others."""
    before = host.tree()
    rollout(run_module, host, A, "one")
    run_module("snapshot", state="restored", id=A, only=["units", "scripts"], **host.common)
    host.conf.write_text("SlurmdTimeout=300 # but one key\n")
    assert run_module("snapshot", state="sealed", id=A, again=True, **host.common)["changed"]
    assert not run_module("snapshot", state="sealed", id=A, again=True, **host.common)["changed"]
    assert run_module("snapshot", state="restored", id=A, **host.common)["changed"]
    assert host.tree() == before


def test_links_are_links(run_module: Run, host: Host) -> None:
    """A symbolic link is recorded and comes back as one."""
    host.script.parent.mkdir()
    host.script.symlink_to("/opt/else")
    run_module("snapshot", state="taken", id=A, **host.record)
    host.script.unlink()
    host.script.write_text("now a file")
    run_module("snapshot", state="restored", id=A, **host.common)
    assert os.readlink(host.script) == "/opt/else"


def test_pruning_keeps_what_a_way_back_needs(run_module: Run, host: Host) -> None:
    """Old ones go, but not the first of a chain, the last good one, or one that was asked for by name."""
    before = host.tree()
    rollout(run_module, host, A, "one")
    rollout(run_module, host, B, "two")
    rollout(run_module, host, C, "three")
    refused = run_module("snapshot", state="absent", id=A, **host.common)
    assert refused["failed"] and "way back" in refused["msg"]
    assert run_module("snapshot", check=True, state="pruned", keep=1, **host.common)["snapshots"] == [B]
    assert run_module("snapshot", state="pruned", keep=1, **host.common)["snapshots"] == [B]
    assert not run_module("snapshot", state="pruned", keep=1, **host.common)["changed"]
    run_module("snapshot", state="restored", id=A, **host.common)
    assert host.tree() == before


def test_a_full_disk_leaves_no_half_snapshot(run_module: Run, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the copy cannot be written there is no snapshot at all."""

    def full(*args: t.Any, **kwargs: t.Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(loaders, "write_atomic", full)
    result = run_module("snapshot", state="taken", id=A, **host.record)
    assert result["failed"] and "No space left" in result["msg"]
    assert os.listdir(os.path.join(host.state, "snapshots")) == []


@pytest.mark.parametrize("name", ["../x", ".hidden", "a/b", ""])
def test_ids_that_are_no_names_are_refused(run_module: Run, host: Host, name: str) -> None:
    """An id becomes a directory name: nothing that leads elsewhere."""
    assert run_module("snapshot", state="taken", id=name, **host.record)["failed"]


def test_an_empty_folder_of_links_is_there_again(run_module: Run, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemctl disable removes a folder with its last link, whoever made the folder."""
    links = host.unit.parent / "timers.target.wants"
    links.mkdir()
    monkeypatch.setattr(snapshot, "LINKS", str(host.unit.parent / "*.wants"))
    before = host.tree()
    run_module("snapshot", state="taken", id=A, **host.record)
    host.deploy("one")
    run_module("snapshot", state="sealed", id=A, **host.common)
    links.rmdir()
    run_module("snapshot", state="restored", id=A, **host.common)
    assert host.tree() == before
