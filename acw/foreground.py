"""Runs a few commands together in the foreground: all of them, or none.

Their output comes line by line, each with its command's name before it. A stop signal
ends all of them, and so does the end of one.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import FrameType
from typing import IO

from jobs.stop_signals import heeded

_CHECK_SECONDS = 0.2
_SAME_WISH_SECONDS = 1
# What a command has started may hold its output open after its end.
_LAST_LINES_SECONDS = 2


@dataclass(frozen=True, kw_only=True)
class Command:
    """What to run, and the name that its lines get."""

    name: str
    arguments: Sequence[str]


class Foreground:
    """The commands, from the first one's start to the last one's end.

    `say` is told what happens; `grace` is how many seconds a command may take to stop.
    """

    def __init__(self, *, say: Callable[[str], None], grace: float) -> None:
        self.signals_taken = 0
        self._last_signal = -math.inf
        self._say = say
        self._grace = grace
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._copiers: list[threading.Thread] = []
        self._ended: list[str] = []
        # Names of commands that ended, and "" for a signal. Signal handlers may put
        # into this kind of queue: it never waits for a lock that the main thread holds.
        self._news: SimpleQueue[str] = SimpleQueue()

    @contextmanager
    def heeding_signals(self) -> Iterator[None]:
        """Note the stop signals, instead of dying of them, as long as the block lasts."""
        before = {number: signal.signal(number, self._note) for number in heeded()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def start(self, commands: Sequence[Command]) -> None:
        for command in commands:
            # In a process group of its own: Ctrl-C in the terminal reaches this process
            # alone, which stops the commands in its own way.
            self._processes[command.name] = subprocess.Popen(  # noqa: S603 - no shell
                command.arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                process_group=0,
            )
        width = max(map(len, self._processes))
        for name, process in self._processes.items():
            prefix = f"{name:<{width}} | "
            self._copiers.append(_thread(_copy_lines, process.stdout, prefix))
            _thread(self._await_end, name, process)

    def wait_for(self, condition: Callable[[], bool]) -> bool:
        """Return True once the condition holds, False when it is over before that."""
        while not condition():
            if self._is_over():
                return False
            self._take_news(timeout=_CHECK_SECONDS)
        return True

    def wait(self) -> int:
        """Wait for the end of all; return 0 when a signal was its reason, else 1."""
        while not self._is_over():
            self._take_news(timeout=None)
        by_signal = self.signals_taken > 0
        if by_signal:
            self._say("Stopping (once more to stop at once)")
        else:
            [name, *_] = self._ended
            status = self._processes[name].returncode
            self._say(f"{name} has ended, with status {status}: stopping the rest")
        self._stop()
        return 0 if by_signal else 1

    def _stop(self) -> None:
        signals_before = self.signals_taken
        deadline = time.monotonic() + self._grace
        for process in self._running().values():
            process.terminate()
        while self._running() and self.signals_taken == signals_before:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                break
            self._take_news(timeout=remaining)
        for name, process in self._running().items():
            self._say(f"{name} has not stopped: killing it")
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for copier in self._copiers:
            copier.join(_LAST_LINES_SECONDS)

    def _is_over(self) -> bool:
        return bool(self._ended or self.signals_taken)

    def _take_news(self, *, timeout: float | None) -> None:
        try:
            name = self._news.get(timeout=timeout)
        except Empty:
            return
        if name:
            self._ended.append(name)

    def _running(self) -> dict[str, subprocess.Popen[str]]:
        return {
            name: process
            for name, process in self._processes.items()
            if name not in self._ended
        }

    def _await_end(self, name: str, process: subprocess.Popen[str]) -> None:
        process.wait()
        self._news.put(name)

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        # A group that is ended as a whole gets its signal once from whoever ends it and
        # once more from make, which passes on its own: that is one wish, not two.
        if now - self._last_signal >= _SAME_WISH_SECONDS:
            self.signals_taken += 1
            self._news.put("")
        self._last_signal = now


def _thread(target: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


def _copy_lines(source: IO[str], prefix: str) -> None:
    with source:
        for line in source:
            try:
                # One write a line, so that two commands' lines do not mix.
                sys.stdout.write(f"{prefix}{line.rstrip()}\n")
                sys.stdout.flush()
            except OSError:
                continue  # nobody reads any more; the command must not wait for it
