"""Load tests of webhooks: how fast deliveries go out, and what endpoints that hang do to the others.

``main()`` prints both, the medians last. `throughput`: 5,000 deliveries to one local receiver by one `runjobs`, in turns with
the same requests prepared and sent by ``requests`` in a plain loop with as many threads, and with the same attempts
without a queue. `fairness`: 50 endpoints, of which 5 accept and never answer, deliveries coming in at a steady rate; beside
the same without those 5.
"""

from __future__ import annotations

import json
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from cryptography.fernet import Fernet

from acw.benchmark import children, deliveries
from acw.benchmark.children import Child
from acw.benchmark.figures import percentile
from acw.benchmark.plain_deliveries import SECRET, TOPIC
from acw.benchmark.scratch import Scratch, scratch_schema
from acw.benchmark.workers import Workers
from tests.benchmarks.webhooks.feeder import HANGING

COUNT, ROUNDS = 5_000, 3
ENDPOINTS, HANG = 50, 5
RATE, SECONDS = 20.0, 40.0
"""Deliveries a second to all 50, well below what one worker sends; and for how long."""

DRAIN_SECONDS = 5.0
"""After the last one, for what healthy endpoints are still to get."""

# The default number of threads, alone and with a second process, and one for many receivers.
SETUPS = ((1, 8), (1, 2), (2, 2))

_ADD = """
INSERT INTO webhook_endpoints (name, url, topics, encrypted_secret) VALUES (%s, %s, %s, %s)
"""
# Each has had one delivery.
_LAST_TIME = """
INSERT INTO webhook_attempts (endpoint_id, job_id, topic, number, finished_at, verdict, duration)
SELECT id, gen_random_uuid(), topics[1], 1, now(), CASE WHEN name LIKE %(hanging)s THEN 'retry' ELSE 'completed' END,
    CASE WHEN name LIKE %(hanging)s THEN INTERVAL '10 s' ELSE INTERVAL '5 ms' END
FROM webhook_endpoints
"""


@dataclass(frozen=True, kw_only=True)
class Waits:
    """Seconds from enqueue to receipt at healthy endpoints, and how many never came."""

    seconds: list[float]
    missing: int
    hanging: int

    def __str__(self) -> str:
        p50, p95, p99 = (percentile(self.seconds, p) * 1000 for p in (50, 95, 99))
        return (
            f"{len(self.seconds):,} received, {self.missing} not; p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms; "
            f"requests that hang: {self.hanging}"
        )

    @property
    def p95(self) -> float:
        return percentile(self.seconds, 95)


def main() -> None:
    """Both, with the full numbers."""
    throughput()
    fairness()


def throughput(count: int = COUNT, rounds: int = ROUNDS) -> None:
    """Deliveries a second, and as a part of what each floor makes in the same round."""
    rates: dict[str, list[float]] = {}
    with scratch_schema() as scratch:
        for number in range(rounds):
            for what in ("requests", "queue", "sender", "recorded"):
                scratch.reset()
                seconds = (
                    deliveries.by_queue(scratch, count)
                    if what == "queue"
                    else deliveries.plain(scratch, what, count)
                )
                rates.setdefault(what, []).append(count / seconds)
                _say(
                    f"round {number + 1}, {what}: {count:,} in {seconds:.1f} s, {count / seconds:,.0f} a second"
                )
    for what, found in rates.items():
        parts = [
            rate / floor for rate, floor in zip(found, rates["requests"], strict=True)
        ]
        _say(
            f"median {what}: {median(found):,.0f} a second, {median(parts):.2f} of requests"
        )


def fairness(
    rate: float = RATE,
    seconds: float = SECONDS,
    setups: tuple[tuple[int, int], ...] = SETUPS,
    known: bool = True,
) -> None:
    """The wait of deliveries to healthy endpoints, with and without those that hang.

    ``known``: each endpoint has had a delivery before, as all have that are not new, so that it shows which are quick.
    """
    with scratch_schema() as scratch:
        for processes, threads in setups:
            name = f"{processes} x {threads} threads"
            found = {}
            for hanging in (0, HANG):
                found[hanging] = waits(
                    scratch,
                    processes=processes,
                    threads=threads,
                    hanging=hanging,
                    rate=rate * (ENDPOINTS - HANG + hanging) / ENDPOINTS,
                    seconds=seconds,
                    known=known,
                )
                _say(f"{name}, {hanging} hang: {found[hanging]}")
            ratio = found[HANG].p95 / found[0].p95
            _say(f"{name}: p95 with those that hang is {ratio:.2f} of that without")


def waits(
    scratch: Scratch,
    *,
    processes: int,
    threads: int,
    hanging: int,
    rate: float,
    seconds: float,
    known: bool,
) -> Waits:
    """One run: 45 endpoints that are well, and so many that hang."""
    scratch.reset()
    env = scratch.env(**deliveries.WEBHOOKS_ON, ACW_LOG_LEVEL="warning")
    ports_file = scratch.directory / "receivers.ports"
    with ExitStack() as stack:
        receivers = stack.enter_context(
            Child("tests.benchmarks.webhooks.receivers", [ports_file], env)
        )
        receivers.go()
        well, hangs = json.loads(ports_file.read_text())
        _add_endpoints(scratch, well, hangs, hanging=hanging, known=known)
        workers = stack.enter_context(
            Workers(
                scratch, processes=processes, threads=threads, **deliveries.WEBHOOKS_ON
            )
        )
        feeder = stack.enter_context(
            Child("tests.benchmarks.webhooks.feeder", [rate, seconds], env)
        )
        (fed,) = children.run([feeder])
        threading.Event().wait(DRAIN_SECONDS)
        workers.check()
        receivers.go()
        told = receivers.result()
    healthy = {
        job_id: at
        for job_id, (at, for_hanging) in fed["enqueued"].items()
        if not for_hanging
    }
    came = {job_id: at for job_id, at in told["came"].items() if job_id in healthy}
    return Waits(
        seconds=[at - healthy[job_id] for job_id, at in came.items()],
        missing=len(healthy) - len(came),
        hanging=told["hanging"],
    )


def _add_endpoints(
    scratch: Scratch, well: int, hangs: int, *, hanging: int, known: bool
) -> None:
    key = scratch.env()["ACW_ENCRYPTION_KEYS"]
    secret = Fernet(key).encrypt(SECRET.encode()).decode()
    # Those that hang among the others, so that they take turns.
    every = ENDPOINTS // HANG
    with scratch.connect() as connection:
        for number in range(ENDPOINTS):
            is_one = number % every == 0
            if is_one and not hanging:
                continue
            name, port = (HANGING, hangs) if is_one else ("well", well)
            connection.execute(
                _ADD,
                [
                    f"{name} {number}",
                    f"http://127.0.0.1:{port}/{number}",
                    [TOPIC],
                    secret,
                ],
            )
        if known:
            connection.execute(_LAST_TIME, {"hanging": f"{HANGING}%"})


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
