"""What the producer has noted, brought into the table in which SQL finds it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import psycopg


class Entry(NamedTuple):
    """A job that is to be enqueued."""

    ref_id: str
    type: str
    unique_key: str | None


_COPY = "COPY torture_produced (ref_id, batch, type, unique_key, fate) FROM STDIN"


def load(connection: psycopg.Connection[Any], notes: Path) -> None:
    """Fill ``torture_produced``. A transaction whose end is not noted has an unknown fate."""
    rows: dict[str, tuple[int, Entry, str]] = {}
    batches: dict[int, list[Entry]] = {}
    # The last line is not whole where the producer was killed.
    for line in notes.read_text().rpartition("\n")[0].splitlines():
        note = json.loads(line)
        batch, fate = note["batch"], note["fate"]
        if fate == "begun":
            batches[batch] = [Entry(*job) for job in note["jobs"]]
            fate = "unknown"
        changed = dict.fromkeys(note.get("undone", ()), "rolled back")
        changed |= dict.fromkeys(note.get("deduplicated", ()), "deduplicated")
        for entry in batches[batch]:
            rows[entry.ref_id] = batch, entry, changed.get(entry.ref_id, fate)
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for batch, entry, fate in rows.values():
            copy.write_row((entry.ref_id, batch, entry.type, entry.unique_key, fate))
