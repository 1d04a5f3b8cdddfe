# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many programs at once, in bounded time: the only place where the patrol starts them in parallel.

With ClusterShell where its Python has it, which needs no thread for each; else with threads.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import threading

from . import loaders

try:
    from shlex import quote  # novm: 2.7 takes the other way
except ImportError:  # Python 2
    from pipes import quote

try:
    from ClusterShell.Event import EventHandler
    from ClusterShell.Task import TimeoutError as TaskTimeout  # novm: not Python's own
    from ClusterShell.Task import task_self
except ImportError:
    EventHandler, task_self = object, None


def run_all(commands, width, each, seconds, stdin=""):
    """Run commands of this host: {key: loaders.Result, None where there was no time}.

    :param commands: [(key, argv)]
    :param width: how many at once
    :param each: seconds for one
    :param seconds: for all of them
    :param stdin: text that each of them reads
    """
    results = dict.fromkeys(key for key, _argv in commands)
    if commands:
        (_threads if task_self is None else _cluster_shell)(commands, width, each, seconds, stdin, results)
    return results


class _Answers(EventHandler):
    """Begins the commands in their order, which ClusterShell's own queue does not keep, and keeps what each left."""

    def __init__(self, commands, each, deadline, stdin, results):
        super(_Answers, self).__init__()
        self.waiting = list(reversed(commands))
        self.each = each
        self.deadline = deadline
        self.stdin = stdin.encode("utf-8")
        self.results = results

    def begin(self):
        """Begin the next one, if any; none while those are ended that the time is over for."""
        if not self.waiting or loaders.now() >= self.deadline:
            return
        key, argv = self.waiting.pop()
        # the shell gives its place to the program, which a time-out then kills
        line = "exec env LC_ALL=C " + " ".join(quote(word) for word in argv)
        worker = task_self().shell(line, key=key, handler=self, timeout=self.each)
        if self.stdin:
            worker.write(self.stdin)
        worker.set_write_eof()

    def ev_close(self, worker, timedout):  # pylint: disable=unused-argument
        """A program has ended, or was ended; then there is no status."""
        out, err = [(part or b"").decode("utf-8", "replace") for part in (worker.read(), worker.error())]
        code = worker.retcode()
        self.results[worker.key] = loaders.Result(124 if code is None else code, out, err, code is None)
        self.begin()


def _cluster_shell(commands, width, each, seconds, stdin, results):
    task = task_self()
    task.set_info("fanout", width)
    task.set_default("stderr", True)
    answers = _Answers(commands, each, loaders.now() + seconds, stdin, results)
    for _number in range(width):
        answers.begin()
    try:
        task.resume(timeout=seconds)
    except TaskTimeout:
        pass


def _threads(commands, width, each, seconds, stdin, results):
    deadline = loaders.now() + seconds
    waiting = list(reversed(commands))

    def work():
        while waiting and loaders.now() < deadline:
            try:
                key, argv = waiting.pop()
            except IndexError:
                return
            results[key] = loaders.run(argv, max(0.2, min(each, deadline - loaders.now())), stdin=stdin or None)

    threads = [threading.Thread(target=work) for _number in range(min(width, len(commands)))]
    for thread in threads:
        thread.daemon = True
        thread.start()
    for thread in threads:
        # a program in uninterruptible sleep is left behind
        thread.join(max(0.1, deadline + 3 - loaders.now()))
