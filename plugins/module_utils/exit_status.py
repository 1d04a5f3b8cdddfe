# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``code:signal`` of a job means. Pure.

slurmstepd puts its own codes where a signal would stand: 125 is what remains of SIG_OOM (253 & 127), 53 says that input or
output could not be set up. A shell says 128 + N of a command that signal N ended. scontrol prints that; sacct takes the 128
off, in every release.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# Linux on x86 and arm; fixed, because the names must not follow the host or its language.
SIGNALS = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
    10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 16: "SIGSTKFLT", 17: "SIGCHLD",
    18: "SIGCONT", 19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN", 22: "SIGTTOU", 23: "SIGURG", 24: "SIGXCPU", 25: "SIGXFSZ",
    26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH", 29: "SIGIO", 30: "SIGPWR", 31: "SIGSYS",
}  # fmt: skip
OOM, NO_OUTPUT = 125, 53

# kinds
SUCCESS, MEMORY, OUTPUT, MISSING, NOT_EXECUTABLE, SIGNAL, CODE, NONE = (
    "success", "memory", "output", "missing", "not_executable", "signal", "code", "unknown",
)  # fmt: skip

_PAIR = re.compile(r"^\s*([0-9]{1,10})(?::([0-9]{1,10}))?\s*$")


def parse(text):
    """``1:0`` as (1, 0); None of what is no exit status."""
    match = _PAIR.match(text)
    return (int(match.group(1)), int(match.group(2) or 0)) if match else None


def decode(text):
    """What an exit status says: {kind, signal, by_shell}; ``signal`` is 0 where none is meant."""
    pair = parse(text)
    if pair is None:
        return {"kind": NONE, "signal": 0, "by_shell": False}
    code, signal = pair
    if signal == OOM:
        return {"kind": MEMORY, "signal": 0, "by_shell": False}
    if signal == NO_OUTPUT:
        return {"kind": OUTPUT, "signal": 0, "by_shell": False}
    if signal:
        return {"kind": SIGNAL, "signal": signal, "by_shell": False}
    if code > 128 and code - 128 in SIGNALS:
        return {"kind": SIGNAL, "signal": code - 128, "by_shell": True}
    return {"kind": {0: SUCCESS, 126: NOT_EXECUTABLE, 127: MISSING}.get(code, CODE), "signal": 0, "by_shell": False}


def signal_name(number):
    return SIGNALS.get(number, "signal %d" % number)


def describe(text):
    """(Chinese, English) of an exit status."""
    said = decode(text)
    name = signal_name(said["signal"])
    if said["kind"] == SIGNAL and said["by_shell"]:
        return (
            u"%s: shell 报告命令被信号 %d (%s) 终止" % (text, said["signal"], name),
            u"%s: the shell saw a command ended by signal %d (%s)" % (text, said["signal"], name),
        )
    code = (parse(text) or ("?",))[0]
    words = {
        SUCCESS: (u"退出码 0", u"exit status 0"),
        MEMORY: (u"Slurm 记录的 OOM 代码, 不是信号", u"Slurm's own code for out of memory, no signal"),
        OUTPUT: (u"无法打开标准输入或输出文件, 不是信号", u"standard input or output could not be opened, no signal"),
        MISSING: (u"找不到命令", u"command not found"),
        NOT_EXECUTABLE: (u"找到命令但无法执行", u"found but cannot be executed"),
        SIGNAL: (u"被信号 %d (%s) 终止" % (said["signal"], name), u"ended by signal %d (%s)" % (said["signal"], name)),
        CODE: (u"程序以退出码 %s 结束" % code, u"the program ended with exit status %s" % code),
        NONE: (u"不是退出码", u"no exit status"),
    }[said["kind"]]
    return u"%s: %s" % (text, words[0]), u"%s: %s" % (text, words[1])
