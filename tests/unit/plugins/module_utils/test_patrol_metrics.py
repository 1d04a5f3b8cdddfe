"""The metrics of a run, in the text format of Prometheus."""

from __future__ import annotations

import re

from ansible_collections.hpcguard.slurm.plugins.module_utils import ledger, node_policy, patrol_metrics

NODES = {
    "n1": {"action": node_policy.NOTHING},
    "n2": {"action": node_policy.START_SLURMD},
    "n3": {"action": node_policy.LEAVE},
    "n4": {},
}
REPORT = {"ready": 2, "total": 3, "nodes": NODES, "suspected": []}
ENTRIES = [ledger.entry(1, "n1", "fixed", 2, "start slurmd", "failed")] * 2


def values(text: str) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_the_metrics_of_a_run() -> None:
    found = values(patrol_metrics.render(REPORT, ENTRIES, 1700000000.7, 3.14159))
    assert found["hpcguard_patrol_timestamp_seconds"] == "1700000000"
    assert found["hpcguard_patrol_duration_seconds"] == "3.14"
    assert (found["hpcguard_patrol_nodes_ready"], found["hpcguard_patrol_nodes_total"]) == ("2", "3")
    assert found['hpcguard_patrol_nodes{decision="start slurmd"}'] == "1"
    assert found['hpcguard_patrol_nodes{decision="nothing"}'] == "2"
    assert found['hpcguard_patrol_nodes{decision="resume"}'] == "0"
    assert found['hpcguard_patrol_events{event="fixed"}'] == "2"
    assert (found["hpcguard_patrol_fault"], found["hpcguard_patrol_suspects"]) == ("0", "0")


def test_a_run_with_a_fault_says_nothing_of_the_nodes() -> None:
    """Zero nodes would be a lie that alerts believe."""
    found = values(patrol_metrics.render({"fault": "no scontrol"}, [], 1, 1))
    assert found["hpcguard_patrol_fault"] == "1"
    assert not [name for name in found if "nodes" in name]


def test_every_line_is_of_the_format_and_every_family_has_its_words_first() -> None:
    for line in patrol_metrics.render(REPORT, ENTRIES, 1, 1).splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) hpcguard_patrol_[a-z_]+ .+|hpcguard_patrol_[a-z_]+(\{[a-z]+=\"[^\"\\]+\"\})? [0-9.]+", line)
    described = re.findall(r"# TYPE (\S+) gauge", patrol_metrics.render(REPORT, [], 1, 1))
    assert len(described) == len(set(described)) == 8
