"""A clock that is wrong, for one process: Debian's faketime, which shifts the wall clock and leaves the monotonic one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.missing import cannot_run


class WrongClock:
    """``environment`` gives a process the clock; :meth:`set` changes it also while the process runs."""

    def __init__(self, directory: Path, shift: str) -> None:
        program = shutil.which("faketime")
        if program is None:
            cannot_run("faketime is not installed")
        self._file = directory / "clock"
        self.set(shift)
        # Its command would stand between the test and the process, and get the signals.
        told = subprocess.run(
            [program, "-m", "-f", "+0", "printenv", "LD_PRELOAD"],
            capture_output=True,
            text=True,
            check=True,
        )
        self.environment = {
            "LD_PRELOAD": told.stdout.strip(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # They sleep in a way that faketime does not spoil.
            "DJANGO_SETTINGS_MODULE": "tests.acceptance.faulted.settings",
        }

    def set(self, shift: str) -> None:
        """``+10m`` is ten minutes ahead, ``-10m`` behind."""
        draft = self._file.with_suffix(".new")
        draft.write_text(f"{shift}\n")
        draft.replace(self._file)
