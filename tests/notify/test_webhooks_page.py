"""What ``docs/webhooks.md`` tells receivers, tried on what ACW sends."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from notify import sending, signing, topics
from notify.delivery import Verdict, verdict_of
from notify.events import LogEvent
from notify.models import WebhookAttempt
from tests.notify.factories import SECRET, TOPIC, EndpointFactory
from tests.notify.sinks import Sink

PAGE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text()

Verifier = Callable[[Mapping[str, str], bytes, str], bool]


@pytest.fixture(scope="module")
def is_genuine() -> Verifier:
    """The verifier that the page shows."""
    [source] = re.findall(r"```python\n# verify\.py\n(.*?)```", PAGE, re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # noqa: S102 (the page's code is what is tested)
    verifier: Verifier = namespace["is_genuine"]
    return verifier


@pytest.mark.django_db
def test_the_verifier_takes_what_is_delivered_and_nothing_else(
    is_genuine: Verifier, sink: Sink
):
    sending.send_test(EndpointFactory(url=sink.url))
    [request] = sink.requests
    headers, body = request.headers, request.body

    assert is_genuine(headers, body, SECRET)
    assert not is_genuine(headers, body + b" ", SECRET)
    assert not is_genuine(headers, body, SECRET[::-1])
    later = str(int(headers["X-ACW-Timestamp"]) + 1)
    assert not is_genuine({**headers, "X-ACW-Timestamp": later}, body, SECRET)
    assert not is_genuine({}, body, SECRET)
    assert not is_genuine({**headers, "X-ACW-Signature": "é"}, body, SECRET)


@pytest.mark.parametrize(("age", "genuine"), [(0, True), (290, True), (310, False)])
def test_the_verifier_refuses_what_was_signed_long_ago(
    is_genuine: Verifier, age: int, genuine: bool
):
    headers = signing.headers(
        secret=SECRET,
        event_id=uuid.uuid4(),
        timestamp=int(time.time()) - age,
        topic=TOPIC,
        body=b"{}",
    )

    assert is_genuine(headers, b"{}", SECRET) is genuine


def test_the_pages_vector_is_what_is_signed():
    signature = signing.signature(SECRET, timestamp=1700000000, body=b'{"a":1}')

    assert f"`{SECRET}`" in PAGE
    assert f"`{signature}`" in PAGE


@pytest.mark.parametrize(
    "name",
    [
        *signing.headers(
            secret=SECRET, event_id=uuid.UUID(int=0), timestamp=0, topic="", body=b""
        ),
        *LogEvent,
        *WebhookAttempt.Verdict.values,
        topics.TEST.name,
    ],
)
def test_every_public_name_is_on_the_page(name: str):
    assert f"`{name}`" in PAGE


def test_the_verdicts_on_the_page_are_those_of_the_sender():
    table = PAGE.split("| you answer | ACW |")[1].split("\n\n")[0]
    tried_again = {s for s in range(400, 500) if verdict_of(s) is Verdict.RETRY}
    gives_up = {s for s in range(300, 400) if verdict_of(s) is Verdict.PERMANENT}

    assert f"| {', '.join(map(str, sorted(tried_again)))} | tries again |" in table
    assert f"| {', '.join(map(str, sorted(gives_up)))} | gives up at once" in table
