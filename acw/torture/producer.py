"""What puts the jobs in, meanwhile: transactions of a few, of which some roll back, and some a part of themselves.

A program of its own: `python -m acw.torture.producer SEED JOBS SECONDS FILE`. What it does is noted outside the database, in FILE:
before a transaction what it will enqueue, behind it what became of it. Jobs are known by their `ref_id`, which is there
before they are.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import django

from acw.torture.job_types import ATOMIC, FLAKY, KINDS, QUICK, SLOW, SNOOZING
from acw.torture.produced import Entry

BURST = 0.3
"""The share of the jobs that is there at once: a backlog."""

ENQUEUED_WITHIN = 0.85
"""The share of the time in which the others come in."""

_BURST_BATCH = 250
_LARGEST_BATCH = 20
_ROLLED_BACK = 0.15
_UNDONE = 0.1
_UNIQUE = 0.05
_KEYS = 40
_LINGERING = 0.15
_PAUSE = 0.05


class RolledBack(Exception):
    """Raised within a transaction that is to be rolled back."""


class Producer:
    """Makes up batches by the seed, and enqueues them."""

    def __init__(self, seed: int, notes: IO[str]) -> None:
        self._random = random.Random(seed)  # noqa: S311 - chosen by the seed, guards nothing
        self._notes = notes
        self._batch = 0

    def enqueue(self, size: int) -> int:
        """One transaction with so many jobs; returns how many it has put in, as far as it knows."""
        self._batch += 1
        entries = [self._entry(number) for number in range(size)]
        self._note(fate="begun", entries=entries)
        rolls_back = self._random.random() < _ROLLED_BACK
        undone = (
            entries[size // 2 :]
            if not rolls_back and self._random.random() < _UNDONE
            else []
        )
        return self._run(entries, undone, rolls_back=rolls_back)

    def _run(
        self, entries: Sequence[Entry], undone: Sequence[Entry], *, rolls_back: bool
    ) -> int:
        from django.db import Error, connection, transaction

        refs = [entry.ref_id for entry in undone]
        deduplicated: list[str] = []
        reached_commit = False
        try:
            with transaction.atomic():
                deduplicated += self._put(entries[: len(entries) - len(undone)])
                if undone:
                    self._undo(undone)
                if rolls_back:
                    raise RolledBack
                reached_commit = True
        except RolledBack:
            self._note(fate="rolled back")
            return 0
        except Error:
            connection.close()
            # At the commit itself nobody knows: the answer may have been lost.
            fate = "unknown" if reached_commit else "rolled back"
            self._note(fate=fate, undone=refs, deduplicated=deduplicated)
            time.sleep(_PAUSE)
            return 0
        self._note(fate="committed", undone=refs, deduplicated=deduplicated)
        return len(entries) - len(undone) - len(deduplicated)

    def _undo(self, entries: Sequence[Entry]) -> None:
        from django.db import transaction

        try:
            with transaction.atomic():
                self._put(entries)
                raise RolledBack
        except RolledBack:
            return

    def _put(self, entries: Sequence[Entry]) -> list[str]:
        """Enqueue them; returns the refs of those whose key was live already."""
        from jobs.enqueue import NewJob, enqueue, enqueue_many

        plain = [entry for entry in entries if entry.unique_key is None]
        enqueue_many(
            NewJob(type=entry.type, payload=self._payload(entry), ref_id=entry.ref_id)
            for entry in plain
        )
        return [
            entry.ref_id
            for entry in entries
            if entry.unique_key is not None
            and enqueue(
                entry.type,
                self._payload(entry),
                ref_id=entry.ref_id,
                unique_key=entry.unique_key,
            ).deduplicated
        ]

    def _entry(self, number: int) -> Entry:
        names = list(KINDS)
        (name,) = self._random.choices(names, [KINDS[name].share for name in names])
        key = None
        if name in (QUICK, SLOW) and self._random.random() < _UNIQUE:
            key = f"key-{self._random.randrange(_KEYS)}"
        return Entry(ref_id=f"{self._batch}.{number}", type=name, unique_key=key)

    def _payload(self, entry: Entry) -> dict[str, Any]:
        if entry.type == SLOW:
            seconds = self._random.uniform(0.2, 1.0)
            # Long enough to be under way again when the worker that lost it wakes up.
            lingers = self._random.random() < _LINGERING
            return {"seconds": seconds * 4 if lingers else seconds}
        if entry.type in (FLAKY, SNOOZING):
            return {"times": self._random.randint(1, 2)}
        if entry.type == ATOMIC:
            return {"amount": self._random.randint(1, 1_000)}
        return {}

    def _note(
        self,
        *,
        fate: str,
        entries: Sequence[Entry] = (),
        undone: Sequence[str] = (),
        deduplicated: Sequence[str] = (),
    ) -> None:
        line = {
            "batch": self._batch,
            "fate": fate,
            "jobs": entries,
            "undone": undone,
            "deduplicated": deduplicated,
        }
        self._notes.write(json.dumps(line) + "\n")
        self._notes.flush()


def main(seed: int, jobs: int, seconds: float, file: Path) -> None:
    """Put so many jobs in, spread over most of so many seconds."""
    django.setup()
    with file.open("w") as notes:
        producer = Producer(seed, notes)
        done = 0
        while done < jobs * BURST:
            done += producer.enqueue(min(_BURST_BATCH, max(1, jobs // 10)))
        began, burst = time.monotonic(), done
        sizes = random.Random(seed)  # noqa: S311 - as above
        while done < jobs:
            share = (time.monotonic() - began) / (seconds * ENQUEUED_WITHIN)
            if done < burst + (jobs - burst) * share:
                done += producer.enqueue(sizes.randint(1, _LARGEST_BATCH))
            else:
                time.sleep(_PAUSE)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
