"""Up to where the history is complete: ids are handed out before their rows are committed, and in another order."""

from __future__ import annotations

import threading

from django.db import connection

from workspaces.tasks.exceptions import TasksError

PATIENCE = 30.0
"""Seconds that changes of tasks which are under way may take to come to their end."""

_PAUSE = 0.05

_LAST = "SELECT coalesce(max(id), 0) FROM task_events"
# Who writes a row of the history holds this lock on its table, from before the row has its id until the end of the transaction. A
# virtual transaction's id is not used again while the server runs.
_WRITERS = """
SELECT virtualtransaction, pid FROM pg_locks
WHERE locktype = 'relation' AND relation = 'task_events'::regclass AND mode = 'RowExclusiveLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND pid IS DISTINCT FROM pg_backend_pid()
"""


def last_event(stop: threading.Event, *, patience: float = PATIENCE) -> int | None:
    """An id above which events may still come, while all up to it are there to be read, or never will be.

    None where ``stop`` is set before that is known. Waits for the changes that are under way, and for none that begins
    later; raises TasksError where one takes longer than ``patience`` (seconds).
    """
    with connection.cursor() as cursor:
        cursor.execute(_LAST)
        (last,) = cursor.fetchone()
    earlier = _writers()
    waited = 0.0
    while earlier:
        if waited > patience:
            pids = ", ".join(str(pid or "prepared") for pid in earlier.values())
            raise TasksError(
                f"a transaction that changes tasks has been open for more than {patience:g} s (process id {pids}): the report "
                "would miss what it does, and is made at the next tick"
            )
        if stop.wait(_PAUSE):
            return None
        waited += _PAUSE
        now = _writers()
        earlier = {key: pid for key, pid in earlier.items() if key in now}
    return int(last)


def _writers() -> dict[str, int | None]:
    """The transactions that write to the history at this moment, with their process ids."""
    with connection.cursor() as cursor:
        cursor.execute(_WRITERS)
        return dict(cursor.fetchall())
