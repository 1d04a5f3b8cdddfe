"""The table of slurm.conf's keys: kinds by release, secrets, and what a change asks for."""

from __future__ import annotations

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import rollout_plan, slurm_conf_keys

RELEASES = [(20, 11), (21, 8), (22, 5), (23, 2), (23, 11), (24, 5), (24, 11), (25, 5), (25, 11), (26, 5)]


@pytest.mark.parametrize(
    ("key", "release", "kind"),
    [
        ("SlurmdTimeout", (20, 11), "uint16"),
        ("KeepAliveTime", (21, 8), "uint16"),
        ("KeepAliveTime", (22, 5), "uint32"),
        ("HealthCheckTimeout", (25, 11), "-"),
        ("HealthCheckTimeout", (26, 5), "uint16"),
        ("Epilog", (23, 11), "string"),
        ("Epilog", (24, 5), "list"),
        ("PowerPlugin", (24, 5), "ignored"),
        ("SallocDefaultCommand", (23, 11), "refused"),
        ("FrontendName", (24, 11), "record"),
        ("FrontendName", (25, 5), "-"),
        ("nOdEnAmE", (22, 5), "record"),
        ("SlurmdTimeout", (19, 5), "uint16"),
        ("Nonsense", (22, 5), "-"),
    ],
)
def test_kind_by_release(key: str, release: tuple[int, int], kind: str) -> None:
    assert slurm_conf_keys.kind(key, release) == kind


def test_keys_of_records_by_release() -> None:
    assert slurm_conf_keys.record_kind("PartitionName", "SuspendTime", (20, 11)) == "-"
    assert slurm_conf_keys.record_kind("PartitionName", "SuspendTime", (21, 8)) == "uint32"
    assert slurm_conf_keys.record_kind("partitionname", "suspendtime", (22, 5)) == "string"
    assert slurm_conf_keys.record_kind("NodeName", "Nodes", (22, 5)) == "-"


def test_spelling_of_slurm() -> None:
    assert slurm_conf_keys.canonical("SLURMDTIMEOUT") == "SlurmdTimeout"
    assert slurm_conf_keys.canonical("nonsense") == "nonsense"


def test_did_you_mean() -> None:
    assert slurm_conf_keys.similar("HealthCheckIntervall", (22, 5)) == "HealthCheckInterval"
    assert slurm_conf_keys.similar("RealMemry", (22, 5), "NodeName") == "RealMemory"
    assert slurm_conf_keys.similar("xyz", (22, 5)) is None
    assert slurm_conf_keys.similar("HealthCheckTimeou", (22, 5)) != "HealthCheckTimeout"


def test_when_a_key_came_and_went() -> None:
    assert slurm_conf_keys.known_from("HealthCheckTimeout") == "Slurm knows it from 26.05 on"
    assert slurm_conf_keys.known_from("CacheGroups") == "Slurm dropped it in 21.08"
    assert slurm_conf_keys.known_from("SlurmUser") == slurm_conf_keys.known_from("Nonsense") == ""


@pytest.mark.parametrize("key", ["JobCompPass", "jobcomppass", "AccountingStoragePass", "AuthInfo"])
def test_secrets(key: str) -> None:
    assert slurm_conf_keys.is_secret(key)
    assert not slurm_conf_keys.is_secret("JobCompUser")


@pytest.mark.parametrize(
    ("key", "release", "name"),
    [
        # facts S19, S43, S44 and section 3
        ("HealthCheckInterval", (21, 8), "reconfigure"),
        ("ReturnToService", (21, 8), "reconfigure"),
        ("SlurmdTimeout", (21, 8), "reconfigure"),
        ("DefMemPerCPU", (21, 8), "reconfigure"),
        ("EnforcePartLimits", (21, 8), "reconfigure"),
        ("JobAcctGatherType", (20, 11), "restart_without_steps"),
        ("JobAcctGatherType", (22, 5), "restart_without_steps"),
        ("JobAcctGatherType", (23, 2), "restart_slurmd"),
        ("JobAcctGatherType", (23, 11), "reconfigure"),
        ("JobCompType", (22, 5), "restart_slurmctld"),
        ("JobCompType", (23, 11), "reconfigure"),
        ("SlurmctldParameters", (22, 5), "restart_slurmctld"),
        ("MaxJobCount", (22, 5), "restart_slurmctld"),
        ("GresTypes", (22, 5), "restart_slurmd"),
        ("SlurmdPort", (26, 5), "restart_slurmd"),
        ("AuthType", (26, 5), "refused"),
        ("SelectType", (22, 5), "refused"),
        ("StateSaveLocation", (22, 5), "refused"),
        ("ClusterName", (22, 5), "refused"),
        # nothing is known of it: careful before 23.11
        ("TmpFS", (22, 5), "restart_slurmctld"),
        ("TmpFS", (24, 11), "reconfigure"),
    ],
)
def test_what_a_change_asks_for(key: str, release: tuple[int, int], name: str) -> None:
    found, source = slurm_conf_keys.change_class(key, release)
    assert found == name
    assert source


# Each key whose class changes with the release, and at which. To 23.02 slurm.conf(5) has a note on the key or the plugin is
# loaded at a daemon's start; from 23.11 on scontrol(1) has reconfigure start new processes.
CONTROLLER_KEYS = """
AccountingStorageEnforce AccountingStorageType BurstBufferType CredType JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPort
JobCompType JobCompUser JobSubmitPlugins MaxJobCount MaxNodeCount MCSPlugin PreemptType PriorityType SchedulerType SelectTypeParameters
SlurmctldParameters TopologyPlugin"""
NODE_KEYS = """
AcctGatherEnergyType AcctGatherFilesystemType AcctGatherInterconnectType AcctGatherProfileType CoreSpecPlugin GresTypes JobContainerType
PluginDir ProctrackType TaskPlugin TaskPluginParam"""
CHANGING = {
    **{key: [((20, 11), "restart_slurmctld"), ((23, 11), "reconfigure")] for key in CONTROLLER_KEYS.split()},
    **{key: [((20, 11), "restart_slurmd"), ((23, 11), "reconfigure")] for key in NODE_KEYS.split()},
    "JobAcctGatherType": [((20, 11), "restart_without_steps"), ((23, 2), "restart_slurmd"), ((23, 11), "reconfigure")],
}


def test_the_releases_at_which_a_class_changed() -> None:
    changing = {slurm_conf_keys.canonical(key): steps for key, (_source, steps) in slurm_conf_keys._CHANGES.items() if len(steps) > 1}
    assert changing == CHANGING


@pytest.mark.parametrize("key", sorted(CHANGING))
def test_the_class_of_every_release(key: str) -> None:
    """It holds from the release that is named to the one before the next, and the reason changes with it."""
    for release in RELEASES:
        name = [name for start, name in CHANGING[key] if release >= start][-1]
        found, source = slurm_conf_keys.change_class(key, release)
        assert found == name, release
        assert ("23.11" in source) == (release >= (23, 11)), release


@pytest.mark.parametrize("release", RELEASES)
def test_every_key_has_a_class_that_the_rollout_knows(release: tuple[int, int]) -> None:
    for name, _steps in slurm_conf_keys._KEYS.values():
        assert slurm_conf_keys.change_class(name, release)[0] in rollout_plan.CLASSES


def test_every_key_with_a_class_is_a_key() -> None:
    assert set(slurm_conf_keys._CHANGES) <= set(slurm_conf_keys._KEYS)
