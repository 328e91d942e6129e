"""Which directories processes of this host work in: their working directories, what they have open, and what they run or map."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_PROC = "/proc"


def in_use(below: Path) -> dict[int, list[str]]:
    """The paths at or below the directory that processes are in, have open or have in memory, by the process's number.

    This process itself does not count, nor what it may not look into, another user's. Empty where the system has no
    ``/proc``.
    """
    top = os.fspath(below)
    found = {
        process: [
            path
            for path in (*_paths(process), *_mapped(process, top))
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


def _mapped(process: int, top: str) -> list[str]:
    """The files below the directory that it runs, or has mapped and closed."""
    wanted = os.fsencode(f"{top}/")
    with contextlib.suppress(OSError), open(f"{_PROC}/{process}/maps", "rb") as maps:
        # Address, permissions, offset, device, inode, path.
        names = {
            fields[5].rstrip(b"\n")
            for line in maps
            if wanted in line and len(fields := line.split(maxsplit=5)) > 5
        }
        return sorted(os.fsdecode(name) for name in names)
    return []
