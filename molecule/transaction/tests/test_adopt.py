"""The legacy cluster writes its own inventory, and a deploy plans the same with it as with the one written by hand.

Nothing here changes a host, so the tests of the transaction find the cluster as it was.
"""

from __future__ import annotations

import os
import pathlib
import re

import cluster
import pytest

BY_HAND = cluster.ROOT / "inventories" / "lab"
ADDRESS = f"10.89.{40 + int(os.environ.get('LAB_ID') or 0)}.11"


def adopt(run: str, folder: pathlib.Path, *args: str) -> str:
    """As an operator who knows one address and how to log in."""
    given = ("-i", f"{ADDRESS},", "-e", f"@{BY_HAND}/group_vars/all.yml", "-e", f"adopt_dir={folder}")
    done: str = getattr(cluster, run)("adopt", *given, *args)
    return done


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The inventory, foretold by check mode first."""
    # else its first run would end between two plans
    state = ("systemctl", "show", "--property=ActiveState", "slurm-cluster-health.service")
    cluster.wait_for(lambda: cluster.out(cluster.CONTROLLER, *state) == "ActiveState=active", 120, "the legacy patrol has run once")
    folder = tmp_path_factory.mktemp("adopt") / "inventory"
    foretold = adopt("succeed", folder, "--check", "--diff")
    assert "slurm_compute:" in foretold and "k8s-node-03:" in foretold
    assert not folder.exists()
    output = adopt("succeed", folder)
    assert cluster.recap(output)[ADDRESS]["changed"] == 1
    assert f"ansible-playbook -i {folder} hpcguard.slurm.deploy --check --diff" in output
    return folder


def plan(inventory: pathlib.Path) -> list[str]:
    """What a deploy would do, line by line."""
    output = cluster.succeed("deploy", "-i", str(inventory), "--check")
    found = re.search(r"^PLAN / .*?(?=^(?:TASK|PLAY) )", output, re.DOTALL | re.MULTILINE)
    assert found, output
    return found[0].strip().splitlines()


def test_deploy_plans_the_same_as_with_an_inventory_written_by_hand(adopted: pathlib.Path) -> None:
    """Done-when 6: a cluster taken over needs nothing that a person has to add."""
    by_hand = plan(BY_HAND)
    assert any("ReturnToService" in line for line in by_hand) and any("k8s-node-03" in line for line in by_hand)
    assert plan(adopted) == by_hand


def test_adopting_again_by_its_own_inventory_changes_nothing(adopted: pathlib.Path) -> None:
    output = cluster.succeed("adopt", "-i", str(adopted), "-e", f"adopt_dir={adopted}", "-e", "adopt_force=true")
    assert cluster.recap(output)[cluster.CONTROLLER]["changed"] == 0


def test_what_somebody_wrote_is_not_overwritten_unasked(adopted: pathlib.Path) -> None:
    hosts = adopted / "hosts.yml"
    edited = hosts.read_text(encoding="utf-8") + "# mine\n"
    hosts.write_text(edited, encoding="utf-8")
    assert "nothing was written" in adopt("refuse", adopted)
    assert hosts.read_text(encoding="utf-8") == edited
