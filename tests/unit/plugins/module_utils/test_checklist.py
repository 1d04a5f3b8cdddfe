"""The thirteen items, judged on evidence recorded on a legacy cluster and on one brought to the standard.

Each fault is laid into the good evidence by itself: the item that it breaks fails, and no other one changes. Beside
each stands what merely looks like a fault. Numbers such as S56 are rows of the facts that tell how the SOP's own check
would have passed or failed falsely.
"""

from __future__ import annotations

import copy
import json
import pathlib
import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import checklist, scontrol_text, verify_evidence

FIXTURES = pathlib.Path(__file__).parents[3] / "fixtures" / "verify"
DEPLOYED: dict[str, t.Any] = json.loads((FIXTURES / "deployed-22.05.json").read_text(encoding="utf-8"))
LEGACY: dict[str, t.Any] = json.loads((FIXTURES / "legacy-22.05.json").read_text(encoding="utf-8"))
MASTER, NODE, OTHER = "k8s-master-01", "k8s-node-01", "k8s-node-02"
WAIT = "/usr/local/bin/wait-for-slurmctld.sh"

Evidence = dict[str, t.Any]
Change = t.Callable[[Evidence], t.Any]


def wanted() -> dict[str, t.Any]:
    """What the roles' defaults ask for."""
    return {
        "settings": {
            "HealthCheckInterval": 300,
            "HealthCheckProgram": "/usr/local/bin/slurm_health_check.sh",
            "HealthCheckNodeState": "ANY",
            "ReturnToService": 2,
            "JobAcctGatherType": "jobacct_gather/cgroup",
        },
        "deferred": [],
        "nodes": {host: host for host in DEPLOYED["node"]},
        "out_of_service": [],
        "script": {"path": "/usr/local/bin/slurm_health_check.sh", "sha256": DEPLOYED["node"][NODE]["script"]["sha256"]},
        "heartbeat": "/run/hpcguard/health_check.last",
        "wait_script": WAIT,
        "wait": "auto",
        "patrol_interval": 900,
        "restart": {
            "slurmd": {"restart": "always", "restart_sec": 10},
            "slurmctld": {"restart": "", "restart_sec": 10},
            "slurmdbd": {"restart": "always", "restart_sec": 10},
        },
    }


def judged(change: Change | None = None, want: dict[str, t.Any] | None = None) -> dict[int, t.Any]:
    """Items of the good cluster after a change, by number."""
    seen = copy.deepcopy(DEPLOYED)
    # the controller also runs slurmdbd: one host, one piece of evidence
    seen["dbd"][MASTER] = seen["controller"][MASTER]
    for host in seen["node"]:
        seen["node"][host]["drift"] = {"health_check": no_drift(), "slurmd": no_drift()}
    seen["controller"][MASTER]["drift"] = {"patrol": no_drift()}
    if change:
        change(seen)
    return {item["id"]: item for item in checklist.judge(seen, want or wanted())}


def no_drift() -> dict[str, t.Any]:
    """A role has been asked what it would change on the host, and it is nothing."""
    return {"changes": [], "problem": ""}


def drift(place: t.Callable[[Evidence], t.Any], role: str, *things: str) -> Change:
    """What a role would change on a host."""

    def change(seen: Evidence) -> None:
        changes = [{"thing": thing, "from": "sha256:aaa mode 0644 owner 0:0", "to": "sha256:bbb mode 0755 owner 0:0"} for thing in things]
        place(seen)["drift"][role]["changes"] = changes

    return change


def node(seen: Evidence) -> t.Any:
    return seen["node"][NODE]


def master(seen: Evidence) -> t.Any:
    return seen["controller"][MASTER]


def values(seen: Evidence) -> t.Any:
    return master(seen)["config"]["values"]


def beat(age: int = 30, started: int = 10_000, **more: t.Any) -> Change:
    """A heartbeat of that age on a node whose slurmd started so many seconds ago."""

    def change(seen: Evidence) -> None:
        now = int(node(seen)["now"])
        lines = {"epoch": now - age, "rc": 0, "verdict": "pass", "failed": "", **more}
        node(seen)["heartbeat"] = {"text": "".join(f"{key}={value}\n" for key, value in lines.items())}
        node(seen)["started"] = float(now - started)

    return change


def set_state(seen: Evidence, state: str, reason: str = "none") -> None:
    [one] = scontrol_text.parse_nodes(f"NodeName={NODE} State={state} Reason={reason}")
    nodes = master(seen)["nodes"]["list"]
    nodes[:] = [one if present["name"] == NODE else present for present in nodes]


def wiped(seen: Evidence) -> None:
    """A daemon-reload made systemd forget how ExecStartPre ended."""
    times = "start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0"
    call = f"{{ path={WAIT} ; argv[]={WAIT} ctl:6817 ; ignore_errors=no ; {times} }}"
    node(seen)["slurmd"]["ExecStartPre"] = call


def ended(status: str, stop: str | None = None) -> Change:
    """The wait script ended like this."""

    def change(seen: Evidence) -> None:
        at = stop or node(seen)["slurmd"]["ExecMainStartTimestamp"]
        call = f"{{ path={WAIT} ; argv[]={WAIT} ctl ; ignore_errors=no ; start_time=[{at}] ; stop_time=[{at}] ; pid=7 ; {status} }}"
        node(seen)["slurmd"]["ExecStartPre"] = call

    return change


def unwatched(seen: Evidence) -> None:
    """No accounting through slurmdbd."""
    values(seen)["AccountingStorageType"] = "accounting_storage/none"


def of(place: t.Callable[[Evidence], t.Any], *path: str, to: t.Any) -> Change:
    """Set one thing deep in the evidence."""

    def change(seen: Evidence) -> None:
        target = place(seen)
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = to

    return change


def both(*changes: Change) -> Change:
    def change(seen: Evidence) -> None:
        for one in changes:
            one(seen)

    return change


# --- the two clusters ---------------------------------------------------------------------------


def test_a_cluster_at_the_standard_passes_all_thirteen() -> None:
    items = judged()
    assert {number: item["verdict"] for number, item in items.items()} == dict.fromkeys(range(1, 14), "pass")


def test_the_legacy_cluster_fails_exactly_what_it_breaks() -> None:
    """Its nodes are in service, all else the SOP found missing. slurmd is not killed, since its jobs would die."""
    items = checklist.judge(LEGACY, wanted())
    assert [item["id"] for item in items if item["verdict"] == "pass"] == [6]
    assert [item["id"] for item in items if item["verdict"] == "skip"] == []
    assert "KillMode" in items[12]["reason"]


def test_the_words_that_operators_look_for() -> None:
    items = judged()
    assert "HealthCheck 通过" in items[5]["hosts"][NODE]["reason"]
    assert "slurmctld 已就绪" in items[9]["hosts"][NODE]["reason"]


def test_every_item_has_both_titles_evidence_and_in_failing_a_remedy() -> None:
    for item in judged().values():
        assert item["title"]["zh"] and item["title"]["en"]
        assert all(result["evidence"] for host, result in item["hosts"].items() if (item["id"], host) != (6, MASTER))
    for item in checklist.judge(LEGACY, wanted()):
        assert all(result["remedy"] for result in item["hosts"].values() if result["verdict"] == "fail")


def test_nothing_passes_by_default() -> None:
    """Without any evidence no item passes, and hosts that did not answer fail what concerns them."""
    nobody = {"node": {}, "controller": {}, "dbd": {}, "probe": {"outcome": "not_run"}, "crash": {"outcome": "not_run", "reason": "off"}}
    assert {item["verdict"] for item in checklist.judge(nobody, wanted())} == {"skip"}
    gone = {"error": "ssh: connect to host port 22: No route to host", "unreachable": True}
    silent = {**nobody, "node": {NODE: gone}, "controller": {MASTER: gone}, "dbd": {MASTER: gone}}
    assert {item["verdict"] for item in checklist.judge(silent, wanted())[:12]} == {"fail"}


def test_an_unreachable_node_fails_its_items_by_name() -> None:
    items = judged(lambda seen: seen["node"].update({NODE: {"error": "No route to host", "unreachable": True}}))
    failed = [number for number, item in items.items() if item["verdict"] == "fail"]
    assert failed == [2, 3, 4, 5, 8, 9]
    assert all(item["reason"] == f"{NODE}: the host did not answer" for item in items.values() if item["id"] in failed)
    assert all(items[number]["hosts"][OTHER]["verdict"] == "pass" for number in failed)


# --- single faults ------------------------------------------------------------------------------


def set_digest(seen: Evidence, name: str, digest: str) -> None:
    files = node(seen)["conf"]["files"]
    files.update({path: digest for path in files if path.endswith("/" + name)})


def drop_file(seen: Evidence, name: str) -> None:
    files = node(seen)["conf"]["files"]
    for path in [path for path in files if path.endswith("/" + name)]:
        del files[path]


def add_node(seen: Evidence, text: str) -> None:
    master(seen)["nodes"]["list"] += scontrol_text.parse_nodes("NodeName=" + text)


FAULTS: list[tuple[str, int, Change, str]] = [
    # S53: a value in the file, even the right one, is not what the daemon has loaded
    ("a setting is not in force", 1, of(values, "HealthCheckInterval", to="0 sec"), "HealthCheckInterval is 0, wanted 300"),
    ("a node state that Slurm ignored", 1, of(values, "HealthCheckNodeState", to="IDLE"), "HealthCheckNodeState is IDLE"),
    ("no program", 1, of(values, "HealthCheckProgram", to="(null)"), "HealthCheckProgram is not set"),
    # S54: three lines of the right kind in an old cache
    ("an old file in the cache", 2, lambda seen: set_digest(seen, "slurm.conf", "0" * 64), "differs from the controller's"),
    ("an old included file in the cache", 2, lambda seen: set_digest(seen, "site.conf", "0" * 64), "site.conf differs"),
    ("an included file is missing", 2, lambda seen: drop_file(seen, "site.conf"), "site.conf is missing"),
    ("the same file, but without the settings", 2, of(node, "conf", "values", to={}), "HealthCheckInterval is not set"),
    ("a stale slurm.conf beside the cache", 2, of(node, "conf", "left_over", to={"/etc/slurm/slurm.conf": "1" * 64}), "left over"),
    ("no cache at all", 2, of(node, "conf", to={"path": None, "files": {}, "values": {}}), "is missing on this host"),
    # S55: test -x says nothing of these
    (
        "the script was altered",
        3,
        both(of(node, "script", "sha256", to="2" * 64), of(node, "dry_run", "sha256_after", to="2" * 64)),
        "altered",
    ),
    ("others may write the script", 3, of(node, "script", "mode", to="0775"), "mode 0775"),
    ("the script is somebody's", 3, of(node, "script", "uid", to=1000), "not owned by root"),
    (
        "others may write a directory above",
        3,
        of(node, "script", "problem", to="lies under /usr/local, which others may write to"),
        "lies under",
    ),
    (
        "the script's settings were altered",
        3,
        drift(node, "health_check", "file:/etc/hpcguard/health_check.conf"),
        "/etc/hpcguard/health_check.conf is not as a rollout writes it",
    ),
    ("nobody asked the role", 3, of(node, "drift", to={"slurmd": no_drift()}), "not be compared: the role was not asked"),
    ("the health check could not be compared", 3, of(node, "drift", "health_check", "problem", to="a link"), "not be compared: a link"),
    ("the script finds a fault", 4, of(node, "dry_run", "rc", to=1), "exit status 1"),
    ("the script hangs", 4, lambda seen: node(seen)["dry_run"].update(rc=124, timed_out=True), "no answer within 45 s"),
    ("the script changes itself", 4, of(node, "dry_run", "sha256_after", to="3" * 64), "changed while it ran"),
    ("no heartbeat", 5, of(node, "heartbeat", to=None), "never run the script"),
    ("a heartbeat without a time", 5, beat(epoch="$(id)"), "no time"),
    # S3, S15: controller or munge away, so nothing starts the script
    ("a stale heartbeat", 5, beat(721), "the last run was 12 min ago"),
    (
        "no run since slurmd's start",
        5,
        beat(60, started=50),
        "no run since",
    ),
    ("a heartbeat from the future", 5, beat(-60), "in the future"),
    ("the last run found a fault", 5, beat(rc=1, verdict="fail", failed="disk_use"), "disk_use"),
    # S56: idle* matches idle
    ("a node that does not answer", 6, lambda seen: set_state(seen, "IDLE+NOT_RESPONDING"), "NOT_RESPONDING"),
    ("the same in old notation", 6, lambda seen: set_state(seen, "IDLE*"), "IDLE*"),
    ("a drained node", 6, lambda seen: set_state(seen, "MIXED+DRAIN", "dimm swap [root@2026-11-01T00:00:00]"), "dimm swap"),
    ("a down node", 6, lambda seen: set_state(seen, "DOWN", "Node unexpectedly rebooted"), "unexpectedly rebooted"),
    ("a node with the wrong hardware", 6, lambda seen: set_state(seen, "IDLE+INVALID_REG", "Low RealMemory"), "INVALID_REG"),
    ("a node that nobody knows", 6, lambda seen: master(seen)["nodes"]["list"].pop(0), "knows no node"),
    ("a node outside the inventory", 6, lambda seen: add_node(seen, "n9 State=IDLE"), "n9"),
    # S57: list-timers shows these too
    ("the timer is not enabled", 7, of(master, "timer", "UnitFileState", to="disabled"), "would not start at boot"),
    ("the timer elapsed", 7, both(of(master, "timer", "SubState", to="elapsed"), of(master, "next_elapse", to=None)), "active/elapsed"),
    ("the timer waits for nothing", 7, of(master, "next_elapse", to=None), "no next run"),
    ("the next run is long overdue", 7, of(master, "next_elapse", to=-400.0), "-400 s away"),
    ("the next run is too far", 7, of(master, "next_elapse", to=3600.0), "3600 s away"),
    ("another period", 7, of(master, "timer", "TimersMonotonic", to="{ OnUnitActiveUSec=5min ; next_elapse=9min }"), "every 300 s"),
    ("the patrol fails", 7, of(master, "service", "Result", to="timeout"), "ended with timeout"),
    ("the patrol is not installed", 7, of(master, "service", "LoadState", to="not-found"), "not-found"),
    ("the timer is not installed", 7, of(master, "timer", to={"LoadState": "not-found"}), "not-found"),
    # S68
    ("RemainAfterExit stops the timer", 7, of(master, "service", "ActiveState", to="active"), "RemainAfterExit"),
    ("the patrol has not run for hours", 7, of(master, "uptime", to=1e7), "no run within"),
    ("the patrol's program was altered", 7, drift(master, "patrol", "file:/usr/local/bin/chc.py"), "/usr/local/bin/chc.py is not as"),
    (
        "much of its library was altered",
        7,
        drift(master, "patrol", *(f"file:/usr/local/lib/hpcguard/slurmguard/m{number}.py" for number in range(9))),
        "m0.py, /usr/local/lib/hpcguard/slurmguard/m1.py, /usr/local/lib/hpcguard/slurmguard/m2.py and 6 more are not as",
    ),
    ("its timer was altered", 7, drift(master, "patrol", "file:/etc/systemd/system/slurm-cluster-health.timer"), "health.timer is not as"),
    (
        "the bootstrap would not start at boot",
        7,
        drift(master, "patrol", "unit:slurm-cluster-health-bootstrap.service:enabled"),
        "slurm-cluster-health-bootstrap.service would not start at boot",
    ),
    ("the patrol could not be compared", 7, of(master, "drift", "patrol", "problem", to="masked"), "not be compared: masked"),
    ("slurmd restarts only after a failure", 8, of(node, "slurmd", "Restart", to="on-failure"), "Restart=on-failure"),
    ("slurmd restarts at once", 8, of(node, "slurmd", "RestartUSec", to="100ms"), "RestartSec=100ms"),
    ("a restart would end the jobs", 8, of(node, "slurmd", "KillMode", to="control-group"), "KillMode=control-group"),
    # S58: the loaded value is right, the file is not, or the other way round
    ("systemd has not read the unit", 8, of(node, "slurmd", "NeedDaemonReload", to="yes"), "daemon-reload"),
    ("the start limit is on", 8, of(node, "slurmd", "StartLimitIntervalUSec", to="10s"), "start limit"),
    ("slurmctld does not restart", 8, of(master, "slurmctld", "Restart", to="no"), "slurmctld: Restart=no"),
    ("slurmdbd does not restart", 8, of(master, "slurmdbd", "Restart", to="no"), "slurmdbd: Restart=no"),
    (
        "munge would not start with the node",
        8,
        of(node, "munge", to={"LoadState": "loaded", "UnitFileState": "disabled"}),
        "munge: it is disabled and would not start with the host",
    ),
    (
        "munge is masked on the controller",
        8,
        of(master, "munge", to={"LoadState": "masked", "UnitFileState": "masked"}),
        "munge: it is masked",
    ),
    # its exit status was 0, which says nothing of what it did
    ("another wait script stands in its place", 9, drift(node, "slurmd", f"file:{WAIT}"), f"{WAIT} is not as a rollout writes it"),
    ("the wait script could not be compared", 9, of(node, "drift", "slurmd", "problem", to="no unit"), "not be compared: no unit"),
    ("the unit does not call the wait script", 9, of(node, "slurmd", "ExecStartPre", to=""), "does not call"),
    ("the wait script failed", 9, ended("code=exited ; status=1/FAILURE"), "ended with exited 1/FAILURE"),
    ("the wait script was killed", 9, ended("code=killed ; status=9/KILL"), "killed"),
    ("the wait script ran after slurmd's start", 9, ended("code=exited ; status=0", "Wed 2026-12-02 10:00:00 UTC"), "ended with"),
    ("nothing shows that it ran", 9, both(wiped, of(node, "journal", "ready", to=""), of(node, "wait_run", to=None)), "nothing shows"),
    ("slurmdbd is not enabled", 10, of(master, "slurmdbd", "UnitFileState", to="disabled"), "slurmdbd.service is disabled"),
    ("ordered but not wanted", 10, of(master, "slurmctld", "Wants", to="network-online.target"), "Wants of slurmctld lacks"),
    ("wanted but not ordered", 10, of(master, "slurmctld", "After", to="munge.service"), "After of slurmctld lacks"),
    ("the cluster is not registered", 10, of(master, "accounting", "listed", to=False), "does not list"),
    ("slurmdbd does not answer", 10, of(master, "accounting", to={"rc": 1, "out": "", "err": "refused", "listed": False}), "does not list"),
    ("another ReturnToService", 11, of(values, "ReturnToService", to="1"), "ReturnToService is 1, wanted 2"),
    ("another way of accounting", 12, of(values, "JobAcctGatherType", to="jobacct_gather/none"), "wanted jobacct_gather/cgroup"),
    (
        "nothing is recorded",
        12,
        of(lambda seen: seen, "probe", to={"outcome": "not_recorded", "reason": "no MaxRSS", "node": NODE}),
        "no MaxRSS",
    ),
    (
        "slurmd does not come back",
        13,
        lambda seen: seen["crash"].update(outcome="failed", reason="not back within 120 s"),
        "not back within",
    ),
    ("killing would end the jobs", 13, lambda seen: seen["crash"].update(outcome="refused", reason="KillMode is mixed"), "KillMode"),
    ("the host of the test went away", 13, lambda seen: seen["crash"].update(outcome="failed", error="No route to host"), "No route"),
]


@pytest.mark.parametrize(("number", "change", "words"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_a_fault_fails_its_item_and_no_other(number: int, change: Change, words: str) -> None:
    items = judged(change)
    others = {one: item["verdict"] for one, item in items.items() if one != number}
    if number == 12:  # its rows are those of a probe step, so the probe's own verdict counts
        items = judged(both(lambda seen: master(seen).update(recorded={"rows": []}), change))
    assert items[number]["verdict"] == "fail"
    assert words in json.dumps(items[number], ensure_ascii=False)
    assert set(others.values()) == {"pass"}


def test_a_controller_that_does_not_answer() -> None:
    """S56: no output is no pass, whatever an earlier answer was."""

    def silent(seen: Evidence) -> None:
        master(seen)["config"].update(rc=1, err="Unable to contact slurm controller")
        master(seen)["nodes"].update(rc=1, list=[])

    items = judged(silent)
    assert {number for number, item in items.items() if item["verdict"] == "fail"} == {1, 6, 11, 12}
    assert "could not be asked" in items[6]["hosts"][NODE]["reason"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ({"kind": "absent", "problem": ""}, "is not there"),
        ({"kind": "link", "problem": "is a symbolic link to /home/x", "mode": "0777", "uid": 0, "gid": 0}, "symbolic link"),
        ({"kind": "other", "problem": "", "mode": "0644", "uid": 0, "gid": 0}, "no regular file"),
    ],
)
def test_what_is_no_file_of_roots_is_not_run(script: dict[str, t.Any], words: str) -> None:
    items = judged(lambda seen: node(seen).update(script=script, dry_run=None))
    assert {number for number, item in items.items() if item["verdict"] == "fail"} == {3, 4}
    assert words in items[3]["reason"] and words in items[4]["reason"]


def test_slurmdbd_that_is_not_installed_although_slurmctld_names_it() -> None:
    """S59: After lists a unit that is not found."""
    items = judged(of(master, "slurmdbd", to={"LoadState": "not-found"}))
    assert {number for number, item in items.items() if item["verdict"] == "fail"} == {8, 10}
    assert "slurmdbd.service is not-found" in items[10]["reason"]


# --- what only looks like a fault ---------------------------------------------------------------


def move_cache(seen: Evidence, folder: str) -> None:
    conf = node(seen)["conf"]
    conf["files"] = {f"{folder}/{path.rsplit('/', 1)[-1]}": value for path, value in conf["files"].items()}
    conf["path"] = f"{folder}/slurm.conf"


def digest(seen: Evidence) -> str:
    return next(value for path, value in master(seen)["conf"]["files"].items() if path.endswith("/slurm.conf"))


def running_patrol(seen: Evidence) -> None:
    master(seen)["timer"]["SubState"] = "running"
    master(seen)["service"].update(ActiveState="activating", SubState="start")
    master(seen)["next_elapse"] = None


def old_names(seen: Evidence) -> None:
    show = node(seen)["slurmd"]
    del show["StartLimitIntervalUSec"]
    show["StartLimitInterval"] = "0"


def own_step(seen: Evidence) -> None:
    master(seen)["recorded"]["rows"] = [{"step": "41.batch", "max_rss": "5120K"}]
    seen["probe"] = {"outcome": "not_run", "reason": "not needed"}


SOUND: list[tuple[str, int, Change]] = [
    ("units are no difference", 1, of(values, "HealthCheckInterval", to="300 sec")),
    ("words in another order", 1, of(values, "HealthCheckNodeState", to="ANY")),
    ("the cache lies where SlurmdSpoolDir says", 2, lambda seen: move_cache(seen, "/data/spool/n1/conf-cache")),
    (
        "a left-over slurm.conf that is the same",
        2,
        lambda seen: node(seen)["conf"].update(left_over={"/etc/slurm/slurm.conf": digest(seen)}),
    ),
    ("a slow but healthy script", 4, of(node, "dry_run", "seconds", to=40.0)),
    # S52: slurmd loses lines, and those of its start are old
    ("the journal knows nothing of the run", 5, of(node, "journal", "health", to="")),
    (
        "a run in the second of slurmd's start",
        5,
        beat(50, started=50),
    ),
    ("the last run was one interval ago", 5, beat(420)),
    # S56: the SOP expects idle
    ("a busy node", 6, lambda seen: set_state(seen, "MIXED+PLANNED")),
    ("a node whose job ends", 6, lambda seen: set_state(seen, "ALLOCATED+COMPLETING")),
    ("a reserved node", 6, lambda seen: set_state(seen, "IDLE+RESERVED")),
    ("a node in a maintenance reservation", 6, lambda seen: set_state(seen, "IDLE+MAINT+RESERVED")),
    ("a flag of a later release", 6, lambda seen: set_state(seen, "IDLE+DYNAMIC_NORM+FANCY")),
    ("a node that is to come", 6, lambda seen: add_node(seen, "f1 State=FUTURE")),
    ("a patrol that runs right now", 7, running_patrol),
    ("a timer that was started just now", 7, of(master, "service", "ExecMainStartTimestampMonotonic", to="0")),
    ("a timer that systemd lets wait for its accuracy", 7, of(master, "next_elapse", to=-20.0)),
    (
        "a timer that counts from the end of the run",
        7,
        of(master, "timer", "TimersMonotonic", to="{ OnUnitInactiveUSec=15min ; next_elapse=1 }"),
    ),
    (
        "a burst of zero switches the limit off too",
        8,
        lambda seen: node(seen)["slurmd"].update(StartLimitIntervalUSec="10s", StartLimitBurst="0"),
    ),
    ("systemd 219's name of the start limit", 8, old_names),
    ("a daemon-reload later, the journal remembers", 9, both(wiped, of(node, "journal", "ready", to="slurmctld 已就绪"))),
    (
        "a daemon-reload later, the script is run again",
        9,
        both(wiped, of(node, "journal", "ready", to=""), of(node, "wait_run", to={"rc": 0})),
    ),
    ("the cluster is one of several", 10, of(master, "accounting", "out", to="other\nhpc\n")),
    ("a step that ran by itself", 12, own_step),
    ("steps kept over the crash", 13, lambda seen: seen["crash"].update(steps=2, kept=2)),
]


@pytest.mark.parametrize(("number", "change"), [one[1:] for one in SOUND], ids=[one[0] for one in SOUND])
def test_what_only_looks_like_a_fault(number: int, change: Change) -> None:
    items = judged(change)
    assert items[number]["verdict"] == "pass", items[number]
    assert {item["verdict"] for item in items.values()} == {"pass"}


def test_what_another_role_looks_after_is_no_fault_of_the_wait() -> None:
    """Item 8 judges slurmd's unit by what is in force; of the patrol's timer item 7 tells by itself."""
    unit = drift(node, "slurmd", "file:/etc/systemd/system/slurmd.service", "unit:slurmd.service:reload")
    timer = drift(master, "patrol", "unit:slurm-cluster-health.service:active", "unit:slurm-cluster-health.timer:active")
    assert {item["verdict"] for item in judged(both(unit, timer)).values()} == {"pass"}


def test_a_host_outside_the_run_says_that_its_files_were_not_compared() -> None:
    """A run limited to some nodes asks the controller, and must not look as if it had seen the patrol's files."""
    items = judged(lambda seen: master(seen).pop("drift"))
    assert items[7]["verdict"] == "pass"
    assert "files not compared, this host is not part of the run" in items[7]["hosts"][MASTER]["reason"]


def test_the_evidence_names_the_file_and_what_it_was() -> None:
    """An operator sees which file, how it is and how it should be."""
    shown = judged(drift(node, "slurmd", f"file:{WAIT}"))[9]["hosts"][NODE]
    wanted_line = "sha256:aaa mode 0644 owner 0:0, wanted sha256:bbb mode 0755 owner 0:0"
    assert {"source": WAIT, "text": wanted_line} in shown["evidence"]
    assert "deploy.yml" in shown["remedy"] and WAIT in shown["remedy"]


def test_munge_that_is_not_there_is_for_the_health_check() -> None:
    """auth/slurm needs none; a munge that should be there and is not fails item 4."""
    gone = of(node, "munge", to={"LoadState": "not-found", "UnitFileState": ""})
    assert {item["verdict"] for item in judged(gone).values()} == {"pass"}


def test_a_crash_test_without_jobs_says_so() -> None:
    """ "0 of 0 steps kept" would read as if jobs had been lost, or kept."""
    items = judged(lambda seen: seen["crash"].update(kept=0, steps=0))
    reason = items[13]["hosts"][NODE]["reason"]
    assert "no job was running, so none could be lost" in reason and "0 of 0" not in reason


# --- what does not apply ------------------------------------------------------------------------


def test_the_order_of_words_does_not_matter() -> None:
    want = wanted()
    want["settings"]["HealthCheckNodeState"] = "ANY,CYCLE"
    items = judged(both(of(values, "HealthCheckNodeState", to="CYCLE,ANY"), *same_file("CYCLE,ANY")), want)
    assert items[1]["verdict"] == items[2]["verdict"] == "pass"


def same_file(state: str) -> list[Change]:
    hosts = DEPLOYED["node"]
    return [of(lambda seen: seen["node"], host, "conf", "values", "HealthCheckNodeState", to=state) for host in hosts]


def test_settings_that_the_site_does_not_want_are_skipped() -> None:
    want = wanted()
    want["settings"] = {"ReturnToService": None}
    items = judged(want=want)
    assert [items[number]["verdict"] for number in (1, 5, 11, 12)] == ["skip"] * 4
    assert items[2]["verdict"] == "pass"


@pytest.mark.parametrize(
    ("state", "verdict"), [("IDLE", "pass"), ("IDLE,CYCLE", "pass"), ("START_ONLY", "pass"), ("REBOOT_ONLY", "skip"), ("ANY,CYCLE", "fail")]
)
def test_a_node_in_none_of_the_wanted_states_is_not_checked_for_hours(state: str, verdict: str) -> None:
    want = wanted()
    want["settings"]["HealthCheckNodeState"] = state
    assert judged(beat(7200), want)[5]["hosts"][NODE]["verdict"] == verdict
    assert judged(beat(7200, started=60), want)[5]["hosts"][NODE]["verdict"] == ("skip" if verdict == "skip" else "fail")


def test_a_setting_that_was_deferred_is_skipped_and_never_passed() -> None:
    """Running jobs made the rollout leave JobAcctGatherType for later; another wrong key beside it still fails."""
    want = {**wanted(), "deferred": ["JobAcctGatherType"]}
    old = of(values, "JobAcctGatherType", to="jobacct_gather/none")
    items = judged(old, want)
    assert (items[12]["verdict"], "deferred" in items[12]["reason"]) == ("skip", True)
    assert judged(both(old, of(values, "ReturnToService", to="1")), want)[11]["verdict"] == "fail"
    assert judged(want=want)[12]["verdict"] == "pass"


def test_a_node_that_was_drained_before_the_rollout_does_not_fail_it() -> None:
    want = {**wanted(), "out_of_service": [NODE]}
    items = judged(lambda seen: set_state(seen, "IDLE+DRAIN", "dimm swap"), want)
    assert items[6]["hosts"][NODE]["verdict"] == "skip"
    assert judged(lambda seen: set_state(seen, "DOWN+DRAIN", "dimm swap"), want)[6]["verdict"] == "fail"


@pytest.mark.parametrize("state", ["IDLE+CLOUD+POWERED_DOWN", "IDLE+POWERING_UP", "IDLE+POWER", "IDLE~", "IDLE#"])
def test_case_64_a_node_that_slurm_powered_down_is_skipped(state: str) -> None:
    items = judged(lambda seen: set_state(seen, state))
    assert items[6]["hosts"][NODE]["verdict"] == "skip"


@pytest.mark.parametrize(
    ("rc", "said"), [(14, "unmunge: Error: Invalid credential\n"), (16, "unmunge: Error: Rewound credential\n"), (124, "")]
)
def test_case_28_a_munge_with_another_key_fails_its_node(rc: int, said: str) -> None:
    """It runs, reads its own credentials, and slurmctld still has the node in service."""
    items = judged(of(node, "credential", to={"rc": rc, "err": said}))
    one = items[6]["hosts"][NODE]
    assert one["verdict"] == "fail" and (said.strip() or "no word why") in one["reason"]
    assert one["remedy"].index("restart munge on every host") < one["remedy"].index("Slurm's daemons")
    assert items[6]["hosts"][OTHER]["verdict"] == "pass"


@pytest.mark.parametrize(
    "read", [None, {"rc": 0, "err": ""}, {"rc": 15, "err": "Expired"}, {"rc": 17, "err": "Replayed"}, {"rc": 127, "err": ""}]
)
def test_case_28_what_proves_nothing_of_the_key_claims_nothing(read: dict[str, t.Any] | None) -> None:
    """No credential from the controller, one too old in a long run, a host without munge."""
    assert judged(of(node, "credential", to=read))[6]["hosts"][NODE]["verdict"] == "pass"


def test_case_24_a_left_over_file_that_client_commands_read_fails_item_2() -> None:
    one = judged(of(node, "conf", "left_over", to={"/etc/slurm/slurm.conf": "1" * 64}))[2]["hosts"][NODE]
    assert one["verdict"] == "fail" and "/etc/slurm/slurm.conf is left over and differs" in one["reason"]
    assert "remove a left-over slurm.conf" in one["remedy"]


@pytest.mark.parametrize("reason", ["Kill task failed", "Prolog error", "gres/gpu count reported lower than configured (7 < 8)"])
def test_case_59_and_70_the_reason_is_settled_before_the_node_is_opened(reason: str) -> None:
    """A drained node with two jobs: opened by undrain, after its reason is settled, and never by way of DOWN."""
    one = judged(lambda seen: set_state(seen, "MIXED+DRAIN", reason))[6]["hosts"][NODE]
    assert one["verdict"] == "fail" and reason in one["reason"]
    assert one["remedy"] == f"when its reason is settled: scontrol update nodename={NODE} state=undrain"


@pytest.mark.parametrize("unit", ["slurmctld", "slurmdbd"])
def test_case_105_a_unit_file_that_is_gone_under_a_running_daemon_is_told_as_such(unit: str) -> None:
    gone = of(master, unit, to={"LoadState": "not-found", "MainPID": "77", "ActiveState": "active"})
    one = judged(gone)[8]["hosts"][MASTER]
    assert one["verdict"] == "fail" and f"{unit} runs, but the file of its unit is gone" in one["reason"]
    assert "install" not in one["remedy"] and f"put {unit}.service back" in one["remedy"]


def test_from_24_05_on_slurmd_waits_by_itself() -> None:
    """Unless the site asks for the script all the same, or the unit calls it."""
    newer = both(of(node, "release", to=[24, 11]), of(node, "slurmd", "ExecStartPre", to=""))
    assert judged(newer)[9]["hosts"][NODE]["verdict"] == "skip"
    assert judged(newer, {**wanted(), "wait": True})[9]["hosts"][NODE]["verdict"] == "fail"
    assert judged(of(node, "release", to=[24, 11]))[9]["hosts"][NODE]["verdict"] == "pass"
    off = {**wanted(), "wait": "False"}  # ansible-core 2.16 hands over text
    assert judged(of(node, "slurmd", "ExecStartPre", to=""), off)[9]["hosts"][NODE]["verdict"] == "skip"


def test_a_database_daemon_elsewhere_cannot_be_ordered_here() -> None:
    def remote(seen: Evidence) -> None:
        master(seen)["slurmdbd"] = {"LoadState": "not-found"}
        seen["dbd"] = {"db-01": DEPLOYED["dbd"][MASTER]}

    items = judged(remote)
    assert items[10]["verdict"] == "skip"
    assert items[8]["hosts"]["db-01"]["verdict"] == "pass"


def test_a_dead_database_daemon_elsewhere_fails_the_controller_that_needs_it() -> None:
    def dead(seen: Evidence) -> None:
        master(seen).update(slurmdbd={"LoadState": "not-found"}, accounting={"rc": 1, "out": "", "err": "refused", "listed": False})
        seen["dbd"] = {"db-01": {"slurmdbd": {**DEPLOYED["dbd"][MASTER]["slurmdbd"], "ActiveState": "failed"}}}

    items = judged(dead)
    assert {number for number, item in items.items() if item["verdict"] == "fail"} == {8, 10}
    assert "does not list the cluster hpc" in items[10]["hosts"][MASTER]["reason"]
    assert "slurmdbd: it is failed" in items[8]["hosts"]["db-01"]["reason"]


STANDBY = "k8s-master-02"


def with_backup(change: Change = lambda seen: None) -> Change:
    """A second controller beside the first, both under a unit that lets it take over; then a change of its evidence."""

    def both_controllers(seen: Evidence) -> None:
        master(seen)["controllers"] = 2
        master(seen)["slurmctld"]["Restart"] = "on-failure"
        seen["controller"][STANDBY] = {**copy.deepcopy(master(seen)), "slurmdbd": {"LoadState": "not-found"}}
        change(seen)

    return both_controllers


def test_two_controllers_at_the_standard_pass() -> None:
    items = judged(with_backup())
    assert {item["verdict"] for item in items.values()} == {"pass"}
    assert items[2]["hosts"][STANDBY]["verdict"] == "pass"


@pytest.mark.parametrize("host", [MASTER, STANDBY])
def test_a_dead_controller_is_told_although_the_other_one_answers_for_it(host: str) -> None:
    items = judged(with_backup(lambda seen: seen["controller"][host]["slurmctld"].update(ActiveState="inactive")))
    assert {number for number, item in items.items() if item["verdict"] == "fail"} == {8}
    one = items[8]["hosts"][host]
    assert "slurmctld: it is inactive, the daemon does not run" in one["reason"] and "systemctl start slurmctld" in one["remedy"]


def test_the_backup_controller_must_hold_the_same_files() -> None:
    """It reads its own when it takes over, and until then nothing tells of an old one."""
    path = DEPLOYED["controller"][MASTER]["conf"]["path"]
    items = judged(with_backup(lambda seen: seen["controller"][STANDBY]["conf"]["files"].update({path: "1" * 64})))
    assert {number for number, item in items.items() if item["verdict"] == "fail"} == {2}
    assert "differs from the controller's" in items[2]["hosts"][STANDBY]["reason"]


def test_a_node_with_an_old_file_of_its_own_is_sent_to_a_deploy() -> None:
    """A reconfigure brings it none."""

    def old(seen: Evidence) -> None:
        path = next(name for name in node(seen)["conf"]["files"] if name.endswith("slurm.conf"))
        node(seen)["conf"]["files"][path] = "1" * 64
        del node(seen)["conf"]["left_over"]

    one = judged(old)[2]["hosts"][NODE]
    assert one["verdict"] == "fail" and one["remedy"].startswith("ansible-playbook playbooks/deploy.yml;")


def test_a_cluster_without_accounting() -> None:
    items = judged(unwatched)
    assert [items[number]["verdict"] for number in (10, 12)] == ["skip", "skip"]


def test_a_backup_controller_forbids_restart_always_for_slurmctld() -> None:
    """S31: always would defeat the takeover."""
    two = of(master, "controllers", to=2)
    assert judged(two)[8]["hosts"][MASTER]["verdict"] == "fail"
    assert judged(both(two, of(master, "slurmctld", "Restart", to="on-failure")))[8]["hosts"][MASTER]["verdict"] == "pass"


@pytest.mark.parametrize("reason", ["no node was free within 15 s (Resources)", "no probe job could be submitted: x", None])
def test_recording_that_could_not_be_proved_is_skipped(reason: str | None) -> None:
    def change(seen: Evidence) -> None:
        master(seen)["recorded"]["rows"] = []
        seen["probe"] = {"outcome": "not_run", "reason": reason}

    item = judged(change)[12]
    assert item["verdict"] == "skip"
    assert (reason or "no probe step was run") in item["reason"]


def test_a_crash_test_that_was_switched_off_is_skipped() -> None:
    item = judged(lambda seen: seen.update(crash={"outcome": "not_run", "reason": "switched off", "host": ""}))[13]
    assert (item["verdict"], item["reason"], item["hosts"]) == ("skip", "switched off", {})
    item = judged(lambda seen: seen.update(crash={"outcome": "not_run", "reason": "check mode kills nothing", "host": NODE}))[13]
    assert (item["verdict"], item["hosts"][NODE]["reason"]) == ("skip", "check mode kills nothing")


def test_hostile_text_in_the_evidence_is_made_harmless() -> None:
    evil = "\x1b[2J\x1b]0;owned\x07{{ 7*7 }} \u202e<script>\nrm -rf /"
    items = judged(both(lambda seen: set_state(seen, "IDLE+DRAIN"), lambda seen: master(seen)["nodes"]["list"][0].update(reason=evil)))
    text = json.dumps(items, ensure_ascii=False)
    assert not any(mark in text for mark in ("\x1b", "\u001b", "\u202e", "owned"))
    assert "{{ 7*7 }}" in text


# --- the smaller parts --------------------------------------------------------------------------


def test_steps_that_prove_the_sampling_of_memory() -> None:
    rows = "\n".join([
        "5|2026-12-01T10:00:00|COMPLETED|",
        "5.batch|2026-12-01T10:00:00|COMPLETED|5120K",
        "5.extern|2026-12-01T10:00:00|COMPLETED|900K",
        "5.0|2026-12-01T10:00:00|COMPLETED|0",
        "6.batch|2026-12-01T09:59:59|COMPLETED|1M",
        "7.batch|2026-12-01T10:00:01|RUNNING|2M",
        "8.0|Unknown|COMPLETED|2M",
        "9.0|2026-12-01T10:00:02|COMPLETED|1.50M",
        "garbage",
    ])  # fmt: skip
    assert [row["step"] for row in verify_evidence.recorded_steps(rows, "2026-12-01T10:00:00")] == ["5.batch", "9.0"]


@pytest.mark.parametrize(
    ("config", "needed"),
    [
        ({"JobAcctGatherType": "jobacct_gather/cgroup", "AccountingStorageType": "accounting_storage/slurmdbd"}, True),
        ({"JobAcctGatherType": "jobacct_gather/none", "AccountingStorageType": "accounting_storage/slurmdbd"}, False),
        ({"JobAcctGatherType": "jobacct_gather/cgroup", "AccountingStorageType": "accounting_storage/none"}, False),
        ({}, False),
    ],
)
def test_when_a_probe_step_can_prove_anything(config: dict[str, str], needed: bool) -> None:
    assert checklist.needs_probe(config, wanted()["settings"]) is needed


@pytest.mark.parametrize(
    ("show", "left"),
    [
        ({"NextElapseUSecMonotonic": "1h 2min 3.5s", "NextElapseUSecRealtime": ""}, 3723.5 - 3000),
        ({"NextElapseUSecMonotonic": "infinity", "NextElapseUSecRealtime": "Tue 2026-12-01 10:00:00 CST"}, 100.0),
        ({"NextElapseUSecMonotonic": "0", "NextElapseUSecRealtime": "52y"}, 52 * 31557600.0 - 1_000_000),
        ({"NextElapseUSecMonotonic": "infinity", "NextElapseUSecRealtime": "n/a"}, None),
        ({"NextElapseUSecMonotonic": "infinity"}, None),
        ({}, None),
    ],
)
def test_when_a_timer_elapses_next(show: dict[str, str], left: float | None) -> None:
    """Monotonic and calendar timers, in the notations of systemd 219 and newer."""
    assert verify_evidence.next_elapse(show, 1_000_000.0, 3000.0, lambda date: {"2026-12-01 10:00:00": 1_000_100.0}[date]) == left


RUNNING = {"ActiveState": "active", "SubState": "running", "MainPID": "77", "KillMode": "process", "Restart": "always"}


@pytest.mark.parametrize(
    ("change", "comm", "words"),
    [
        ({}, "slurmd", ""),
        ({"Restart": "on-failure"}, "slurmd", ""),
        ({"KillMode": "control-group"}, "slurmd", "KillMode"),
        ({"KillMode": "mixed"}, "slurmd", "KillMode"),
        ({"Restart": "no"}, "slurmd", "stay dead"),
        ({"Restart": "on-success"}, "slurmd", "stay dead"),
        # S51: a pattern would also hit slurmdbd
        ({}, "slurmdbd", "not slurmd"),
        ({}, "wait-for-slurmc", "not slurmd"),
        ({}, "", "gone"),
        ({"SubState": "auto-restart", "ActiveState": "activating"}, "slurmd", "not active/running"),
        ({"MainPID": "0"}, "slurmd", "not active/running"),
    ],
)
def test_when_slurmd_may_be_killed(change: dict[str, str], comm: str, words: str) -> None:
    refusal = verify_evidence.crash_refusal({**RUNNING, **change}, comm)
    assert bool(refusal) is bool(words) and words in refusal
