"""The lab as the scenarios' tests see it: hosts, playbooks, jobs, and conditions to wait for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What playbooks are run with.
PLAYBOOK = ROOT / ".venv/bin/ansible-playbook"

# Every lab has these; what its choices add, inventory() tells.
CONTROLLER = "k8s-master-01"
COMPUTES = ("k8s-node-01", "k8s-node-02", "k8s-node-03")
HOSTS = (CONTROLLER, *COMPUTES)
DAEMONS = {CONTROLLER: ("slurmctld", "slurmdbd"), **dict.fromkeys(COMPUTES, ("slurmd",))}

# Labs side by side must not write one another's report.
LAB = os.environ.get("LAB_ID", "")
REPORTS = f"reports/lab{LAB}" if LAB else "reports"

# What a rollout may touch: configuration, units and scripts. Its snapshots stay behind on purpose.
WATCHED = ("/etc", "/usr/local", "/opt")
IGNORED = ("/etc/resolv.conf", "/etc/hosts", "/etc/hostname", "/etc/mtab", "/etc/ld.so.cache", "/etc/.updated", "/etc/machine-id")


def container(host: str) -> str:
    """Name of the container that is *host* in the lab with the present LAB_ID."""
    return f"lab{LAB}-{host}" if LAB else host


def inventory() -> dict[str, t.Any]:
    """The lab that stands, as Ansible is told of it."""
    told: dict[str, t.Any] = json.loads(subprocess.run([ROOT / "lab/inventory.sh"], capture_output=True, text=True, check=True).stdout)
    return told


def python(host: str) -> str:
    """The interpreter that Ansible uses on a host."""
    path: str = inventory()["_meta"]["hostvars"][host]["ansible_python_interpreter"]
    return path


def run(host: str, *argv: str, check: bool = True, timeout: float = 120, feed: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program in a container, without a shell."""
    command = ["podman", "exec", *(["-i"] if feed is not None else []), container(host), *argv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, input=feed, check=False, errors="replace")
    if check and done.returncode:
        raise AssertionError(f"{host}: {argv} gave {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def out(host: str, *argv: str, **options: t.Any) -> str:
    """What a program printed, without the blanks around it."""
    return run(host, *argv, **options).stdout.strip()


def command(name: str, *args: str) -> list[str]:
    """The command line of a playbook."""
    return [str(PLAYBOOK), f"playbooks/{name}.yml", "-e", f"verify_report_dir={REPORTS}", *args]


def environment() -> dict[str, str]:
    """Environment of an operator, without what Molecule sets."""
    unwanted = ("MOLECULE_", "ANSIBLE_CONFIG", "ANSIBLE_ROLES", "ANSIBLE_COLLECTIONS")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
    return {**kept, "ANSIBLE_FORCE_COLOR": "false", "ANSIBLE_NOCOLOR": "true", "PYTHONUNBUFFERED": "1"}


def playbook(name: str, *args: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
    """Run a playbook as an operator does; both streams end up in stdout."""
    return subprocess.run(
        command(name, *args),
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )


class Running:
    """A playbook that runs while a test does something to it or to the cluster."""

    def __init__(self, name: str, *args: str) -> None:
        self.log = tempfile.NamedTemporaryFile("a", encoding="utf-8")  # noqa: SIM115 - read until the run has ended
        self.process = subprocess.Popen(
            command(name, *args), cwd=ROOT, env=environment(), stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True
        )

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return Path(self.log.name).read_text(encoding="utf-8")

    def reaches(self, text: str, seconds: float = 300) -> None:
        """Wait until it prints *text*."""

        def printed() -> bool:
            assert self.process.poll() is None or text in self.output, f"ended before {text!r}\n{self.output[-4000:]}"
            return text in self.output

        wait_for(printed, seconds, f"the run prints {text!r}", every=0.05)

    def kill(self) -> None:
        """End it as a power cut of the control node would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def ends(self, seconds: float = 600) -> tuple[int, str]:
        """Wait for its end: (exit status, output)."""
        return self.process.wait(seconds), self.output


def succeed(name: str, *args: str, timeout: float = 900) -> str:
    """Run a playbook that must succeed; its output."""
    done = playbook(name, *args, timeout=timeout)
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def refuse(name: str, *args: str, timeout: float = 900) -> str:
    """Run a playbook that must fail; its output."""
    done = playbook(name, *args, timeout=timeout)
    assert done.returncode != 0, done.stdout[-6000:]
    return done.stdout


def recap(text: str) -> dict[str, dict[str, int]]:
    """The recap of a run: {host: {"ok": 3, "changed": 0, ...}}."""
    found = {}
    for line in text.split("PLAY RECAP", 1)[1].splitlines()[1:]:
        name, separator, rest = line.partition(" : ")
        if separator:
            found[name.strip()] = {key: int(value) for key, value in (pair.split("=") for pair in rest.split())}
    return found


def report() -> dict[str, t.Any]:
    """The report of the last verification."""
    written: dict[str, t.Any] = json.loads((ROOT / REPORTS / "verify.json").read_text(encoding="utf-8"))
    return written


def verdicts() -> dict[int, str]:
    """The verdict of each item in the report of the last verification."""
    return {item["id"]: item["verdict"] for item in report()["items"]}


def wait_for(condition: t.Callable[[], t.Any], seconds: float, what: str, every: float = 0.5) -> float:
    """Wait until *condition* holds; the seconds it took. A time-out is a failed test that says what was missing."""
    begun = time.monotonic()
    while True:
        if condition():
            return time.monotonic() - begun
        if time.monotonic() - begun > seconds:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(every)


LIST_FILES = """
import hashlib, json, os, stat, sys
found = {}
for top in sys.argv[1:]:
    for folder, folders, names in os.walk(top):
        for path in [folder] + [os.path.join(folder, name) for name in names + folders]:
            info = os.lstat(path)
            kind = stat.S_IFMT(info.st_mode)
            if kind == stat.S_IFLNK:
                content = "-> " + os.readlink(path)
            elif kind == stat.S_IFREG:
                with open(path, "rb") as stream:
                    content = hashlib.sha256(stream.read()).hexdigest()
            else:
                content = "directory"
            found[path] = "%o %d:%d %s" % (info.st_mode, info.st_uid, info.st_gid, content)
print(json.dumps(found))
"""


def files(host: str) -> dict[str, str]:
    """Everything under the watched directories: {path: mode, owner, checksum or target}."""
    found: dict[str, str] = json.loads(out(host, python(host), "-", *WATCHED, feed=LIST_FILES))
    return {path: told for path, told in found.items() if path not in IGNORED}


def main_pids() -> dict[str, str]:
    """MainPID of every daemon of the cluster."""
    return {
        f"{host}:{unit}": out(host, "systemctl", "show", "-p", "MainPID", unit)
        for host, units in DAEMONS.items()
        for unit in (*units, "munge")
    }


def node(name: str) -> dict[str, str]:
    """State and reason of a node as slurmctld sees them."""
    record = out(CONTROLLER, "scontrol", "-o", "show", "node", name)
    state = record.split(" State=", 1)[1].split(" ", 1)[0]
    reason = record.split(" Reason=", 1)[1] if " Reason=" in record else ""
    return {"state": state, "reason": reason}


def in_service(name: str) -> bool:
    """True when slurmctld answers and the node can take jobs."""
    done = run(CONTROLLER, "scontrol", "-o", "show", "node", name, check=False)
    if done.returncode or " State=" not in done.stdout:
        return False
    words = done.stdout.split(" State=", 1)[1].split(" ", 1)[0].split("+")
    return words[0] in ("IDLE", "MIXED", "ALLOCATED") and not {"DRAIN", "NOT_RESPONDING", "INVALID_REG"} & set(words)


def config(key: str) -> str:
    """A loaded value of slurm.conf."""
    for line in out(CONTROLLER, "scontrol", "show", "config").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == key:
            return value.strip()
    raise AssertionError(f"scontrol show config has no {key}")


def submit(seconds: int, *options: str) -> str:
    """Submit a job that sleeps; its id."""
    return out(CONTROLLER, "sbatch", "--parsable", "--output=/dev/null", *options, "--wrap", f"srun sleep {seconds}")


# Slow machines must not end a job before its test is done with it, so it ends when it is told.
UNTIL_TOLD = "srun bash -c 'until [ -e /run/end-of-job ]; do sleep 0.5; done'"


def run_until_told() -> str:
    """A job that runs on all nodes until :func:`tell_to_end`; its id."""
    for name in COMPUTES:
        run(name, "rm", "-f", "/run/end-of-job")
    job = out(
        CONTROLLER, "sbatch", "--parsable", "--output=/dev/null", "--job-name=everywhere", "--nodes=3", "--ntasks=3", "--wrap", UNTIL_TOLD
    )
    wait_for(lambda: job_state(job) == "RUNNING", 60, f"job {job} runs")
    return job


def tell_to_end(job: str) -> None:
    """End the job of :func:`run_until_told`, and wait until it has ended, COMPLETED and once."""
    for name in COMPUTES:
        run(name, "touch", "/run/end-of-job")
    wait_for(lambda: job_state(job) == "", 60, f"job {job} ends")
    wait_for(lambda: {row[1] for row in accounting(job)} == {"COMPLETED"}, 60, f"job {job} COMPLETED in sacct: {accounting(job)}")
    assert [row[0] for row in accounting(job)].count(job) == 1


def job_state(job: str) -> str:
    """State of a job in squeue, empty when it is no longer there."""
    return out(CONTROLLER, "squeue", "--noheader", "--format=%T", "--jobs", job, check=False)


def accounting(job: str, columns: str = "jobid,state,exitcode") -> list[list[str]]:
    """Rows of sacct for one job, duplicates included."""
    listing = out(CONTROLLER, "sacct", "-D", "-P", "-n", "-j", job, f"--format={columns}")
    return [line.split("|") for line in listing.splitlines()]
