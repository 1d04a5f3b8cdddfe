# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only place of module_utils that touches the host: programs, /proc and files.

Everything here is bounded in time and size and hands plain text to the pure part.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import grp
import os
import pwd
import re
import select
import signal
import stat
import subprocess
import tempfile
import time

from . import snapshot_manifest, systemd_unit

# Settings of the caller's shell that would change the output of Slurm's commands.
_UNWANTED_ENV = ("SLURM_", "SINFO_", "SQUEUE_", "SACCT_", "SACCTMGR_", "SCONTROL_", "SBATCH_", "SRUN_")
_KEPT_ENV = ("SLURM_CONF", "SLURM_CONF_SERVER")

# scontrol prints 0.9 KB a node and squeue 0.1 KB a job; half of a list must not pass for the list.
CLUSTER_BYTES = 1 << 26

# A process in uninterruptible sleep survives SIGKILL: it is given up after this long.
_GIVE_UP = 2.0


class Result:
    """What a program left behind. ``rc`` is 124 after a time-out, 126 or 127 when it could not be run."""

    def __init__(self, rc, out="", err="", timed_out=False):
        self.rc = rc
        self.out = out
        self.err = err
        self.timed_out = timed_out


def now():
    """Seconds of a clock that nobody sets back."""
    if hasattr(time, "monotonic"):
        return time.monotonic()  # novm: 2.7 takes the other way
    with open("/proc/uptime") as handle:
        return float(handle.read().split()[0])


def boot_epoch():
    """Wall clock time at which the monotonic clock of systemd was zero."""
    return time.time() - now()


def clean_env(extra=None):
    """Environment in which the output of programs can be parsed."""
    env = {key: value for key, value in os.environ.items() if key in _KEPT_ENV or not key.startswith(_UNWANTED_ENV)}
    env.update(LC_ALL="C", LANGUAGE="")
    env.update(extra or {})
    return env


def run(argv, timeout, env=None, max_bytes=1 << 20, stdin=None):
    """Run a program without a shell; after ``timeout`` seconds its whole process group is killed.

    :param env: variables to set over the clean environment
    :param max_bytes: at most so many bytes of each stream are kept
    :param stdin: text for the program (at most 64 KiB), /dev/null when None
    """
    deadline = now() + timeout
    feed = _open_feed(stdin)
    try:
        child = subprocess.Popen(  # pylint: disable=subprocess-popen-preexec-fn
            list(argv),
            stdin=feed,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean_env(env),
            close_fds=True,
            preexec_fn=os.setsid,  # noqa: PLW1509 - 2.7 has no start_new_session, and no threads run here
        )
    except (OSError, IOError) as error:
        return Result(126 if error.errno == errno.EACCES else 127, err="%s: %s" % (argv[0], error.strerror))
    finally:
        os.close(feed)
    kept = _collect(child, deadline, max_bytes)
    timed_out = child.poll() is None
    if timed_out:
        _kill_group(child)
    child.stdout.close()
    child.stderr.close()
    out, err = [b"".join(chunks).decode("utf-8", "replace") for chunks in kept]
    if timed_out:
        return Result(124, out, err + "\n%s: no answer within %g seconds" % (argv[0], round(timeout, 1)), True)
    return Result(child.returncode, out, err)


def _open_feed(text):
    """Descriptor that a program reads its input from; needs no disk, which may be full."""
    if text is None:
        return os.open(os.devnull, os.O_RDONLY)
    content = text if isinstance(text, bytes) else text.encode("utf-8")
    if len(content) > select.PIPE_BUF * 16:
        raise ValueError("more input than a pipe holds")
    reader, writer = os.pipe()
    os.write(writer, content)
    os.close(writer)
    return reader


def _collect(child, deadline, max_bytes):
    """Read both streams until the program has ended or its time is up."""
    streams = {child.stdout.fileno(): [[], 0], child.stderr.fileno(): [[], 0]}
    order = [streams[child.stdout.fileno()], streams[child.stderr.fileno()]]
    watched = list(streams)
    ended = False
    # A background process may hold the pipes for ever: once the program has ended,
    # only what is already there is read.
    while now() < deadline:
        ended = ended or child.poll() is not None
        if not watched:
            if ended:
                break
            time.sleep(0.01)
            continue
        try:
            ready = select.select(watched, [], [], 0 if ended else min(0.05, max(0, deadline - now())))[0]
        except select.error as error:  # Python 2 does not resume after a signal
            if error.args[0] == errno.EINTR:
                continue
            raise
        for descriptor in ready:
            chunk = os.read(descriptor, 65536)
            if not chunk:
                watched.remove(descriptor)
                continue
            store = streams[descriptor]
            room = max_bytes - store[1]
            if room > 0:
                store[0].append(chunk[:room])
                store[1] += len(chunk[:room])
        if ended and not ready:
            break
    return [stream[0] for stream in order]


def _kill_group(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass
    give_up = now() + _GIVE_UP
    while child.poll() is None and now() < give_up:
        time.sleep(0.02)


def scontrol(program, args, timeout, conf=None):
    """Run scontrol (or another client of Slurm) against the given slurm.conf."""
    return run([program] + list(args), timeout, env={"SLURM_CONF": conf} if conf else None, max_bytes=CLUSTER_BYTES)


def lines(argv, timeout, take, env=None):
    """Run a program and hand each line of its output to ``take``, so that a listing of any length needs little memory.

    Returns a :class:`Result` without that output.
    """
    deadline = now() + timeout
    with open(os.devnull) as nothing, tempfile.TemporaryFile() as errors:
        try:
            child = subprocess.Popen(  # pylint: disable=subprocess-popen-preexec-fn
                list(argv), stdin=nothing, stdout=subprocess.PIPE, stderr=errors, env=clean_env(env), close_fds=True,
                preexec_fn=os.setsid,  # noqa: PLW1509 - as in run
            )  # fmt: skip
        except (OSError, IOError) as error:
            return Result(126 if error.errno == errno.EACCES else 127, err="%s: %s" % (argv[0], error.strerror))
        rest, timed_out = b"", False
        while True:
            left = deadline - now()
            if left <= 0 or not select.select([child.stdout], [], [], left)[0]:
                timed_out = True
                break
            chunk = os.read(child.stdout.fileno(), 1 << 16)
            if not chunk:
                break
            parts = (rest + chunk).split(b"\n")
            rest = parts.pop()
            for line in parts:
                take(line.decode("utf-8", "replace"))
        if rest and not timed_out:
            take(rest.decode("utf-8", "replace"))
        child.stdout.close()
        while not timed_out and child.poll() is None:
            timed_out = now() > deadline
            time.sleep(0.01)
        if timed_out:
            _kill_group(child)
        errors.seek(0)
        told = errors.read(65536).decode("utf-8", "replace")
    if timed_out:
        return Result(124, "", told + "\n%s: no answer within %g seconds" % (argv[0], timeout), True)
    return Result(child.returncode, "", told)


def systemctl(args, timeout=30):
    """Run systemctl without pager, questions or ellipses."""
    return run(["systemctl", "--no-pager", "--no-ask-password", "--full"] + list(args), timeout)


def systemctl_show(unit, properties=None):
    """Properties of one unit as a dictionary (empty when systemd does not answer)."""
    args = ["show", unit]
    if properties:
        args.append("--property=" + ",".join(properties))
    return systemd_unit.parse_show(systemctl(args).out)


def read_bytes(path, max_bytes=1 << 24):
    """Content of a regular file, None when there is none. Never waits on a pipe or device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, IOError) as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENXIO):
            return None
        raise
    with os.fdopen(descriptor, "rb") as handle:
        if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
            return None
        return handle.read(max_bytes)


def read_text(path, max_bytes=1 << 24):
    """Like :func:`read_bytes`, as text."""
    content = read_bytes(path, max_bytes)
    return None if content is None else content.decode("utf-8", "replace")


def read_tail(path, max_bytes=65536):
    """The last bytes of a log file as text, empty when there is none."""
    try:
        size = os.stat(path).st_size
        with open(path, "rb") as handle:
            handle.seek(max(0, size - max_bytes))
            return handle.read(max_bytes).decode("utf-8", "replace")
    except (OSError, IOError):
        return ""


def fsync_dir(path):
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomic(path, content, uid=0, gid=0, mode=0o644):
    """Replace a file in one durable step; readers see the old or the new one, never a part."""
    folder = os.path.dirname(path)
    descriptor, temporary = tempfile.mkstemp(prefix="." + os.path.basename(path) + ".", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fchown(handle.fileno(), uid, gid)
            os.fchmod(handle.fileno(), mode)
            os.fsync(handle.fileno())
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    fsync_dir(folder)


def slurmstepds():
    """Steps running on this host: {pid: (start time in clock ticks, name of the step like "7.batch")}.

    The helper "slurmstepd infinity" that keeps a cgroup v2 scope alive is no step.
    """
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name, "rb") as handle:
                line = handle.read()
            with open("/proc/%s/cmdline" % name, "rb") as handle:
                words = handle.read().decode("utf-8", "replace").split("\0")
        except (OSError, IOError):
            continue
        comm = line[line.find(b"(") + 1 : line.rfind(b")")]
        fields = line[line.rfind(b")") + 2 :].split()
        if comm == b"slurmstepd" and fields[0] not in (b"Z", b"X") and words[1:2] != ["infinity"]:
            title = re.search(r"\[([^\]]+)\]", words[0])
            found[int(name)] = (int(fields[19]), title.group(1) if title else "")
    return found


def others_may_write(status):
    """True when somebody besides the owner may write; a group that nobody is in (Debian's staff) is nobody."""
    if status.st_mode & 0o002:
        return True
    if not status.st_mode & 0o020 or status.st_gid == 0:
        return False
    try:
        members = grp.getgrgid(status.st_gid).gr_mem
    except KeyError:
        return True
    return bool(members) or any(user.pw_gid == status.st_gid for user in pwd.getpwall())


def path_problem(path):
    """Why root must not write this file, as a sentence; empty when it may.

    Whoever can change a directory on the way could swap the file for a link of his own.
    """
    if not path.startswith("/") or os.path.normpath(path) != path:
        return "is no absolute, plain path"
    if os.path.islink(path):
        return "is a symbolic link to %s" % os.readlink(path)
    if os.path.isdir(path):
        return "is a directory"
    if os.path.lexists(path) and not os.path.isfile(path):
        return "is no regular file"
    folder = os.path.realpath(os.path.dirname(path))
    while True:
        try:
            status = os.stat(folder)
        except (OSError, IOError):
            status = None  # not there yet: it will be root's
        if status is not None:
            if not stat.S_ISDIR(status.st_mode):
                return "lies under %s, which is no directory" % folder
            if status.st_uid != 0:
                return "lies under %s, which is not owned by root" % folder
            if others_may_write(status):
                return "lies under %s, which others than root may write to" % folder
        if folder == "/":
            return ""
        folder = os.path.dirname(folder)


def make_dirs(folder):
    """Create missing directories as root's, mode 0755; returns those created, outermost first."""
    created = []
    while not os.path.isdir(folder):
        created.insert(0, folder)
        folder = os.path.dirname(folder)
    for name in created:
        os.mkdir(name)
        os.chmod(name, 0o755)  # noqa: S103 - a directory on the way to a unit or script
        os.chown(name, os.geteuid(), os.getegid())
        fsync_dir(os.path.dirname(name))
    return created


def snapshots(state_dir):
    """(readable manifests, {id: why it is damaged}) of the snapshots kept on this host."""
    folder = os.path.join(state_dir, "snapshots")
    manifests, damaged = [], {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if not snapshot_manifest.valid_id(name):
            continue  # one that was being written when the machine stopped
        try:
            manifests.append(snapshot_manifest.loads(read_text(os.path.join(folder, name, "manifest.json")), name))
        except snapshot_manifest.Damaged as error:
            damaged[name] = str(error)
    return manifests, damaged


def snapshot_content(state_dir, snapshot_id, record):
    """Recorded content of a file; raises Damaged when it is not what was recorded."""
    content = read_bytes(os.path.join(state_dir, "snapshots", snapshot_id, "files", record["stored"]))
    if content is None or snapshot_manifest.sha256(content) != record["sha256"]:
        raise snapshot_manifest.Damaged("its copy of %s does not match its checksum" % record["path"])
    return content


def file_record(path):
    """How a path is now: (record for a snapshot, content of a file or None)."""
    record = {"path": path, "missing_dirs": []}
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        record["missing_dirs"].append(folder)
        folder = os.path.dirname(folder)
    if os.path.islink(path):
        record.update(kind="link", target=os.readlink(path))
        return record, None
    if not os.path.lexists(path):
        record.update(kind="absent")
        return record, None
    if not os.path.isfile(path):
        raise ValueError("%s is neither a file nor a link" % path)
    with open(path, "rb") as handle:
        status = os.fstat(handle.fileno())
        content = handle.read()
    record.update(
        kind="file",
        sha256=snapshot_manifest.sha256(content),
        mode="%04o" % stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
    )
    return record, content
