"""Jobs by the ten thousand, written by one statement on the server, and how they are accounted for."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from acw.benchmark.errors import CountError
from acw.benchmark.job_types import NOOP

_DAY_MS = 24 * 3600 * 1000

# UUIDs of version 7, one after the other, as the product makes them: what is next to each other in time is so in
# the index.
_INSERT = """
INSERT INTO jobs (id, {columns})
SELECT (
    lpad(to_hex(%(first)s::bigint + n / 4096), 12, '0') || '7' || lpad(to_hex(n %% 4096), 3, '0')
    || '8' || substr(md5(random()::text), 1, 15)
)::uuid, {values}
FROM generate_series(0, %(count)s::bigint - 1) AS n
"""
_DUE = sql.SQL(_INSERT).format(
    columns=sql.SQL("type, payload"),
    values=sql.SQL("%(type)s, (%(payloads)s::jsonb[])[n %% %(variety)s + 1]"),
)
_STATES = {
    "completed": (
        "type, status, attempts, started_at, completed_at",
        "%(type)s, 'completed', 1, now(), now()",
    ),
    "dead": (
        "type, status, attempts, started_at, completed_at, last_error",
        "%(type)s, 'dead', 5, now(), now(), 'ValueError: it never works'",
    ),
    "future": ("type, run_at", "%(type)s, now() + interval '30 days'"),
}
STATES = tuple(_STATES)
"""What may lie in the table beside the jobs that are due."""

_STANDING = """
SELECT count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status IN ('pending', 'running')), count(*)
FROM jobs WHERE id >= %(lowest)s AND type = %(type)s
"""
_TAIL_LIVE = """
SELECT EXISTS (SELECT FROM jobs WHERE id >= %(tail)s AND type = %(type)s AND status IN ('pending', 'running'))
"""
_TAIL = 500


@dataclass(frozen=True, kw_only=True)
class Filled:
    """Jobs that were laid out to be drained: the first has the id ``lowest`` or a higher one, as have all others.

    ``tail`` is such an id for the last few of them, those that are finished last.
    """

    count: int
    type_name: str
    lowest: str
    tail: str

    @property
    def parameters(self) -> dict[str, str]:
        return {"type": self.type_name, "lowest": self.lowest, "tail": self.tail}


def fill(
    connection: psycopg.Connection[Any],
    count: int,
    *,
    type_name: str = NOOP,
    payloads: tuple[str, ...] = ("{}",),
) -> Filled:
    """Make ``count`` jobs that are due; the payloads, JSON, take turns."""
    first = time.time_ns() // 1_000_000
    parameters = {
        "first": first,
        "count": count,
        "type": type_name,
        "payloads": list(payloads),
        "variety": len(payloads),
    }
    connection.execute(_DUE, parameters)
    return Filled(
        count=count,
        type_name=type_name,
        lowest=_id(first, 0),
        tail=_id(first, max(count - _TAIL, 0)),
    )


def seed(connection: psycopg.Connection[Any], state: str, count: int) -> None:
    """Make ``count`` jobs in one of ``STATES``, older than those that :func:`fill` makes."""
    columns, values = _STATES[state]
    statement = sql.SQL(_INSERT).format(
        columns=sql.SQL(columns), values=sql.SQL(values)
    )
    first = time.time_ns() // 1_000_000 - _DAY_MS
    connection.execute(statement, {"first": first, "count": count, "type": NOOP})


def tail_is_done(connection: psycopg.Connection[Any], filled: Filled) -> bool:
    """Whether the last few of the jobs are completed or gone; asking costs next to nothing."""
    row = connection.execute(_TAIL_LIVE, filled.parameters).fetchone()
    return row is not None and not row[0]


def left(connection: psycopg.Connection[Any], filled: Filled) -> int:
    """How many of the jobs are neither completed nor gone; looks at all of them."""
    row = connection.execute(_STANDING, filled.parameters).fetchone()
    return row[1] if row else 0


def check(
    connection: psycopg.Connection[Any], filled: Filled, *, handled: int, kept: bool
) -> None:
    """Raise CountError unless enqueued = handled = recorded, with none left."""
    row = connection.execute(_STANDING, filled.parameters).fetchone()
    completed, live, present = row or (0, 0, 0)
    recorded = completed if kept else filled.count - present
    if not filled.count == handled == recorded or live:
        raise CountError(
            f"{filled.count:,} jobs were enqueued, {handled:,} handled and {recorded:,} recorded as done,"
            f" {live:,} are left: no figure"
        )


def _id(first: int, number: int) -> str:
    """The lowest id that the job of this number can have."""
    milliseconds, fraction = first + number // 4096, number % 4096
    return str(uuid.UUID(f"{milliseconds:012x}7{fraction:03x}8{'0' * 15}"))
