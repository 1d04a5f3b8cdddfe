"""How the settings of slurm.conf are put together."""

from __future__ import annotations

from ansible_collections.hpcguard.slurm.plugins.filter import slurm_conf

STANDARD = {"DefMemPerCPU": 1024, "ReturnToService": 2}


def test_a_site_gives_only_what_differs() -> None:
    assert slurm_conf.override(STANDARD, {"KillWait": 60}) == {**STANDARD, "KillWait": 60}
    assert slurm_conf.override(STANDARD, {"DefMemPerCPU": None}) == {"ReturnToService": 2, "DefMemPerCPU": None}


def test_keys_are_the_same_in_whatever_case() -> None:
    assert slurm_conf.override(STANDARD, {"defmempercpu": 2000}) == {"ReturnToService": 2, "defmempercpu": 2000}


def test_secrets_go_their_own_way() -> None:
    settings = {"jobcomppass": "x", "JobCompUser": "y"}
    assert slurm_conf.plain(settings) == {"JobCompUser": "y"}
    assert slurm_conf.secret(settings) == {"jobcomppass": "x"}
    assert set(slurm_conf.FilterModule().filters()) == {"slurm_conf_override", "slurm_conf_plain", "slurm_conf_secret"}
