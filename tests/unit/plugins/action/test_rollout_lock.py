"""The lock names the run that holds it, so that the next one can see whether it still goes on."""

from __future__ import annotations

import os
import subprocess
import sys

from ansible_collections.hpcguard.slurm.plugins.action import rollout_lock


def test_a_running_process_has_not_ended() -> None:
    assert not rollout_lock.has_ended(rollout_lock.process(os.getpid()))


def test_one_that_was_killed_has() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    held = rollout_lock.process(child.pid)
    assert held and not rollout_lock.has_ended(held)
    child.kill()
    child.wait()
    assert rollout_lock.has_ended(held)


def test_another_process_that_got_its_number_is_not_it() -> None:
    number, _began = rollout_lock.process(os.getpid()).split()
    assert rollout_lock.has_ended(f"{number} 1")


def test_what_is_no_process_is_left_alone() -> None:
    """It would take the lock from somebody who is only not understood."""
    assert not rollout_lock.has_ended("?")


def test_the_place_is_the_same_for_every_run_on_this_machine() -> None:
    assert rollout_lock.place() == rollout_lock.place() != ""
