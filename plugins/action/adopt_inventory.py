# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the inventory of a cluster that was kept by hand, on the control node."""

from __future__ import annotations

import collections.abc as c
import json
import os
import pathlib
import re
import shlex
import socket
import tempfile
import time
import typing as t

from ansible import constants, context
from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.hpcguard.slurm.plugins.module_utils.finding import clean_text
from ansible_collections.hpcguard.slurm.plugins.plugin_utils import adopt, adopt_files

display = Display()
Vars = dict[str, t.Any]

# Options of the command line that say how to connect: (option, variable, the configuration's own value).
OPTIONS = (
    ("connection", "ansible_connection", "DEFAULT_TRANSPORT"),
    ("remote_user", "ansible_user", "DEFAULT_REMOTE_USER"),
    ("private_key_file", "ansible_ssh_private_key_file", "DEFAULT_PRIVATE_KEY_FILE"),
    ("ssh_common_args", "ansible_ssh_common_args", None),
    ("ssh_extra_args", "ansible_ssh_extra_args", None),
    ("become", "ansible_become", "DEFAULT_BECOME"),
    ("become_method", "ansible_become_method", "DEFAULT_BECOME_METHOD"),
    ("become_user", "ansible_become_user", "DEFAULT_BECOME_USER"),
)
PROMPTS = (("ask_pass", "-k"), ("become_ask_pass", "-K"))
_SECRET_LINE = re.compile(r"^(\s*[\w-]*(?:pass|secret|token)[\w-]*\s*:).*$", re.IGNORECASE | re.MULTILINE)
# A resolver that does not answer must not hold the run up for every name anew.
RESOLVE_LIMIT = 20.0


class ActionModule(ActionBase):
    """Runs once; the role adopt registered on each host what it said."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: Vars | None = None) -> Vars:
        result: Vars = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        args: Vars = self._task.args
        sources, unsaid = self._sources(task_vars)
        try:
            found = adopt.adopt(sources, _plain(args["standard"]), int(args["patrol_interval"]), _Resolver().knows)
        except adopt.Refused as refused:
            return {**result, "failed": True, "msg": clean_text(str(refused))}
        found.notes.extend(unsaid)

        if not str(args["dir"]).strip():
            return {**result, "failed": True, "msg": "adopt_dir is empty: name the directory of the inventory"}
        folder = pathlib.Path(args["dir"]).expanduser().resolve()
        texts = {folder / name: text for name, text in adopt_files.files(found).items()}
        before = {path: path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None for path in texts}
        changed = [path for path, text in texts.items() if before[path] != text]
        in_the_way = [path for path in changed if os.path.lexists(path)]
        if in_the_way and not args.get("force"):
            names = ", ".join(str(path.relative_to(folder)) for path in in_the_way)
            msg = f"{folder}: {names} say something else: nothing was written. Another adopt_dir, or -e adopt_force=true to overwrite"
            return {**result, "failed": True, "msg": clean_text(msg)}

        if not self._task.check_mode:
            try:
                write({path: texts[path] for path in changed})
            except OSError as error:
                return {**result, "failed": True, "msg": clean_text(f"nothing more was written: {error}")}
        strangers = _strangers(folder, texts)
        if strangers:
            found.notes.append(f"what else is in {folder} counts too: {', '.join(strangers)}")
        self._show(found, folder, changed)
        result.update(
            changed=bool(changed),
            dir=str(folder),
            files=sorted(str(path.relative_to(folder)) for path in texts),
            written=sorted(str(path.relative_to(folder)) for path in changed),
            hosts={group: list(hosts) for group, hosts in found.groups.items()},
            notes=[clean_text(note) for note in found.notes],
            diff=[
                {"before_header": str(path), "after_header": str(path), "before": _masked(before[path] or ""), "after": texts[path]}
                for path in changed
            ],
        )
        return result

    def _sources(self, task_vars: Vars) -> tuple[list[adopt.Source], list[str]]:
        """Every host of the given inventory, those that were asked first, and what of their connection is not written down."""
        asked: list[str] = task_vars["ansible_play_hosts"]
        sources: list[adopt.Source] = []
        unsaid = [f"the password: give {switch} again" for option, switch in PROMPTS if context.CLIARGS.get(option)]
        for name in dict.fromkeys([*asked, *task_vars["groups"]["all"]]):
            hostvars = task_vars["hostvars"][name]
            secrets = {key: str(value) for key in adopt.SECRETS if (value := _value(hostvars, key))}
            given = {key: value for key in (*adopt.CONNECTION, *adopt.OWN, "ansible_host") if (value := _value(hostvars, key)) is not None}
            variables = {**_command_line(), **given}
            hidden = [key for key, value in variables.items() if adopt.tells_a_secret(value, secrets.values())]
            variables = {key: value for key, value in variables.items() if key not in hidden}
            if name not in asked:
                sources.append(adopt.Source(name, variables))
                continue
            unsaid.extend(f"{key}: secrets are not written, give it again" for key in (*secrets, *hidden))
            look, more = (_plain(hostvars.get(f"__adopt_{part}") or {}) for part in ("look", "more"))
            sources.append(adopt.Source(name, variables, look.get("cluster"), more if "nodes" in more else None))
        return sources, list(dict.fromkeys(unsaid))

    def _show(self, found: adopt.Adopted, folder: pathlib.Path, changed: list[pathlib.Path]) -> None:
        wrote = "would write / 将写入" if self._task.check_mode else "wrote / 已写入"
        display.display(f"\nADOPT / 接管: {clean_text(found.cluster)}, Slurm {clean_text(found.version)}")
        display.display(
            f"  {wrote}: " + (", ".join(str(path.relative_to(folder)) for path in changed) or "nothing, all is as it was / 无变化")
        )
        for group, hosts in found.groups.items():
            display.display(f"  {group}: {len(hosts)}")
        left_out = sum(len(names) for names in found.left_out.values())
        if left_out:
            display.display(f"  left out / 未纳入: {left_out} (hosts.yml)")
        for key, (value, _why) in found.conf.settings.items():
            display.display(f"  stays / 保持: {key}={clean_text(value)}")
        for key, why in found.conf.leave.items():
            display.display(f"  stays / 保持: {key} ({clean_text(why)})")
        display.display("could not be known / 无法得知:")
        for note in found.notes:
            display.display(f"  - {clean_text(note)}")
        inventory = shlex.quote(str(self._task.args["dir"]))
        display.display("next / 下一步:")
        display.display(f"  ansible-playbook -i {inventory} hpcguard.slurm.verify --check")
        display.display(f"  ansible-playbook -i {inventory} hpcguard.slurm.deploy --check --diff\n")


class _Resolver:
    """Whether this host knows a name. A resolver that never answers is asked no more."""

    def __init__(self) -> None:
        self.end = time.monotonic() + RESOLVE_LIMIT

    def knows(self, name: str) -> bool:
        if adopt.is_address(name):
            return True
        if time.monotonic() > self.end:
            return False
        try:
            return bool(socket.getaddrinfo(name, None))
        except (OSError, UnicodeError):
            return False


def _value(hostvars: c.Mapping[str, t.Any], key: str) -> t.Any:
    """A variable with its templates filled in; None where it is not set, or where that was not possible."""
    try:
        value = hostvars.get(key)
        # what could not be filled in shows itself only when it is looked at, or is still a template
        return None if value is None or any(mark in str(value) for mark in adopt_files.JINJA) else _plain(value)
    except AnsibleError:
        return None


def _plain(value: t.Any) -> t.Any:
    """The same in plain types: Ansible's own text keeps its mark through str() and takes part in no dump."""
    return json.loads(json.dumps(value))


def _command_line() -> Vars:
    """How to connect, as far as the command line says it."""
    found = {}
    for option, variable, name in OPTIONS:
        value = context.CLIARGS.get(option)
        if value and value != (constants.config.get_config_value(name) if name else None):
            found[variable] = value
    return found


def _masked(text: str) -> str:
    """A file that was there before may hold what must not be shown."""
    return _SECRET_LINE.sub(r"\1 ***", text)


def _strangers(folder: pathlib.Path, ours: c.Container[pathlib.Path]) -> list[str]:
    """Files that Ansible reads as part of the same inventory."""
    if not folder.is_dir():
        return []
    places = [
        *folder.iterdir(),
        *(folder / "group_vars").glob("*"),
        *(folder / "group_vars" / "all").glob("*"),
        *(folder / "host_vars").glob("*"),
    ]
    return sorted(str(path.relative_to(folder)) for path in places if not path.is_dir() and path not in ours and path.suffix != ".md")


def write(texts: dict[pathlib.Path, str]) -> None:
    """All files are complete on the disk before the first takes its name."""
    ready: dict[pathlib.Path, str] = {}
    try:
        for path, text in texts.items():
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix="~")
            ready[path] = temporary
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fchmod(stream.fileno(), 0o644)
                os.fsync(stream.fileno())
        for path in list(ready):
            os.replace(ready[path], path)
            del ready[path]
    finally:
        for temporary in ready.values():
            os.unlink(temporary)
