"""One side of a latency measurement, as a program: what sends jobs one at a time, or a plain listener.

`python -m acw.benchmark.senders enqueue|insert|listen COUNT SECONDS`: COUNT jobs, so many SECONDS apart. Each job carries
the moment (of the clock that all processes of a machine share) at which it was sent.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import psycopg

from acw.benchmark import gate
from acw.benchmark.job_types import LATENCY
from jobs.identifiers import uuid7

_CHANNEL = "acw_bench_plain"
_INSERT = """
WITH new AS (
    INSERT INTO jobs (id, type, payload) VALUES (%s, %s, %s::jsonb)
)
SELECT pg_notify(%s, '')
"""
_CLAIM = """
UPDATE jobs
SET status = 'running', attempts = attempts + 1, lease_seq = lease_seq + 1, leased_by = 'plain listener',
    lease_until = now() + interval '5 minutes', started_at = now(), updated_at = now()
WHERE id = ANY (ARRAY(
    SELECT id FROM jobs
    WHERE status = 'pending' AND queue = 'default' AND priority = 2 AND run_at <= now()
    ORDER BY run_at, id
    LIMIT 100
    FOR NO KEY UPDATE SKIP LOCKED
))
RETURNING payload::text
"""
_DEAF_AFTER = 20.0

Send = Callable[[float], None]


def send(sends: Send, count: int, apart: float) -> None:
    """Send ``count`` jobs, and before them one that is not measured: it opens what is opened once."""
    sends(0)
    gate.wait()
    started = time.monotonic()
    for number in range(1, count + 1):
        time.sleep(max(0.0, started + number * apart - time.monotonic()))
        sends(time.monotonic())
    gate.report({})


def listen(count: int) -> None:
    """Claim whatever comes as soon as it is notified, and report how long each took to come."""
    connection = _connect()
    connection.execute(f"LISTEN {_CHANNEL}")
    gate.wait()
    times: list[float] = []
    while len(times) < count and any(
        connection.notifies(timeout=_DEAF_AFTER, stop_after=1)
    ):
        claimed = connection.execute(_CLAIM).fetchall()
        now = time.monotonic()
        sent = [json.loads(payload)["sent"] for (payload,) in claimed]
        times += [now - moment for moment in sent if moment]
    gate.report({"times": times})


def by_enqueue() -> Send:
    """Send through the product's `enqueue`."""
    import django

    django.setup()
    from jobs.enqueue import enqueue

    return lambda sent: void(enqueue(LATENCY, {"sent": sent}))


def by_insert() -> Send:
    """Send by an INSERT that notifies."""
    connection = _connect()

    def insert(sent: float) -> None:
        payload = json.dumps({"sent": sent})
        connection.execute(_INSERT, (uuid7(), LATENCY, payload, _CHANNEL))

    return insert


def void(_: object) -> None:
    """Nothing, whatever was returned."""


def _connect() -> psycopg.Connection[Any]:
    connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    connection.prepare_threshold = 0
    return connection


def main(kind: str, count: int, apart: float) -> None:
    if kind == "listen":
        listen(count)
    else:
        send({"enqueue": by_enqueue, "insert": by_insert}[kind](), count, apart)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
