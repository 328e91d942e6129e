"""Receivers that look at what comes in as ``docs/webhooks.md`` tells them to, or leave a look out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from notify import signing
from tests.notify import sinks
from tests.notify.factories import SECRET
from tests.notify.sinks import Behaviour, Connection, Received

PAGE = (Path(__file__).parents[3] / "docs" / "webhooks.md").read_text()
ACCEPT, REFUSE = sinks.answer(204), sinks.answer(401)

Verifier = Callable[[Mapping[str, str], bytes, str], bool]


def _documented() -> Verifier:
    """The verifier that the page shows."""
    [source] = re.findall(
        r"```python\n((?:(?!```).)*def is_genuine.*?)```", PAGE, re.DOTALL
    )
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # noqa: S102 (the page's code is what is tested)
    verifier: Verifier = namespace["is_genuine"]
    return verifier


is_genuine = _documented()


def strict(connection: Connection, request: Received) -> None:
    """Verifies as the page says."""
    genuine = is_genuine(request.headers, request.body, SECRET)
    (ACCEPT if genuine else REFUSE)(connection, request)


def without_clock(connection: Connection, request: Received) -> None:
    """Verifies the signature, and no time: what is old is taken."""
    signature = signing.signature(
        SECRET,
        timestamp=int(request.headers["X-ACW-Timestamp"]),
        body=request.body,
    )
    genuine = signature == request.headers["X-ACW-Signature"]
    (ACCEPT if genuine else REFUSE)(connection, request)


def rewriting(connection: Connection, request: Received) -> None:
    """Verifies the body that it expects in the place of the one that came."""
    body = json.loads(request.body)
    body["body"] = body["body"].replace("do something about it", "do nothing about it")
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    genuine = is_genuine(request.headers, text.encode(), SECRET)
    (ACCEPT if genuine else REFUSE)(connection, request)


def once() -> Behaviour:
    """Verifies, and answers 409 to an id that it has already."""
    known: set[str] = set()

    def behave(connection: Connection, request: Received) -> None:
        event_id = request.headers["X-ACW-Event-Id"]
        if event_id in known:
            sinks.answer(409)(connection, request)
            return
        known.add(event_id)
        strict(connection, request)

    return behave


def then(first: Behaviour, wrong: Behaviour) -> Behaviour:
    """Takes what is genuine, and does something else with the rest."""

    def behave(connection: Connection, request: Received) -> None:
        genuine = is_genuine(request.headers, request.body, SECRET)
        (first if genuine else wrong)(connection, request)

    return behave
