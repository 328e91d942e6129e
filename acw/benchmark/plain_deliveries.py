"""The floor of deliveries: the same signed requests from a plain pool of threads, without a queue or a database.

A program of its own, without Django: `python -m acw.benchmark.plain_deliveries sender|bare URL COUNT THREADS`, with
the text to send in DELIVERY_BODY. `sender` sends with the product's own function, with its address policy and its
deadline; `bare` with the standard library's client, which has neither.
"""

from __future__ import annotations

import datetime as dt
import http.client
import ipaddress
import os
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from acw.benchmark import gate
from acw.benchmark.errors import BenchmarkError
from notify import outbound, signing

BODY_VARIABLE = "DELIVERY_BODY"
SECRET = "a-secret-of-the-benchmark-0123456789"  # noqa: S105 - it protects nothing
TOPIC = "workspace.sync_failed"

_TIMEOUT = dt.timedelta(seconds=10)
_LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]

Send = Callable[[str, bytes, dict[str, str]], int | None]


def by_sender(url: str, body: bytes, headers: dict[str, str]) -> int | None:
    """The status of the answer, if there is one."""
    exchange = outbound.post(
        url, body=body, headers=headers, timeout=_TIMEOUT, allowed=_LOOPBACK
    )
    return exchange.status


def bare(url: str, body: bytes, headers: dict[str, str]) -> int | None:
    """The same, by the standard library alone."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        parts.netloc, timeout=_TIMEOUT.total_seconds()
    )
    connection.request(
        "POST", parts.path, body=body, headers={**headers, "Connection": "close"}
    )
    status = connection.getresponse().status
    connection.close()
    return status


def main(send: Send, url: str, *, count: int, threads: int) -> None:
    """Send them all; raises BenchmarkError where one is not taken."""
    body = os.environ[BODY_VARIABLE].encode()

    def work(number: int) -> None:
        for _ in range(number, count, threads):
            headers = signing.headers(
                secret=SECRET,
                event_id=uuid.uuid4(),
                timestamp=int(time.time()),
                topic=TOPIC,
                body=body,
            )
            if (status := send(url, body, headers)) != 200:
                raise BenchmarkError(f"the receiver answered {status}, not 200")

    began = gate.wait()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    gate.report({"began": began, "ended": time.monotonic()})


if __name__ == "__main__":
    main(
        by_sender if sys.argv[1] == "sender" else bare,
        sys.argv[2],
        count=int(sys.argv[3]),
        threads=int(sys.argv[4]),
    )
