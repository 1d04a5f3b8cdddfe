"""What systemd says about units, 219 to 262."""

from __future__ import annotations

import pytest

from ansible_collections.hpcguard.slurm.plugins.module_utils import systemd_unit as unit

WAITED = (
    "{ path=/usr/local/bin/wait.sh ; argv[]=/usr/local/bin/wait.sh c1:6817 ; ignore_errors=no ; "
    "start_time=[Tue 2026-12-01 01:02:03 UTC] ; stop_time=[Tue 2026-12-01 01:02:04 UTC] ; pid=12 ; code=exited ; status=0 }"
)
STARTED = (
    "{ path=/usr/sbin/slurmd ; argv[]=/usr/sbin/slurmd -D -s $SLURMD_OPTIONS ; ignore_errors=no ; "
    "start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }"
)
# systemd 252, slurmd with a wait script
SHOW = f"""Type=simple
Restart=always
RestartUSec=10s
TimeoutStartUSec=3min
MainPID=4711
ExecMainStartTimestampMonotonic=12500000
ExecStartPre={WAITED}
ExecStart={STARTED}
KillMode=process
NeedDaemonReload=no
LoadState=loaded
ActiveState=active
SubState=running
FragmentPath=/lib/systemd/system/slurmd.service
DropInPaths=/etc/systemd/system/slurmd.service.d/a.conf /etc/systemd/system/slurmd.service.d/b.conf
"""


def test_the_fact_of_a_unit() -> None:
    """The shape that the other rooms read."""
    fact = unit.unit_fact(unit.parse_show(SHOW), "text", [], boot_epoch=1000.0)
    assert fact["main_pid"] == 4711 and fact["kill_mode"] == "process" and fact["restart_usec"] == 10_000_000
    assert fact["exec_main_start"] == pytest.approx(1012.5)
    assert fact["exec_start"] == "/usr/sbin/slurmd -D -s $SLURMD_OPTIONS"
    assert fact["style"] == "package" and len(fact["drop_in_paths"]) == 2
    (wait,) = fact["exec_start_pre"]
    assert (wait["path"], wait["code"], wait["status"]) == ("/usr/local/bin/wait.sh", "exited", "0")
    assert wait["stop"] == "Tue 2026-12-01 01:02:04 UTC"


def test_a_unit_that_is_not_there() -> None:
    """No answer at all gives a fact too, and not one of a running unit."""
    fact = unit.unit_fact({})
    assert (fact["load_state"], fact["main_pid"], fact["style"]) == ("not-found", 0, "none")


@pytest.mark.parametrize(
    ("shown", "usec"),
    [
        ("10s", 10_000_000),
        ("1min 30s", 90_000_000),
        ("3min", 180_000_000),
        ("100ms", 100_000),
        ("infinity", None),
        ("", None),
        ("5000000", 5_000_000),
        ("0", 0),
    ],
)
def test_time_spans(shown: str, usec: int | None) -> None:
    """Spans as systemctl prints them."""
    assert unit.parse_usec(shown) == usec


def test_many_units_in_one_answer() -> None:
    """One dictionary a unit, in order, repeated properties kept."""
    shown = unit.parse_show_many("Id=a\nExecStart=1\nExecStart=2\n\nId=b\n")
    assert [one["Id"] for one in shown] == ["a", "b"] and shown[0]["ExecStart"] == "1\n2"


def test_unit_files() -> None:
    """Comments, CRLF, continued lines, repeated and empty keys (systemd.syntax(7))."""
    text = "[Unit]\r\nAfter=a.service\r\n; remark\r\n[Service]\r\nExecStart=/bin/x \\\r\n# between\r\n  -D\r\nExecStartPre=\r\n"
    assert unit.parse_unit(text) == [("Unit", "After", "a.service"), ("Service", "ExecStart", "/bin/x -D"), ("Service", "ExecStartPre", "")]


def test_rendered_text_reads_back() -> None:
    """What is written says the same when it is read."""
    entries = [("Install", "WantedBy", "x"), ("Service", "Type", "simple"), ("Unit", "After", "a"), ("Service", "Nice", "1")]
    text = unit.render_unit(entries, "one\ntwo", {("Service", "Type"): "why"})
    assert text == "# one\n# two\n\n[Unit]\nAfter=a\n\n[Service]\n# why\nType=simple\nNice=1\n\n[Install]\nWantedBy=x\n"
    assert sorted(unit.parse_unit(text)) == sorted(entries)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/etc/systemd/system/slurmd.service", "slurmd.service"),
        ("/etc/systemd/system/slurmd.service.d/hpcguard.conf", "slurmd.service"),
        ("/usr/local/bin/x.sh", ""),
    ],
)
def test_whose_file(path: str, name: str) -> None:
    """A drop-in belongs to the unit of its directory."""
    assert unit.unit_of(path) == name
