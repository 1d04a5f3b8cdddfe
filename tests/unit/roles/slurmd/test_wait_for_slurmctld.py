"""The wait script as systemd runs it, against real sockets and a scontrol that answers for those which serve."""

from __future__ import annotations

import collections.abc
import contextlib
import os
import pathlib
import shlex
import socket
import subprocess
import threading
import time

import jinja2
import pytest

TEMPLATE = pathlib.Path(__file__).resolve().parents[4] / "roles/slurmd/templates/wait-for-slurmctld.sh.j2"
# A server serves while there is a file of its name; else its ping hangs, or ends as that of a standby does.
SCONTROL = r"""#!/bin/bash
here=${0%/bin/*}
echo "$SLURM_CONF_SERVER $*" >>"$here/asked"
if [[ -e $here/$SLURM_CONF_SERVER.serves ]]; then exit 0; fi
if [[ -e $here/$SLURM_CONF_SERVER.standby ]]; then echo 'scontrol: error: Invalid request' >&2; exit 1; fi
if [[ -e $here/$SLURM_CONF_SERVER.includes ]]; then
    echo "scontrol: error: s_p_parse_file: cannot stat file /proc/$$/fd/site.conf: No such file or directory" >&2
fi
exec sleep 100
"""
# For a machine that has other things to do.
SLACK = 2.0


class Site:
    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        (path / "bin").mkdir()
        (path / "bin/scontrol").write_text(SCONTROL, encoding="utf-8")
        (path / "bin/scontrol").chmod(0o755)
        environment = jinja2.Environment(
            comment_start_string="<#", comment_end_string="#>", keep_trailing_newline=True, undefined=jinja2.StrictUndefined
        )
        environment.filters.update(quote=lambda value: shlex.quote(str(value)), dirname=os.path.dirname)
        self.script = path / "wait-for-slurmctld.sh"
        scontrol = str(path / "bin/scontrol")
        self.script.write_text(
            environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
                slurmd_wait_seconds=60, hpcguard_cluster={"slurm": {"bin": {"scontrol": scontrol}}}
            ),
            encoding="utf-8",
        )

    def run(self, *arguments: str, limit: int | None = None) -> tuple[subprocess.CompletedProcess[str], float]:
        begun = time.monotonic()
        environment = {} if limit is None else {"WAIT_FOR_SLURMCTLD_SECONDS": str(limit)}
        done = subprocess.run(
            ["/bin/bash", str(self.script), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        return done, time.monotonic() - begun

    def mark(self, server: str, what: str) -> None:
        (self.path / f"{server}.{what}").touch()

    def asked(self) -> list[str]:
        file = self.path / "asked"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def left_running(self) -> list[str]:
        """What of a run is there for longer than a signal takes on a busy machine."""
        until = time.monotonic() + SLACK
        while (found := self.running()) and time.monotonic() < until:
            time.sleep(0.05)
        return found

    def running(self) -> list[str]:
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if str(self.path) in (process / "environ").read_text(encoding="utf-8", errors="replace"):
                    found.append((process / "cmdline").read_text(encoding="utf-8"))
        return found


@pytest.fixture
def site(tmp_path: pathlib.Path) -> Site:
    return Site(tmp_path)


@contextlib.contextmanager
def listening() -> collections.abc.Iterator[int]:
    """A port that accepts and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        yield server.getsockname()[1]


def closed_port() -> int:
    with listening() as port:
        return port


@pytest.mark.parametrize("form", ["{host}:{port}", "{host} {port}"])
def test_case_18_a_serving_controller_is_ready_at_once(site: Site, form: str) -> None:
    with listening() as port:
        site.mark(f"127.0.0.1:{port}", "serves")
        done, took = site.run(*form.format(host="127.0.0.1", port=port).split())
    assert (done.returncode, done.stderr) == (0, "")
    assert f"slurmctld 已就绪: 127.0.0.1:{port}" in done.stdout
    assert took < SLACK
    assert site.asked() == [f"127.0.0.1:{port} ping"]


def test_case_18_a_hung_controller_is_not_ready(site: Site) -> None:
    """It accepts and never answers: not ready, within the limit, with new attempts each second and none left behind."""
    with listening() as port:
        done, took = site.run(f"127.0.0.1:{port}", limit=4)
    assert done.returncode == 1
    assert "等待 slurmctld 就绪超时 (4 s)" in done.stderr
    assert f"127.0.0.1:{port} listens" in done.stderr
    assert 3 <= took < 4 + SLACK
    assert 2 <= len(site.asked()) <= 5
    assert site.left_running() == []


def test_a_closed_port_costs_no_scontrol(site: Site) -> None:
    port = closed_port()
    done, took = site.run("127.0.0.1", str(port), limit=2)
    assert done.returncode == 1
    assert f"127.0.0.1:{port} cannot be reached" in done.stderr
    assert took < 2 + SLACK
    assert site.asked() == []


def test_a_standby_is_not_ready(site: Site) -> None:
    with listening() as port:
        site.mark(f"127.0.0.1:{port}", "standby")
        done, _took = site.run(f"127.0.0.1:{port}", limit=2)
    assert done.returncode == 1
    assert "listens, but does not serve" in done.stderr


def test_case_18_a_hung_controller_keeps_no_one_from_another(site: Site) -> None:
    with listening() as hung, listening() as well:
        site.mark(f"127.0.0.1:{well}", "serves")
        done, took = site.run(f"127.0.0.1:{hung}", f"127.0.0.1:{closed_port()}", f"127.0.0.1:{well}")
    assert done.returncode == 0
    assert f"已就绪: 127.0.0.1:{well}" in done.stdout
    assert took < SLACK
    assert site.left_running() == []


def test_a_late_controller_is_seen_within_two_seconds(site: Site) -> None:
    """Older attempts still hang when it begins to serve."""
    served: list[float] = []

    def serve() -> None:
        site.mark(f"127.0.0.1:{port}", "serves")
        served.append(time.monotonic())

    with listening() as port:
        timer = threading.Timer(3, serve)
        timer.start()
        done, _took = site.run(f"127.0.0.1:{port}", limit=30)
        ended = time.monotonic()
    assert done.returncode == 0
    assert ended - served[0] < 2 + SLACK / 2


def test_attempts_that_hang_do_not_use_up_the_right_to_ask(site: Site) -> None:
    """An attempt may hang longer than a dozen of them take to begin; none of those is ever answered."""
    text = site.script.read_text(encoding="utf-8")
    assert "ANSWER_LIMIT=15\n" in text
    site.script.write_text(text.replace("ANSWER_LIMIT=15\n", "ANSWER_LIMIT=40\n"), encoding="utf-8")
    served: list[float] = []

    def serve_after_a_dozen() -> None:
        while len(site.asked()) < 12:
            time.sleep(0.05)
        site.mark(f"127.0.0.1:{port}", "serves")
        served.append(time.monotonic())

    with listening() as port:
        thread = threading.Thread(target=serve_after_a_dozen)
        thread.start()
        done, _took = site.run(f"127.0.0.1:{port}", limit=60)
        ended = time.monotonic()
        thread.join()
    assert done.returncode == 0
    assert ended - served[0] < 2 + SLACK


def test_a_configuration_with_includes_proves_its_controller(site: Site) -> None:
    """Before slurmd ever ran, scontrol gets slurm.conf, does not find what it includes, and tries for a minute."""
    with listening() as port:
        site.mark(f"127.0.0.1:{port}", "includes")
        done, took = site.run(f"127.0.0.1:{port}")
    assert done.returncode == 0
    assert took < SLACK
    assert site.left_running() == []


@pytest.mark.parametrize("arguments", [[], ["a;id"], ["$(id)"], ["a:b"], ["a b"], ["a:1:2"], [""]])
def test_wrong_arguments(site: Site, arguments: list[str]) -> None:
    done, _took = site.run(*arguments)
    assert done.returncode == 2
    assert "usage" in done.stderr
    assert site.asked() == []


def test_case_18_the_port_is_6817_unless_said(site: Site) -> None:
    done, _took = site.run("c1.invalid", "[::1]:6899", "c2.invalid:6820", limit=1)
    for server in ("c1.invalid:6817", "[::1]:6899", "c2.invalid:6820"):
        assert server in done.stderr
