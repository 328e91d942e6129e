from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from acw.benchmark import children, clients
from acw.benchmark.children import Child
from acw.benchmark.scratch import Scratch
from jobs.wakeup import CHANNEL

PATIENCE = 20


@pytest.fixture(scope="module")
def ready(shared_scratch: Scratch) -> Iterator[dict[str, Child]]:
    """One client of each kind, brought up at the same time."""
    counts = dict.fromkeys(clients.KINDS, clients.BULK) | {
        "insert": 1,
        "enqueue": 1,
    }
    env = shared_scratch.env()
    started = {
        kind: Child("acw.benchmark.clients", [kind, 1, count, "wake"], env)
        for kind, count in counts.items()
    }
    with children.together(list(started.values())):
        yield started


def added(connection: psycopg.Connection, client: Child) -> list[tuple[object, ...]]:
    """The rows that the client has made, without what differs from row to row."""
    connection.execute("TRUNCATE jobs CASCADE")
    children.run([client])
    return connection.execute(
        "SELECT to_jsonb(jobs) - '{id,run_at,created_at,updated_at}'::text[], count(*) FROM jobs GROUP BY 1"
    ).fetchall()


@pytest.mark.parametrize(
    ("plain", "product"), [("insert", "enqueue"), ("unnest", "enqueue_many")]
)
def test_the_floor_writes_the_rows_that_the_product_writes(
    connection: psycopg.Connection, ready: dict[str, Child], plain: str, product: str
):
    bare = added(connection, ready[plain])
    assert len(bare) == 1
    assert added(connection, ready[product]) == bare


def test_only_the_quiet_client_notifies_nobody(
    scratch: Scratch, connection: psycopg.Connection
):
    connection.execute(f"LISTEN {CHANNEL}")
    heard = {}
    for how in ("quiet", "wake"):
        arguments = ["enqueue", 2, 20, how]
        with Child("acw.benchmark.clients", arguments, scratch.env()) as client:
            children.run([client])
            if how == "quiet":
                connection.execute("SELECT pg_notify(%s, 'last')", [CHANNEL])
            heard[how] = {
                notified.payload
                for notified in connection.notifies(timeout=PATIENCE, stop_after=1)
            }
    assert heard == {"quiet": {"last"}, "wake": {'["default"]'}}
    count = connection.execute("SELECT count(*) FROM jobs").fetchone()
    assert count == (80,)
