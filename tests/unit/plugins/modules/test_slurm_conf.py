"""The module slurm_conf on real files, with a scontrol of our own that reads what it is given."""

from __future__ import annotations

import json
import os
import pathlib
import stat
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import slurm_conf_host, slurm_conf_lint
from ansible_collections.hpcguard.slurm.plugins.modules import slurm_conf as module

from .conftest import Run

REPOSITORY = pathlib.Path(__file__).resolve().parents[4]
# Refuses what a real one refuses of our samples, and says so as a real one does.
SCONTROL = """#!/bin/sh
[ "$*" = "show hostlist a" ] || exit 9
for file in "$SLURM_CONF" $(sed -n 's/^Include //p' "$SLURM_CONF"); do
    echo "$file" >> @LOG@; stat -c '%a' "$file" >> @LOG@
    if grep -q '^EnforcePartLimits=SOME' "$file"; then
        echo "scontrol: error: Bad EnforcePartLimits: SOME" >&2
        echo "scontrol: fatal: Unable to process configuration file $file" >&2
        exit 1
    fi
    grep -q '^MpiDefault=openmpi' "$file" && echo "scontrol: error: Translating obsolete option" >&2
    grep -q '^MailProg=/slow' "$file" && sleep 60
done
echo a
"""


class Site:
    """A slurm.conf with an included file, the directories it names, and the module's usual arguments."""

    def __init__(self, root: pathlib.Path, run: Run) -> None:
        self.etc, self.state, self.plugins, self.log = root / "etc", root / "state", root / "plugins", root / "log"
        for folder in (self.etc, self.state, self.plugins):
            folder.mkdir()
        (self.state / "clustername").write_text("hpc")
        for name in ("jobacct_gather_cgroup", "jobcomp_filetxt", "accounting_storage_slurmdbd", "select_cons_tres"):
            (self.plugins / f"{name}.so").touch()
        self.scontrol = root / "scontrol"
        self.scontrol.write_text(SCONTROL.replace("@LOG@", str(self.log)))
        self.scontrol.chmod(0o755)
        self.main, self.site = self.etc / "slurm.conf", self.etc / "site.conf"
        self.main.write_bytes(
            f"ClusterName=hpc\nSlurmctldHost=c1\nStateSaveLocation={self.state}\nSlurmdTimeout=300#秒\nSelectType=select/cons_tres\n"
            "AccountingStorageType=accounting_storage/slurmdbd\nJobCompPass=secret1   #密码\nInclude site.conf\n"
            "NodeName=n1 RealMemory=4000\nPartitionName=p Nodes=n1 DefMemPerCPU=5\n".encode()
        )
        self.site.write_bytes(b"# ours\nReturnToService=1\n")
        self.run_module = run

    def run(self, check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        given = {
            "path": str(self.main),
            "version": "22.05.8",
            "scontrol": str(self.scontrol),
            "plugin_dir": str(self.plugins),
            "host": "c1",
            **arguments,
        }
        return self.run_module("slurm_conf", check, **given)

    def contents(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(self.etc.iterdir())}

    def refused(self, **arguments: t.Any) -> dict[str, t.Any]:
        """Run it and see that it fails and writes nothing."""
        before = self.contents()
        result = self.run(**arguments)
        assert result["failed"], result
        assert self.contents() == before
        return result


@pytest.fixture
def site(tmp_path: pathlib.Path, run_module: Run, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(slurm_conf_lint, "VOLATILE", ())  # the tests live below /tmp
    return Site(tmp_path, run_module)


SETTINGS = {"ReturnToService": 2, "SlurmdTimeout": 600, "HealthCheckInterval": 300, "HealthCheckProgram": "/usr/local/bin/hc.sh"}


def test_change_and_again_and_in_check_mode(site: Site) -> None:
    before = site.contents()
    predicted = site.run(check=True, settings=SETTINGS)
    assert predicted["changed"] and site.contents() == before

    done = site.run(settings=SETTINGS)
    assert done == predicted, "check mode says exactly what the run does"
    assert site.contents()["site.conf"] == b"# ours\nReturnToService=2\n"
    assert site.contents()["slurm.conf"] == before["slurm.conf"].replace(b"300#", b"600#").replace(
        "秒\n".encode(), "秒\nHealthCheckInterval=300\nHealthCheckProgram=/usr/local/bin/hc.sh\n".encode()
    )
    assert done["files"] == [str(site.main), str(site.site)]
    assert done["effective"]["before"]["ReturnToService"] == "1" and done["effective"]["after"]["ReturnToService"] == "2"

    for check in (True, False):
        again = site.run(check=check, settings=SETTINGS)
        assert not again["changed"] and again["changes"] == [] and again["diff"] == []
    assert site.run(settings={"ReturnToService": 2})["effective"]["before"]["JobCompPass"] == "********"


def test_changes_say_what_they_ask_for(site: Site) -> None:
    result = site.run(
        check=True, settings={"ReturnToService": 2, "JobAcctGatherType": "jobacct_gather/cgroup", "SelectTypeParameters": None}
    )
    assert result["changes"] == [
        {
            "host": "c1",
            "thing": "slurm.conf:JobAcctGatherType",
            "from": "not set",
            "to": "jobacct_gather/cgroup",
            "class": "restart_without_steps",
            "reason": f"{site.main} line 7",
            "source": "slurm.conf(5) to 22.05: only while no step runs",
        },
        {
            "host": "c1",
            "thing": "slurm.conf:ReturnToService",
            "from": "1",
            "to": "2",
            "class": "reconfigure",
            "reason": f"{site.site} line 2",
            "source": "slurm.conf(5): no note, so a reconfigure is enough",
        },
    ]


def test_owner_and_mode_stay_and_a_link_stays_a_link(site: Site) -> None:
    real = site.etc / "real.conf"
    site.main.rename(real)
    site.main.symlink_to("real.conf")
    real.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(real, 12, 34)
    before = real.stat()
    assert site.run(settings={"SlurmdTimeout": 600})["changed"]
    after = real.stat()
    assert site.main.is_symlink() and b"SlurmdTimeout=600" in real.read_bytes()
    assert (stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid) == (0o640, before.st_uid, before.st_gid)
    assert sorted(path.name for path in site.etc.iterdir()) == ["real.conf", "site.conf", "slurm.conf"], "nothing is left behind"


def test_a_key_is_removed(site: Site) -> None:
    result = site.run(settings={"SlurmdTimeout": None})
    assert (result["changes"][0]["from"], result["changes"][0]["to"]) == ("300", "not set")
    assert b"SlurmdTimeout" not in site.main.read_bytes()


def test_deferred_keys_stay(site: Site) -> None:
    result = site.run(settings=SETTINGS, defer_keys=["returntoservice", "SlurmdTimeout"])
    assert [change["thing"] for change in result["changes"]] == ["slurm.conf:HealthCheckInterval", "slurm.conf:HealthCheckProgram"]
    assert b"SlurmdTimeout=300#" in site.main.read_bytes() and site.site.read_bytes() == b"# ours\nReturnToService=1\n"


def test_a_file_that_did_not_change_is_not_in_the_diff(site: Site) -> None:
    result = site.run(settings={"SlurmdTimeout": 600})
    assert [one["before_header"] for one in result["diff"]] == [str(site.main)]
    assert "SlurmdTimeout=300#秒\n" in result["diff"][0]["before"] and "SlurmdTimeout=600#秒\n" in result["diff"][0]["after"]


def test_case_07_secrets_appear_nowhere(site: Site) -> None:
    result = site.run(settings={"SlurmdTimeout": 600}, secret_settings={"JobCompPass": "secret2"})
    assert "JobCompPass=secret2   #密码\n".encode() in site.main.read_bytes()
    assert "secret1" not in str(result) and "secret2" not in str(result)
    assert "JobCompPass=********   #密码" in result["diff"][0]["before"]
    assert "JobCompPass=******** (new)   #密码" in result["diff"][0]["after"]
    refused = site.refused(settings={"JobCompPass": "secret3"})
    assert "secret3" not in str(refused)


def test_case_07_under_the_c_locale(site: Site) -> None:
    """The whole module in a process of its own, with ASCII for everything, as old Pythons have it on such hosts."""
    arguments = {
        "path": str(site.main),
        "version": "22.05.8",
        "scontrol": str(site.scontrol),
        "plugin_dir": str(site.plugins),
        "controller": False,
        "settings": {"SlurmdTimeout": 600},
        "secret_settings": {"JobCompPass": "secret2"},
        "_ansible_diff": True,
    }
    program = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); import conftest\n"
        "from ansible.module_utils import basic\n"
        "basic._ANSIBLE_ARGS = json.dumps({'ANSIBLE_MODULE_ARGS': json.load(open(sys.argv[2]))}).encode()\n"
        "basic._ANSIBLE_PROFILE = 'legacy'\n"
        "from ansible_collections.hpcguard.slurm.plugins.modules import slurm_conf\n"
        "slurm_conf.main()\n"
    )
    given = site.log.with_name("arguments")
    given.write_text(json.dumps(arguments))
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": os.environ["PATH"], "HOME": str(given.parent)}
    done = subprocess.run(
        [sys.executable, "-c", program, str(REPOSITORY / "tests"), str(given)], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert "SlurmdTimeout=600#秒\n".encode() in site.main.read_bytes()
    assert b"secret1" not in done.stdout + done.stderr and b"secret2" not in done.stdout + done.stderr
    assert "密码" in json.loads(done.stdout)["diff"][0]["after"]


def test_all_problems_at_once_and_nothing_written(site: Site) -> None:
    with site.site.open("ab") as file:
        file.write(b"<<<<<<< HEAD\n")
    result = site.refused(
        settings={
            "DefMemPerCPU": "2G",
            "ReturnToService": True,
            "JobCompType": "jobcomp/slurmdbd",
            "ClusterName": "other",
            "Kilwait": 3,
            "SlurmdTimeout": 600,
        }
    )
    causes = [one["cause"] for one in result["findings"] if one["severity"] == "error"]
    assert [cause.partition(":")[0] for cause in causes] == [
        "slurm_conf_settings.DefMemPerCPU",
        "slurm_conf_settings.Kilwait",
        "slurm_conf_settings.ReturnToService",
        "slurm_conf_settings.ClusterName",
        "a merge conflict was left in the file",
        "slurm_conf_settings.JobCompType",
    ]
    assert f"[c1] {site.site}:3 " in result["msg"] and "a merge conflict" in result["msg"]
    assert "did you mean KillWait?" in result["msg"]


@pytest.mark.parametrize("settings", ["KillWait=3", ["KillWait"], 3])
def test_settings_of_another_type(site: Site, settings: object) -> None:
    assert "slurm_conf_settings is no mapping" in site.refused(settings=settings)["msg"]


@pytest.mark.parametrize(("what", "said"), [("absent", "does not exist"), ("folder", "is no regular file"), ("fifo", "is no regular file")])
def test_a_path_that_is_no_file(site: Site, what: str, said: str) -> None:
    path = site.etc.parent / what
    if what == "folder":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    assert said in site.refused(path=str(path), settings=SETTINGS)["msg"]


def test_a_file_that_is_not_slurms(site: Site) -> None:
    result = site.refused(path="/etc/passwd", settings=SETTINGS)
    assert [one["id"] for one in result["findings"]] == ["conf_foreign"]


def test_s20_what_scontrol_refuses_is_refused_with_its_own_words(site: Site) -> None:
    result = site.refused(settings={"EnforcePartLimits": "SOME"})
    assert "scontrol says: error: Bad EnforcePartLimits: SOME" in result["msg"]
    assert f"Unable to process configuration file {site.main}" in result["msg"], "the message names the real file"


def test_the_candidate_is_tested_unseen_by_others(site: Site) -> None:
    site.run(settings=SETTINGS)
    paths, modes = site.log.read_text().split()[::2], site.log.read_text().split()[1::2]
    assert len(paths) == 2 and set(modes) == {"600"}
    assert not any(path.startswith(str(site.etc)) or os.path.exists(path) for path in paths)


def test_what_the_present_file_draws_too_only_warns(site: Site) -> None:
    with site.main.open("ab") as file:
        file.write(b"MpiDefault=openmpi\n")
    result = site.run(settings=SETTINGS)
    assert result["changed"]
    assert [one["severity"] for one in result["findings"] if one["id"] == "conf_proof"] == ["warning"]


def test_what_only_the_candidate_draws_refuses(site: Site) -> None:
    assert "scontrol says: error: Translating obsolete option" in site.refused(settings={"MpiDefault": "openmpi"})["msg"]


def test_the_parse_test_has_a_time_limit(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_conf_host, "PROOF_TIMEOUT", 0.5)
    assert "did not finish reading" in site.refused(settings={"MailProg": "/slow"})["msg"]


def test_case_55_the_state_directory(site: Site) -> None:
    (site.state / "clustername").unlink()
    assert "holds no state of slurmctld" in site.refused(settings=SETTINGS)["msg"]
    assert site.run(settings=SETTINGS, controller=False)["changed"], "on a compute node it is not looked at"


def test_a_file_changed_meanwhile_is_left_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    prove = module.prove

    def somebody_edits(*arguments: t.Any) -> t.Any:
        site.site.write_bytes(b"KillWait=99\n")
        return prove(*arguments)

    monkeypatch.setattr(module, "prove", somebody_edits)
    result = site.run(settings=SETTINGS)
    assert result["failed"] and f"{site.site} was changed by somebody else" in result["msg"]
    assert b"SlurmdTimeout=300#" in site.main.read_bytes() and site.site.read_bytes() == b"KillWait=99\n"


def test_when_the_second_file_cannot_be_written_the_first_is_put_back(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    before, put = site.contents(), module.put

    def full_disk(ansible: t.Any, path: str, content: bytes) -> None:
        if path.endswith("site.conf"):
            raise OSError(28, "No space left on device")
        put(ansible, path, content)

    monkeypatch.setattr(module, "put", full_disk)
    result = site.run(settings=SETTINGS)
    assert result["failed"] and "No space left on device" in result["msg"]
    assert site.contents() == before


def test_a_version_that_is_none(site: Site) -> None:
    assert "is no version of Slurm" in site.refused(version="unknown")["msg"]
