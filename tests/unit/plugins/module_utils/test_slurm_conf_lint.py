"""What is refused before anything is written, and what is said about it.

Case numbers are those of the collection of faults found in the wild; S numbers are rows of the facts.
"""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import finding, slurm_conf, slurm_conf_lint

HEAD = b"ClusterName=hpc\nSlurmctldHost=c1\nAccountingStorageType=accounting_storage/slurmdbd\n"
MAIN = "/etc/slurm/slurm.conf"
PLUGINS = {
    "accounting_storage_slurmdbd.so",
    "jobacct_gather_cgroup.so",
    "jobacct_gather_linux.so",
    "jobcomp_filetxt.so",
    "task_cgroup.so",
    "task_affinity.so",
    "mpi_pmix.so",
    "proctrack_cgroup.so",
    "select_cons_tres.so",
    "job_submit_lua.so",
}
Release = tuple[int, int]
Finding = dict[str, t.Any]


def lint(
    text: bytes, release: Release = (22, 5), asked: tuple[str, ...] = (), files: dict[str, bytes] | None = None, **host: t.Any
) -> list[Finding]:
    conf = slurm_conf.parse(MAIN, {MAIN: text, **(files or {})}.get, release)
    about = slurm_conf_lint.Host("c1", **{"plugins": PLUGINS, **host})
    return t.cast("list[Finding]", slurm_conf_lint.lint(conf, about, {key: f"slurm_conf_settings.{key}" for key in asked}))


def errors(findings: list[Finding]) -> list[str]:
    return [one["cause"] for one in findings if one["severity"] == "error"]


def warnings(findings: list[Finding]) -> list[str]:
    return [one["cause"] for one in findings if one["severity"] == "warning"]


def check(settings: t.Any, release: Release = (22, 5), secrets: t.Any = None) -> tuple[dict[str, str | None], dict[str, str]]:
    """The settings that are fine, and {variable: what is wrong and what to do}."""
    wanted, findings = slurm_conf_lint.check_settings(settings, secrets or {}, release, "c1")
    return dict(wanted), {one["cause"].split(": ")[0]: f"{one['cause'].partition(': ')[2]} | {one['remedy']}" for one in findings}


# --- the settings asked for ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("DefMemPerCPU", "2G", "2G is no whole number | it counts in megabytes: write 2048"),
        ("SlurmdTimeout", "300s", "300s is no number from 0 to 65535 | it counts in seconds: write 300"),
        ("HealthCheckInterval", "5m", "5m is no number from 0 to 65535 | it counts in seconds: write 300"),
        ("ReturnToService", True, "is the truth value True | write what Slurm expects, in quotes: 0, 1 or 2"),
        ("ReturnToService", "yes", "yes is no number from 0 to 65535 | write a plain number"),
        ("ReturnToService", 3, "3 has no meaning | write 0, 1 or 2"),
        ("SlurmdTimeout", 70000, "70000 is no number from 0 to 65535 | write a plain number"),
        ("SlurmdTimeout", -1, "-1 is no number from 0 to 65535 | write a plain number"),
        ("SlurmdTimeout", 2.5, "2.5 is no number from 0 to 65535 | write a plain number"),
        ("SlurmdTimeout", "0300", "is 0300, which Slurm reads as 192 | write it as a plain decimal number"),
    ],
)
def test_case_13_units_and_truth_values(key: str, value: object, said: str) -> None:
    assert check({key: value}) == ({}, {f"slurm_conf_settings.{key}": said})


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("MailProg", "", "is empty | give it a value, or null to take the key out of slurm.conf"),
        ("MailProg", "  ", "is empty | give it a value, or null to take the key out of slurm.conf"),
        (
            "MailProg",
            "/a\nKillWait=1",
            "holds a line break, another control character or outer blanks | write it on one line, without them",
        ),
        ("MailProg", "/a\0b", "holds a line break, another control character or outer blanks | write it on one line, without them"),
        ("MailProg", " /a", "holds a line break, another control character or outer blanks | write it on one line, without them"),
        ("MailProg", ["/a"], "is a list or a mapping | write one value, as it stands in slurm.conf"),
        ("MailProg", {"a": 1}, "is a list or a mapping | write one value, as it stands in slurm.conf"),
        ("MailProg", 'a "b', "cannot be written in slurm.conf | leave out the double quotes"),
        ("UsePAM", "maybe", "maybe is neither yes nor no | write yes or no"),
        ("JobAcctGatherType", "cgroup", "cgroup names no kind of plugin | write jobacct_gather/cgroup"),
        ("HealthCheckProgram", "hc.sh", "hc.sh is no absolute path | write the program's whole path, without arguments"),
        ("SlurmdTimout", 300, "Slurm 22.05 knows no such key | did you mean SlurmdTimeout?"),
        ("Frobnicate", 1, "Slurm 22.05 knows no such key | see slurm.conf(5) of this release"),
        ("HealthCheckTimeout", 30, "Slurm 22.05 knows no such key (Slurm knows it from 26.05 on) | take it out"),
        ("SallocDefaultCommand", "x", "has been removed from Slurm | take it out"),
        ("NodeName", "n1", "describes a thing of its own and is no setting | edit its lines in slurm.conf by hand"),
        ("include", "x", "describes a thing of its own and is no setting | edit its lines in slurm.conf by hand"),
        ("JobCompPass", "x", "is a secret | pass it to the module as secret_settings, which are never shown or logged"),
    ],
)
def test_a_setting_that_cannot_be(key: str, value: object, said: str) -> None:
    assert check({key: value}) == ({}, {f"slurm_conf_settings.{key}": said})


def test_all_problems_at_once() -> None:
    wanted, problems = check({"DefMemPerCPU": "2G", "SlurmdTimeout": "300s", "ReturnToService": True, "KillWait": 60})
    assert wanted == {"KillWait": "60"}
    assert len(problems) == 3


def test_what_is_fine() -> None:
    wanted, problems = check(
        {
            "slurmdtimeout": 300,
            "UsePAM": True,
            "MailProg": None,
            "InactiveLimit": "UNLIMITED",
            "MailDomain": "作.业",
            "JobCompType": "(null)",
        },
        secrets={"JobCompPass": "p#w"},
    )
    assert problems == {}
    assert wanted == {
        "SlurmdTimeout": "300",
        "UsePAM": "yes",
        "MailProg": None,
        "InactiveLimit": "UNLIMITED",
        "MailDomain": slurm_conf.stored("作.业"),
        "JobCompType": None,
        "JobCompPass": "p#w",
    }


def test_the_same_key_in_two_spellings() -> None:
    _wanted, problems = check({"KillWait": 1, "killwait": 2})
    assert problems == {"slurm_conf_settings.killwait": "the same key as slurm_conf_settings.KillWait | keep one of them"}


@pytest.mark.parametrize("settings", ["KillWait=3", ["KillWait"], None, 7])
def test_settings_that_are_no_mapping(settings: object) -> None:
    assert list(check(settings)[1]) == ["slurm_conf_settings is no mapping of keys to values"]


def test_a_secret_is_not_repeated_in_the_refusal() -> None:
    _wanted, findings = slurm_conf_lint.check_settings({}, {"JobCompPass": 'hunter2 "x'}, (22, 5), "c1")
    assert [one["severity"] for one in findings] == ["error"]
    assert "hunter2" not in str(findings)


@pytest.mark.parametrize(
    ("release", "value", "fine"),
    [
        ((22, 5), "ANY,CYCLE", True),
        ((22, 5), "idle", True),
        ((22, 5), "NONDRAINED_IDLE", False),
        ((23, 2), "NONDRAINED_IDLE", True),
        ((22, 5), "IDLE,DRAIN", False),
        ((22, 5), "REGISTER", False),
        ((25, 5), "START_ONLY", False),
        ((25, 11), "START_ONLY", True),
        ((26, 5), "REBOOT_ONLY", True),
        ((26, 5), "REBOOT_ONLY,IDLE", False),
    ],
)
def test_case_45_node_states_by_release(release: Release, value: str, fine: bool) -> None:
    """S21: an unknown word is ignored, and alone it even means ANY."""
    assert bool(check({"HealthCheckNodeState": value}, release)[0]) is fine


# --- the file -----------------------------------------------------------------------------------


def test_case_15_merge_markers_and_prose_in_an_included_file() -> None:
    files = {"/etc/slurm/user.conf": b"# ours\n<<<<<<< HEAD\nEmpty file for user customisations\n"}
    found = lint(HEAD + b"Include user.conf\n", files=files)
    assert [(one["file"], one["line"], one["cause"]) for one in found] == [
        ("/etc/slurm/user.conf", 2, "a merge conflict was left in the file"),
        ("/etc/slurm/user.conf", 3, "neither a setting, an Include nor a comment"),
    ]
    assert finding.describe(found)[:4] == [
        "1. [c1] /etc/slurm/user.conf:2 slurm.conf 语法错误 / a line that Slurm cannot read",
        "   cause:  a merge conflict was left in the file",
        "   reads:  <<<<<<< HEAD",
        "   remedy: finish the merge and remove its markers",
    ]


def test_case_17_placeholder_that_turns_into_a_comment() -> None:
    found = lint(HEAD.replace(b"=hpc", b"=###CLUSTER###"))
    assert errors(found) == ["the value of ClusterName is empty: everything from the first # on is a comment"]
    assert found[0]["line"] == 1 and found[0]["evidence"][0]["text"] == "ClusterName=###CLUSTER###"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (b"HealthCheckProgram=\n", "HealthCheckProgram has no value"),
        (b"KillWait=3 ReturnToService=1\n", "there is more on the line after the value of KillWait"),
        (b" Include x\n", "Include counts at the very start of a line only"),
        (b"Include x", "Slurm takes what follows for a part of the Include: no blank ends the file name"),
        (b"Include x#a b\n", "Slurm takes what follows for a part of the Include: no blank ends the file name"),
        (b"Include x y\n", "there is more than one file name after Include"),
        (b"Include nope\n", "Include /etc/slurm/nope: it is missing or no regular file"),
        (b"KillWait=3\0\n", "the line holds a NUL byte, where Slurm stops reading it"),
        (b"Kilwait=3\n", "Kilwait: Slurm 22.05 knows no such key"),
        (b"KillWait=3s\n", "KillWait: 3s is no number from 0 to 65535"),
        (b"NodeName=a RealMemry=3\n", "RealMemry: Slurm 22.05 knows no such key on a NodeName line"),
        (b"NodeName=a CPUs=two\n", "CPUs: two is no number from 0 to 65535"),
        (b"NodeName=a CPUs=2 and more\n", "Slurm cannot read the line from here on: and more"),
        (b"JobAcctGatherType=cgroup\n", "JobAcctGatherType: cgroup names no kind of plugin"),
        (b"SallocDefaultCommand=x\n", "SallocDefaultCommand: has been removed from Slurm"),
        (b"FastSchedule=0\n", "FastSchedule: has been removed from Slurm"),
    ],
)
def test_a_line_that_slurm_refuses(line: bytes, cause: str) -> None:
    found = lint(HEAD + line, files={"/etc/slurm/x": b""})
    assert errors(found) == [cause]
    assert (found[0]["file"], found[0]["line"]) == (MAIN, 4)


@pytest.mark.parametrize(
    "line", [b"Include x#a\n", b"Include x \n", b"Include x # a b\n", b"KillWait=3#", b"TaskPlugin=affinity,task/cgroup\n"]
)
def test_a_line_that_slurm_takes(line: bytes) -> None:
    assert errors(lint(HEAD + line, files={"/etc/slurm/x": b""})) == []


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (b"HealthCheckNodeState=REGISTER\n", "HealthCheckNodeState: Slurm 22.05 ignores REGISTER"),
        (b"FastSchedule=1\n", "FastSchedule has been removed from Slurm and has no effect"),
        (b'SuspendExcNodes=""\n', "SuspendExcNodes is set to nothing"),
        (b"KillWait=3\nkillwait=4\n", "KillWait is set 2 times; the last line counts, the others (/etc/slurm/slurm.conf:4) do not"),
        (b"HealthCheckInterval=60\n", "there is no HealthCheckProgram to run"),
        (b"ReturnToService=7\n", "ReturnToService: 7 has no meaning"),
    ],
)
def test_a_line_that_slurm_takes_but_ignores_only_warns(line: bytes, cause: str) -> None:
    found = lint(HEAD + line)
    assert (errors(found), warnings(found)) == ([], [cause])


def test_bom() -> None:
    assert errors(lint(b"\xef\xbb\xbf# mine\n" + HEAD)) == ["the file begins with a byte order mark, which Slurm takes for text"]


@pytest.mark.parametrize(
    "text", [b"root:x:0:0::/root:/bin/sh\n" * 40, b"", b"\x7fELF\0\1\2", b"DbdHost=c1\nStorageType=accounting_storage/mysql\n"]
)
def test_a_file_of_another_kind_is_one_finding(text: bytes) -> None:
    assert [one["id"] for one in lint(text)] == ["conf_foreign"]


def test_a_missing_file() -> None:
    assert [one["cause"] for one in slurm_conf_lint.missing(MAIN, "c1", False)] == [f"{MAIN} does not exist"]


def test_case_45_a_program_without_interval_never_runs() -> None:
    cause = "with HealthCheckInterval 0 or unset the program never runs, not even when slurmd starts"
    assert errors(lint(HEAD + b"HealthCheckProgram=/hc\n")) == [cause]
    assert errors(lint(HEAD + b"HealthCheckProgram=/hc\nHealthCheckInterval=0\n")) == [cause]
    assert errors(lint(HEAD + b"HealthCheckProgram=/hc\nHealthCheckInterval=300\n")) == []


def test_case_51_a_plugin_that_is_not_there() -> None:
    found = lint(HEAD + b"JobAcctGatherType=jobacct_gather/cgroupp\n")
    assert errors(found) == ["jobacct_gather/cgroupp: there is no such plugin on this host"]
    assert found[0]["remedy"] == "use jobacct_gather/cgroup or jobacct_gather/linux"
    assert errors(lint(HEAD + b"JobAcctGatherType=cgroup\n")) == ["JobAcctGatherType: cgroup names no kind of plugin"]


def test_case_53_a_plugin_of_an_older_release() -> None:
    found = lint(HEAD + b"SelectType=select/cons_res\n", (23, 11))
    assert errors(found) == ["select/cons_res: there is no such plugin on this host"]


@pytest.mark.parametrize(
    "line", [b"MpiDefault=pmix\n", b"MpiDefault=none\n", b"MpiDefault=openmpi\n", b"JobSubmitPlugins=lua\n", b"JobCompType=jobcomp/none\n"]
)
def test_short_and_empty_names_of_plugins(line: bytes) -> None:
    assert errors(lint(HEAD + line)) == []
    assert errors(lint(HEAD + b"JobSubmitPlugins=lua,lau\n")) == ["job_submit/lau: there is no such plugin on this host"]
    assert errors(lint(HEAD + b"JobSubmitPlugins=lau\n", plugins=None)) == [], "an unknown directory proves nothing"


def test_jobcomp_slurmdbd_is_refused_and_what_records_instead_is_said() -> None:
    """S44: no release ships it. 20.11 and 22.05 run on without it, so there an old line only warns."""
    line = b"JobCompType=jobcomp/slurmdbd\n"
    asked = lint(HEAD + line, asked=("JobCompType",))
    assert errors(asked) == ["slurm_conf_settings.JobCompType: jobcomp/slurmdbd: there is no such plugin on this host"]
    assert "accounting_storage/slurmdbd records every job's end" in asked[0]["remedy"]
    assert errors(lint(HEAD + line, (22, 5))) == [] and len(warnings(lint(HEAD + line, (22, 5)))) == 1
    assert len(errors(lint(HEAD + line, (23, 2)))) == 1


def test_job_completion_recorded_nowhere_warns() -> None:
    bare = b"ClusterName=hpc\nSlurmctldHost=c1\n"
    assert [one["id"] for one in lint(bare)] == ["conf_accounting"]
    assert lint(bare + b"JobCompType=jobcomp/filetxt\n") == []
    assert errors(lint(bare + b"JobCompType=jobcomp/filetxt\nJobCompLoc=/a/b\n", absent_dirs=["/a"])) == [
        "there is no directory /a for its file; slurmctld would not start"
    ]


NODES = b"SelectType=select/cons_tres\nNodeName=DEFAULT RealMemory=4000\nNodeName=a,b CPUs=2\nNodeName=small RealMemory=500\n"


def test_default_memory_must_fit_the_nodes() -> None:
    """S45: RealMemory is 1 MB where it is not set, and then every job is refused."""
    assert lint(HEAD + NODES + b"DefMemPerCPU=100\n") == []
    found = lint(HEAD + NODES + b"DefMemPerCPU=1000\n")
    assert errors(found) == [] and "more than RealMemory of small" in warnings(found)[0]
    found = lint(HEAD + b"SelectType=select/cons_tres\nNodeName=a CPUs=2\nDefMemPerCPU=1024\n", asked=("DefMemPerCPU",))
    assert errors(found) == [
        (
            "slurm_conf_settings.DefMemPerCPU: 1024 is more than RealMemory of every node (1 where it is not set): "
            "no job that leaves its memory open can run there"
        )
    ]


@pytest.mark.parametrize(
    ("release", "lines", "counts"),
    [
        ((22, 5), b"", False),
        ((23, 11), b"", True),
        ((22, 5), b"SelectType=select/cons_tres\n", True),
        ((20, 11), b"SelectType=select/cons_res\n", False),
        ((22, 5), b"SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n", False),
        ((22, 5), b"SelectTypeParameters=CR_Memory\n", True),
    ],
)
def test_default_memory_needs_memory_as_a_resource(release: Release, lines: bytes, counts: bool) -> None:
    found = lint(HEAD + lines + b"DefMemPerCPU=100\n", release, plugins=None)
    assert errors(found) == [] and (warnings(found) == []) is counts


def test_default_memory_beside_its_rival_is_refused_when_asked_for() -> None:
    line = HEAD + b"DefMemPerNode=100\nDefMemPerCPU=100\n"
    assert errors(lint(line, asked=("DefMemPerCPU",))) == [
        "slurm_conf_settings.DefMemPerCPU: DefMemPerCPU is ignored because DefMemPerNode is set"
    ]
    assert (errors(lint(line)), len(warnings(lint(line)))) == ([], 1)


def test_case_11_partitions_that_override_are_named() -> None:
    base = HEAD + b"SelectType=select/cons_tres\nDefMemPerCPU=2000\n"
    found = lint(
        base + b"PartitionName=DEFAULT DefMemPerCPU=256\nPartitionName=gpu Nodes=g1 DefMemPerCPU=8000\nPartitionName=cpu Nodes=c1\n"
    )
    assert [(one["severity"], one["cause"]) for one in found] == [
        ("info", "every partition has a default for memory of its own, which counts instead")
    ]
    found = lint(base + b"PartitionName=gpu Nodes=g1 DefMemPerCPU=8000\nPartitionName=cpu Nodes=c1\n")
    assert [one["cause"] for one in found] == ["partition gpu has a default for memory of its own, which counts instead"]
    assert lint(base + b"PartitionName=cpu Nodes=c1\n") == []


def test_cgroup_accounting_without_cgroups_warns() -> None:
    """S43: every launch fails without them."""
    found = lint(HEAD + b"JobAcctGatherType=jobacct_gather/cgroup\nProctrackType=proctrack/linuxproc\n", plugins=None)
    assert len(warnings(found)) == 1 and "proctrack/linuxproc" in warnings(found)[0]


@pytest.mark.parametrize(
    ("release", "lines", "said"),
    [
        # keys that exclude one another
        ((22, 5), b"MaxMemPerCPU=9\nMaxMemPerNode=9\n", "MaxMemPerCPU is ignored because MaxMemPerNode is set"),
        ((22, 5), b"ControlMachine=c0\n", "ControlMachine is ignored because SlurmctldHost is set"),
        ((22, 5), b"BackupController=c2\n", "BackupController is ignored because SlurmctldHost is set"),
        ((22, 5), b"PartitionName=p AllowQos=a DenyQos=b\n", "DenyQos is ignored because AllowQos is set on the same line"),
        # times
        ((22, 5), b"MessageTimeout=101\nUnkillableStepTimeout=600\n", "MessageTimeout 101: whoever asks a dead host waits as long"),
        ((22, 5), b"SlurmdTimeout=0\n", "with SlurmdTimeout 0 a node that stops answering is never set DOWN, and its jobs hang"),
        (
            (22, 5),
            b"SlurmdTimeout=10\n",
            "SlurmdTimeout 10 is not more than MessageTimeout 10: one slow answer sets a node DOWN and ends its jobs",
        ),
        ((22, 5), b"MinJobAge=0\n", "MinJobAge is at least 2; Slurm takes 2 instead"),
        (
            (26, 5),
            b"HealthCheckProgram=/hc\nHealthCheckInterval=60\n",
            "the program may run for 60 s (HealthCheckTimeout), which is not less than the interval of 60 s",
        ),
        # what JobAcctGather needs
        (
            (22, 5),
            b"JobAcctGatherType=jobacct_gather/cgroup\nJobAcctGatherParams=NoShared\n",
            "UsePSS and NoShared count for jobacct_gather/linux only",
        ),
        (
            (22, 5),
            b"TaskPlugin=task/affinity,task/cgroup\nJobAcctGatherParams=OverMemoryKill\n",
            "slurmd does not start with OverMemoryKill where task/cgroup limits memory (ConstrainRAMSpace in cgroup.conf)",
        ),
    ],
)
def test_settings_that_do_not_go_together_warn(release: Release, lines: bytes, said: str) -> None:
    found = lint(HEAD + lines, release)
    assert (errors(found), warnings(found)) == ([], [said])


def test_settings_that_no_daemon_starts_with() -> None:
    found = lint(HEAD + b"JobAcctGatherType=jobacct_gather/linux\nJobAcctGatherParams=UsePSS,NoShared\n")
    assert errors(found) == ["UsePSS and NoShared exclude each other; no daemon starts with both"]


@pytest.mark.parametrize(
    ("release", "lines", "warns"),
    [
        ((22, 5), b"UnkillableStepTimeout=50\n", False),
        ((22, 5), b"UnkillableStepTimeout=49\n", True),
        ((26, 5), b"UnkillableStepTimeout=49\n", True),
        ((22, 5), b"MessageTimeout=60\n", True),
        ((23, 11), b"MessageTimeout=60\n", True),
        ((24, 5), b"MessageTimeout=60\n", False),  # there the default is five times MessageTimeout
        ((24, 5), b"MessageTimeout=60\nUnkillableStepTimeout=60\n", True),
    ],
)
def test_an_unkillable_step_needs_five_times_the_message_timeout(release: Release, lines: bytes, warns: bool) -> None:
    said = warnings(lint(HEAD + lines, release))
    assert [one.split(" ")[0] for one in said] == ["UnkillableStepTimeout"] * warns
    assert all("Kill task failed" in one for one in said)


def test_case_45_a_program_for_the_start_of_slurmd_needs_no_interval() -> None:
    lines = HEAD + b"HealthCheckProgram=/hc\nHealthCheckNodeState=START_ONLY\n"
    assert lint(lines, (25, 11)) == []
    assert len(errors(lint(lines, (25, 5)))) == 1, "there Slurm takes the word for ANY"


@pytest.mark.parametrize(
    "line",
    [
        b"JobCompPass hunter2\n",
        b"JobCompPass: hunter2\n",
        b'JobCompPass="hunter2\nKilwait=3\n',
        b'JobCompPass="a hunter2\n',
        b'JobCompPass "a\\\n hunter2\n',
        b"JobCompPass=hunter2 hunter2\n",
        b"NodeName=a CPUs=2 and JobCompPass=hunter2\n",
        b"NodeName=a StoragePass=hunter2\n",
        b"AuthInfo=jwt=hunter2\nAuthInfo=hunter2\n",
        b"KillWait=3 AccountingStoragePass=hunter2\n",
    ],
)
def test_case_07_no_finding_holds_a_secret(line: bytes) -> None:
    found = lint(HEAD + line)
    assert found and "hunter2" not in str(found)
    said = slurm_conf_lint.complaints(f'scontrol: error: Parse error in file x line 4: "{line.decode()}"')
    assert said and "hunter2" not in str(said)


GOOD_STATE = {"is_dir": True, "mode": 0o755, "free_bytes": 1 << 30, "free_inodes": 1000, "has_state": True}


@pytest.mark.parametrize(
    ("place", "state", "said"),
    [
        (b"/tmp", GOOD_STATE, "is emptied at a reboot or by tmp cleaners"),
        (b"/tmp/slurm", GOOD_STATE, "is emptied at a reboot or by tmp cleaners"),
        (b"/srv/st", {"is_dir": False}, "is no directory here"),
        (b"/srv/st", {**GOOD_STATE, "mode": 0o777}, "may be written by anybody"),
        (b"/srv/st", {**GOOD_STATE, "free_bytes": 4096}, "is full"),
        (b"/srv/st", {**GOOD_STATE, "free_inodes": 0}, "is full"),
        (b"/srv/st", {**GOOD_STATE, "has_state": False}, "holds no state of slurmctld"),
    ],
)
def test_case_55_the_state_must_survive_a_restart(place: bytes, state: dict[str, t.Any], said: str) -> None:
    found = lint(HEAD + b"StateSaveLocation=" + place + b"\n", state_dir=state)
    assert len(found) == 1 and said in errors(found)[0] and found[0]["line"] == 4


def test_case_55_a_good_state_directory() -> None:
    assert lint(HEAD + b"StateSaveLocation=/srv/st\n", state_dir=GOOD_STATE) == []
    assert lint(HEAD + b"StateSaveLocation=/srv/st\n", state_dir=None) == [], "slurmctld runs elsewhere"
    assert "StateSaveLocation /var/spool is no directory" in errors(lint(HEAD, state_dir={"is_dir": False}))[0]


def test_a_file_that_anybody_may_change_warns() -> None:
    assert [one["id"] for one in lint(HEAD, modes={MAIN: 0o666})] == ["conf_mode"]
    assert lint(HEAD, modes={MAIN: 0o664}) == []


# --- plan and proof -----------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["AuthType", "ClusterName", "SelectType", "StateSaveLocation"])
def test_a_change_that_is_no_work_for_a_tool(key: str) -> None:
    conf = slurm_conf.parse(MAIN, {MAIN: HEAD}.get, (22, 5))
    _candidate, _edits, found = slurm_conf_lint.try_plan(conf, [(key, "other/thing")], "c1")
    assert [one["id"] for one in found] == ["conf_refused_change"]
    assert f"slurm_conf_settings.{key}" in found[0]["cause"]


def test_complaints_are_found_without_the_programs_name() -> None:
    output = (
        "a\n"
        + 2 * "scontrol: error: Bad EnforcePartLimits: x\n"
        + "scontrol: fatal: Unable to process configuration file\ndebug: error code\n"
    )
    assert slurm_conf_lint.complaints(output) == ["error: Bad EnforcePartLimits: x", "fatal: Unable to process configuration file"]


@pytest.mark.parametrize(
    ("rc", "output", "timed_out", "before", "severities"),
    [
        (0, "a\n", False, [], []),
        (1, "scontrol: fatal: no\n", False, [], ["error"]),
        (0, "scontrol: error: Bad x\n", False, [], ["error"]),
        (0, "scontrol: error: Bad x\n", False, ["error: Bad x"], ["warning"]),
        (1, "scontrol: error: Bad x\n", False, ["error: Bad x"], ["error"]),
        (1, "", False, [], ["error"]),
        (124, "", True, [], ["error"]),
    ],
)
def test_s20_any_new_complaint_of_the_parse_test_refuses(
    rc: int, output: str, timed_out: bool, before: list[str], severities: list[str]
) -> None:
    assert [one["severity"] for one in slurm_conf_lint.proof(rc, output, timed_out, before, "c1", MAIN)] == severities
