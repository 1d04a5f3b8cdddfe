"""Our reading of generated slurm.conf files, against a real slurmctld's.

It runs beside the lab's own: other ports, name and directories, and it is ended by its process id.
"""

from __future__ import annotations

import base64
import json
import re
import sys

import cluster
from hypothesis import Phase, given, seed, settings

sys.path.insert(0, str(cluster.ROOT / ".venv/collections"))
from ansible_collections.hpcguard.slurm.plugins.module_utils import slurm_conf, slurm_conf_keys, slurm_layout
from ansible_collections.hpcguard.slurm.tests import slurm_conf_texts as texts

FOLDER, PORT = "/tmp/hpcguard-agrees", 16817
HEAD = f"""\
ClusterName=agrees
SlurmctldHost={cluster.CONTROLLER}
SlurmUser=root
SlurmctldPort={PORT}
SlurmdPort={PORT + 1}
StateSaveLocation={FOLDER}
SlurmctldPidFile={FOLDER}/pid
SlurmctldLogFile={FOLDER}/log
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
MpiDefault=none
NodeName=agrees NodeAddr=127.0.0.1
PartitionName=agrees Nodes=agrees
"""
# Starts slurmctld on the files it is given and prints what scontrol shows of it.
ASK = """
import base64, json, os, shutil, socket, subprocess, sys, time
folder, port, files = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
shutil.rmtree(folder, ignore_errors=True)
os.mkdir(folder, 0o700)
for path, content in files.items():
    with open(path, "wb") as stream:
        stream.write(base64.b64decode(content))
daemon = subprocess.Popen(["slurmctld", "-D", "-f", folder + "/slurm.conf"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
shown = None
try:
    deadline = time.time() + 20
    while time.time() < deadline and daemon.poll() is None:
        try:
            socket.create_connection((socket.gethostname(), port), 1).close()
        except OSError:
            time.sleep(0.05)
            continue
        os.environ["SLURM_CONF"] = folder + "/slurm.conf"
        done = subprocess.run(["scontrol", "show", "config"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode == 0:
            shown = done.stdout.decode("utf-8", "replace")
            break
finally:
    daemon.kill()
    said = daemon.communicate()[0].decode("utf-8", "replace")
    shutil.rmtree(folder)
print(json.dumps({"shown": shown, "said": said[-2000:]}))
"""


def loaded(files: dict[str, bytes]) -> dict[str, str]:
    """What a slurmctld of its own makes of the files."""
    told = json.dumps({path: base64.b64encode(content).decode() for path, content in files.items()})
    answer = json.loads(cluster.out(cluster.CONTROLLER, "python3", "-", FOLDER, str(PORT), told, feed=ASK))
    assert answer["shown"], f"slurmctld does not start on\n{files}\n{answer['said']}"
    pairs = (line.partition(" = ") for line in answer["shown"].splitlines())
    return {slurm_conf_keys.canonical(key.strip()): value for key, separator, value in pairs if separator}


def as_shown(key: str, value: str, release: tuple[int, int]) -> str:
    """A value of ours as scontrol shows it, without the unit."""
    kind = slurm_conf_keys.kind(key, release)
    if kind == "boolean":
        return "yes" if slurm_conf.boolean(value) else "no"
    return str(slurm_conf.number(value, kind)) if kind in slurm_conf_keys.NUMBERS else slurm_conf.readable(value)


@seed(20261130)
@settings(max_examples=12, deadline=None, database=None, phases=[Phase.generate])
@given(texts.samples(acceptable=True, least=10))
def test_a_real_slurmctld_reads_what_we_read(sample: texts.Sample) -> None:
    version = slurm_layout.parse_version(cluster.out(cluster.CONTROLLER, "slurmctld", "-V"))[1]
    release = (version[0], version[1])
    files = sample.files(FOLDER)
    main = f"{FOLDER}/{texts.MAIN}"
    files[main] = HEAD.encode() + files[main]
    conf = slurm_conf.parse(main, files.get, release)
    shown = loaded(files)
    keys = sample.keys()
    ours = {key: as_shown(key, conf.value(key), release) for key in keys}
    theirs = {key: re.sub(r"^(\d+) .*", r"\1", shown[key].lower() if key in texts.BOOLEANS else shown[key]) for key in keys}
    assert ours == theirs, files


def test_the_labs_own_slurmctld_was_left_alone() -> None:
    assert cluster.config("ClusterName") == "hpc"
    assert cluster.run(cluster.CONTROLLER, "test", "-e", FOLDER, check=False).returncode == 1
