"""A clock that is wrong, for one process: Debian's faketime, which shifts the wall clock and leaves the monotonic one."""

from __future__ import annotations

from pathlib import Path

from tests.missing import cannot_run


class WrongClock:
    """``environment`` gives a process the clock; :meth:`set` changes it also while the process runs."""

    def __init__(self, directory: Path, shift: str) -> None:
        # Not through its command: that would stand between the test and the process, and get the signals.
        library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
        if library is None:
            cannot_run("faketime is not installed")
        self._file = directory / "clock"
        self.set(shift)
        self.environment = {
            "LD_PRELOAD": str(library),
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
