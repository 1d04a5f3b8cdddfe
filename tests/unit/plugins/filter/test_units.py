"""Filters of units: what an operator may say of the wait, what is looked at before a unit is written."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hpcguard.slurm.plugins.filter import units

FACT = {
    "systemd": 252,
    "slurm": {"release": [24, 11]},
    "conf": {"servers": ["c1:6817"]},
    "units": {
        "slurmd": {
            "load_state": "loaded",
            "style": "own",
            "fragment_path": "/etc/systemd/system/slurmd.service",
            "text": "[Service]\nExecStart=/s/slurmd -D\n",
            "drop_ins": [],
        }
    },
}
OPTIONS = {"restart": "always", "restart_sec": 10, "timeout_start_sec": 180, "wait_script": "/w"}


@pytest.mark.parametrize(
    ("said", "waits"), [("auto", False), (True, True), ("true", True), ("yes", True), (False, False), ("False", False)]
)
def test_words_for_the_wait(said: t.Any, waits: bool) -> None:
    """As YAML or on the command line."""
    assert units.unit_files(FACT, "slurmd", {**OPTIONS, "wait": said})["waits"] is waits


def test_other_words_are_refused() -> None:
    """A typing error names the variable."""
    with pytest.raises(AnsibleFilterError, match="slurmd_wait_for_controller"):
        units.unit_files(FACT, "slurmd", {**OPTIONS, "wait": "perhaps"})


def test_units_are_looked_at_before_they_are_written() -> None:
    """A key that the host's systemd would ignore, a run ended too early; scripts are no units."""
    files = [
        {"path": "/etc/systemd/system/p.timer", "content": "[Timer]\nOnBootSec=1\nOnUnitActiveSec=9\nRandomizedDelaySec=1\n"},
        {"path": "/etc/systemd/system/p.service", "content": "[Service]\nType=oneshot\nTimeoutStartSec=30\n"},
        {"path": "/usr/local/bin/p.py", "content": "Nonsense=1\n"},
    ]
    assert units.unit_problems(files, 219, {"p.service": 80}) == [
        "p.timer, line 4: systemd 219 does not know RandomizedDelaySec= in [Timer], it came with 229",
        "p.service: TimeoutStartSec=30 would end a run that may take 80 s",
    ]
    assert units.unit_problems(files, 252, {"p.service": 30}) == []


def test_the_filters_have_their_names() -> None:
    """Ansible finds them by these names."""
    assert units.FilterModule().filters() == {"unit_files": units.unit_files, "unit_problems": units.unit_problems}
