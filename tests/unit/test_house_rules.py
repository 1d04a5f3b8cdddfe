"""Guards over the whole tree: the ways of doing things that were found false or unsafe do not come back.

A rule looks at one file and names what breaks it. Each rule is also shown a sample that breaks it, so that none can
pass for want of teeth, and one that is close but right. Numbers such as S49 are rows of the facts that stand behind it.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import io
import os
import pathlib
import re
import tokenize
import typing as t
from collections.abc import Callable, Iterable, Iterator

import pytest
import yaml
from ansible.playbook.block import Block
from ansible.playbook.handler import Handler

from ansible_collections.hpcguard.slurm.plugins.doc_fragments.attributes import ModuleDocFragment as Shared
from ansible_collections.hpcguard.slurm.plugins.module_utils import standard_units, systemd_keys

ROOT = pathlib.Path(__file__).resolve().parents[2]

PRODUCT = ("playbooks", "roles", "plugins")
TASKS = ("playbooks", "roles", "molecule")
EVERYTHING = (*PRODUCT, "lab", "molecule", "tests", "inventories", "meta", "changelogs", "docs", ".ci", "Makefile", "ansible.cfg")
# The lab's starting state is wrong on purpose, recorded output is as it came, and this file names what it forbids.
LEFT_OUT = ("lab/legacy", "tests/fixtures", "tests/unit/test_house_rules.py")

Find = Callable[[str, str], Iterable[str]]


@dataclasses.dataclass(frozen=True)
class Rule:
    """What no file may hold, why, and the proof that the rule can tell."""

    name: str
    why: str
    find: Find
    bad: tuple[tuple[str, str], ...]
    good: tuple[tuple[str, str], ...] = ()
    places: tuple[str, ...] = PRODUCT
    suffixes: tuple[str, ...] = ()
    # path -> why it may: a refusal has to name what it refuses.
    allowed: t.Mapping[str, str] = dataclasses.field(default_factory=dict)

    def covers(self, path: str) -> bool:
        return any(path == place or path.startswith(place + "/") for place in self.places) and (
            not self.suffixes or path.endswith(self.suffixes)
        )


# --- looking at files ---------------------------------------------------------------------------


def files() -> Iterator[str]:
    for place in EVERYTHING:
        top = ROOT / place
        found = [top] if top.is_file() else (pathlib.Path(base, name) for base, _dirs, names in os.walk(top) for name in names)
        for path in found:
            relative = path.relative_to(ROOT).as_posix()
            left_out = any(relative == one or relative.startswith(one + "/") for one in LEFT_OUT)
            if not left_out and "__pycache__" not in relative and not path.is_symlink():
                yield relative


@functools.cache
def read(path: str) -> str:
    return (ROOT / path).read_bytes().decode("utf-8")


@functools.cache
def without_remarks(path: str, text: str) -> str:
    """The text with comments and docstrings taken out: prose may name what the code must not do."""
    if not path.endswith(".py"):
        text = re.sub(r"\{#.*?#\}", "", text, flags=re.DOTALL)
        return "\n".join("" if re.match(r"\s*#(?!!)", line) else line for line in text.split("\n"))
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            lines[line - 1] = lines[line - 1][:column]
    return "\n".join(lines)


def pattern(expression: str, flags: re.RegexFlag = re.NOFLAG) -> Find:
    wrong = re.compile(expression, flags)

    def find(path: str, text: str) -> Iterator[str]:
        for number, line in enumerate(without_remarks(path, text).split("\n"), 1):
            if wrong.search(line):
                yield f"{path}:{number}: {line.strip()}"

    return find


# --- looking at tasks ---------------------------------------------------------------------------

KEYWORDS = set(Handler.fattributes) | set(Block.fattributes) | {"local_action"}
LISTS = ("tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always")
DAEMON = re.compile(r"slurmd|slurmctld|slurmdbd")
CONDITIONS = {"port", "path", "host", "search_regex", "active_connection_states"}


class Loader(yaml.SafeLoader):
    """Takes Ansible's own tags as plain values."""


Loader.add_multi_constructor("!", lambda loader, _tag, node: loader.construct_scalar(node))


def plays_and_tasks(text: str) -> Iterator[dict[str, t.Any]]:
    def walk(entries: t.Any) -> Iterator[dict[str, t.Any]]:
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict):
                yield entry
                for key in LISTS:
                    yield from walk(entry.get(key))

    for document in yaml.load_all(text, Loader):
        yield from walk(document)


def is_play(entry: dict[str, t.Any]) -> bool:
    return "hosts" in entry


def tasks(text: str) -> Iterator[tuple[dict[str, t.Any], str, t.Any]]:
    """(task, its action, the action's arguments); blocks have no action of their own."""
    for entry in plays_and_tasks(text):
        if not is_play(entry):
            for key, value in entry.items():
                if key not in KEYWORDS and not key.startswith("with_"):
                    yield entry, key, value


def arguments(value: t.Any) -> dict[str, t.Any]:
    return value if isinstance(value, dict) else {}


def actions(*names: str) -> Find:
    """Tasks whose action is one of *names*, whatever the collection is called."""

    def find(path: str, text: str) -> Iterator[str]:
        for task, action, _value in tasks(text):
            if action.rsplit(".", 1)[-1] in names:
                yield f"{path}: {task.get('name')}: {action}"

    return find


def short_names(path: str, text: str) -> Iterator[str]:
    for task, action, value in tasks(text):
        if action.count(".") < 2:
            yield f"{path}: {task.get('name')}: {action}"
        if action.endswith((".include_role", ".import_role")) and str(arguments(value).get("name")).count(".") < 2:
            yield f"{path}: {task.get('name')}: role {arguments(value).get('name')}"
    for entry in plays_and_tasks(text):
        for role in entry.get("roles") or [] if is_play(entry) else []:
            name = role.get("role") if isinstance(role, dict) else role
            if str(name).count(".") < 2:
                yield f"{path}: role {name}"


def unclear_names(path: str, text: str) -> Iterator[str]:
    for entry in plays_and_tasks(text):
        if not re.match(r"[A-Z]", str(entry.get("name", ""))):
            yield f"{path}: {entry.get('name')!r}"


def hidden_failures(path: str, text: str) -> Iterator[str]:
    """A failure may be passed on, to whoever judges what was registered, but not passed over."""
    for entry in plays_and_tasks(text):
        if "ignore_errors" in entry or (entry.get("failed_when") is False and "register" not in entry):
            yield f"{path}: {entry.get('name')}"


def leaking_names(path: str, text: str) -> Iterator[str]:
    """In Python 2 the variable of a list comprehension is one of the function: it overwrites a parameter of that name."""
    if not path.startswith(("plugins/modules/", "plugins/module_utils/", "roles/")):
        return
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        assigned = [
            node for one in ast.walk(function) if isinstance(one, ast.Assign) for target in one.targets for node in ast.walk(target)
        ]
        kept = {one.arg for one in function.args.args} | {
            one.id for one in assigned if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
        for one in ast.walk(function):
            if isinstance(one, ast.ListComp):
                own = {node.id for part in one.generators for node in ast.walk(part.target) if isinstance(node, ast.Name)}
                for name in sorted(own & kept):
                    yield f"{path}:{one.lineno}: {name}"


def waits_for_nothing(path: str, text: str) -> Iterator[str]:
    for task, action, value in tasks(text):
        name = action.rsplit(".", 1)[-1]
        if name == "pause" or (name == "wait_for" and not CONDITIONS & set(arguments(value))):
            yield f"{path}: {task.get('name')}: {action}"


def gathered_facts(path: str, text: str) -> Iterator[str]:
    for entry in plays_and_tasks(text):
        if is_play(entry) and entry.get("gather_facts") is not False:
            yield f"{path}: play {entry.get('name')!r} gathers every fact"
    for task, action, value in tasks(text):
        name = action.rsplit(".", 1)[-1]
        if name in ("service_facts", "package_facts") or (name in ("setup", "gather_facts") and "gather_subset" not in arguments(value)):
            yield f"{path}: {task.get('name')}: {action}"


def daemons_by_hand(path: str, text: str) -> Iterator[str]:
    for task, action, value in tasks(text):
        said = arguments(value)
        by_module = action.rsplit(".", 1)[-1] in ("systemd", "systemd_service", "service", "sysvinit") and "state" in said
        by_command = action.endswith(".command") and re.search(r"systemctl.*\b(re)?start\b|systemctl.*\bstop\b", str(value))
        if (by_module and DAEMON.search(str(said.get("name")))) or (by_command and DAEMON.search(str(value))):
            yield f"{path}: {task.get('name')}: {action}"


# --- looking at programs ------------------------------------------------------------------------


def blind_sleeps(path: str, text: str) -> Iterator[str]:
    """A sleep of so many seconds that stands in no loop waits for no condition."""
    if path.endswith(".py"):
        yield from (f"{path}:{line}: sleep" for line in _blind_python_sleeps(ast.parse(text)))
        return
    depth = 0
    for number, line in enumerate(without_remarks(path, text).split("\n"), 1):
        words = re.findall(r"[A-Za-z_.-]+", line)
        depth += sum(word in ("while", "until", "for") for word in words[:1])
        if depth == 0 and re.search(r"(^|[;&|{(]|\bthen\b|\bdo\b)\s*sleep\s", line):
            yield f"{path}:{number}: {line.strip()}"
        depth -= words.count("done")


def _blind_python_sleeps(node: ast.AST, in_loop: bool = False) -> Iterator[int]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and ast.unparse(child.func).split(".")[-1] == "sleep" and not in_loop:
            yield from (child.lineno for length in child.args if isinstance(length, (ast.Constant, ast.Name)))
        starts_anew = isinstance(child, (ast.FunctionDef, ast.Lambda))
        yield from _blind_python_sleeps(child, (in_loop and not starts_anew) or isinstance(child, (ast.While, ast.For)))


def carriage_returns(path: str, text: str) -> Iterator[str]:
    if "\r" in text:
        yield f"{path}: CR in it: 'bad interpreter' as a script, refused by systemd as a unit"
    if text and not text.endswith("\n"):
        yield f"{path}: no newline at its end"


# --- looking at units ---------------------------------------------------------------------------

UNIT_FILES = (".service", ".timer", ".service.j2", ".timer.j2", "-unit.conf.j2")


def settings(path: str, text: str) -> Iterator[tuple[str, str, str]]:
    """(section, key, value) of a unit file or of the template of one."""
    section = ""
    for line in without_remarks(path, text).replace("\\\n", " ").split("\n"):
        if match := re.match(r"\[(\w+)\]", line):
            section = match[1]
        elif match := re.match(r"([A-Za-z]\w*)\s*=(.*)", line):
            yield section, match[1], match[2].strip()


def unknown_to_219(path: str, text: str) -> Iterator[str]:
    for section, key, _value in settings(path, text):
        if not systemd_keys.known(section, key, 219):
            yield f"{path}: [{section}] {key}="


def hard_dependencies(path: str, text: str) -> Iterator[str]:
    for _section, key, value in settings(path, text):
        if key in ("Requires", "BindsTo", "Requisite") and re.search(r"slurm|munge|mariadb|mysql", value):
            yield f"{path}: {key}={value}"


def timers_that_never_fire(path: str, text: str) -> Iterator[str]:
    keys = {key for section, key, _value in settings(path, text) if section == "Timer"}
    if keys and "OnCalendar" not in keys and not ("OnUnitActiveSec" in keys and keys & {"OnBootSec", "OnActiveSec"}):
        yield f"{path}: {', '.join(sorted(keys))}"


def oneshots_that_stay(path: str, text: str) -> Iterator[str]:
    said = {key: value for section, key, value in settings(path, text) if section == "Service"}
    if said.get("Type") == "oneshot":
        if "Restart" in said:
            yield f"{path}: Restart= is refused on oneshot by systemd 219"
        if said.get("RemainAfterExit") == "yes" and "bootstrap" not in path:
            yield f"{path}: RemainAfterExit=yes keeps the timer from firing again"
        if "TimeoutStartSec" not in said:
            yield f"{path}: a oneshot without TimeoutStartSec may run for ever"


# --- the rules ----------------------------------------------------------------------------------


def task(body: str) -> tuple[str, str]:
    return "roles/sample/tasks/main.yml", f"- name: Sample\n  {body}\n"


SCRIPT = "roles/sample/files/sample.sh"
PROGRAM = "plugins/modules/sample.py"
UNIT = "roles/sample/templates/sample.service.j2"
TIMER = "roles/sample/templates/sample.timer.j2"

RULES = [
    Rule(
        "processes are ended by their number, never by a pattern",
        "S49 S51 S73: the pattern also matches the shell that holds it, slurmdbd, and on a container host everything",
        pattern(r"\b(pkill|killall)\b"),
        bad=(
            (SCRIPT, "pkill -9 -f 'slurmd --conf-server'\n"),
            task("ansible.builtin.command: killall slurmd"),
            (PROGRAM, "run(['pkill', 'x'])\n"),
        ),
        good=((SCRIPT, '# pkill would end this shell too\nkill -9 "$pid"\n'),),
        places=(*TASKS, "plugins", "lab", "tests/tools", "tests/bench", "Makefile", ".ci"),
    ),
    Rule(
        "host keys are checked",
        "S74",
        pattern(
            r"StrictHostKeyChecking[ =]+(no|off|accept-new)\b|UserKnownHostsFile[ =]+/dev/null|host_key_checking\s*[:=]\s*false",
            re.IGNORECASE,
        ),
        bad=((SCRIPT, "ssh -o StrictHostKeyChecking=no node\n"), ("ansible.cfg", "host_key_checking = False\n")),
        good=((SCRIPT, "ssh -o StrictHostKeyChecking=yes node\n"),),
        places=EVERYTHING,
    ),
    Rule(
        "a node is never set DOWN",
        "S7 S59 A33: it kills the jobs, and ReturnToService=2 takes the node back at once",
        pattern(r"\bstate\s*=\s*[\"']?down\b", re.IGNORECASE),
        bad=((SCRIPT, "scontrol update nodename=n state=down reason=x\n"), (PROGRAM, "run(['scontrol', 'update', 'State=DOWN'])\n")),
        good=((SCRIPT, "scontrol update nodename=n state=drain reason=x\n"), (PROGRAM, "down = state == 'DOWN'\n")),
    ),
    Rule(
        "slurmctld is never started without its state",
        "case 49: -i and -c forget the queue, and the reservations with it",
        pattern(r"\bslurmctld\s+(-\S+\s+)*-[A-Za-z]*[ic]"),
        bad=((UNIT, "[Service]\nExecStart=/usr/sbin/slurmctld -D -i\n"), (SCRIPT, "slurmctld -ci\n")),
        good=((UNIT, "[Service]\nExecStart=/usr/sbin/slurmctld -D $OPTIONS\n"), (SCRIPT, "sacctmgr -i add cluster x\n")),
        places=(*PRODUCT, "lab", "molecule"),
    ),
    Rule(
        "a node is resumed without a reason",
        "S64: Slurm wipes the reason, and refuses the whole update where there is nothing to resume",
        pattern(r"\bstate\s*=\s*[\"']?(resume|undrain)\b.*\breason\s*=", re.IGNORECASE),
        bad=((SCRIPT, 'scontrol update nodename=n state=resume reason="well again"\n'),),
        good=((SCRIPT, "scontrol update nodename=n state=undrain\n"),),
    ),
    Rule(
        "the way back is a snapshot with an id, not the newest copy",
        "S77 S79: the newest may be the faulty state, or another step's",
        pattern(r"\bls\s+-\w*t|\.bak\b|getmtime.*(sort|max)|(sort|max).*getmtime"),
        bad=((SCRIPT, 'cp "$(ls -t slurm.conf.bak.* | head -1)" slurm.conf\n'), (PROGRAM, "newest = max(paths, key=os.path.getmtime)\n")),
        good=((SCRIPT, "ls -l /etc/slurm\n"),),
    ),
    Rule(
        "jobcomp/slurmdbd is asked for nowhere",
        "S44: there is no such plugin, and newer daemons do not start with it",
        pattern(r"jobcomp/slurmdbd"),
        bad=(("roles/slurm_conf/defaults/main.yml", "slurm_conf_settings:\n  JobCompType: jobcomp/slurmdbd\n"),),
        good=(("roles/slurm_conf/defaults/main.yml", "slurm_conf_settings:\n  JobCompType: jobcomp/filetxt\n"),),
        places=(*PRODUCT, "inventories"),
    ),
    Rule(
        "slurm.conf is edited as Slurm reads it, other files are written whole",
        "S20 S42: an expression that does not match changes nothing and says nothing; a second run adds again",
        actions("lineinfile", "blockinfile", "replace", "ini_file"),
        bad=(task("ansible.builtin.lineinfile: {path: /etc/slurm/slurm.conf, line: ReturnToService=2}"),),
        good=(task("hpcguard.slurm.slurm_conf: {path: /etc/slurm/slurm.conf}"),),
        places=("playbooks", "roles"),
        suffixes=(".yml",),
    ),
    Rule(
        "no file is edited by sed in place",
        "S20 S27 S42",
        pattern(r"\bsed\b.*\s(-\w*i|--in-place)"),
        bad=((SCRIPT, "sed -i '/^SlurmdTimeout=300/a x' slurm.conf\n"), (SCRIPT, "sed -Ei.old s/a/b/ f\n")),
        good=((SCRIPT, "sed -n 1p slurm.conf\n"),),
    ),
    Rule(
        "settings in force are asked of the daemon, not grepped in a file",
        "S53 S54: a comment or a superseded line matches too, and a file is not what was loaded",
        pattern(r"\bgrep\b[^|]*(slurm\.conf|conf-cache)|\bcat\b.*slurm\.conf.*\|\s*grep"),
        bad=((SCRIPT, "grep ReturnToService /etc/slurm/slurm.conf\n"),),
        good=((SCRIPT, "scontrol show config\n"),),
    ),
    Rule(
        "node states are read with their flags, not by lines that match",
        "S56: with slurmctld away there are no lines, and idle* matches idle",
        pattern(r"\bsinfo\b[^|]*\|\s*(awk|grep|egrep|wc)\b"),
        bad=((SCRIPT, "sinfo -Nh | awk '!/idle/' | wc -l\n"),),
        good=((SCRIPT, "scontrol -o show node\n"),),
    ),
    Rule(
        "the journal of slurmd proves nothing by a line that is or is not there",
        "S50 S52 S76: slurmd loses lines, and words them differently in each release",
        pattern(r"\bjournalctl\b[^|]*\|\s*e?grep\b|[\"']slurmd started"),
        bad=((SCRIPT, 'journalctl -u slurmd --since "5 min ago" | grep HealthCheck\n'),),
        good=((SCRIPT, "journalctl -u slurmd -n 20 --no-pager\n"),),
    ),
    Rule(
        "active is not started",
        "S23 S60: a simple unit is active once it has forked, and is-active is content with any one of several units",
        pattern(r"\bis-active\b"),
        bad=(
            (SCRIPT, "systemctl restart slurmd; sleep 2; systemctl is-active slurmd\n"),
            (PROGRAM, "run(['systemctl', 'is-active', 'slurmd'])\n"),
        ),
        good=((SCRIPT, "systemctl show -p SubState -p MainPID slurmd\n"),),
    ),
    Rule(
        "a task waits for a condition, not for seconds",
        "S23 S51",
        waits_for_nothing,
        bad=(task("ansible.builtin.pause: {seconds: 5}"), task("ansible.builtin.wait_for: {timeout: 30}")),
        good=(task("ansible.builtin.wait_for: {port: 6817, timeout: 30}"),),
        places=TASKS,
        suffixes=(".yml",),
    ),
    Rule(
        "a program sleeps only between two looks",
        "S23 S51",
        blind_sleeps,
        bad=(
            (SCRIPT, "systemctl restart slurmd\nsleep 15\n"),
            (SCRIPT, "while ! ready; do sleep 1; done\nsleep 2\n"),
            (PROGRAM, "time.sleep(2)\n"),
            (PROGRAM, "while wrong():\n    def f():\n        time.sleep(1)\n"),
        ),
        good=(
            (SCRIPT, "until ready; do\n  sleep 1\ndone\n"),
            (PROGRAM, "while not ready():\n    time.sleep(1)\n"),
            (PROGRAM, "def look_later():\n    time.sleep(min(POLL, left()))\n"),
        ),
        suffixes=(".py", ".sh", ".sh.j2", ".bash"),
    ),
    Rule(
        "nothing goes through a shell",
        "hostile job names, reasons and paths",
        actions("shell", "raw", "script"),
        bad=(task('ansible.builtin.shell: "squeue -n {{ name }}"'),),
        good=(task("ansible.builtin.command: {argv: [squeue]}"),),
        places=TASKS,
        suffixes=(".yml",),
    ),
    Rule(
        "a list comprehension takes no name that the function uses",
        "Python 2.7 lets its variable out: what the function held under that name is gone",
        leaking_names,
        bad=(
            (PROGRAM, "def f(key):\n    given = [key for key, value in pairs]\n    return key\n"),
            (PROGRAM, "def f():\n    line = 1\n    return [line for line in lines]\n"),
        ),
        good=(
            (PROGRAM, "def f(key):\n    given = [name for name, value in pairs]\n    return key\n"),
            (PROGRAM, "def f(key):\n    return sorted(key for key in keys)\n"),
            ("plugins/action/sample.py", "def f(key):\n    return [key for key in keys]\n"),
        ),
        suffixes=(".py",),
    ),
    Rule(
        "no Python goes through a shell",
        "hostile job names, reasons and paths",
        pattern(r"shell\s*=\s*True|use_unsafe_shell|\bos\.(system|popen)\b|\beval\(|\bexec\("),
        bad=((PROGRAM, "subprocess.run(text, shell=True)\n"), (PROGRAM, "module.run_command(text, use_unsafe_shell=True)\n")),
        good=((PROGRAM, "subprocess.run(['squeue'])\n"),),
        places=(*PRODUCT, "lab", "molecule", "tests"),
        suffixes=(".py",),
    ),
    Rule(
        "no failure is passed over",
        "a rollout that goes on after a failure is no transaction",
        hidden_failures,
        bad=(task("ansible.builtin.command: x\n  ignore_errors: true"), task("ansible.builtin.command: x\n  failed_when: false")),
        good=(
            task("ansible.builtin.command: x\n  failed_when: __result.rc > 1"),
            task("ansible.builtin.command: x\n  register: __result\n  failed_when: false"),
        ),
        places=TASKS,
        suffixes=(".yml",),
    ),
    Rule(
        "Slurm's daemons are restarted by the module that guards the jobs",
        "S25: where KillMode is not process a restart of slurmd ends them",
        daemons_by_hand,
        bad=(
            task("ansible.builtin.systemd_service: {name: slurmd, state: restarted}"),
            task("ansible.builtin.command: systemctl restart slurmctld"),
        ),
        good=(
            task("ansible.builtin.systemd_service: {name: slurm-cluster-health.timer, state: started}"),
            task("hpcguard.slurm.daemon: {name: slurmd}"),
        ),
        places=("playbooks", "roles"),
        suffixes=(".yml",),
    ),
    Rule(
        "only the facts that are needed are gathered",
        "a thousand nodes",
        gathered_facts,
        bad=(
            ("playbooks/sample.yml", "- name: Sample\n  hosts: all\n  gather_facts: true\n"),
            ("playbooks/sample.yml", "- name: Sample\n  hosts: all\n"),
            task("ansible.builtin.setup:"),
            task("ansible.builtin.service_facts:"),
        ),
        good=(
            ("playbooks/sample.yml", "- name: Sample\n  hosts: all\n  gather_facts: false\n"),
            task("ansible.builtin.setup: {gather_subset: ['!all']}"),
        ),
        places=TASKS,
        suffixes=(".yml",),
    ),
    Rule(
        "modules and roles bear their full names",
        "what they mean must not depend on where they run",
        short_names,
        bad=(
            task("command: x"),
            task("ansible.builtin.include_role: {name: slurmd}"),
            ("playbooks/sample.yml", "- hosts: all\n  roles: [slurmd]\n"),
        ),
        good=(task("ansible.builtin.include_role: {name: hpcguard.slurm.slurmd}"),),
        places=TASKS,
        suffixes=(".yml",),
    ),
    Rule(
        "every play, block and task says what it does",
        "the output is the operator's record",
        unclear_names,
        bad=(("roles/sample/tasks/main.yml", "- ansible.builtin.command: x\n"), ("roles/sample/tasks/main.yml", "- name: do it\n")),
        good=(task("ansible.builtin.command: x"),),
        places=TASKS,
        suffixes=(".yml",),
    ),
    Rule(
        "units hold what systemd 219 knows",
        "S70 S71",
        unknown_to_219,
        bad=(
            (UNIT, "[Service]\nStartLimitIntervalSec=0\n"),
            (UNIT, "[Unit]\nStartLimitIntervalSec=0\n"),
            (TIMER, "[Timer]\nRandomizedDelaySec=5\n"),
        ),
        good=((UNIT, "[Unit]\nAfter=munge.service\n[Service]\n# TasksMax=1\nStartLimitInterval=0\nExecStart=/bin/a \\\n  --b=c\n"),),
        suffixes=UNIT_FILES,
    ),
    Rule(
        "no unit is dragged down by another",
        "S33: slurmctld runs on without slurmdbd",
        hard_dependencies,
        bad=((UNIT, "[Unit]\nRequires=slurmdbd.service\n"),),
        good=((UNIT, "[Unit]\nWants=slurmdbd.service\n"),),
        suffixes=UNIT_FILES,
    ),
    Rule(
        "a timer has a beginning and a period",
        "S27: with OnUnitActiveSec alone it never fires",
        timers_that_never_fire,
        bad=((TIMER, "[Timer]\nOnUnitActiveSec=15min\n"), (TIMER, "[Timer]\nOnBootSec=5min\n")),
        good=((TIMER, "[Timer]\nOnBootSec=5min\nOnUnitActiveSec=15min\n"),),
        suffixes=UNIT_FILES,
    ),
    Rule(
        "a oneshot ends, within a time",
        "S29 S47 S68 S69",
        oneshots_that_stay,
        bad=(
            (UNIT, "[Service]\nType=oneshot\nTimeoutStartSec=9\nRemainAfterExit=yes\n"),
            (UNIT, "[Service]\nType=oneshot\nTimeoutStartSec=9\nRestart=always\n"),
            (UNIT, "[Service]\nType=oneshot\n"),
        ),
        good=((UNIT, "[Service]\nType=oneshot\nTimeoutStartSec=9\nRemainAfterExit=no\n"),),
        suffixes=UNIT_FILES,
    ),
    Rule(
        "lines end in LF",
        "a CR turns a script's interpreter into one that is not there",
        carriage_returns,
        bad=((SCRIPT, "#!/bin/bash\r\n"), (SCRIPT, "#!/bin/bash")),
        good=((SCRIPT, "#!/bin/bash\n"),),
        places=EVERYTHING,
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_tree_keeps(rule: Rule) -> None:
    broken = [found for path in files() if rule.covers(path) and path not in rule.allowed for found in rule.find(path, read(path))]
    assert not broken, f"{rule.name} ({rule.why}):\n" + "\n".join(broken)


@pytest.mark.parametrize(
    ("rule", "path", "text"), [(rule, *sample) for rule in RULES for sample in rule.bad], ids=lambda value: getattr(value, "name", None)
)
def test_a_breach_is_seen(rule: Rule, path: str, text: str) -> None:
    assert rule.covers(path), "the rule would not look at such a file"
    assert list(rule.find(path, text))


@pytest.mark.parametrize(
    ("rule", "path", "text"), [(rule, *sample) for rule in RULES for sample in rule.good], ids=lambda value: getattr(value, "name", None)
)
def test_what_is_right_passes(rule: Rule, path: str, text: str) -> None:
    assert list(rule.find(path, text)) == []


def test_exceptions_are_still_needed() -> None:
    stale = [path for rule in RULES for path in rule.allowed if not (ROOT / path).exists() or not list(rule.find(path, read(path)))]
    assert stale == []


def test_the_rules_look_at_something() -> None:
    assert {path.split("/")[0] for path in files()} >= set(PRODUCT)


def test_case_59_no_advice_says_to_set_a_node_down() -> None:
    """The rule above passes over remarks; here prose counts too, since whoever reads it may do it."""
    wrong = re.compile(r"\bstate\s*=\s*[\"'`]?down\b", re.IGNORECASE)
    prose = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("*.md")] + [
        path for path in files() if path.startswith((*PRODUCT, "docs/"))
    ]
    assert len(prose) > 100
    found = [f"{path}: {line}" for path in prose for line in read(path).split("\n") if wrong.search(line)]
    assert found == []
    assert wrong.search("scontrol update nodename=n1 state=DOWN, then resume it")


SCRIPTS = sorted(path for path in files() if re.match(r"roles/.*\.sh(\.j2)?$", path))


@pytest.mark.parametrize("path", SCRIPTS)
def test_case_99_each_script_that_is_installed_speaks_c(path: str) -> None:
    """Before the first program is run: what programs print is the same under LANG=zh_CN.UTF-8, and LANGUAGE does not outdo it."""
    lines = [line.strip() for line in without_remarks(path, read(path)).split("\n") if line.strip()]
    settled = {"LC_ALL=C", "LANGUAGE="}
    begun = [number for number, line in enumerate(lines) if line in settled]
    assert len(begun) == 2
    assert re.match(r"export (?=.*\bLC_ALL\b)(?=.*\bLANGUAGE\b)", lines[max(begun) + 1])
    assert not [line for line in lines[: min(begun)] if "$(" in line or "`" in line]


# --- units that are made, not written -----------------------------------------------------------


def made_unit(daemon: str, systemd: int, style: str) -> str:
    """The unit or drop-in that a host gets whose own unit says next to nothing."""
    fragment = {"package": f"/usr/lib/systemd/system/{daemon}.service", "own": f"/etc/systemd/system/{daemon}.service"}[style]
    unit = {
        "load_state": "loaded",
        "style": style,
        "fragment_path": fragment,
        "text": f"[Unit]\nDescription={daemon}\n[Service]\nType=simple\nExecStart=/usr/sbin/{daemon} -D\n",
        "drop_ins": [],
    }
    fact = {
        "systemd": systemd,
        "slurm": {"release": [21, 8]},
        "conf": {"servers": ["ctl:6817"]},
        "units": dict.fromkeys(("slurmd", "slurmctld", "slurmdbd"), unit),
    }
    options = {"restart": "always", "restart_sec": "10", "timeout_start_sec": "180", "wait_script": "/usr/local/bin/wait", "extra": {}}
    made = standard_units.unit_files(fact, daemon, options)
    assert made["problems"] == []
    return str(made["files"][0]["content"])


@pytest.mark.parametrize("style", ["package", "own"])
@pytest.mark.parametrize("daemon", ["slurmd", "slurmctld", "slurmdbd"])
def test_made_units_hold_what_systemd_219_knows(daemon: str, style: str) -> None:
    text = made_unit(daemon, 219, style)
    assert list(unknown_to_219(daemon, text)) == []
    assert list(hard_dependencies(daemon, text)) == []


def test_a_newer_systemd_gets_more_which_the_guard_can_tell() -> None:
    assert list(unknown_to_219("slurmd", made_unit("slurmd", 252, "own"))) == ["slurmd: [Service] TasksMax="]


@pytest.mark.parametrize("style", ["package", "own"])
def test_slurmd_never_takes_its_jobs_with_it(style: str) -> None:
    """S25: KillMode=process, and cgroups that systemd leaves alone."""
    said = {key: value for _section, key, value in settings("slurmd", made_unit("slurmd", 219, style))}
    assert (said["KillMode"], said["Delegate"]) == ("process", "yes")


# --- roles --------------------------------------------------------------------------------------

ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())


def role_trouble(name: str, defaults: dict[str, t.Any], specs: dict[str, t.Any], private: dict[str, t.Any]) -> Iterator[str]:
    """Where a role's variables and their description differ: the defaults are the API, each described once."""
    described: dict[str, t.Any] = {}
    for entry in specs.values():
        described.update(entry.get("options") or {})
    for variable in sorted(defaults.keys() - described.keys()):
        yield f"{name}: {variable} has no entry in argument_specs"
    for variable, option in sorted(described.items()):
        if variable not in defaults and not option.get("required") and "default" in option:
            yield f"{name}: {variable} is described with a default that defaults/main.yml does not set"
        derived = "{{" in str(defaults.get(variable))
        if variable in defaults and "default" in option and option["default"] != defaults[variable] and not derived:
            yield f"{name}: {variable} is described as {option['default']!r}, and is {defaults[variable]!r}"
        if not option.get("description"):
            yield f"{name}: {variable} is not described"
    for variable in private:
        if not variable.startswith("__"):
            yield f"{name}: {variable} in vars is not private"


def yaml_of(path: pathlib.Path) -> dict[str, t.Any]:
    return (yaml.load(path.read_text(), Loader) or {}) if path.exists() else {}


@pytest.mark.parametrize("name", ROLES)
def test_each_variable_of_a_role_is_described(name: str) -> None:
    role = ROOT / "roles" / name
    specs = yaml_of(role / "meta/argument_specs.yml").get("argument_specs")
    assert specs, f"{name} has no argument_specs"
    assert list(role_trouble(name, yaml_of(role / "defaults/main.yml"), specs, yaml_of(role / "vars/main.yml"))) == []


@pytest.mark.parametrize(
    ("defaults", "options", "private"),
    [
        ({"r_a": 1}, {}, {}),
        ({}, {"r_a": {"description": "A.", "default": 1}}, {}),
        ({"r_a": 1}, {"r_a": {"description": "A.", "default": 2}}, {}),
        ({"r_a": 1}, {"r_a": {"default": 1}}, {}),
        ({}, {}, {"r_a": 1}),
    ],
)
def test_a_variable_without_its_description_is_seen(defaults: t.Any, options: t.Any, private: t.Any) -> None:
    assert list(role_trouble("r", defaults, {"main": {"options": options}}, private))


def test_a_described_variable_passes() -> None:
    assert list(role_trouble("r", {"r_a": 1}, {"main": {"options": {"r_a": {"description": "A.", "default": 1}}}}, {"__r_b": 2})) == []


def foreign_names(role: str, path: str, text: str) -> Iterator[str]:
    """Variables that a role sets under a name that is neither its own, nor private, nor a fact of the collection."""
    own = (f"{role}_", "__", "hpcguard_")
    for entry, action, value in tasks(text):
        named = [entry["register"]] if "register" in entry else []
        if action.endswith(".set_fact"):
            named += [key for key in arguments(value) if key != "cacheable"]
        yield from (f"{path}: {entry.get('name')}: {name}" for name in named if not str(name).startswith(own))


def test_what_a_role_sets_bears_its_name() -> None:
    tasks_of_roles = [path for path in files() if re.match(r"roles/[^/]+/(tasks|handlers)/.*\.yml$", path)]
    assert [found for path in tasks_of_roles for found in foreign_names(path.split("/")[1], path, read(path))] == []


def test_a_foreign_name_is_seen() -> None:
    assert list(foreign_names("slurmd", *task("ansible.builtin.set_fact: {state: 1}")))
    assert list(foreign_names("slurmd", *task("ansible.builtin.command: x\n  register: result")))
    assert list(foreign_names("slurmd", *task("ansible.builtin.set_fact: {slurmd_state: 1}\n  register: __result"))) == []


# --- the example inventory ----------------------------------------------------------------------

EXAMPLE = sorted(path for path in files() if path.startswith("inventories/production-example/"))
VARIABLE = re.compile(r"^(?:# )?([a-z][a-z0-9_]*):( |$)", re.MULTILINE)


def known_variables() -> set[str]:
    return {variable for name in ROLES for variable in yaml_of(ROOT / "roles" / name / "defaults/main.yml")}


def unknown_variables(text: str, known: set[str]) -> list[str]:
    """Variables of an example, switched on or not, that no role has."""
    return [name for name, _rest in VARIABLE.findall(text) if name not in known and not name.startswith("ansible_")]


@pytest.mark.parametrize("path", [path for path in EXAMPLE if "group_vars" in path])
def test_the_example_names_variables_that_exist(path: str) -> None:
    assert unknown_variables(read(path), known_variables()) == []


@pytest.mark.parametrize("path", [path for path in EXAMPLE if "group_vars" in path])
def test_every_line_of_the_example_can_be_switched_on(path: str) -> None:
    switched_on = re.sub(r"^# (?=[a-z][a-z0-9_]*:( |$)|  )", "", read(path), flags=re.MULTILINE)
    assert yaml.safe_load(switched_on)


def test_an_unknown_variable_is_seen() -> None:
    assert unknown_variables("# slurmd_restrat: always\n", {"slurmd_restart"}) == ["slurmd_restrat"]


# --- modules ------------------------------------------------------------------------------------

MODULES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "plugins/modules").glob("*.py"))
LICENCE = "# SPDX-License-Identifier: GPL-3.0-or-later"

# What modules share of their attributes, by the name that they are asked for.
FRAGMENTS = {
    f"hpcguard.slurm.attributes{part}": yaml.safe_load(text)["attributes"]
    for part, text in (("", Shared.DOCUMENTATION), (".info", Shared.INFO), (".report", Shared.REPORT))
}


def module_trouble(text: str, acts: bool = False) -> Iterator[str]:
    """What a module owes its users: documentation, and a word on check mode and diff that its code keeps.

    :param acts: an action plugin of the same name does the work, the module is its documentation
    """
    parts = {
        target.id: node.value.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for part in ("DOCUMENTATION", "EXAMPLES", "RETURN"):
        if part not in parts:
            yield f"no {part}"
    documentation = yaml.safe_load(str(parts.get("DOCUMENTATION", ""))) or {}
    said = dict(documentation.get("attributes", {}))
    for name in documentation.get("extends_documentation_fragment", []):
        said.update(FRAGMENTS.get(name, {}))
    for attribute in ("check_mode", "diff_mode", "platform"):
        support = said.get(attribute, {}).get("support")
        if support not in ("full", "partial", "none", "N/A"):
            yield f"no attribute {attribute}"
    if not acts and not re.search(r"supports_check_mode\s*=\s*True", text):
        yield "supports_check_mode is not True"


@pytest.mark.parametrize("path", MODULES)
def test_each_module_says_what_it_does(path: str) -> None:
    assert list(module_trouble(read(path), (ROOT / path.replace("modules", "action")).exists())) == []


def test_a_module_that_keeps_quiet_is_seen() -> None:
    assert len(list(module_trouble("import os\n"))) == 7


def test_every_plugin_bears_the_licence() -> None:
    plugins = [path for path in files() if re.match(r"plugins/.*\.py$", path)]
    assert [path for path in plugins if LICENCE not in read(path)[:500]] == []
