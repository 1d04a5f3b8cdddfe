"""status.yml after a rollout: every line of chapter 7 on one screen, what is wrong among it, and nothing touched."""

from __future__ import annotations

import cluster
import pytest
from cluster import COMPUTES, CONTROLLER
from layer2 import all_in_service, patrol, status_screen, systemctl

NODE = COMPUTES[1]


def test_a_deployed_cluster_that_is_well(timer: None) -> None:
    cluster.wait_for(all_in_service, 60, "every node in service")
    before = ({host: cluster.files(host) for host in cluster.HOSTS}, cluster.main_pids())
    seen, screen = status_screen()
    assert before == ({host: cluster.files(host) for host in cluster.HOSTS}, cluster.main_pids())
    assert seen["nodes"] == {"total": 3, "in_service": 3, "out": []}
    assert {seen["settings"][key] for key in ("HealthCheckProgram", "ReturnToService")} == {"/usr/local/bin/slurm_health_check.sh", "2"}
    assert seen["services"] == {
        "munge": {"active/running": sorted(cluster.HOSTS)},
        "slurmctld": {"active/running": [CONTROLLER]},
        "slurmdbd": {"active/running": [CONTROLLER]},
        "slurmd": {"active/running": list(COMPUTES)},
    }
    assert seen["health"] == {"pass": list(COMPUTES)}
    said = seen["patrol"][CONTROLLER]
    assert said["result"] == "success" and (said["next"] is not None or said["active"] == "active/running")
    [newest] = seen["rollout"]["newest"]
    assert newest.endswith(" sealed") and seen["rollout"]["interrupted"] == seen["rollout"]["deferred"] == []
    assert "3/3 节点就绪 in service" in screen and "HealthCheck 通过" in screen
    assert "slurmctld does not answer" not in screen and "never again" not in screen


@pytest.mark.usefixtures("no_timer")
def test_what_is_wrong_is_on_the_screen_and_what_was_done_about_it_in_the_ledger() -> None:
    cluster.wait_for(all_in_service, 60, "every node in service")
    cluster.run(CONTROLLER, "scontrol", "update", f"nodename={COMPUTES[0]}", "state=drain", "reason=dimm swap")
    systemctl(NODE, "stop", "munge")
    patrol("--fix")
    systemctl(COMPUTES[2], "stop", "slurmd")
    seen, screen = status_screen()
    assert [(one["nodes"], one["reason"]) for one in seen["nodes"]["out"]][:1] == [([COMPUTES[0]], "dimm swap")]
    assert f"{COMPUTES[0]}: IDLE+DRAIN dimm swap [root@" in screen
    assert seen["services"]["slurmd"]["inactive/dead"] == [COMPUTES[2]]
    # the timer is stopped
    assert seen["patrol"][CONTROLLER]["next"] is None and "never again" in screen
    assert (seen["ledger"][-1]["node"], seen["ledger"][-1]["event"]) == (NODE, "fixed")
    systemctl(COMPUTES[2], "start", "slurmd")
    cluster.run(CONTROLLER, "scontrol", "update", f"nodename={COMPUTES[0]}", "state=resume")
    cluster.wait_for(all_in_service, 60, "every node in service")
