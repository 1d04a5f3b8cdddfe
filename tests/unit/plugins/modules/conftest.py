"""Runs a module in this process, as Ansible would on a host."""

from __future__ import annotations

import contextlib
import importlib
import json
import typing as t

import pytest
from ansible.module_utils import basic

try:
    from ansible.module_utils.testing import patch_module_args
except ImportError:  # ansible-core before 2.17

    @contextlib.contextmanager
    def patch_module_args(args: dict[str, t.Any]) -> t.Iterator[None]:
        """Give the arguments as those versions read them."""
        basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": args}).encode()
        yield
        basic._ANSIBLE_ARGS = None


class _Exit(Exception):
    pass


Run = t.Callable[..., dict[str, t.Any]]


@pytest.fixture
def run_module(monkeypatch: pytest.MonkeyPatch) -> Run:
    """``run_module(name, check=False, **arguments)`` returns what the module returned."""

    def leave(module: basic.AnsibleModule, **result: t.Any) -> t.NoReturn:
        raise _Exit(result)

    monkeypatch.setattr(basic.AnsibleModule, "exit_json", lambda module, **result: leave(module, failed=False, **result))
    monkeypatch.setattr(basic.AnsibleModule, "fail_json", lambda module, **result: leave(module, failed=True, **result))

    def run(name: str, /, check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        module = importlib.import_module(f"ansible_collections.hpcguard.slurm.plugins.modules.{name}")
        try:
            with patch_module_args({**arguments, "_ansible_check_mode": check}):
                module.main()
        except _Exit as left:
            return t.cast("dict[str, t.Any]", left.args[0])
        pytest.fail("the module ended without a result")

    return run
