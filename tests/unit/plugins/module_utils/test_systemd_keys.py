"""The keys of unit files by systemd release, and that no unit of ours holds one that the host's systemd would ignore."""

from __future__ import annotations

import pathlib
import typing as t

import jinja2
import pytest
import yaml

from ansible_collections.hpcguard.slurm.plugins.module_utils import patrol, standard_units, systemd_keys

ROOT = pathlib.Path(__file__).resolve().parents[4]
ROLES = ROOT / "roles"
SYSTEMD = (219, 230, 247, 252, 257)
SLURM = ([20, 11], [21, 8], [22, 5], [23, 2], [23, 11], [24, 5], [24, 11], [25, 5], [25, 11], [26, 5])

WAIT = "/usr/local/bin/wait-for-slurmctld.sh"
OPTIONS = {"restart": "always", "restart_sec": 10, "timeout_start_sec": 180, "wait": "auto", "wait_script": WAIT}

# What makes a unit say most: options that must be corrected, and other spellings of what ours replaces.
BEFORE = """[Unit]
Description=%s
[Service]
Type=%s
ExecStart=/usr/sbin/%s %s
Restart=no
[Install]
WantedBy=multi-user.target
"""
OTHER_SPELLINGS = "StartLimitBurst=3\n[Service]\nStartLimitIntervalSec=60\n"


def made_units(systemd: int, release: list[int]) -> t.Iterator[tuple[str, str]]:
    """Every unit and drop-in that a host with these releases can get: (what it is, its text)."""
    for daemon in standard_units.STANDARD:
        for folder in ("/usr/lib/systemd/system", "/etc/systemd/system"):
            for unit_type, words in (("simple", "-D -s"), ("forking", ""), ("notify", "--systemd"), ("forking", "-D")):
                text = BEFORE % (daemon, unit_type, daemon, words)
                if daemon != "slurmctld":  # its start limit is the site's own, which is carried over as it is
                    text = text.replace("[Service]\n", OTHER_SPELLINGS)
                unit: dict[str, t.Any] = {
                    "load_state": "loaded",
                    "style": "own" if folder.startswith("/etc") else "package",
                    "fragment_path": f"{folder}/{daemon}.service",
                    "text": text,
                    "drop_ins": [],
                }
                fact = {
                    "systemd": systemd,
                    "slurm": {"release": release},
                    "conf": {"servers": ["c1:6817", "c2:6817"]},
                    "units": {**dict.fromkeys(standard_units.STANDARD, unit), "mariadb.service": {"load_state": "loaded"}},
                }
                for wait in ("auto", True, False):
                    made = standard_units.unit_files(fact, daemon, {**OPTIONS, "wait": wait})
                    assert made["problems"] == []
                    for file in made["files"]:
                        if file["state"] == "present":
                            yield f"{file['path']} {unit_type} {words} wait={wait}", file["content"]


def patrol_units() -> dict[str, str]:
    """The patrol's units as the role's defaults render them."""
    variables = yaml.safe_load((ROLES / "patrol/defaults/main.yml").read_text())
    folder = ROLES / "patrol/templates"
    return {
        path.name[: -len(".j2")]: jinja2.Template(path.read_text()).render(variables, __patrol_bin="/usr/bin")
        for path in sorted(folder.glob("*.j2"))
    }


@pytest.mark.parametrize("release", SLURM, ids=str)
@pytest.mark.parametrize("systemd", SYSTEMD)
def test_case_20_no_unit_holds_a_key_that_the_hosts_systemd_ignores(systemd: int, release: list[int]) -> None:
    """S70: drop-ins and whole units of all daemons, whatever the unit was before."""
    texts = list(made_units(systemd, release))
    assert len(texts) >= 60
    assert [(name, found) for name, text in texts for found in systemd_keys.unknown_keys(text, systemd)] == []


def test_the_check_above_can_fail() -> None:
    """The units for a newer host, held against the oldest systemd, are found out."""
    found = {key for _name, text in made_units(252, [22, 5]) for _line, _section, key, _since in systemd_keys.unknown_keys(text, 219)}
    assert found == {"TasksMax"}


@pytest.mark.parametrize("name", sorted(patrol_units()))
def test_the_patrols_units_hold_what_systemd_219_knows(name: str) -> None:
    """The same three files go to every host."""
    assert systemd_keys.unknown_keys(patrol_units()[name], 219) == []


def test_a_key_is_told_with_its_line_and_the_release_that_knows_it() -> None:
    """Continued lines count from where they begin; remarks, X- keys and other sections are nobody's business."""
    text = "# x\n[Unit]\nAfter=a \\\n  b\nStartLimitIntervalSec=0\n[Service]\nNonsense=1\nX-Ours=1\n;TasksMax=1\nTasksMax=1\n"
    text += "[Socket]\nFoo=1\n[X-Site]\nBar=1\n"
    assert systemd_keys.unknown_keys(text, 219) == [
        (5, "Unit", "StartLimitIntervalSec", 230),
        (7, "Service", "Nonsense", None),
        (10, "Service", "TasksMax", 227),
    ]
    assert systemd_keys.key_problems("a.service", text, 229) == [
        "a.service, line 5: systemd 229 does not know StartLimitIntervalSec= in [Unit], it came with 230",
        "a.service, line 7: systemd 229 does not know Nonsense= in [Service]",
    ]


@pytest.mark.parametrize(
    ("section", "key", "since"),
    [
        ("Service", "StartLimitInterval", 219),
        ("Service", "StartLimitBurst", 219),
        ("Service", "StartLimitIntervalSec", None),
        ("Unit", "StartLimitInterval", 229),
        ("Unit", "StartLimitBurst", 229),
        ("Unit", "StartLimitIntervalSec", 230),
        ("Service", "FailureAction", 219),
        ("Unit", "FailureAction", 236),
        ("Service", "Delegate", 219),
        ("Service", "MemoryLimit", 219),
        ("Service", "MemoryMax", 231),
        ("Service", "ReadWriteDirectories", 219),
        ("Service", "ReadWritePaths", 231),
        ("Timer", "RandomizedDelaySec", 229),
        ("Install", "UpheldBy", 254),
        ("Unit", "AssertPathExists", 219),
        ("Unit", "AssertUser", 234),
        ("Timer", "Restart", None),
    ],
)
def test_keys_that_moved_or_were_renamed(section: str, key: str, since: int | None) -> None:
    """Known in one section and not in the other, under one name and not yet under the other."""
    assert systemd_keys.KNOWN_SINCE.get((section, key)) == since


def test_a_systemd_of_unknown_or_greater_age_counts_as_219() -> None:
    """No version could be read: what every systemd knows is right for it."""
    assert systemd_keys.known("Service", "Delegate", 0) and not systemd_keys.known("Service", "TasksMax", 0)


TIMER = "[Timer]\nOnBootSec=300\nOnUnitActiveSec=900\n"
SERVICE = "[Service]\nType=oneshot\nTimeoutStartSec=300\nRemainAfterExit=no\n"


@pytest.mark.parametrize(
    ("timer", "service", "said"),
    [
        (TIMER, SERVICE, None),
        ("[Timer]\nOnCalendar=hourly\n", SERVICE, None),
        (TIMER, SERVICE.replace("300", "0"), "would keep every later one away"),
        (TIMER, SERVICE.replace("300", "infinity"), "would keep every later one away"),
        (TIMER, SERVICE.replace("TimeoutStartSec=300\n", ""), "would keep every later one away"),
        (TIMER, SERVICE.replace("TimeoutStartSec=300\n", "").replace("oneshot", "simple"), None),
        (TIMER, SERVICE.replace("TimeoutStartSec", "TimeoutSec"), None),
        (TIMER, SERVICE + "TimeoutSec=20\n", "TimeoutSec=20 would end a run"),
        (TIMER, SERVICE + "TimeoutStartSec=20\nTimeoutSec=200\n", None),
        (TIMER, SERVICE.replace("300", "1min 30s"), None),
        (TIMER, SERVICE.replace("=no", "=yes"), "RemainAfterExit=yes keeps it active"),
        (TIMER, SERVICE.replace("=no", "=1"), "RemainAfterExit=1 keeps it active"),
        (TIMER, SERVICE.replace("300", "79"), "TimeoutStartSec=79 would end a run that may take 80 s"),
        (TIMER, SERVICE.replace("300", "1min"), "TimeoutStartSec=1min would end a run"),
        (TIMER.replace("OnBootSec=300\n", ""), SERVICE, "never elapses a first time"),
        (TIMER.replace("OnBootSec=300", "OnBootSec="), SERVICE, "never elapses a first time"),
        (TIMER.replace("OnUnitActiveSec=900\n", ""), SERVICE, "elapses once only"),
        (TIMER + "OnUnitActiveSec=\n", SERVICE, "elapses once only"),
        (TIMER.replace("900", "infinity"), SERVICE, "elapses once only"),
        ("[Timer]\nOnBootSec=300\nOnBootSec=\nOnUnitActiveSec=900\n", SERVICE, "never elapses a first time"),
        ("[Timer]\nOnCalendar=hourly\nOnCalendar=\nOnBootSec=3\nOnUnitActiveSec=900\n", SERVICE, None),
    ],
)
def test_timers_that_would_stop_are_refused(timer: str, service: str, said: str | None) -> None:
    """S68, chapter 5.3.2: the faults of the legacy patrol cannot be written again."""
    problems = systemd_keys.timer_problems({"p.timer": timer, "p.service": service}, {"p.service": 80})
    assert len(problems) == (said is not None)
    assert said is None or said in problems[0]


def test_the_bound_of_the_patrols_service_is_that_of_its_settings() -> None:
    """What the role calls the least is no less than what the program allows itself."""
    least = role_vars()["__patrol_least"]
    # the last look, and what an SSH call that cannot be ended costs
    assert least["slurm-cluster-health.service"] >= patrol.ROUND + patrol.CALL + 5
    assert patrol.LOOKING + patrol.FIXING < patrol.ROUND
    waits = int(jinja2.Template(least["slurm-cluster-health-bootstrap.service"]).render(patrol_boot_limit=1000)) - 1000
    assert waits >= patrol.ROUND + patrol.CALL + 5


def test_a_timer_names_another_service() -> None:
    """Unit= of the timer counts, not the name; what no timer starts may stay active."""
    units = {
        "p.timer": TIMER + "Unit=q.service\n",
        "q.service": SERVICE.replace("=no", "=yes"),
        "p.service": SERVICE.replace("=no", "=yes"),
    }
    assert [line.split(":")[0] for line in systemd_keys.timer_problems(units, {})] == ["q.service"]


def test_the_patrols_units_pass_the_lint_of_timers() -> None:
    """With the bounds that the role itself asks for, at the default settings."""
    variables = yaml.safe_load((ROLES / "patrol/defaults/main.yml").read_text())
    least = {name: int(jinja2.Template(str(text)).render(variables)) for name, text in role_vars()["__patrol_least"].items()}
    assert len(patrol_units()) == 3 and set(least) < set(patrol_units())
    assert systemd_keys.timer_problems(patrol_units(), least) == []


def role_vars() -> dict[str, t.Any]:
    found: dict[str, t.Any] = yaml.safe_load((ROLES / "patrol/vars/main.yml").read_text())
    return found
