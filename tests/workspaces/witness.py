"""Programs that tests plant where git could run them, and what shows that they ran or are gone."""

from __future__ import annotations

import os
import select
from pathlib import Path

PATIENCE = 20.0
"""Seconds after which a test gives up on what should come at once."""


def plant(path: Path, *lines: str) -> Path:
    """An executable shell script of these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


class Tripwire:
    """A program that leaves a mark when it is run, and passes on what it reads unless it is to fail at once."""

    def __init__(self, directory: Path, *, fails: bool = False) -> None:
        self._mark = directory / "FIRED"
        self.program = plant(
            directory / "tripwire.sh",
            f'echo "$0 $*" >> {self._mark}',
            "exit 1" if fails else "cat",
        )

    @property
    def fired(self) -> str:
        """Who ran it and how; "" where nobody did."""
        return self._mark.read_text() if self._mark.exists() else ""


class Lifeline:
    """A FIFO that planted programs keep open as long as they live: ``exec 9>{path}``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def was_held_and_let_go(self) -> bool:
        """Wait until nobody has it open any more; False where nobody ever had or somebody still has."""
        seen = b""
        while select.select([self._reading], [], [], PATIENCE)[0]:
            chunk = os.read(self._reading, 65536)
            if not chunk:
                return bool(seen)
            seen += chunk
        return False

    def close(self) -> None:
        os.close(self._reading)
