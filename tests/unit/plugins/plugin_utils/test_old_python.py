"""Hosts whose Python is older than ansible-core allows."""

from __future__ import annotations

import pytest

from ansible_collections.hpcguard.slurm.plugins.plugin_utils.old_python import plainly

WRAPPERS = {
    "3.6": 'File "/root/.ansible/tmp/AnsiballZ_cluster_info.py", line 3\n    from __future__ import annotations\nSyntaxError: future',
    "2.7": 'File "/root/.ansible/tmp/AnsiballZ_cluster_info.py", line 40\n    zip_data: str,\nSyntaxError: invalid syntax',
}


@pytest.mark.parametrize("stream", ["module_stderr", "module_stdout"])
@pytest.mark.parametrize("python", WRAPPERS)
def test_case_95_a_pair_that_does_not_work_is_said_in_one_sentence(python: str, stream: str) -> None:
    """ansible-core 2.17 and newer: its wrapper is no Python 3.6 any more, and all that comes back is a traceback."""
    given = {"failed": True, "msg": "No start of json char found", stream: WRAPPERS[python], "exception": "Traceback ...", "rc": 1}
    told = plainly(given)
    assert "ansible-core 2.16" in told["msg"] and "\n" not in told["msg"]
    assert "Traceback" not in str(told) and "SyntaxError" not in str(told)


@pytest.mark.parametrize(
    "given",
    [
        {"changed": False, "cluster": {"python": "3.6.8"}},
        {"failed": True, "unreachable": True, "msg": "ssh"},
        {"failed": True, "module_stderr": "AnsiballZ_cluster_info.py: OSError: no space", "msg": "MODULE FAILURE"},
        {"failed": True, "msg": "a site's SyntaxError in a message of its own"},
        # ansible-core's own sentence stays as it is
        {"failed": True, "msg": "ansible-core requires a minimum of Python version 3.8. Current version: 3.7.3"},
    ],
)
def test_case_95_everything_else_is_handed_on(given: dict[str, object]) -> None:
    assert plainly(given) == given
