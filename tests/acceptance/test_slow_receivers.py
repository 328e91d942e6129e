"""Receivers that take their time, and a real worker."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.acceptance.product import Product, await_true
from tests.notify import sinks
from tests.notify.sinks import Connection, Received, Sink

Install = Callable[..., Product]

QUICK = {
    "JOBS_POLL_INTERVAL": "200ms",
    "JOBS_JOB_REAPER_INTERVAL": "200ms",
    "JOBS_WORKSPACE_FETCH_ENABLED": "false",
    "NOTIFY_WEBHOOK_ENABLED": "true",
    "NOTIFY_WEBHOOK_TIMEOUT": "30s",
    "NOTIFY_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
}
TOPIC = "workspace.sync_failed"
OURS = "type = 'webhook.deliver'"


class Held:
    """A receiver's behaviour: it answers when it is let go."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def __call__(self, connection: Connection, request: Received) -> None:
        while not self.released.is_set():
            if not connection.pause(0.02):
                return
        sinks.answer(204)(connection, request)


def add(product: Product, name: str, sink: Sink) -> None:
    product.manage("webhook", "add", name, sink.url, "--topics", TOPIC)


def tell(product: Product, count: int) -> None:
    code = (
        "from notify.dispatch import Event, dispatch\n"
        f"for n in range({count}): dispatch(Event(topic={TOPIC!r}, recipients=[], title=str(n)))"
    )
    product.manage("shell", "--no-imports", "-c", code)


def test_an_answer_later_than_the_lease_is_waited_for_and_nothing_sent_twice(
    install: Install,
) -> None:
    held = Held()
    product = install(**QUICK, JOBS_JOB_REAPER_LEASE_TIMEOUT="2s")
    with Sink(held) as sink:
        add(product, "slow", sink)
        tell(product, 1)
        product.worker()
        await_true(lambda: sink.requests, "the request", evidence=product.evidence)
        ((first,),) = product.sql(f"SELECT lease_until FROM jobs WHERE {OURS}")
        # By the database's clock, which is the one that leases go by.
        product.await_sql(
            "SELECT FROM jobs WHERE now() > %s + interval '1 second'", first
        )
        held.released.set()
        product.await_sql(f"SELECT FROM jobs WHERE {OURS} AND status = 'completed'")

        assert len(sink.requests) == 1
    assert product.sql("SELECT verdict, number FROM webhook_attempts") == [
        ("completed", 1)
    ]


def test_a_receiver_that_hangs_holds_up_no_other(install: Install) -> None:
    held = Held()
    product = install(**QUICK, JOBS_WORKERS="2")
    with Sink(held) as slow, Sink(sinks.answer(204)) as quick:
        add(product, "slow", slow)
        add(product, "quick", quick)
        tell(product, 20)
        product.worker()
        await_true(
            lambda: len(quick.requests) == 20,
            "all that goes to the other",
            evidence=product.evidence,
        )

        assert 1 <= len(slow.requests) < 20
        held.released.set()
        product.await_sql(
            f"SELECT WHERE NOT EXISTS (SELECT FROM jobs WHERE {OURS} AND status <> 'completed')"
        )
        assert len(slow.requests) == len(quick.requests) == 20
