"""Runs a part of the role by Ansible itself, on hosts that are all this one."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]
ROLE = ROOT / "roles" / "rollout"

Play = t.Callable[..., str]


@pytest.fixture
def play(tmp_path: pathlib.Path) -> Play:
    """``play(playbook, inventory, modules, **environment)`` returns what the run said.

    The collection has its filters, and of its modules only those that are given as {name: source}.
    """

    def run(playbook: str, inventory: str, modules: t.Mapping[str, str] | None = None, **environment: str) -> str:
        plugins = tmp_path / "ansible_collections" / "hpcguard" / "slurm" / "plugins"
        (plugins / "modules").mkdir(parents=True, exist_ok=True)
        for name, source in (modules or {}).items():
            (plugins / "modules" / f"{name}.py").write_text(source)
        for part in ("filter", "module_utils"):
            if not (plugins / part).exists():
                (plugins / part).symlink_to(ROOT / "plugins" / part)
        (tmp_path / "inventory").write_text(inventory)
        (tmp_path / "play.yml").write_text(playbook)
        settings = {
            "ANSIBLE_CONFIG": "/nowhere",
            "ANSIBLE_COLLECTIONS_PATH": str(tmp_path),
            "ANSIBLE_LOCAL_TEMP": str(tmp_path / "local"),
            "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"),
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        }
        command = [sys.executable, "-m", "ansible", "playbook", "-i", str(tmp_path / "inventory"), str(tmp_path / "play.yml")]
        done = subprocess.run(
            command, env={**os.environ, **settings, **environment}, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
