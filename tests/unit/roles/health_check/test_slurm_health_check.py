"""The health check as slurmd runs it: the real script with an empty environment, over programs that play the host."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import time
import typing as t

import jinja2
import pytest
import yaml

ROLE = pathlib.Path(__file__).resolve().parents[4] / "roles/health_check"
SCRIPT = ROLE / "files/slurm_health_check.sh"
NODE = "n1"
# The promise is below 18 s; the rest is for a machine that has other things to do.
LONGEST = 18.0

# A node that remembers. Every request is kept, one a line.
SCONTROL = r"""#!/bin/bash
here=${0%/bin/*}
printf '%s|' "$@" >>"$here/asked"; echo >>"$here/asked"
case $1 in
    -o)
        [[ ! -e $here/show-hangs ]] || exec sleep 100
        [[ ! -e $here/show-fails ]] || { echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1; }
        [[ ! -e $here/show-empty ]] || exit 0
        printf 'NodeName=%s Arch=x86_64 RealMemory=4000 State=%s ThreadsPerCore=1 BootTime=2026-01-01T00:00:00' "$4" "$(<"$here/state")"
        [[ ! -s $here/reason ]] || printf '   Reason=%s' "$(<"$here/reason")"
        echo ' '
        ;;
    update)
        [[ ! -e $here/update-hangs ]] || exec sleep 100
        [[ ! -e $here/update-fails ]] || exit 1
        [[ ! -e $here/update-hangs-and-applies && ! -e $here/update-fails-and-applies ]] || applies=1
        state=$(<"$here/state")
        case $3 in
            state=drain)
                [[ +$state+ == *+DRAIN+* ]] || echo "$state+DRAIN" >"$here/state"
                echo "${4#reason=} [root@2026-12-01T00:00:00]" >"$here/reason"
                ;;
            state=undrain) echo "${state/+DRAIN/}" >"$here/state"; : >"$here/reason" ;;
        esac
        [[ ! -e $here/update-hangs-and-applies ]] || exec sleep 100
        [[ ! -e $here/update-fails-and-applies ]] || exit 1
        ;;
esac
"""
OTHERS = {
    "systemctl": "echo MainPID=4711",
    "logger": 'here=${0%/bin/*}; if [[ $1 == --journald=* ]]; then cat "${1#--journald=}"; else echo "$@"; fi >>"$here/journal"',
    "munge": "echo MUNGE:x",
    "unmunge": "read -r credential && [[ $credential == MUNGE:* ]]",
}


class Host:
    """A host of files: state and reason of the node, settings, heartbeat, and what was asked and logged."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.run_dir = path / "run"
        self.config = path / "health_check.conf"
        (path / "bin").mkdir(parents=True)
        self.run_dir.mkdir()
        self.program("scontrol", SCONTROL)
        for name, text in OTHERS.items():
            self.program(name, f"#!/bin/bash\n{text}\n")
        self.node("IDLE")
        self.settings()

    def program(self, name: str, text: str) -> None:
        file = self.path / "bin" / name
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)

    def node(self, state: str, reason: str = "") -> None:
        (self.path / "state").write_text(state + "\n", encoding="utf-8")
        (self.path / "reason").write_text(reason, encoding="utf-8")

    def settings(self, **changes: str) -> None:
        programs = shlex.quote(str(self.path / "bin"))
        settings = {"PATH": f"{programs}:$PATH", "HC_SLURM_BIN": programs, "HC_CHECKS": "munge", **changes}
        self.config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        self.config.chmod(0o644)

    def switch(self, name: str, on: bool = True) -> None:
        if on:
            (self.path / name).touch()
        else:
            (self.path / name).unlink()

    def force(self, text: str | None) -> None:
        flag = self.run_dir / "health_check.force"
        if text is None:
            flag.unlink(missing_ok=True)
        else:
            flag.write_text(text, encoding="utf-8")

    def begin(self, *arguments: str, name: str = NODE) -> subprocess.Popen[str]:
        """As slurmd does: nothing in the environment, nothing on standard input."""
        command = ["env", "-i", f"SLURMD_NODENAME={name}", "/bin/bash", str(SCRIPT)]
        command += ["--config", str(self.config), "--run-dir", str(self.run_dir), *arguments]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")

    def run(self, *arguments: str, name: str = NODE) -> subprocess.CompletedProcess[str]:
        process = self.begin(*arguments, name=name)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def asked(self) -> list[list[str]]:
        file = self.path / "asked"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [line.rstrip("|").split("|") for line in lines]

    def requests(self) -> list[list[str]]:
        return [words[1:] for words in self.asked() if words[0] == "update"]

    def journal(self) -> str:
        file = self.path / "journal"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def heartbeat(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in (self.run_dir / "health_check.last").read_text(encoding="utf-8").splitlines())

    def beat(self, **changed: str) -> None:
        """Change what the last run left."""
        text = "".join(f"{key}={value}\n" for key, value in {**self.heartbeat(), **changed}.items())
        (self.run_dir / "health_check.last").write_text(text, encoding="utf-8")

    def reason(self) -> str:
        return (self.path / "reason").read_text(encoding="utf-8").strip()

    def state(self) -> str:
        return (self.path / "state").read_text(encoding="utf-8").strip()


@pytest.fixture
def host(tmp_path: pathlib.Path) -> Host:
    return Host(tmp_path)


# --- the table: what is asked of the controller for each state of the node

BASES = ["IDLE", "ALLOCATED", "MIXED+COMPLETING", "DOWN", "UNKNOWN", "IDLE*", "DOWN*", "IDLE+CLOUD+PLANNED"]
# Somebody else (or Slurm on somebody's word) is at it.
THEIRS = [
    "IDLE+FAIL",
    "FAIL",
    "FAILING",
    "IDLE+MAINTENANCE",
    "MAINT",
    "IDLE+REBOOT_REQUESTED",
    "DOWN+REBOOT_ISSUED",
    "IDLE+POWER_DOWN",
    "IDLE+CLOUD+POWERED_DOWN",
    "IDLE+POWERING_UP",
    "MIXED+POWER_DRAIN",
    "IDLE+POWERING_DOWN",
    "IDLE~",
    "IDLE#",
    "IDLE%",
    "IDLE$",
    "IDLE@",
]
AT = " [root@2026-12-01T01:02:03]"
REASONS = {
    "none": "",
    "same": "HC: disk forced by the test flag" + AT,
    "other": "HC: munge no credential" + AT,
    "rollout": "HC: rollout in progress" + AT,
    "foreign": "dimm swap" + AT,
    "foreign with the tag inside": "see HC: disk" + AT,
    "slurm": "Not responding [slurm@2026-12-01T01:02:03]",
    "root is SlurmUser": "Not responding" + AT,
}
DRAIN = ["nodename=n1", "state=drain", "reason=HC: disk forced by the test flag"]
UNDRAIN = ["nodename=n1", "state=undrain"]
# (drained, reason) -> what is asked when a check fails, and when all is well
TABLE: dict[tuple[bool, str], tuple[list[str] | None, list[str] | None]] = {
    (False, "none"): (DRAIN, None),
    (False, "same"): (DRAIN, None),
    (False, "other"): (DRAIN, None),
    (False, "rollout"): (DRAIN, None),
    (False, "foreign"): (None, None),
    (False, "foreign with the tag inside"): (None, None),
    (False, "slurm"): (DRAIN, None),
    (False, "root is SlurmUser"): (DRAIN, None),
    (True, "none"): (None, None),
    (True, "same"): (None, UNDRAIN),
    (True, "other"): (DRAIN, UNDRAIN),
    (True, "rollout"): (None, None),
    (True, "foreign"): (None, None),
    (True, "foreign with the tag inside"): (None, None),
    (True, "slurm"): (None, None),
    (True, "root is SlurmUser"): (None, None),
}
Case = tuple[str, str, bool, list[str] | None]


def cases() -> t.Iterator[Case]:
    """Every reason for two states, the deciding ones for each base, and every flag of others."""
    for base in BASES:
        for (drained, reason), answers in TABLE.items():
            if base in ("IDLE", "DOWN*") or reason in ("none", "other", "foreign"):
                for bad, expected in zip((True, False), answers, strict=True):
                    yield f"{base}+DRAIN" if drained else base, reason, bad, expected
    for state in THEIRS:
        yield state, "none", True, None
        yield f"{state}+DRAIN", "other", True, None
        yield f"{state}+DRAIN", "other", False, None


def test_the_table_of_states(tmp_path: pathlib.Path) -> None:
    """Cases 31, 39, 62: what is asked of the controller in each base state, flag and reason, by the real script."""

    def play(numbered: tuple[int, Case]) -> str:
        number, (state, reason, bad, expected) = numbered
        host = Host(tmp_path / str(number))
        host.settings(HC_CHECKS="''", HC_UNDRAIN_AFTER="1")
        host.node(state, REASONS[reason])
        if bad:
            host.force("disk")
        done = host.run()
        wanted = ([] if expected is None else [expected], 1 if bad else 0)
        got = (host.requests(), done.returncode)
        return "" if got == wanted else f"{state}, {reason}, {'bad' if bad else 'good'}: {got} instead of {wanted}; {done.stderr}"

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        wrong = [text for text in pool.map(play, enumerate(cases())) if text]
    assert wrong == []


def test_the_table_is_played() -> None:
    """The table test above would pass over an empty list of cases."""
    assert len(list(cases())) > 150
    assert any(expected == UNDRAIN for _state, _reason, _bad, expected in cases())


# --- a drain and its end


def test_case_31_an_administrators_drain_outlives_a_fault(host: Host) -> None:
    host.settings(HC_UNDRAIN_AFTER="1")
    host.node("IDLE+DRAIN", "dimm swap" + AT)
    host.force("disk")
    assert host.run().returncode == 1
    host.force(None)
    assert host.run().returncode == 0
    assert host.run().returncode == 0
    assert host.requests() == []
    assert "dimm swap" in host.journal()


def test_an_administrator_who_takes_our_drain_over_keeps_it(host: Host) -> None:
    host.settings(HC_UNDRAIN_AFTER="1")
    host.force("disk")
    host.run()
    assert host.state() == "IDLE+DRAIN"
    host.node("IDLE+DRAIN", "psu" + AT)
    host.run()
    host.force(None)
    host.run()
    assert host.reason().startswith("psu")
    assert len(host.requests()) == 1


def test_case_37_a_flapping_fault_drains_once(host: Host) -> None:
    """Bad, good, bad, good: two good runs in a row are needed, so the node stays drained with one request."""
    for _ in range(3):
        host.force("disk")
        host.run()
        host.force(None)
        host.run()
    assert host.requests() == [DRAIN]
    host.run()
    assert host.requests() == [DRAIN, UNDRAIN]
    assert host.state() == "IDLE"


def results(host: Host, pattern: str) -> None:
    """Runs with these results, b for bad."""
    for one in pattern:
        host.force("disk" if one == "b" else None)
        host.run()


def test_case_37_a_drain_that_comes_back_over_and_over_takes_longer_to_be_taken_back(host: Host) -> None:
    """Good, good, bad, again and again: in the end one drain that goes on."""
    results(host, "bgg" * 6)
    assert host.requests() == [DRAIN, UNDRAIN, DRAIN, UNDRAIN, DRAIN]
    assert host.heartbeat()["undrain_after"] == "4"
    results(host, "gg")
    assert host.requests()[5:] == [UNDRAIN]
    assert host.state() == "IDLE"


def test_faults_of_different_kinds_one_after_another_are_no_flapping(host: Host) -> None:
    for check in ("disk", "memory", "disk", "memory", "disk", "memory"):
        host.force(check)
        host.run()
        results(host, "gg")
    assert host.requests()[1::2] == [UNDRAIN] * 6
    assert host.heartbeat()["came_back"] == "0"


def test_the_patience_has_an_end_and_is_forgotten_after_a_stable_hour(host: Host) -> None:
    host.settings(HC_UNDRAIN_AFTER="1")
    results(host, "b" + "g")
    host.beat(came_back="15", undrained_at=str(int(time.time()) - 3500))
    results(host, "b")
    assert host.heartbeat()["undrain_after"] == "16"
    results(host, "g" * 15)
    assert host.requests() == [DRAIN, UNDRAIN, DRAIN]
    results(host, "g")
    assert host.requests() == [DRAIN, UNDRAIN, DRAIN, UNDRAIN]
    host.beat(came_back="15", undrained_at=str(int(time.time()) - 3601))
    results(host, "bg")
    assert host.requests()[4:] == [DRAIN, UNDRAIN]


@pytest.mark.parametrize(
    "beat", [{"came_back": "1", "undrained_at": "x"}, {"came_back": "999"}, {"undrained_at": "9999999999"}, {"drained_for": "$(x)"}]
)
def test_a_heartbeat_that_makes_no_sense_changes_nothing(host: Host, beat: dict[str, str]) -> None:
    results(host, "b")
    host.beat(**beat)
    results(host, "gg")
    assert host.requests() == [DRAIN, UNDRAIN]


def test_a_drain_that_somebody_took_back_starts_the_stable_hour_too(host: Host) -> None:
    results(host, "bggb")
    host.node("IDLE")
    results(host, "g")
    assert abs(int(host.heartbeat()["undrained_at"]) - time.time()) < 60
    results(host, "b")
    assert host.heartbeat()["undrain_after"] == "4"


def test_bad_runs_in_a_row_before_a_drain(host: Host) -> None:
    host.settings(HC_DRAIN_AFTER="3")
    host.force("disk")
    host.run()
    host.run()
    assert host.requests() == []
    assert host.heartbeat()["bad_runs"] == "2"
    host.run()
    assert host.requests() == [DRAIN]


def test_undraining_can_be_switched_off(host: Host) -> None:
    host.settings(HC_UNDRAIN_AFTER="0")
    host.node("IDLE+DRAIN", "HC: disk at 90% /" + AT)
    for _ in range(3):
        host.run()
    assert host.requests() == []


def test_a_changing_figure_is_no_new_reason(host: Host) -> None:
    """The reason says what is wrong, the log how much: else each run would be a request and a new time."""
    host.settings(HC_CHECKS="memory", HC_MEMORY_MIN_MB="999999999")
    host.run()
    host.run()
    assert host.requests() == [["nodename=n1", "state=drain", "reason=HC: memory below 999999999MB"]]
    assert re.search(r"memory below 999999999MB \(\d+MB\)", host.journal())


# --- a controller that does not play along


@pytest.mark.parametrize("fault", ["show-fails", "show-empty"])
@pytest.mark.parametrize("bad", [True, False])
def test_case_43_no_answer_is_no_state(host: Host, fault: str, bad: bool) -> None:
    host.node("IDLE+DRAIN", "HC: disk" + AT)
    host.settings(HC_UNDRAIN_AFTER="1")
    host.switch(fault)
    if bad:
        host.force("disk")
    assert host.run().returncode == 1
    assert host.requests() == []
    assert "could not be read" in host.journal()
    assert host.heartbeat()["rc"] == "1"
    host.switch(fault, on=False)
    host.run()
    assert len(host.requests()) == 1


@pytest.mark.parametrize(("fault", "told"), [("update-fails", "drain failed"), ("update-fails-and-applies", "drained")])
def test_a_request_that_failed_is_looked_after(host: Host, fault: str, told: str) -> None:
    host.switch(fault)
    host.force("disk")
    assert host.run().returncode == 1
    assert f"[{told}]" in host.journal()
    assert [words[0] for words in host.asked()] == ["-o", "update", "-o"]


SLOW = {
    "everything hangs": ["show-hangs"],
    "show hangs": ["show-hangs"],
    "update hangs": ["update-hangs"],
    "update hangs, but applies": ["update-hangs-and-applies"],
}
HANG = "#!/bin/bash\nexec sleep 100\n"


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Host, float, int]]:
    """Runs over what hangs, side by side: the host, how long it took, the exit status."""
    begun = {}
    for name, faults in SLOW.items():
        host = Host(tmp_path_factory.mktemp("slow") / "host")
        for fault in faults:
            host.switch(fault)
        host.force("disk")
        if name == "everything hangs":
            for program in ("stat", "munge", "systemctl", "logger"):
                host.program(program, HANG)
            paths = " ".join(f"/proc/{number}" for number in range(40))
            host.settings(
                HC_CHECKS="'root_writable tmp_writable mounts dirs_writable memory disk munge'", HC_DISK_PATHS=f"({paths})", HC_MOUNTS="(/)"
            )
        begun[name] = (host, time.monotonic(), host.begin())
    done: dict[str, tuple[Host, float, int]] = {}
    while len(done) < len(begun):
        for name, (host, since, process) in begun.items():
            if name not in done and process.poll() is not None:
                process.communicate()
                done[name] = (host, time.monotonic() - since, process.returncode)
        time.sleep(0.05)
    return done


@pytest.mark.parametrize("name", SLOW)
def test_case_35_nothing_hangs_for_long(slow: dict[str, tuple[Host, float, int]], name: str) -> None:
    host, took, status = slow[name]
    assert took < LONGEST
    assert status == 1
    assert host.heartbeat()["verdict"] == "fail"
    assert float(host.heartbeat()["duration"]) < LONGEST


def test_case_35_each_hung_path_is_named_and_the_others_are_checked(slow: dict[str, tuple[Host, float, int]]) -> None:
    host, _took, _status = slow["everything hangs"]
    assert set(host.heartbeat()["failed"].split(",")) == {"mounts", "disk", "munge"}


def test_case_43_a_controller_that_does_not_answer_is_asked_once_and_nothing_is_done(slow: dict[str, tuple[Host, float, int]]) -> None:
    host, _took, _status = slow["show hangs"]
    assert len(host.asked()) == 1
    assert host.requests() == []


def test_an_update_that_timed_out_is_read_back(slow: dict[str, tuple[Host, float, int]]) -> None:
    assert "[drain failed]" in slow["update hangs"][0].journal()
    assert "[drained]" in slow["update hangs, but applies"][0].journal()


def test_nothing_is_left_running(slow: dict[str, tuple[Host, float, int]]) -> None:
    """What was killed is gone: no process has a program of these hosts in its command line or its working files open."""
    paths = [str(host.path) for host, _took, _status in slow.values()]
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        assert not any(path in command for path in paths), command


# --- probes


def test_a_probe_that_hung_before_is_not_started_again(host: Host) -> None:
    """A process that still hangs is known by its number and start time; a number that was given anew is not it."""
    host.program("stat", '#!/bin/bash\necho "$@" >>"${0%/bin/*}/stat"\nexec /usr/bin/stat "$@"\n')
    host.settings(HC_CHECKS="mounts", HC_MOUNTS="(/)")
    host.run()
    assert (host.path / "stat").read_text(encoding="utf-8") == "-f -- /\n"
    with subprocess.Popen(["sleep", "100"]) as hung:
        fields = pathlib.Path(f"/proc/{hung.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        record = host.run_dir / "hung" / "mounts.answers.+-"
        record.write_text(f"{hung.pid} {fields[19]}\n", encoding="utf-8")
        assert host.run().returncode == 1
        assert (host.path / "stat").read_text(encoding="utf-8") == "-f -- /\n"
        assert host.reason().startswith("HC: mounts hung /")
        record.write_text(f"{hung.pid} 1\n", encoding="utf-8")
        assert host.run().returncode == 0
        assert not record.exists()
        hung.kill()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"HC_CHECKS": "mounts", "HC_MOUNTS": "(/proc/)"}, None),
        ({"HC_CHECKS": "mounts", "HC_MOUNTS": "(/nowhere)"}, "mounts missing /nowhere"),
        ({"HC_CHECKS": "dirs_writable", "HC_WRITABLE_DIRS": "(/proc/self)"}, "dirs_writable cannot write /proc/self"),
        ({"HC_CHECKS": "tmp_writable", "HC_TMP_DIR": "/nowhere"}, "tmp_writable cannot write /nowhere"),
        ({"HC_CHECKS": "dirs_writable", "HC_WRITABLE_DIRS": "(/dev/full/x)"}, "dirs_writable cannot write /dev/full/x"),
        ({"HC_CHECKS": "disk", "HC_DISK_PATHS": "(/)", "HC_DISK_MAX_PERCENT": "0"}, "disk at 0% /"),
        ({"HC_CHECKS": "disk", "HC_DISK_PATHS": "(/nowhere)"}, "disk cannot read /nowhere"),
        ({"HC_CHECKS": "disk", "HC_DISK_PATHS": "(/proc)"}, None),
        ({"HC_CHECKS": "memory", "HC_MEMORY_MIN_MB": "1"}, None),
        ({"HC_CHECKS": "memory", "HC_MEMORY_MIN_MB": "999999999"}, "memory below 999999999MB"),
        ({"HC_CHECKS": "munge"}, None),
    ],
)
def test_probes(host: Host, settings: dict[str, str], told: str | None) -> None:
    host.settings(**settings)
    done = host.run("--dry-run")
    assert done.returncode == (0 if told is None else 1)
    assert told is None or told in done.stdout


@pytest.mark.parametrize(
    ("numbers", "told"), [("100 11 11 50 6", None), ("100 10 10 50 6", "disk at 90% /"), ("100 90 90 50 5", "disk inodes at 90% /")]
)
def test_disk_and_inodes_at_their_limits(host: Host, numbers: str, told: str | None) -> None:
    """At 90 % it is full, at 89 % not; blocks and inodes alike."""
    host.program("stat", f"#!/bin/bash\necho {numbers}\n")
    host.settings(HC_CHECKS="disk", HC_DISK_PATHS="(/)")
    done = host.run("--dry-run")
    assert (done.returncode, told or "通过") == (0 if told is None else 1, told or "通过")
    assert (told or "通过") in done.stdout


@pytest.mark.parametrize("broken", ["munge", "unmunge"])
def test_munge_has_to_make_and_to_read(host: Host, broken: str) -> None:
    host.program(broken, "#!/bin/bash\nexit 1\n")
    host.run()
    assert host.reason().startswith("HC: munge no credential")


def test_writable_leaves_nothing_behind(host: Host, tmp_path: pathlib.Path) -> None:
    directory = tmp_path / "a directory; with 'a name'"
    directory.mkdir()
    host.settings(
        HC_CHECKS="'tmp_writable dirs_writable'",
        HC_TMP_DIR=shlex.quote(str(directory)),
        HC_WRITABLE_DIRS=f"({shlex.quote(str(directory))})",
    )
    assert host.run().returncode == 0
    assert list(directory.iterdir()) == []
    assert not list(host.run_dir.glob("run.*"))


# --- hostile text


def test_case_33_slurmds_environment_is_enough(host: Host) -> None:
    """`env -i SLURMD_NODENAME=n1`: the programs are found where the settings say, with no locale and no PATH."""
    host.settings(HC_CHECKS="''", HC_SLURM_CONF="/opt/slurm/slurm.conf")
    host.program("scontrol", '#!/bin/bash\nexport >"${0%/bin/*}/environment"\nexit 1\n')
    host.run()
    environment = (host.path / "environment").read_text(encoding="utf-8")
    assert f'PATH="{host.path}/bin:/usr/sbin:' in environment, "as the settings of this test say"
    assert ":." not in environment
    assert 'LC_ALL="C"' in environment
    assert 'LANGUAGE=""' in environment
    assert 'SLURM_CONF="/opt/slurm/slurm.conf"' in environment


def test_slurm_conf_is_exported_only_when_set(host: Host) -> None:
    host.program("scontrol", '#!/bin/bash\nexport >"${0%/bin/*}/environment"\nexit 1\n')
    host.run()
    assert "SLURM_CONF" not in (host.path / "environment").read_text(encoding="utf-8")


HOSTILE = "$(touch /tmp/hc-pwned) `id` ; rm -rf \x1b[31m \"x\" 'y' [root@2026-01-01T00:00:00] tail"


def test_a_hostile_reason_is_text(host: Host) -> None:
    host.node("IDLE+DRAIN", HOSTILE + AT)
    host.force("disk")
    done = host.run()
    assert host.requests() == []
    assert "\x1b" not in host.journal() + done.stdout + done.stderr
    assert not pathlib.Path("/tmp/hc-pwned").exists()


def test_a_hostile_test_flag_is_text(host: Host) -> None:
    host.force("\x1b[31m$(id)`id`;[x@y]" + "z" * 100)
    host.run()
    reason = host.requests()[0][2].removeprefix("reason=")
    assert re.fullmatch(r"HC: [A-Za-z0-9 _.,:%/()+@?-]+", reason)
    assert len(reason) <= 60


@pytest.mark.parametrize("path", ["/mnt/" + "x" * 200, "/mnt/a b [root@x] 中文\x1b[0m"])
def test_reasons_are_short_plain_and_begin_with_the_check(host: Host, path: str) -> None:
    host.settings(HC_CHECKS="mounts", HC_MOUNTS=f"({shlex.quote(path)})")
    host.run()
    reason = host.requests()[0][2].removeprefix("reason=")
    assert reason.startswith("HC: mounts missing /mnt/")
    assert len(reason) <= 60
    assert re.fullmatch(r"[A-Za-z0-9 _.,:%/()+@?-]+", reason)
    host.run()
    assert len(host.requests()) == 1, "what was stored is recognized"


@pytest.mark.parametrize("check", ["root_writable", "tmp_writable", "mounts", "dirs_writable", "memory", "disk", "munge"])
def test_sinfo_shows_the_check(host: Host, check: str) -> None:
    """`sinfo -R` shows 20 characters."""
    host.settings(HC_CHECKS="''")
    host.force(check)
    host.run()
    assert check in host.requests()[0][2].removeprefix("reason=")[:20]


@pytest.mark.parametrize("name", ["n1;id", "-n1 x", "n1 state=down", ""])
def test_a_node_name_is_a_name(host: Host, name: str) -> None:
    done = host.run(name=name)
    if name:
        assert done.returncode == 2
        assert host.asked() == []
    else:
        assert host.asked()[0][-1] == os.uname().nodename.partition(".")[0]


# --- settings


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_settings_that_others_may_write_are_refused(host: Host, mode: int) -> None:
    host.config.chmod(mode)
    done = host.run()
    assert done.returncode == 2
    assert "may be written by others" in done.stderr
    assert host.asked() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_settings_of_somebody_else_are_refused(host: Host) -> None:
    os.chown(host.config, 65534, -1)
    assert host.run().returncode == 2
    assert host.asked() == []


@pytest.mark.parametrize(
    "settings",
    [
        {"HC_CHECKS": "typo"},
        {"HC_MEMORY_MIN_MB": "'a[$(id)]'"},
        {"HC_DISK_MAX_PERCENT": "090"},
        {"HC_UNDRAIN_AFTER": "-1"},
        {"HC_DRAIN_AFTER": "''"},
        {"HC_TMP_DIR": "("},
    ],
)
def test_settings_that_make_no_sense_are_refused(host: Host, settings: dict[str, str]) -> None:
    """Own fault, told in the journal as well: slurmd would swallow it, and a check that was mistyped would be no check."""
    host.settings(**settings)
    assert host.run().returncode == 2
    assert host.asked() == []


@pytest.mark.parametrize("arguments", [["--typo"], ["--config"]])
def test_wrong_arguments(host: Host, arguments: list[str]) -> None:
    assert host.run(*arguments).returncode == 2


def test_settings_that_are_not_there(host: Host) -> None:
    host.config.unlink()
    assert host.run().returncode == 2


def test_the_settings_file_keeps_hostile_values(tmp_path: pathlib.Path) -> None:
    """What the role renders, bash reads back, byte for byte."""
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(quote=lambda value: shlex.quote(str(value)), dirname=os.path.dirname)
    variables = yaml.safe_load((ROLE / "defaults/main.yml").read_text(encoding="utf-8"))
    paths = ["/a b", "/c'd", "/$(id)", '/"e"', "/ü;`f`"]
    variables.update(
        health_check_mounts=paths, health_check_tmp_dir=paths[2], hpcguard_cluster={"slurm": {"bin": {"scontrol": "/opt/s l/bin/scontrol"}}}
    )
    text = environment.from_string((ROLE / "templates/health_check.conf.j2").read_text(encoding="utf-8")).render(variables)
    file = tmp_path / "conf"
    file.write_text(text, encoding="utf-8")
    read = subprocess.run(
        ["bash", "-c", '. "$0"; printf "%s\\n" "$HC_SLURM_BIN" "$HC_TMP_DIR" "${HC_MOUNTS[@]}" "$HC_CHECKS"', str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert read.stdout.splitlines() == ["/opt/s l/bin", paths[2], *paths, " ".join(variables["health_check_checks"])]
    known = set(re.findall(r"^(HC_\w+)=", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"^(HC_\w+)=", text, re.MULTILINE)) == known


# --- what a run leaves


def test_the_heartbeat(host: Host) -> None:
    before = int(time.time())
    host.run()
    beat = host.heartbeat()
    assert before <= int(beat["epoch"]) <= time.time()
    assert {key: beat[key] for key in ("rc", "verdict", "failed", "good_runs")} == {
        "rc": "0",
        "verdict": "pass",
        "failed": "",
        "good_runs": "1",
    }
    assert float(beat["duration"]) > 0
    host.force("disk")
    host.settings(HC_CHECKS="'munge mounts'", HC_MOUNTS="(/nowhere /elsewhere)")
    host.run()
    beat = host.heartbeat()
    assert {key: beat[key] for key in ("rc", "verdict", "failed", "good_runs")} == {
        "rc": "1",
        "verdict": "fail",
        "failed": "mounts,disk",
        "good_runs": "0",
    }
    assert not list(host.run_dir.glob("*.new"))


def test_metrics(host: Host) -> None:
    file = host.path / "hc.prom"
    host.settings(HC_CHECKS="'munge mounts'", HC_MOUNTS="(/nowhere)", HC_TEXTFILE=shlex.quote(str(file)))
    host.run()
    text = file.read_text(encoding="utf-8")
    assert "\nhpcguard_health_check_healthy 0\n" in text
    assert '\nhpcguard_health_check_failed{check="mounts"} 1\n' in text
    assert '\nhpcguard_health_check_failed{check="munge"} 0\n' in text
    assert '"disk"' not in text
    assert [path.name for path in host.path.glob("hc.prom*")] == ["hc.prom"]


def test_a_textfile_that_cannot_be_written_costs_no_run(host: Host) -> None:
    host.settings(HC_TEXTFILE="/nowhere/hc.prom")
    assert host.run().returncode == 0
    assert host.heartbeat()["verdict"] == "pass"
    assert "通过" in host.journal()


def test_slurms_directory_is_not_searched_for_other_programs(host: Host) -> None:
    """Where Slurm lies on a mount that hangs, so would every look for a program there."""
    (host.path / "slurm").mkdir()
    (host.path / "slurm/scontrol").write_text(f'#!/bin/bash\necho "$PATH" >{shlex.quote(str(host.path / "search"))}\n', encoding="utf-8")
    (host.path / "slurm/scontrol").chmod(0o755)
    host.settings(HC_SLURM_BIN=shlex.quote(str(host.path / "slurm")))
    host.run()
    assert "/slurm" not in (host.path / "search").read_text(encoding="utf-8")


def test_the_journal_gets_every_failing_check_under_slurmds_unit(host: Host) -> None:
    host.settings(HC_CHECKS="'munge mounts'", HC_MOUNTS="(/nowhere /elsewhere)")
    host.run()
    entry = host.journal()
    assert "OBJECT_PID=4711\n" in entry
    assert "PRIORITY=3\n" in entry
    assert "MESSAGE=HealthCheck 失败" in entry
    assert "mounts missing /nowhere; mounts missing /elsewhere" in entry
    host.settings()
    host.run()
    assert "MESSAGE=HealthCheck 通过" in host.journal()


def test_without_journald_the_plain_logger_is_used(host: Host) -> None:
    host.program("systemctl", "#!/bin/bash\nexit 1\n")
    host.run()
    assert re.match(r"-t slurm_health_check -p daemon\.6 -- HealthCheck 通过", host.journal())


def test_a_dry_run_changes_nothing(host: Host) -> None:
    host.force("disk")
    done = host.run("--dry-run")
    assert done.returncode == 1
    assert "HealthCheck 失败" in done.stdout
    assert "disk forced" in done.stdout
    assert host.asked() == []
    assert host.journal() == ""
    assert not (host.run_dir / "health_check.last").exists()


def test_case_41_a_check_that_does_not_apply_is_skipped_not_passed(host: Host) -> None:
    host.settings(HC_CHECKS="'munge mounts disk'", HC_DISK_PATHS="(/)", HC_DISK_MAX_PERCENT="85")
    lines = dict(line.split(": ", 1) for line in host.run("--list").stdout.splitlines())
    assert len(lines) == 7
    assert lines["munge"].startswith("on")
    assert lines["mounts"] == "skipped (nothing to check is listed)"
    assert lines["memory"] == "skipped (switched off)"
    assert lines["disk"] == "on (/ below 85%, inodes below 90%)"
    assert host.asked() == []


def test_two_runs_do_not_overlap(host: Host) -> None:
    """The second ends at once and does nothing, also not to the heartbeat; a dry run is not kept away."""
    with (host.run_dir / "health_check.lock").open("w") as lock, subprocess.Popen(["flock", "0"], stdin=lock) as holder:
        holder.wait()
        done = host.run()
        assert done.returncode == 0
        assert "another run" in done.stdout
        assert host.asked() == []
        assert not (host.run_dir / "health_check.last").exists()
        assert "HealthCheck 通过" in host.run("--dry-run").stdout
    assert host.run().returncode == 0
    assert (host.run_dir / "health_check.last").exists()
