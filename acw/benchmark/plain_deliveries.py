"""The floors of deliveries: the same signed requests from a plain pool of threads, without a queue.

A program of its own: `python -m acw.benchmark.plain_deliveries recorded|sender|requests RECEIVER COUNT THREADS`, with the
text to send in DELIVERY_BODY. `sender` sends with the product's own function, with its address policy and its
deadline; `requests` with that library, which has neither. `recorded` makes the product's whole attempt,
with the row that is there before the request and closed after it; it alone loads Django, and its RECEIVER is the
id of an endpoint, that of the others a URL.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import requests
from requests.adapters import HTTPAdapter

from acw.benchmark import gate
from acw.benchmark.errors import BenchmarkError
from jobs.identifiers import uuid7
from notify import outbound, signing

BODY_VARIABLE = "DELIVERY_BODY"
SECRET = "a-secret-of-the-benchmark-0123456789"  # noqa: S105 - it protects nothing
TOPIC = "workspace.sync_failed"

_TIMEOUT = dt.timedelta(seconds=10)
_LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]

Send = Callable[[str, bytes], int | None]
"""Takes the receiver and the text; the status of the answer, if there is one."""


def recorded() -> Send:
    """As the product attempts a delivery: with the endpoint read, and the attempt's row."""
    import django

    django.setup()
    from notify import attempts, sending

    def send(receiver: str, body: bytes) -> int | None:
        event_id = uuid7()
        _, attempt = attempts.open_attempt(
            int(receiver), job_id=event_id, number=1, topic=TOPIC
        )
        if attempt is None:
            raise BenchmarkError(f"there is no endpoint {receiver} that is enabled")
        sending.send(attempt, event_id=event_id, body=body.decode())
        return attempt.status

    return send


def by_sender(url: str, body: bytes) -> int | None:
    """By the product's sender alone."""
    exchange = outbound.post(
        url, body=body, headers=_headers(body), timeout=_TIMEOUT, allowed=_LOOPBACK
    )
    return exchange.status


def by_requests(url: str, body: bytes) -> int | None:
    """By requests alone: prepared, and sent by an adapter of its own, since no delivery finds a connection that is open."""
    request = requests.Request("POST", url, data=body, headers=_headers(body)).prepare()
    with closing(HTTPAdapter()) as adapter:
        return adapter.send(request, timeout=_TIMEOUT.total_seconds()).status_code


KINDS: dict[str, Callable[[], Send]] = {
    "recorded": recorded,
    "sender": lambda: by_sender,
    "requests": lambda: by_requests,
}


def main(kind: str, receiver: str, *, count: int, threads: int) -> None:
    """Send them all; raises BenchmarkError where one is not taken."""
    send = KINDS[kind]()
    body = os.environ[BODY_VARIABLE].encode()

    def work(number: int) -> None:
        for _ in range(number, count, threads):
            if (status := send(receiver, body)) != 200:
                raise BenchmarkError(f"the receiver answered {status}, not 200")

    began = gate.wait()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    gate.report({"began": began, "ended": time.monotonic()})


def _headers(body: bytes) -> dict[str, str]:
    return signing.headers(
        [SECRET],
        event_id=uuid7(),
        timestamp=int(time.time()),
        topic=TOPIC,
        body=body,
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], count=int(sys.argv[3]), threads=int(sys.argv[4]))
