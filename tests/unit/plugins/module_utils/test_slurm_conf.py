"""slurm.conf read as Slurm reads it, and edited so that nothing else changes.

Case numbers are those of the collection of faults found in the wild.
"""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import slurm_conf, slurm_conf_edit, slurm_conf_keys, slurm_conf_lint

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "slurm_conf"
LEGACY = pathlib.Path(__file__).resolve().parents[4] / "lab/legacy/controller/usr/local/slurm/etc"
# Small configurations (bytes as latin-1), and what real daemons of four releases made of them: null where scontrol
# complained, else what ``scontrol show config`` printed.
SAMPLES: dict[str, dict[str, str]] = json.loads((FIXTURES / "samples.json").read_text())
RECORDED: dict[str, dict[str, dict[str, str] | None]] = json.loads((FIXTURES / "recorded.json").read_text())

HEAD = b"ClusterName=hpc\nSlurmctldHost=c1\n"
MAIN = "/etc/slurm/slurm.conf"
Files = dict[str, bytes]
Wanted = list[tuple[str, str | None]]


def parse(files: Files | bytes, release: tuple[int, int] = (22, 5)) -> slurm_conf.Conf:
    files = {MAIN: files} if isinstance(files, bytes) else files
    return slurm_conf.parse(MAIN, files.get, release)


def contents(conf: slurm_conf.Conf) -> Files:
    return {path: slurm_conf.to_bytes(text) for path, text in conf.files.items()}


def edit(files: Files | bytes, wanted: Wanted, release: tuple[int, int] = (22, 5)) -> tuple[Files, list[slurm_conf_edit.Edit]]:
    candidate, edits = slurm_conf_edit.plan(parse(files, release), wanted)
    again, no_edits = slurm_conf_edit.plan(parse(contents(candidate), release), wanted)
    assert no_edits == [] and contents(again) == contents(candidate), "a second run must have nothing to do"
    return contents(candidate), edits


def edit_main(text: bytes, wanted: Wanted) -> bytes:
    return edit(text, wanted)[0][MAIN]


# --- reading, against real daemons --------------------------------------------------------------


@pytest.mark.parametrize("sample", sorted(SAMPLES))
@pytest.mark.parametrize("release", sorted(RECORDED))
def test_values_and_refusals_are_those_of_real_daemons(sample: str, release: str) -> None:
    recorded = RECORDED[release][sample]
    files = {path: text.encode("latin-1") for path, text in SAMPLES[sample].items()}
    conf = slurm_conf.parse("/slurm.conf", files.get, tuple(int(part) for part in release.split(".")))
    refused = [one for one in slurm_conf_lint.lint(conf, slurm_conf_lint.Host("c1")) if one["severity"] == "error"]
    assert bool(refused) == (recorded is None)
    for key, shown in (recorded or {}).items():
        shown = shown.lower() if slurm_conf_keys.kind(key, conf.release) == "boolean" else shown
        assert as_shown(conf, key) == re.sub(" (sec|min)$", "", shown), key


def as_shown(conf: slurm_conf.Conf, key: str) -> str:
    """A value as scontrol shows it."""
    value, kind = conf.value(key), slurm_conf_keys.kind(key, conf.release)
    if kind in slurm_conf_keys.NUMBERS:
        return str(slurm_conf.number(value, kind))
    if kind == "boolean":
        return "yes" if slurm_conf.boolean(value) else "no"
    if key == "HealthCheckNodeState":
        return ",".join(sorted(value.upper().split(",")))
    return value.lower() if key == "ClusterName" else slurm_conf.readable(value)


# --- reading, by rule ---------------------------------------------------------------------------


def test_case_01_crlf_is_blank() -> None:
    conf = parse(b"ClusterName=x\r\nSlurmctldHost=c1\r\nSlurmdTimeout=300\r\nReturnToService=0\r\n")
    assert (conf.value("slurmdtimeout"), conf.value("ReturnToService")) == ("300", "0")


def test_case_03_last_value_wins_in_any_case_of_letters() -> None:
    conf = parse(HEAD + b"ReturnToService=1\nreturntoservice=0\nRETURNTOSERVICE=2\n")
    assert conf.value("ReturnToService") == "2"
    assert conf.effective()["ReturnToService"] == "2"
    assert len(conf.occurrences("ReturnToService")) == 3


def test_case_03_repeatable_keys_are_no_settings() -> None:
    conf = parse(HEAD + b"SlurmctldHost=c2\nNodeName=a\nNodeName=b\nPartitionName=p Nodes=a\nNodeSet=s Feature=f\nDownNodes=b\n")
    assert conf.effective() == {"ClusterName": "hpc"}


def test_case_05_comments_set_nothing() -> None:
    conf = parse(
        HEAD + b"#HealthCheckInterval=0\n#HealthCheckProgram=\n# HealthCheckProgram=/usr/sbin/nhc was tried in spring\n"
        b"#SlurmdTimeout was 300 before the move\n"
    )
    assert set(conf.effective()) == {"ClusterName"}


def test_case_07_comment_glued_to_a_value() -> None:
    conf = parse(HEAD + "SlurmdTimeout=300#秒\nJobCompType=jobcomp/mysql     #作业完成\n".encode())
    assert (conf.value("SlurmdTimeout"), conf.value("JobCompType")) == ("300", "jobcomp/mysql")


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        (rb"MailDomain=a\#b\\c", "MailDomain", r"a#b\c"),
        (rb'InteractiveStepOptions="--pty $SHELL" # why', "InteractiveStepOptions", "--pty $SHELL"),
        (b"KillWait = 3\\\n0", "KillWait", "30"),
        (b"KillWait=3 \\ # a comment is cut off before the backslash is looked at\n  ", "KillWait", "3"),
        (b"KillWait=3 # no continuation \\\nMinJobAge=300", "KillWait", "3"),
        (b"\tKillWait\t=\t45\t", "KillWait", "45"),
        (b"KillWait+=45", "KillWait", "45"),
        (b'MailDomain=a"b', "MailDomain", 'a"b'),
    ],
)
def test_one_line(line: bytes, key: str, value: str) -> None:
    assert parse(HEAD + line + b"\n").value(key) == value


def test_case_09_an_include_counts_where_it_stands() -> None:
    files = {
        MAIN: HEAD + b"SlurmdTimeout=300\ninClude site.conf\nKillWait=40\n",
        "/etc/slurm/site.conf": b"SlurmdTimeout=555\nKillWait=50\n",
    }
    conf = parse(files)
    assert (conf.value("SlurmdTimeout"), conf.value("KillWait")) == ("555", "40")
    assert conf.paths == [MAIN, "/etc/slurm/site.conf"]


def test_case_09_cluster_name_in_an_include() -> None:
    conf = parse({MAIN: b"ClusterName=HPC\nSlurmctldHost=c1\nInclude /srv/%c.conf\n", "/srv/hpc.conf": b"KillWait=7\n"})
    assert conf.value("KillWait") == "7"


def test_relative_includes_move_with_the_release() -> None:
    """To 22.05 beside the including file, from 23.02 on beside slurm.conf."""
    files = {
        MAIN: HEAD + b"Include d/a.conf\n",
        "/etc/slurm/d/a.conf": b"Include b.conf\n",
        "/etc/slurm/d/b.conf": b"KillWait=1\n",
        "/etc/slurm/b.conf": b"KillWait=2\n",
    }
    assert parse(files, (22, 5)).value("KillWait") == "1"
    assert parse(files, (23, 2)).value("KillWait") == "2"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"Include nope.conf\n", "is missing or no regular file"),
        (b"Include slurm.conf\n", "includes itself"),
        (b"Include *.conf\n", "is a pattern, which Slurm does not expand"),
        (b"Include\t\n", "names no file"),
    ],
)
def test_includes_that_cannot_be_read(line: bytes, problem: str) -> None:
    assert [one.problem for one in parse(HEAD + line).lines if one.kind == "include"] == [problem]


def test_cluster_name_has_to_come_before_its_use() -> None:
    conf = parse(b"Include %c.conf\n" + HEAD)
    assert conf.lines[0].problem == "uses %c before ClusterName is set"


@pytest.mark.parametrize("text", [bytes(range(256)), b"\xff\xfe" * 50, b"\\" * 9, b"#" * 3 + b"\\\n\\", b"\0\n=\n==\n"])
def test_any_bytes_can_be_read_and_come_back(text: bytes) -> None:
    assert contents(parse(text))[MAIN] == text
    assert "".join(line.raw for line in parse(text).lines).encode("latin-1") == text


# --- editing ------------------------------------------------------------------------------------


def test_case_01_one_line_changes_and_keeps_its_crlf() -> None:
    text = b"ClusterName=x\r\nSlurmctldHost=c1\r\nSlurmdTimeout=300\r\nReturnToService=0\r\n"
    assert edit_main(text, [("SlurmdTimeout", "600")]) == text.replace(b"300", b"600")


def test_case_01_a_new_line_is_crlf_too() -> None:
    text = b"ClusterName=x\r\nSlurmctldHost=c1\r\nSlurmdTimeout=300\r\n"
    assert edit_main(text, [("HealthCheckInterval", "300")]) == text + b"HealthCheckInterval=300\r\n"


def test_case_03_duplicates_become_comments_and_are_named() -> None:
    text = HEAD + b"ReturnToService=1\n" + b"# line\n" * 3 + b"returntoservice=0\nRETURNTOSERVICE=2  # why\n"
    files, edits = edit(text, [("ReturnToService", "1")])
    assert files[MAIN] == HEAD + b"#ReturnToService=1\n" + b"# line\n" * 3 + b"#returntoservice=0\nRETURNTOSERVICE=1  # why\n"
    assert edits[0].place() == "/etc/slurm/slurm.conf line 8; earlier lines turned into comments: 3, 7"


def test_case_03_every_physical_line_of_a_duplicate_becomes_a_comment() -> None:
    """A comment does not continue: the second half would come alive."""
    text = HEAD + b"KillWait=\\\n30\nKillWait=40\n"
    assert edit_main(text, [("KillWait", "50")]) == HEAD + b"#KillWait=\\\n#30\nKillWait=50\n"


def test_case_05_three_runs_leave_one_line_each() -> None:
    text = (
        HEAD + b"#HealthCheckInterval=0\n#HealthCheckProgram=\n# HealthCheckProgram=/usr/sbin/nhc was tried in spring\n"
        b"#SlurmdTimeout was 300 before the move\n"
    )
    wanted: Wanted = [("HealthCheckInterval", "300"), ("HealthCheckProgram", "/usr/local/bin/hc.sh"), ("SlurmdTimeout", "300")]
    assert edit_main(text, wanted) == (
        HEAD + b"#HealthCheckInterval=0\nHealthCheckInterval=300\nSlurmdTimeout=300\n"
        b"#HealthCheckProgram=\nHealthCheckProgram=/usr/local/bin/hc.sh\n"
        b"# HealthCheckProgram=/usr/sbin/nhc was tried in spring\n#SlurmdTimeout was 300 before the move\n"
    )


def test_case_05_removing_leaves_no_empty_value() -> None:
    before = HEAD + b"#HealthCheckProgram=\nKillWait=30\n"
    with_key = edit_main(before, [("HealthCheckProgram", "/x")])
    assert edit_main(with_key, [("HealthCheckProgram", None)]) == before


def test_case_07_comment_bytes_survive() -> None:
    text = HEAD + "SlurmdTimeout=300#秒\nJobCompType=jobcomp/mysql     #作业完成\nJobCompPass=secret1   #密码\n".encode()
    assert edit_main(text, [("SlurmdTimeout", "600")]) == text.replace(b"300#", b"600#")


def test_case_09_the_line_that_counts_is_changed_in_the_included_file() -> None:
    files = {MAIN: HEAD + b"SlurmdTimeout=300\ninClude site.conf\n", "/etc/slurm/site.conf": b"SlurmdTimeout=555\n"}
    after, edits = edit(files, [("SlurmdTimeout", "600")])
    assert after == {MAIN: files[MAIN], "/etc/slurm/site.conf": b"SlurmdTimeout=600\n"}
    assert edits[0].place() == "/etc/slurm/site.conf line 1"


def test_case_09_a_line_after_the_include_is_changed_in_the_main_file() -> None:
    files = {MAIN: HEAD + b"Include site.conf\nSlurmdTimeout=300\n", "/etc/slurm/site.conf": b"SlurmdTimeout=555\n"}
    after, _edits = edit(files, [("SlurmdTimeout", "600")])
    assert after == {MAIN: HEAD + b"Include site.conf\nSlurmdTimeout=600\n", "/etc/slurm/site.conf": b"SlurmdTimeout=555\n"}


def test_case_09_removing_reaches_every_file() -> None:
    files = {MAIN: HEAD + b"KillWait=30\nInclude site.conf\n", "/etc/slurm/site.conf": b"# ours\nKillWait=40\n"}
    after, _edits = edit(files, [("KillWait", None)])
    assert after == {MAIN: HEAD + b"Include site.conf\n", "/etc/slurm/site.conf": b"# ours\n"}


def test_case_09_a_file_included_twice_is_changed_once() -> None:
    files = {MAIN: HEAD + b"Include a\nKillWait=1\nInclude a\n", "/etc/slurm/a": b"KillWait=2\n"}
    after, _edits = edit(files, [("KillWait", "3")])
    assert after["/etc/slurm/a"] == b"KillWait=3\n"


def test_case_11_partition_lines_are_not_touched() -> None:
    partitions = (
        b'PartitionName=DEFAULT DefMemPerCPU=256 TRESBillingWeights="CPU=1.0,Mem=0.25G"\nPartitionName=gpu Nodes=g1 DefMemPerCPU=8000\n'
    )
    text = HEAD + b"SelectType=select/cons_tres\n" + partitions
    assert parse(text).value("DefMemPerCPU") is None
    assert edit_main(text, [("DefMemPerCPU", "2000")]) == HEAD + b"SelectType=select/cons_tres\nDefMemPerCPU=2000\n" + partitions


def test_case_103_the_standard_on_the_legacy_file() -> None:
    """Every key finds its place beside its relatives; all else stays, and two more runs have nothing to do."""
    files = {MAIN: (LEGACY / "slurm.conf").read_bytes(), "/etc/slurm/site.conf": (LEGACY / "site.conf").read_bytes()}
    wanted: Wanted = [
        ("HealthCheckInterval", "300"),
        ("HealthCheckProgram", "/usr/local/bin/slurm_health_check.sh"),
        ("HealthCheckNodeState", "ANY"),
        ("DefMemPerCPU", "1024"),
        ("JobAcctGatherType", "jobacct_gather/cgroup"),
        ("ReturnToService", "2"),
        ("SlurmdTimeout", "300"),
    ]
    after, edits = edit(files, wanted)
    assert after["/etc/slurm/site.conf"] == files["/etc/slurm/site.conf"]
    assert after[MAIN] == (
        files[MAIN]
        .replace(b"\nReturnToService=1\n", b"\nReturnToService=2\n")
        .replace(b"\nDefMemPerCPU=100 ", b"\nDefMemPerCPU=1024 ")
        .replace(b"\nJobAcctGatherType=jobacct_gather/none\n", b"\nJobAcctGatherType=jobacct_gather/cgroup\n")
        .replace(
            b"\nSlurmdTimeout=300\n",
            b"\nSlurmdTimeout=300\nHealthCheckInterval=300\nHealthCheckProgram=/usr/local/bin/slurm_health_check.sh\nHealthCheckNodeState=ANY\n",
        )
    )
    assert [one.key for one in edits] == [key for key, _value in wanted if key != "SlurmdTimeout"]


@pytest.mark.parametrize(
    ("text", "key", "after"),
    [
        (
            HEAD + b"KillWait=30\n\n# nodes\nNodeName=a\nInclude x\n",
            "MailProg",
            HEAD + b"KillWait=30\nMailProg=v\n\n# nodes\nNodeName=a\nInclude x\n",
        ),
        (b"Include x\n# nodes\n# of room 4\nNodeName=a\n", "MailProg", b"Include x\nMailProg=v\n# nodes\n# of room 4\nNodeName=a\n"),
        (b"# nodes\n# of room 4\nNodeName=a\n", "MailProg", b"MailProg=v\n# nodes\n# of room 4\nNodeName=a\n"),
        (HEAD + b"JobCompType=jobcomp/filetxt", "JobCompLoc", HEAD + b"JobCompType=jobcomp/filetxt\nJobCompLoc=v\n"),
        (HEAD + b"MailDomain=x\nNodeName=a\n", "MailProg", HEAD + b"MailDomain=x\nMailProg=v\nNodeName=a\n"),
        (b"", "MailProg", b"MailProg=v\n"),
    ],
)
def test_case_103_where_a_new_key_goes(text: bytes, key: str, after: bytes) -> None:
    assert edit({MAIN: text, "/etc/slurm/x": HEAD}, [(key, "v")])[0][MAIN] == after


@pytest.mark.parametrize(
    ("line", "value", "after"),
    [
        (b'MailDomain="x"  # c', "y", b'MailDomain="y"  # c'),
        (b"MailDomain=x#c", "y z", b'MailDomain="y z"#c'),
        (b'MailDomain="a b"', 'p"q', b'MailDomain=p"q'),
        (rb"MailDomain=\#x", "a#b\\c", rb"MailDomain=a\#b\\c"),
        (b"MailDomain=a\\\nb#c", "d", b"MailDomain=d#c"),
        (b"  maildomain = x", "y", b"  maildomain = y"),
    ],
)
def test_only_the_value_of_a_line_is_replaced(line: bytes, value: str, after: bytes) -> None:
    assert edit_main(HEAD + line + b"\n", [("MailDomain", value)]) == HEAD + after + b"\n"


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        (b"SlurmdTimeout=0x12c", "SlurmdTimeout", "300"),
        (b"InactiveLimit=unlimited", "InactiveLimit", "INFINITE"),
        (b"DefMemPerCPU=2K", "DefMemPerCPU", "2048"),
        (b"UsePAM=1", "UsePAM", "yes"),
        (b"HealthCheckNodeState=any", "HealthCheckNodeState", "ANY"),
    ],
)
def test_the_same_value_in_another_spelling_stays(line: bytes, key: str, value: str) -> None:
    assert edit(HEAD + line + b"\n", [(key, value)]) == ({MAIN: HEAD + line + b"\n"}, [])


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        slurm_conf_edit.plan(parse(HEAD), [("MailDomain", 'a "b')])


def test_case_103_a_place_that_would_join_lines_is_refused() -> None:
    """The last line ends in a backslash: whatever is put below it would become a part of it."""
    with pytest.raises(ValueError, match="MailProg would be None"):
        slurm_conf_edit.plan(parse(b"KillWait=30 \\"), [("MailProg", "v")])


# --- showing ------------------------------------------------------------------------------------


def test_case_07_secrets_are_blotted_out_and_a_change_of_one_shows() -> None:
    text = (
        HEAD
        + (
            'JobCompPass=secret1   #密码\n#JobCompPass=secret2\n# AccountingStoragePass = "secret3 x" was the old one\n'
            "AuthInfo=socket=/run/secret4\nJobCompPass=sec\\\nret5\nJobCompLoc=http://me:secret6@h:9200/x\nKillWait=30 # 好\n"
        ).encode()
    )
    conf = parse(text)
    candidate, edits = slurm_conf_edit.plan(conf, [("JobCompPass", "secret7#x")])
    before, after = slurm_conf.masked_file(conf, MAIN), slurm_conf.masked_file(candidate, MAIN, edits)
    for shown in (before, after, edits[0].place(), *[line.shown() for line in conf.lines]):
        assert "secret" not in shown and "ret5" not in shown
    assert "KillWait=30 # 好" in before
    assert "\nJobCompPass=******** (new)\n" in after and "(new)" not in before
    assert "http://me:********@h:9200/x" in before
    assert slurm_conf.masked_value("jobcomppass", "x") == "********"
    assert slurm_conf.masked_value("KillWait", None) is None


def test_a_superseded_secret_is_not_kept_as_a_comment() -> None:
    after = edit_main(HEAD + b"JobCompPass=old1\nJobCompPass=old2\n", [("JobCompPass", "new")])
    assert after == HEAD + b"JobCompPass=new\n"


def test_transplanted_files_say_the_same() -> None:
    """The copy for the parse test needs no directory but its own, and keeps the numbers of lines."""
    files = {
        MAIN: HEAD + b"Include \\\nsite.conf # ours\nKillWait=1\nInclude /srv/%c\n",
        "/etc/slurm/site.conf": b"MinJobAge=9\n",
        "/srv/hpc": b"KillWait=2\n",
    }
    conf = parse(files)
    moved = slurm_conf.transplanted(conf, "/tmp/x")
    assert set(moved) == set(slurm_conf.transplanted_names(conf).values())
    copy = slurm_conf.parse("/tmp/x/slurm.conf", {f"/tmp/x/{name}": slurm_conf.to_bytes(text) for name, text in moved.items()}.get, (22, 5))
    assert copy.effective() == conf.effective()
    assert [line.number for line in copy.occurrences("KillWait")] == [line.number for line in conf.occurrences("KillWait")]


def test_text_from_people_goes_in_and_out_as_utf8() -> None:
    assert slurm_conf.readable(slurm_conf.stored("作业")) == "作业"
    assert "MailDomain=作业\n".encode() in edit_main(HEAD, [("MailDomain", slurm_conf.stored("作业"))])
