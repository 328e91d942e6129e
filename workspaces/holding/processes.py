"""Which directories processes of this host work in: their working directories and what they have open."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_PROC = "/proc"


def in_use(below: Path) -> dict[int, list[str]]:
    """The paths at or below the directory that processes are in or have open, by the process's number.

    This process itself does not count, nor what it may not look into, another user's. Empty where the system has no
    ``/proc``.
    """
    top = os.fspath(below)
    found = {
        process: [
            path
            for path in _paths(process)
            if path == top or path.startswith(f"{top}/")
        ]
        for process in _processes()
    }
    return {process: paths for process, paths in found.items() if paths}


def _processes() -> list[int]:
    mine = os.getpid()
    with contextlib.suppress(OSError):
        listed = [int(name) for name in os.listdir(_PROC) if name.isdecimal()]
        return [number for number in listed if number != mine]
    return []


def _paths(process: int) -> Iterator[str]:
    # It may end at any time.
    with contextlib.suppress(OSError):
        yield os.readlink(f"{_PROC}/{process}/cwd")
    files = f"{_PROC}/{process}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(files):
            with contextlib.suppress(OSError):
                yield os.readlink(f"{files}/{name}")
