"""Two hundred jobs and more run through a failing rollout, a rollout and a way back, and none of them notices."""

from __future__ import annotations

import threading

import cluster
from cluster import COMPUTES, CONTROLLER

VICTIM = "k8s-node-02"
AT_LEAST, A_HANDFUL = 200, 20
# Every other job has a step. Each leaves a line where it began, so one that began twice is seen.
SCRIPT = "echo $SLURM_JOB_ID >> /var/tmp/began; if ((SLURM_JOB_ID % 2)); then srun sleep 5; else sleep 5; fi"


class Feeder(threading.Thread):
    """Keeps the queue filled until it is told to stop."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.jobs: list[str] = []
        self.enough = threading.Event()

    def submit(self, number: int) -> None:
        loop = 'for i in $(seq "$1"); do sbatch --parsable --output=/dev/null --job-name=many --wrap "$2" || exit 1; done'
        done = cluster.run(CONTROLLER, "bash", "-c", loop, "bash", str(number), SCRIPT, check=False)
        self.jobs += done.stdout.split()

    def pending(self) -> int:
        # while slurmctld restarts there is no answer, and no hurry
        done = cluster.run(CONTROLLER, "squeue", "--noheader", "--name=many", "--state=PENDING", "--format=%A", check=False)
        return AT_LEAST if done.returncode else len(done.stdout.split())

    def run(self) -> None:
        while not self.enough.wait(2):
            if self.pending() < A_HANDFUL:
                self.submit(A_HANDFUL)


def running() -> int:
    return len(cluster.out(CONTROLLER, "squeue", "--noheader", "--name=many", "--state=RUNNING", "--format=%A").split())


def test_no_job_is_lost_requeued_or_run_twice() -> None:
    for name in COMPUTES:
        cluster.run(name, "rm", "-f", "/var/tmp/began")
    before = {host: cluster.files(host) for host in cluster.HOSTS}
    feeder = Feeder()
    feeder.submit(AT_LEAST)
    feeder.start()
    cluster.wait_for(running, 60, "jobs run")

    failing = cluster.Running("deploy", "-e", "slurm_running_jobs=defer", "-e", "deploy_ready_timeout=30")
    failing.reaches("PLAY [Bring the controller")
    cluster.run(VICTIM, "tee", "/usr/local/bin/wait-for-slurmctld.sh", feed="#!/bin/sh\nexit 1\n")
    status, output = failing.ends()
    assert status != 0 and "taken back on" in output, output[-3000:]
    assert running()
    cluster.succeed("deploy", "-e", "slurm_running_jobs=defer")
    assert running()
    cluster.succeed("rollback")
    assert running()
    assert {host: cluster.files(host) for host in cluster.HOSTS} == before

    feeder.enough.set()
    feeder.join()
    cluster.wait_for(lambda: not cluster.out(CONTROLLER, "squeue", "--noheader", "--name=many"), 600, "all jobs end")
    rows = []

    def recorded() -> bool:
        listing = cluster.out(CONTROLLER, "sacct", "-D", "-X", "-P", "-n", "--name=many", "--format=jobid,state,exitcode")
        rows[:] = [line.split("|") for line in listing.splitlines()]
        return len(rows) >= len(feeder.jobs) and all(row[1] != "RUNNING" for row in rows)

    cluster.wait_for(recorded, 120, "all jobs are recorded")
    assert len(feeder.jobs) >= AT_LEAST
    ids = sorted(row[0] for row in rows)
    # a restart of slurmctld may take the answer to a submission with it, but not the job
    assert len(ids) == len(set(ids)) and set(ids) >= set(feeder.jobs), "each once"
    assert {tuple(row[1:]) for row in rows} == {("COMPLETED", "0:0")}
    began = [job for name in COMPUTES for job in cluster.out(name, "cat", "/var/tmp/began").split()]
    assert sorted(began) == ids, "each began once"
    print(f"{len(ids)} jobs COMPLETED once, through a failed rollout, a rollout and a way back")
