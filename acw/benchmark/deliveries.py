"""Webhook deliveries by one worker to a receiver on this machine, beside the same requests without a queue.

The receiver answers at once, so that nothing hides what a delivery costs: the job, the row of the attempt before
the request and its end after it, the deadline and the address policy. Each floor has as many threads as the worker: the
same requests by ``requests`` alone in a plain loop, and the product's attempts with their rows, which is all of
a delivery but the queue.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from cryptography.fernet import Fernet

from acw.benchmark import children, real_jobs, rows
from acw.benchmark.children import Child
from acw.benchmark.errors import CountError
from acw.benchmark.figures import Figure, of_rounds
from acw.benchmark.plain_deliveries import BODY_VARIABLE, SECRET, TOPIC
from acw.benchmark.scratch import Scratch
from acw.benchmark.workers import Workers
from notify.webhooks import JOB_TYPE

JOBS, JOBS_SHORT = 2_000, 100
THREADS = 8

WEBHOOKS_ON: dict[str, Any] = {
    "NOTIFY_WEBHOOK_ENABLED": "true",
    "NOTIFY_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
}

# An event as the product makes them.
BODY = json.dumps(
    {
        "topic": TOPIC,
        "title": "Workspace demo cannot be fetched",
        "body": "git fetch failed (128): fatal: unable to access the remote",
        "data": {"url": "/admin/workspaces/workspace/1/change/", "workspace_id": 1},
        "created_at": "2026-01-01T00:00:00+00:00",
    },
    separators=(",", ":"),
)

_ADD_ENDPOINT = """
INSERT INTO webhook_endpoints (name, url, topics, encrypted_secret, max_in_flight)
VALUES ('receiver', %s, %s, %s, %s) RETURNING id
"""


def measure(scratch: Scratch, *, rounds: int, short: bool) -> list[Figure]:
    """Deliveries a second, beside the same requests by ``requests`` and beside the same attempts without a queue."""
    count = JOBS_SHORT if short else JOBS
    floor, recorded, queue = [], [], []
    for _ in range(rounds):
        floor.append(count / plain(scratch, "requests", count))
        queue.append(count / by_queue(scratch, count))
        recorded.append(count / plain(scratch, "recorded", count))
    return [
        of_rounds(
            f"webhook deliveries, {THREADS} threads",
            queue,
            unit="jobs/s",
            ceilings=floor,
            against="the same requests, prepared and sent by requests in a loop",
            goal="≥ 0.8",
        ),
        of_rounds(
            f"webhook deliveries beside their record, {THREADS} threads",
            queue,
            unit="jobs/s",
            ceilings=recorded,
            against="the same attempts with their rows, no queue",
            goal="≥ 0.8",
        ),
    ]


@contextmanager
def receiver(scratch: Scratch, count: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """The URL of a receiver, and what to call when it should have got ``count`` different events, once each."""
    port_file = scratch.directory / "receiver.port"
    with Child("acw.benchmark.receiver", [port_file], scratch.env()) as receiver:
        receiver.go()

        def check() -> None:
            receiver.go()
            got = receiver.result()
            if not got["requests"] == got["events"] == count:
                raise CountError(
                    f"{count:,} events were to be delivered, and {got['requests']:,} requests with {got['events']:,}"
                    " different ones came in: no figure"
                )

        yield f"http://127.0.0.1:{port_file.read_text()}/hook", check


@contextmanager
def endpoint(scratch: Scratch, url: str) -> Iterator[int]:
    """The id of the receiver's row, which goes with the record of what it was sent."""
    key = scratch.env()["ACW_ENCRYPTION_KEYS"]
    secret = Fernet(key).encrypt(SECRET.encode()).decode()
    with scratch.connect() as connection:
        row = connection.execute(
            _ADD_ENDPOINT, [url, [TOPIC], secret, THREADS]
        ).fetchone()
        try:
            yield row[0] if row else 0
        finally:
            connection.execute("TRUNCATE webhook_attempts, webhook_endpoints CASCADE")


def plain(scratch: Scratch, kind: str, count: int) -> float:
    """Seconds for so many requests without a queue; see :data:`acw.benchmark.plain_deliveries.KINDS`."""
    env = {**scratch.env(**WEBHOOKS_ON), BODY_VARIABLE: BODY}
    with (
        receiver(scratch, count) as (url, check),
        endpoint(scratch, url) as endpoint_id,
        Child(
            "acw.benchmark.plain_deliveries",
            [kind, endpoint_id if kind == "recorded" else url, count, THREADS],
            env,
        ) as sender,
    ):
        scratch.settle()
        (result,) = children.run([sender])
        check()
    return float(result["ended"] - result["began"])


def by_queue(scratch: Scratch, count: int) -> float:
    """Seconds for so many deliveries by one worker."""
    scratch.clear()
    with (
        receiver(scratch, count) as (url, check),
        endpoint(scratch, url) as endpoint_id,
        Workers(scratch, threads=THREADS, **WEBHOOKS_ON) as workers,
    ):
        payload = {"endpoint_id": endpoint_id, "topic": TOPIC, "body": BODY}

        def lay_out(connection: psycopg.Connection[Any]) -> None:
            rows.fill(
                connection, count, type_name=JOB_TYPE, payloads=(json.dumps(payload),)
            )

        seconds = real_jobs.drain(
            scratch, workers, lay_out, type_name=JOB_TYPE, count=count
        )
        check()
    return seconds
