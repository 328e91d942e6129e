"""What a worker process has begun and done, in a file that outlives it however it ends.

A process that is killed leaves leases behind, and the table cannot tell which of their jobs were begun: to write that there
would cost a statement a job. So each thread notes it in memory that is mapped to a file of this host, which the
system keeps when the process is gone; :mod:`jobs.recovery` reads it. A host that crashes may lose it, and then the leases run out as
they would without it.

A second file beside it takes what Python's faulthandler has to say of a fatal signal. Its process keeps it locked, and no child of
that does, so whoever gets the lock knows that the process has ended.
"""

from __future__ import annotations

import faulthandler
import fcntl
import glob
import logging
import mmap
import os
import struct
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote

from django.conf import settings

from jobs.claims import LARGEST_BATCH
from jobs.events import LogEvent
from jobs.leases import LeasedJob, LeaseKey

log = logging.getLogger(__name__)

SUFFIX = ".journal"
CRASH_SUFFIX = ".crash"
"""Of the second file."""

SLOTS = 64
"""Threads of one process that can be noted at once."""

ENTRIES = 2 * LARGEST_BATCH
"""Jobs that one thread can note: it forgets them with each batch."""

SETTLE = 10.0
"""Seconds after its first reading at which a journal is read again and removed."""

_WORD = 8
_ENTRY = struct.Struct("=16sqq")
_STATE = 24
_BEGUN, _DONE = 1, 2
# One entry more than is read: where a job is noted that finds no room.
_SLOT = _WORD + (ENTRIES + 1) * _ENTRY.size
_HEADER = 64
_BOOT = slice(8, 44)
_FILE = _HEADER + SLOTS * _SLOT


_open: set[Journal] = set()


class Slot:
    """One thread's part of the journal. Only that thread writes it."""

    __slots__ = ("_at", "_count", "_memory", "_start", "number")

    def __init__(self, memory: memoryview, number: int) -> None:
        start = _HEADER + number * _SLOT
        self.number = number
        self._memory = memory
        self._count = memory[start : start + _WORD].cast("q")
        self._start = start + _WORD
        self._at = self._start
        self.reset()

    def reset(self) -> None:
        """Forget what was noted: all of it is in the table."""
        self._count[0] = 0

    def begin(self, job: LeasedJob) -> None:
        """Note that the job's handler is about to be called."""
        number = self._count[0]
        self._at = at = self._start + number * _ENTRY.size
        _ENTRY.pack_into(self._memory, at, job.id.bytes, job.lease_seq, _BEGUN)
        if number == ENTRIES:
            self._memory[0] = 1
        else:
            self._count[0] = number + 1

    def done(self) -> None:
        """Note that the job begun last is completed: only the table does not say so yet."""
        self._memory[self._at + _STATE] = _DONE


class Journal:
    """The file of this process, from :func:`open_journal` to :meth:`close`."""

    def __init__(self, path: Path, file: IO[bytes], crash: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._crash = crash
        self._memory = memoryview(mmap.mmap(file.fileno(), _FILE))
        self._memory[_BOOT] = _this_boot()
        self._free = list(range(SLOTS))
        self._giving = threading.Lock()
        self._traces = not faulthandler.is_enabled()
        if self._traces:
            faulthandler.enable(crash, all_threads=False)
        _open.add(self)

    def slot(self) -> Slot | None:
        """A part for one more thread; None where there is none, which the journal then tells its reader."""
        with self._giving:
            if not self._free:
                self._memory[0] = 1
                return None
            return Slot(self._memory, self._free.pop())

    def give_back(self, slot: Slot) -> None:
        """Called when a thread ends and everything that it did is in the table."""
        slot.reset()
        with self._giving:
            self._free.append(slot.number)

    def close(self) -> None:
        """Remove the file: this process leaves nothing behind that it could tell of."""
        remove(self._path)
        # A thread that goes on after its time may still write into the mapping, which lasts as long as it is used.
        self._file.close()
        self.unlock()
        _open.discard(self)

    def unlock(self) -> None:
        """Hold the lock no longer, and have no more fatal signals noted."""
        if self._traces:
            faulthandler.disable()
            self._traces = False
        self._crash.close()


def _this_boot() -> bytes:
    """Names the time since the system was started; zeros where it does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        boot = b""
    return boot.strip()[:36].ljust(36, b"\0")


def directory() -> Path:
    """Where the workers of this host keep their journals."""
    place: Path = settings.ACW_DATA_DIR / "workers"
    return place


def open_journal(worker: str) -> Journal | None:
    """The journal of a worker that begins; None, with a warning, where none can be written: it works without."""
    path = directory() / f"{quote(worker, safe=':')}{SUFFIX}"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as undo:
            crash = undo.enter_context(path.with_suffix(CRASH_SUFFIX).open("wb"))
            # While it is still locked: an unlocked one is taken for a dead worker's.
            undo.callback(remove, path)
            # Before the journal is there, or somebody could take it for a dead worker's in between.
            fcntl.flock(crash, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file = undo.enter_context(path.open("w+b"))
            # Not truncate(): to write into a hole of a mapped file when the disk is full ends the process (SIGBUS).
            file.write(bytes(_FILE))
            file.flush()
            made = Journal(path, file, crash)
            undo.pop_all()
            return made
    except OSError as error:
        log.warning(
            LogEvent.JOURNAL_FAILED,
            extra={"worker": worker, "path": str(path), "error": str(error)},
        )
        return None


def remove(path: Path) -> None:
    """Remove a journal and what lies beside it."""
    for name in (path, path.with_suffix(CRASH_SUFFIX)):
        with suppress(OSError):
            name.unlink()


class Notes:
    """What a journal tells: which leases' jobs were begun, and which of those completed.

    ``complete`` is false where some may have been begun of which it does not tell.
    """

    def __init__(self, data: bytes) -> None:
        # After a crash of the host the file is as old as the system's last writing of it.
        fresh = len(data) == _FILE and data[_BOOT] == _this_boot()
        self.complete = fresh and data[0] == 0
        self.begun: set[LeaseKey] = set()
        self.done: set[LeaseKey] = set()
        for start in range(_HEADER, len(data) - _SLOT + 1, _SLOT):
            count = int.from_bytes(data[start : start + _WORD], sys.byteorder)
            if count > ENTRIES:
                self.complete = False
                continue
            first = start + _WORD
            entries = data[first : first + count * _ENTRY.size]
            for raw_id, lease_seq, state in _ENTRY.iter_unpack(entries):
                key = (uuid.UUID(bytes=raw_id), lease_seq)
                self.begun.add(key)
                if state == _DONE:
                    self.done.add(key)


@dataclass(frozen=True, kw_only=True, slots=True)
class Remains:
    """What a worker of this host has left that ended without closing its journal."""

    worker: str
    notes: Notes
    crash: str
    again: bool
    """Whether it was read before."""


@contextmanager
def remains(path: Path) -> Iterator[Remains | None]:
    """What the journal tells; None where its worker lives or somebody else is reading it. Removed at the end of a good block."""
    with ExitStack() as stack:
        try:
            crash = stack.enter_context(path.with_suffix(CRASH_SUFFIX).open("rb"))
            fcntl.flock(crash, fcntl.LOCK_EX | fcntl.LOCK_NB)
            data, told = path.read_bytes(), crash.read()
            read_before = not path.stat().st_mode & 0o200
            settled = read_before and time.time() - path.stat().st_ctime > SETTLE
        except OSError:  # also where another has read and removed it just now
            yield None
            return
        yield Remains(
            worker=unquote(path.name.removesuffix(SUFFIX)),
            notes=Notes(data),
            crash=told.decode(errors="replace").strip(),
            again=read_before,
        )
        # The server may still be at its last claim: there is another look for what that has leased.
        if settled:
            remove(path)
        elif not read_before:
            with suppress(OSError):
                path.chmod(0o400)


def left_behind() -> list[Path]:
    """The journals of this host's workers, of living ones and others."""
    prefix = quote(settings.ACW_HOST, safe=":")
    try:
        return sorted(directory().glob(f"{glob.escape(prefix)}:*{SUFFIX}"))
    except OSError:  # as open_journal has warned
        return []


def _unlock_after_fork() -> None:
    """A child that outlives its worker must not pass for it."""
    for journal in _open:
        journal.unlock()
    _open.clear()


os.register_at_fork(after_in_child=_unlock_after_fork)
