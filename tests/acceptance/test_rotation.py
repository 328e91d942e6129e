"""Secrets that are changed while two real workers deliver: nothing is refused on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from tests.acceptance.product import Product
from tests.notify.factories import SECRET
from tests.notify.sinks import Sink
from tests.notify.verifying import Receiver, by_standard_webhooks, by_the_contract

Install = Callable[..., Product]

NEW_SECRET = "the-next-secret-0123456789abcdef"
TOPIC = "workspace.sync_failed"
OURS = "type = 'webhook.deliver'"
EVENTS = 40


BEGIN = f"""
from notify import endpoints, proving, rotation
for name, url in {{urls}}.items():
    endpoint = endpoints.add(
        name, url, topic_names=[{TOPIC!r}], secret={SECRET!r}, actor="alice"
    )
    rotation.stage(endpoint, {NEW_SECRET!r}, actor="alice")
    if name == "early":
        proving.promote(endpoint, actor="alice", without_proof=True)
"""
PROMOTE = """
from notify import proving
from notify.models import WebhookEndpoint
proving.promote(WebhookEndpoint.objects.get(name="library"), actor="alice")
"""
TELL = f"""
from notify.dispatch import Event, dispatch
for n in range({EVENTS}):
    dispatch(Event(topic={TOPIC!r}, recipients=[], title=str(n)))
"""


def run(product: Product, code: str) -> None:
    """In one process: each command takes its time to start."""
    product.manage("shell", "--no-imports", "-c", code)
    product.await_sql(
        f"SELECT WHERE NOT EXISTS (SELECT FROM jobs WHERE {OURS} AND status <> 'completed')"
    )


def test_every_delivery_is_taken_at_its_first_attempt(install: Install) -> None:
    product = install(
        JOBS_WORKERS="4",
        JOBS_POLL_INTERVAL="200ms",
        JOBS_WORKSPACE_FETCH_ENABLED="false",
        NOTIFY_WEBHOOK_ENABLED="true",
        NOTIFY_WEBHOOK_ALLOW_NETWORKS="127.0.0.0/8",
    )
    # In the middle of the first events each of them takes its new secret.
    middle = EVENTS // 2
    receivers = {
        "library": Receiver(
            by_standard_webhooks, SECRET, to=NEW_SECRET, changes_at=middle
        ),
        "strict": Receiver(by_the_contract, SECRET, to=NEW_SECRET, changes_at=middle),
        "early": Receiver(by_the_contract, SECRET, to=NEW_SECRET, changes_at=middle),
    }
    with contextlib.ExitStack() as stack:
        sinks = {
            name: stack.enter_context(Sink(behave))
            for name, behave in receivers.items()
        }
        urls = {name: sink.url for name, sink in sinks.items()}
        for _ in range(2):
            product.worker()
        run(product, BEGIN.format(urls=urls) + TELL)
        run(product, PROMOTE + TELL)

    sent = {
        str(job_id) for (job_id,) in product.sql(f"SELECT id FROM jobs WHERE {OURS}")
    }
    for receiver in receivers.values():
        assert receiver.secret == NEW_SECRET
        assert len(sent & set(receiver.taken)) == 2 * EVENTS
    assert product.sql(f"SELECT DISTINCT status, attempts FROM jobs WHERE {OURS}") == [
        ("completed", 1)
    ]
    retired = "SELECT target FROM audit_entries WHERE action = 'webhook.secret_retired'"
    assert {target for (target,) in product.sql(retired)} == {
        f"webhook:{name}" for name in receivers
    }
