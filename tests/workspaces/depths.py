"""Directories that lie deeper than a path can say."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def dug(top: Path, levels: int, *, name: str = "d" * 200) -> Iterator[int]:
    """Make so many directories below ``top``, each in the one before; the last is open as long as the block."""
    descriptor = os.open(top, os.O_RDONLY)
    try:
        for _ in range(levels):
            os.mkdir(name, dir_fd=descriptor)
            below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)
