"""A recovery of dead deliveries, whose worker is killed in the middle of a slice."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable

import psycopg

from tests.acceptance.product import Product, await_true
from tests.acceptance.receiver import Receiver

COUNT = 12
HURRY = "UPDATE jobs SET run_at = now() WHERE type = 'webhook.recover' AND status = 'pending'"
DEAD = """
INSERT INTO jobs (id, type, queue, ref_id, payload, status, completed_at)
SELECT gen_random_uuid(), 'webhook.deliver', 'webhooks', id,
    jsonb_build_object('endpoint_id', id, 'topic', 'workspace.sync_failed', 'body', '{}'), 'dead', now()
FROM webhook_endpoints, generate_series(1, %s) RETURNING id
"""
ALL_ARRIVED = """
SELECT FROM jobs WHERE type = 'webhook.deliver' AND status = 'completed' HAVING count(*) = %s
"""
BLOCKED = """
SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%audit_entries%'
    AND datname = current_database()
"""


def hurry(product: Product) -> bool:
    """Have the next slice due now; whether the recovery has finished."""
    product.sql(HURRY + " RETURNING id")
    return bool(product.sql("SELECT FROM webhook_recoveries WHERE state = 'finished'"))


def test_a_worker_that_is_killed_within_a_slice_has_everything_resent_exactly_once(
    install: Callable[..., Product], receiver: Receiver
) -> None:
    product = install(
        NOTIFY_WEBHOOK_ENABLED="true",
        NOTIFY_WEBHOOK_ALLOW_NETWORKS="127.0.0.0/8",
        JOBS_POLL_INTERVAL="100ms",
    )
    product.manage("webhook", "add", "chat", receiver.url)
    ids = {str(pk) for (pk,) in product.sql(DEAD, COUNT)}
    product.manage(
        "webhook", "recover", "chat", "--since", "1h", "--per-minute", "60", "--yes"
    )
    with psycopg.connect(product.url) as blocking:
        blocking.execute("LOCK audit_entries IN SHARE MODE")
        first = product.worker()
        await_true(
            lambda: product.sql(BLOCKED),
            "a slice that has changed its jobs waits to audit it",
            evidence=product.evidence,
        )
        first.send(signal.SIGKILL)
        first.wait()
    assert receiver.received == []

    product.worker()

    await_true(
        lambda: hurry(product), "the recovery finishes", evidence=product.evidence
    )
    product.await_sql(ALL_ARRIVED, COUNT)
    arrived = Counter(each.headers["X-ACW-Event-Id"] for each in receiver.received)
    assert arrived == dict.fromkeys(ids, 1)
    assert product.sql("SELECT resent, skipped FROM webhook_recoveries") == [(COUNT, 0)]
    assert product.sql(
        "SELECT count(*), count(DISTINCT target) FROM audit_entries WHERE action = 'job.repeat'"
    ) == [(COUNT, COUNT)]
