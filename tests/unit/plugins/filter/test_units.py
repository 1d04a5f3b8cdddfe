"""Filter unit_files: what an operator may say of the wait."""

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


def test_the_filter_has_its_name() -> None:
    """Ansible finds it by this name."""
    assert units.FilterModule().filters() == {"unit_files": units.unit_files}
