#!/usr/bin/env python3
"""A mount that hangs on command, as a dead NFS server does: even SIGKILL does not end a stat of it.

    hangfs.py mount  MOUNTPOINT [--source NAME] [--subtype NAME]    mount an empty directory (fuse.SUBTYPE)
    hangfs.py hang   MOUNTPOINT                                     stop answering
    hangfs.py answer MOUNTPOINT                                     answer what is held, and go on
    hangfs.py umount MOUNTPOINT                                     release everyone and unmount

Speaks the kernel's FUSE protocol on /dev/fuse itself, so it needs root, Python 3.7 and nothing else.
A caller is unkillable because its request was read and is neither answered nor given up (INTERRUPT is ignored).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import hashlib
import os
import select
import signal
import struct
import sys
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
MS_NOSUID, MS_NODEV, MNT_DETACH = 2, 4, 2
REQUEST_SIZE = 1 << 17

# include/uapi/linux/fuse.h: numbers of the operations, and the structures that answer them
GETATTR, STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, FSYNCDIR, ACCESS, DESTROY = 3, 17, 18, 25, 26, 27, 28, 29, 30, 34, 38
FORGET, INTERRUPT, BATCH_FORGET = 2, 36, 42
LOOKUP = 1
NEVER_ANSWERED = {FORGET, INTERRUPT, BATCH_FORGET}
IN_HEADER = struct.Struct("<IIQQIIIHH")  # len opcode unique nodeid uid gid pid extlen padding
OUT_HEADER = struct.Struct("<IiQ")  # len error unique
INIT_OUT = struct.Struct("<IIIIHHIIHHI28x")  # major minor readahead flags background congestion write gran pages align flags2
ATTR_OUT = struct.Struct("<QII6Q10I")  # validity; ino size blocks times; nanoseconds mode nlink uid gid rdev blksize flags
STATFS_OUT = struct.Struct("<5Q4I24x")  # blocks bfree bavail files ffree; bsize namelen frsize padding
OPEN_OUT = struct.Struct("<QII")  # fh flags padding


def body_of(operation: int) -> bytes | None:
    """What answers *operation* on an empty root directory; None: there is no such thing here."""
    now = int(time.time())
    if operation == INIT:
        return INIT_OUT.pack(7, 31, 4096, 0, 12, 9, 1 << 16, 1, 0, 0, 0)
    if operation == GETATTR:  # valid for no time at all, so that every stat comes here
        return ATTR_OUT.pack(0, 0, 0, 1, 4096, 8, now, now, now, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
    if operation == STATFS:
        return STATFS_OUT.pack(1000, 900, 900, 1000, 990, 4096, 255, 4096, 0)
    if operation == OPENDIR:
        return OPEN_OUT.pack(1, 0, 0)
    if operation in (READDIR, RELEASE, FLUSH, RELEASEDIR, FSYNCDIR, ACCESS, DESTROY):
        return b""
    return None


class HangingMount:
    """The serving side of one mount."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.hanging = False
        self.held: list[bytes] = []
        # A signal only writes a byte into this pipe: select() wakes up and looks at `hanging`.
        self.woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGUSR1, lambda *_: setattr(self, "hanging", True))
        signal.signal(signal.SIGUSR2, lambda *_: setattr(self, "hanging", False))

    def serve(self) -> None:
        """Until the file system is unmounted."""
        while True:
            ready, _, _ = select.select([self.device, self.woken], [], [])
            if self.woken in ready:
                os.read(self.woken, 64)
            if self.device in ready:
                try:
                    self.held.append(os.read(self.device, REQUEST_SIZE))
                except OSError as error:
                    if error.errno == errno.ENODEV:
                        return
                    if error.errno not in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                        raise
            if not self.hanging:
                for request in self.held:
                    self.answer(request)
                self.held.clear()

    def answer(self, request: bytes) -> None:
        _length, operation, unique, *_rest = IN_HEADER.unpack_from(request)
        if operation in NEVER_ANSWERED:
            return
        body = body_of(operation)
        status = 0 if body is not None else -(errno.ENOENT if operation == LOOKUP else errno.ENOSYS)
        body = body or b""
        with contextlib.suppress(FileNotFoundError):  # the caller is gone
            os.write(self.device, OUT_HEADER.pack(OUT_HEADER.size + len(body), status, unique) + body)


def pid_file(mountpoint: Path) -> Path:
    """Told by the path's text alone, since looking at a mount that hangs would hang."""
    return Path("/run") / f"hangfs-{hashlib.sha256(os.fsencode(mountpoint)).hexdigest()[:16]}.pid"


def check(status: int, doing: str) -> None:
    if status:
        sys.exit(f"{doing}: {os.strerror(ctypes.get_errno())}")


def mount(mountpoint: Path, source: str, subtype: str) -> None:
    """Mount, and serve in a process of its own that outlives the caller."""
    mountpoint.mkdir(parents=True, exist_ok=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40755,user_id=0,group_id=0,allow_other"
    doing = f"mount {mountpoint}"
    check(LIBC.mount(source.encode(), os.fsencode(mountpoint), b"fuse." + subtype.encode(), MS_NOSUID | MS_NODEV, options.encode()), doing)
    if os.fork():
        os.close(device)
        os.stat(mountpoint)  # served
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    server = HangingMount(device)
    pid_file(mountpoint).write_text(str(os.getpid()), encoding="ascii")
    server.serve()


def tell(mountpoint: Path, number: signal.Signals) -> None:
    os.kill(int(pid_file(mountpoint).read_text(encoding="ascii")), number)


def umount(mountpoint: Path) -> None:
    tell(mountpoint, signal.SIGUSR2)
    check(LIBC.umount2(os.fsencode(mountpoint), MNT_DETACH), f"umount {mountpoint}")
    pid_file(mountpoint).unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["mount", "hang", "answer", "umount"])
    parser.add_argument("mountpoint", type=lambda text: Path(os.path.abspath(text)))
    parser.add_argument("--source", default="nfs-server:/export")
    parser.add_argument("--subtype", default="hang")
    wanted = parser.parse_args()
    if wanted.verb == "mount":
        mount(wanted.mountpoint, wanted.source, wanted.subtype)
    elif wanted.verb == "umount":
        umount(wanted.mountpoint)
    else:
        tell(wanted.mountpoint, signal.SIGUSR1 if wanted.verb == "hang" else signal.SIGUSR2)


if __name__ == "__main__":
    main()
