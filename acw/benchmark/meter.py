"""Counts handler calls at next to no cost, in files that the measuring process reads.

Each process owns one memory-mapped file: a counter for each thread, and a list of times. The times are of
the system's monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from pathlib import Path
from typing import Any

THREADS = 256
"""Counters in a file; a thread has one to itself, so that counting takes no lock."""

SAMPLES = 65_536
"""Times that a process can note; further ones are refused."""

_WORD = 8
_SIZE = _WORD * (THREADS + 1 + SAMPLES)
_NOTED = THREADS
_SUFFIX = ".meter"


class Meter:
    """What this process counts."""

    def __init__(self, directory: Path) -> None:
        with (directory / f"{os.getpid()}{_SUFFIX}").open("w+b") as file:
            file.truncate(_SIZE)
            view = memoryview(mmap.mmap(file.fileno(), _SIZE))
        self._counts = view.cast("q")
        self._times = view[_WORD * (THREADS + 1) :].cast("d")
        self._own = threading.local()
        self._lock = threading.Lock()
        self._threads = 0

    def count(self) -> None:
        """Note one call."""
        try:
            self._counts[self._own.slot] += 1
        except AttributeError:
            self._own.slot = self._next_slot()
            self._counts[self._own.slot] += 1

    def note(self, seconds: float) -> None:
        """Note a call's time; raises IndexError past ``SAMPLES``."""
        with self._lock:
            noted = self._counts[_NOTED]
            self._times[noted] = seconds
            self._counts[_NOTED] = noted + 1

    def note_since(self, began: float) -> None:
        """Note the seconds since ``began``, a time of the monotonic clock."""
        self.note(time.monotonic() - began)

    def _next_slot(self) -> int:
        with self._lock:
            self._threads += 1
            return self._threads - 1


def counted(directory: Path) -> int:
    """How many calls all processes have counted."""
    return sum(sum(_words(file, "q", 0, THREADS)) for file in _files(directory))


def noted(directory: Path) -> list[float]:
    """The times that all processes have noted."""
    times: list[float] = []
    for file in _files(directory):
        number = sum(_words(file, "q", _NOTED, 1))
        times += _words(file, "d", THREADS + 1, number)
    return times


def _files(directory: Path) -> list[Path]:
    return sorted(directory.glob(f"*{_SUFFIX}"))


def _words(file: Path, kind: str, first: int, number: int) -> tuple[Any, ...]:
    with file.open("rb") as content:
        content.seek(_WORD * first)
        words = content.read(_WORD * number)
    # None where its process has made the file and not yet its size.
    return struct.unpack(f"={len(words) // _WORD}{kind}", words)
