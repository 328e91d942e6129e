"""Draining jobs of the product's own types, whose handlers do something: how long one worker takes for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psycopg

from acw.benchmark.errors import CountError
from acw.benchmark.scratch import Scratch
from acw.benchmark.workers import Workers
from jobs.wakeup import CHANNEL

# Looking is work for the same server and the same processors.
_LOOK_EVERY = 0.2
_LONGEST_START = 60.0
_SLOWEST = 5
"""Jobs a second below which a drain is given up."""

_STANDING = """
SELECT count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status IN ('pending', 'running')), count(*),
    extract(epoch FROM max(completed_at) - %s)::float8
FROM jobs WHERE type = %s
"""
_NOW = "SELECT clock_timestamp()"
_FAILURE = """
SELECT last_error FROM jobs WHERE type = %s AND last_error <> '' ORDER BY updated_at DESC LIMIT 1
"""

LayOut = Callable[[psycopg.Connection[Any]], None]


def drain(
    scratch: Scratch, workers: Workers, lay_out: LayOut, *, type_name: str, count: int
) -> float:
    """Seconds from the moment at which ``count`` jobs may be worked on to that at which all are completed.

    By the server's clock, so that it is exact however seldom the table is looked at.

    ``workers`` are up, and stand still while ``lay_out`` makes the jobs. Raises CountError, with what the last
    failure was, unless every one of them was completed.
    """
    with scratch.connect() as connection:
        workers.pause()
        lay_out(connection)
        scratch.settle()
        connection.execute("SELECT pg_notify(%s, '')", [CHANNEL])
        (began_at,) = connection.execute(_NOW).fetchone() or (None,)
        began = time.monotonic()
        workers.resume()
        deadline = began + _LONGEST_START + count / _SLOWEST
        while True:
            row = connection.execute(_STANDING, [began_at, type_name]).fetchone()
            completed, live, present, seconds = row or (0, 0, 0, None)
            if not live:
                break
            workers.check()
            if time.monotonic() > deadline:
                break
            time.sleep(_LOOK_EVERY)
        if not completed == present == count or seconds is None:
            failure = connection.execute(_FAILURE, [type_name]).fetchone()
            raise CountError(
                f"{count:,} jobs of type {type_name} were enqueued, {completed:,} are completed and {live:,} are left:"
                f" no figure; the last failure: {failure[0] if failure else 'none'}"
            )
    return float(seconds)
