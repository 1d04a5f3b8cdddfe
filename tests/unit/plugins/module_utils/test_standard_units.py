"""What the units must say (specification 2.3), and the files that make them say it."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import standard_units as standard
from ansible_collections.hpcguard.slurm.plugins.module_utils import systemd_unit

WAIT = "/usr/local/bin/wait-for-slurmctld.sh"
SLURMD = {"restart": "always", "restart_sec": 10, "timeout_start_sec": 180, "wait": "auto", "wait_script": WAIT}
OTHERS = {"restart": "always", "restart_sec": 10}

LEGACY = """[Unit]
Description=Slurm node daemon
After=network.target munge.service
# a remark
[Service]
Type=simple
EnvironmentFile=-/etc/sysconfig/slurmd
ExecStart=/usr/local/slurm/sbin/slurmd -D --conf-server k8s-master-01:6817 $SLURMD_OPTIONS
LimitNOFILE=51200
Restart=on-failure
RestartSec=5
[Install]
WantedBy=multi-user.target
"""

# as Debian 12 ships it
PACKAGED = """[Unit]
Description=Slurm node daemon
After=munge.service network-online.target remote-fs.target
Wants=network-online.target
Documentation=man:slurmd(8)
[Service]
Type=simple
EnvironmentFile=-/etc/default/slurmd
ExecStart=/usr/sbin/slurmd -D -s $SLURMD_OPTIONS
ExecReload=/bin/kill -HUP $MAINPID
PIDFile=/run/slurmd.pid
KillMode=process
LimitNOFILE=131072
LimitMEMLOCK=infinity
LimitSTACK=infinity
Delegate=yes
TasksMax=infinity
[Install]
WantedBy=multi-user.target
"""


def fact(text: str, own: bool = True, name: str = "slurmd", **more: t.Any) -> dict[str, t.Any]:
    path = f"/etc/systemd/system/{name}.service" if own else f"/lib/systemd/system/{name}.service"
    unit = {
        "load_state": "loaded",
        "style": systemd_unit.style(path),
        "fragment_path": path,
        "text": text,
        "drop_ins": more.pop("drop_ins", []),
    }
    made: dict[str, t.Any] = {
        "systemd": 252,
        "slurm": {"release": [22, 5]},
        "conf": {"servers": ["k8s-master-01:6817"]},
        "units": {name: unit, **more.pop("units", {})},
        "controller": None,
    }
    made.update(more)
    return made


def settled(given: dict[str, t.Any], name: str, options: dict[str, t.Any]) -> tuple[dict[str, t.Any], dict[tuple[str, str], list[str]]]:
    """The file for a unit and what the unit says with it; a second run must write the same text."""
    result = standard.unit_files(given, name, options)
    assert result["problems"] == []
    (file,) = result["files"]
    unit = given["units"][name]
    says = systemd_unit.parse_unit(unit["text"])
    if unit["style"] == "own":
        says = systemd_unit.parse_unit(file["content"])
        unit["text"] = file["content"]
    else:
        unit["drop_ins"] = [one for one in unit["drop_ins"] if one["path"] != file["path"]]
        if file["state"] == "present":
            unit["drop_ins"].append({"path": file["path"], "text": file["content"]})
        for drop_in in sorted(unit["drop_ins"], key=lambda one: one["path"].rsplit("/", 1)[-1]):
            says += systemd_unit.parse_unit(drop_in["text"])
    (again,) = standard.unit_files(given, name, options)["files"]
    assert again["content"] == file["content"], "byte-identical on the second run"
    return file, standard.effective(says)


def test_legacy_slurmd_becomes_the_standard_and_keeps_what_is_the_sites() -> None:
    """The SOP's own unit, written whole: every standard key, every key of the site."""
    file, says = settled(fact(LEGACY), "slurmd", SLURMD)
    assert file["path"] == "/etc/systemd/system/slurmd.service" and file["class"] == "restart_slurmd"
    wanted = {
        "ExecStartPre": f"{WAIT} k8s-master-01:6817",
        "TimeoutStartSec": "180",
        "Restart": "always",
        "RestartSec": "10",
        "StartLimitInterval": "0",
        "KillMode": "process",
        "Delegate": "yes",
        "LimitMEMLOCK": "infinity",
        "LimitSTACK": "infinity",
        "TasksMax": "infinity",
        "LimitNOFILE": "51200",
        "EnvironmentFile": "-/etc/sysconfig/slurmd",
        "Type": "simple",
    }
    assert {key: says["Service", key] for key in wanted} == {key: [value] for key, value in wanted.items()}
    assert says["Service", "ExecStart"][0].startswith("/usr/local/slurm/sbin/slurmd -D --conf-server")
    assert says["Unit", "After"] == ["network.target munge.service network-online.target remote-fs.target"]
    assert says["Unit", "Wants"] == ["munge.service network-online.target"]
    assert says["Install", "WantedBy"] == ["multi-user.target"]


def test_packaged_slurmd_gets_only_what_differs() -> None:
    """A drop-in over the vendor's unit, without keys that the vendor has already."""
    file, says = settled(fact(PACKAGED, own=False), "slurmd", SLURMD)
    assert file["path"] == "/etc/systemd/system/slurmd.service.d/hpcguard.conf"
    keys = [key for _section, key, _value in systemd_unit.parse_unit(file["content"])]
    assert keys == ["Wants", "ExecStartPre", "TimeoutStartSec", "Restart", "RestartSec", "StartLimitInterval"]
    assert says["Service", "KillMode"] == ["process"]


def test_nothing_differs_nothing_is_written() -> None:
    """A vendor's unit that says it all needs no drop-in, and one of ours from before goes."""
    given = fact(PACKAGED, own=False)
    (file,) = standard.unit_files(given, "slurmd", SLURMD)["files"]
    given["units"]["slurmd"]["text"] += systemd_unit.render_unit(systemd_unit.parse_unit(file["content"]))
    given["units"]["slurmd"]["drop_ins"] = [{"path": file["path"], "text": file["content"]}]
    (file,) = standard.unit_files(given, "slurmd", SLURMD)["files"]
    assert file["state"] == "absent"


@pytest.mark.parametrize("systemd", [219, 232, 252, 262])
def test_case_20_no_key_that_the_hosts_systemd_does_not_know(systemd: int) -> None:
    """S70: the start limit is off in the spelling of 219 in [Service], and newer keys appear on newer hosts only."""
    says = settled(fact(LEGACY, systemd=systemd), "slurmd", SLURMD)[1]
    assert says["Service", "StartLimitInterval"] == ["0"]
    assert not [key for key in says if key[1] in ("StartLimitIntervalSec", "StartLimitBurst")]
    assert (("Service", "TasksMax") in says) is (systemd >= 227)


def test_other_spellings_of_the_start_limit_go() -> None:
    """A StartLimitIntervalSec of the site would turn the limit on again."""
    text = LEGACY.replace("[Service]\n", "StartLimitIntervalSec=60\nStartLimitBurst=3\n[Service]\nStartLimitIntervalSec=60\n")
    says = settled(fact(text), "slurmd", SLURMD)[1]
    assert [key for key in says if key[1].startswith("StartLimit")] == [("Service", "StartLimitInterval")]


def test_the_start_time_counts_after_timeoutsec() -> None:
    """TimeoutSec sets the start time too, so ours comes after it, and the site's stop time stays."""
    text = LEGACY.replace("[Install]", "TimeoutStartSec=5\nTimeoutSec=60\n[Install]")
    file, says = settled(fact(text), "slurmd", SLURMD)
    assert says["Service", "TimeoutSec"] == ["60"]
    assert file["content"].index("TimeoutStartSec=180") > file["content"].index("TimeoutSec=60")


@pytest.mark.parametrize(
    ("release", "wait", "called"),
    [([23, 11], "auto", True), ([24, 5], "auto", False), ([24, 11], True, True), ([22, 5], False, False), ([26, 5], "auto", False)],
)
def test_the_wait_script_is_left_out_where_slurmd_waits(release: list[int], wait: t.Any, called: bool) -> None:
    """S30: from 24.05 on slurmd itself waits; a wait script of ours from before goes, other commands stay."""
    text = LEGACY.replace("ExecStart=", f"ExecStartPre=/bin/true\nExecStartPre={WAIT} old:6817\nExecStart=", 1)
    given = fact(text, slurm={"release": release})
    assert standard.unit_files(given, "slurmd", {**SLURMD, "wait": wait})["waits"] is called
    commands = settled(given, "slurmd", {**SLURMD, "wait": wait})[1]["Service", "ExecStartPre"]
    assert commands == ["/bin/true"] + [f"{WAIT} k8s-master-01:6817"] * called


def test_every_controller_is_waited_for() -> None:
    """Two controllers, one call."""
    says = settled(fact(LEGACY, conf={"servers": ["c1:6817", "c2:6819"]}), "slurmd", SLURMD)[1]
    assert says["Service", "ExecStartPre"] == [f"{WAIT} c1:6817 c2:6819"]


def test_a_wait_without_controllers_is_refused() -> None:
    """Nothing to wait for is a problem, not a script that always fails."""
    assert standard.unit_files(fact(LEGACY, conf={"servers": []}), "slurmd", SLURMD)["problems"]


@pytest.mark.parametrize("server", ["c1;reboot", "c1\nExecStartPre=/bin/evil", "c1 %h"])
def test_hostile_controller_names_do_not_reach_a_unit(server: str) -> None:
    """A name from a configuration file is checked before it stands in a command."""
    result = standard.unit_files(fact(LEGACY, conf={"servers": [server]}), "slurmd", SLURMD)
    assert result["problems"] and result["files"] == []


@pytest.mark.parametrize(
    ("unit_type", "command", "release", "wanted"),
    [
        ("forking", "/usr/sbin/slurmd -D", [21, 8], ("simple", "/usr/sbin/slurmd -D")),
        ("forking", "/usr/sbin/slurmd -cD -s", [21, 8], ("simple", "/usr/sbin/slurmd -cD -s")),
        ("forking", "/usr/sbin/slurmd", [21, 8], ("forking", "/usr/sbin/slurmd")),
        ("simple", "/usr/sbin/slurmd", [21, 8], ("simple", "/usr/sbin/slurmd -D")),
        ("simple", "/usr/sbin/slurmd $SLURMD_OPTIONS", [21, 8], ("simple", "/usr/sbin/slurmd $SLURMD_OPTIONS")),
        ("simple", "/usr/sbin/slurmd -D -s", [24, 11], ("simple", "/usr/sbin/slurmd -D -s")),
        ("notify", "/usr/sbin/slurmd --systemd", [24, 11], ("notify", "/usr/sbin/slurmd --systemd")),
        ("simple", "/usr/sbin/slurmd --systemd", [23, 11], ("notify", "/usr/sbin/slurmd --systemd")),
        ("notify", "/usr/sbin/slurmd -D", [24, 11], ("simple", "/usr/sbin/slurmd -D")),
        ("notify", "/usr/sbin/slurmd --systemd", [23, 2], ("simple", "/usr/sbin/slurmd -D")),
    ],
)
def test_type_and_options_agree(unit_type: str, command: str, release: list[int], wanted: tuple[str, str]) -> None:
    """S40: -D is simple, --systemd is notify and 23.11 or newer, neither forks; what agrees is left alone."""
    *result, why = standard.agree(unit_type, command, release)
    assert tuple(result) == wanted
    assert bool(why) is (tuple(result) != (unit_type, command))
    assert standard.agree(wanted[0], wanted[1], release)[2] == "", "the correction needs no correction"


@pytest.mark.parametrize("own", [True, False])
def test_forking_with_foreground_is_corrected(own: bool) -> None:
    """The legacy fault of the SOP (5.3.1), in both styles."""
    says = settled(fact(LEGACY.replace("Type=simple", "Type=forking"), own=own), "slurmd", SLURMD)[1]
    assert says["Service", "Type"] == ["simple"]


CTLD = LEGACY.replace("slurmd -D --conf-server k8s-master-01:6817 $SLURMD_OPTIONS", "slurmctld -D")
LOADED = {"load_state": "loaded"}


UNUSED = {**LOADED, "unit_file_state": "disabled", "main_pid": 0}


@pytest.mark.parametrize(
    ("here", "ordered"),
    [
        ({}, False),
        ({"slurmdbd": {"load_state": "not-found"}}, False),
        ({"slurmdbd": LOADED}, True),
        # brought by a package and used by nobody: slurmdbd is elsewhere, or there is none
        ({"slurmdbd": UNUSED}, False),
        ({"slurmdbd": {**UNUSED, "main_pid": 7}}, True),
    ],
)
def test_slurmctld_waits_for_slurmdbd_where_it_is_on_this_host(here: dict[str, t.Any], ordered: bool) -> None:
    """S33, S34: After= and Wants=, never Requires=, and not for a unit that is elsewhere."""
    file, says = settled(fact(CTLD, name="slurmctld", units=here), "slurmctld", {"restart": "", "restart_sec": 10})
    for key in ("After", "Wants"):
        assert ("slurmdbd.service" in says["Unit", key][0].split()) is ordered
    assert ("Unit", "Requires") not in says
    assert file["class"] == "reload_units", "slurmctld is not restarted for its order of start"


@pytest.mark.parametrize(
    ("config", "restart"),
    [({"SlurmctldHost[0]": "c1"}, "always"), ({"SlurmctldHost[0]": "c1", "SlurmctldHost[1]": "c2"}, "on-failure")],
)
def test_restart_of_slurmctld_beside_a_backup(config: dict[str, str], restart: str) -> None:
    """S31: with a backup controller Restart=always would defeat the takeover."""
    given = fact(CTLD, name="slurmctld", controller={"config": config})
    assert settled(given, "slurmctld", {"restart": "", "restart_sec": 10})[1]["Service", "Restart"] == [restart]


@pytest.mark.parametrize(("database", "after"), [("mariadb", "mariadb.service"), ("mysql", "mysql.service"), (None, None)])
def test_slurmdbd_comes_after_its_database_and_is_never_cut_short(database: str | None, after: str | None) -> None:
    """No limit that could kill a conversion (0 is the spelling of 219 too), no start limit."""
    dbd = LEGACY.replace("slurmd -D --conf-server k8s-master-01:6817 $SLURMD_OPTIONS", "slurmdbd -D")
    given = fact(dbd, name="slurmdbd", units={database: LOADED} if database else {})
    says = settled(given, "slurmdbd", OTHERS)[1]
    assert says["Service", "TimeoutStartSec"] == ["0"] and says["Service", "StartLimitInterval"] == ["0"]
    databases = [word for word in says["Unit", "After"][0].split() if word.startswith(("maria", "mysql"))]
    assert databases == ([after] if after else [])


# What systemd itself allows: five starts in ten seconds (systemd.unit(5)).
BURST, INTERVAL = 5, 10


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(("name", "options"), [("slurmd", SLURMD), ("slurmctld", {"restart": "", "restart_sec": 10}), ("slurmdbd", OTHERS)])
def test_case_26_a_first_start_that_fails_at_boot_is_tried_again(name: str, options: dict[str, t.Any], own: bool) -> None:
    """User slurm comes from LDAP and is late: no order is needed, since each daemon is started again and no limit ends that."""
    text = LEGACY.replace("slurmd -D --conf-server k8s-master-01:6817 $SLURMD_OPTIONS", name + " -D")
    text = text.replace("Restart=on-failure\nRestartSec=5\n", "")
    assert "Restart" not in text
    says = settled(fact(text, own=own, name=name), name, options)[1]
    assert says["Service", "Restart"][0] in ("always", "on-failure")
    unlimited = says.get(("Service", "StartLimitInterval")) == ["0"]
    assert unlimited or int(says["Service", "RestartSec"][0]) * BURST > INTERVAL


@pytest.mark.parametrize("name", ["slurmd", "slurmctld", "slurmdbd"])
def test_case_97_a_host_without_the_unit_is_a_sentence(name: str) -> None:
    """Whatever the fact holds of a unit that is not there."""
    absent: list[dict[str, t.Any]] = [{}, {name: {}}]
    absent += [{name: systemd_unit.unit_fact(show, None, [], 0.0)} for show in ({}, {"LoadState": "not-found"})]
    for units in absent:
        given = fact(LEGACY)
        given["units"] = units
        made = standard.unit_files(given, name, SLURMD)
        assert made == {"files": [], "units": [], "problems": [f"{name}.service is not-found on this host"], "waits": False}


def test_case_47_a_drop_in_that_would_end_jobs_is_told() -> None:
    """Another drop-in that comes after ours and says otherwise is a problem before anything is written."""
    drop_in = {"path": "/etc/systemd/system/slurmd.service.d/zz.conf", "text": "[Service]\nKillMode=control-group\nNice=3\n"}
    for own in (True, False):
        (problem,) = standard.unit_files(fact(PACKAGED, own=own, drop_ins=[drop_in]), "slurmd", SLURMD)["problems"]
        assert "zz.conf" in problem and "KillMode=control-group" in problem


def test_an_earlier_drop_in_counts_as_part_of_the_unit() -> None:
    """What a drop-in before ours says right is not said again; what it says wrong is put right."""
    drop_in = {"path": "/etc/systemd/system/slurmd.service.d/a.conf", "text": "[Service]\nRestart=always\nRestartSec=5s\nKillMode=mixed\n"}
    given = fact(PACKAGED, own=False, drop_ins=[drop_in])
    file, says = settled(given, "slurmd", SLURMD)
    keys = [key for _section, key, _value in systemd_unit.parse_unit(file["content"])]
    assert "Restart" not in keys and "RestartSec" in keys and says["Service", "KillMode"] == ["process"]


@pytest.mark.parametrize("state", ["masked", "not-found", "error"])
def test_units_that_cannot_be_changed(state: str) -> None:
    """A masked unit is somebody's wish, a missing one is for the operator."""
    given = fact(LEGACY)
    given["units"]["slurmd"]["load_state"] = state
    result = standard.unit_files(given, "slurmd", SLURMD)
    assert result["files"] == [] and state in result["problems"][0]


def test_further_settings_of_the_site() -> None:
    """A variable adds keys the same way, and they stay on the second run."""
    says = settled(fact(LEGACY), "slurmd", {**SLURMD, "extra": {"Service": {"Nice": -5}}})[1]
    assert says["Service", "Nice"] == ["-5"]


@pytest.mark.parametrize(
    ("munge", "enabled"),
    [
        ({"load_state": "loaded", "unit_file_state": "disabled"}, True),
        ({"load_state": "loaded", "unit_file_state": "enabled"}, False),
        ({"load_state": "masked", "unit_file_state": "masked"}, False),
        ({"load_state": "not-found", "unit_file_state": ""}, False),
        ({"load_state": "loaded", "unit_file_state": "static"}, False),
    ],
)
def test_munge_starts_with_the_host(munge: dict[str, str], enabled: bool) -> None:
    """Item 8 asks for it. Masked is somebody's wish, and auth/slurm needs none."""
    result = standard.unit_files(fact(LEGACY, units={"munge": munge}), "slurmd", SLURMD)
    assert result["units"] == ([{"name": "munge.service", "enabled": True}] if enabled else [])


def test_a_further_setting_that_the_hosts_systemd_ignores_is_told() -> None:
    """It would look as if it were in force; where the release is unknown the site is believed."""
    options = {**SLURMD, "extra": {"Service": {"MemoryMax": "1G"}}}
    told = "slurmd_unit_extra: systemd 219 does not know MemoryMax= in [Service]"
    assert standard.unit_files(fact(LEGACY, systemd=219), "slurmd", options)["problems"] == [told]
    assert standard.unit_files(fact(LEGACY, systemd=252), "slurmd", options)["problems"] == []
    assert standard.unit_files(fact(LEGACY, systemd=0), "slurmd", options)["problems"] == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10", "10s", True),
        ("180", "3min", True),
        ("yes", "true", True),
        ("0", "no", True),
        ("10", "1", False),
        ("always", "on-failure", False),
    ],
)
def test_spellings_that_mean_the_same(one: str, other: str, same: bool) -> None:
    """No drop-in for a difference in spelling."""
    assert standard.same_value(one, other) is same
