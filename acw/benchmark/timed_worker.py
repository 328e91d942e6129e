"""A worker with all its parts that times each of its claims, for whoever asks what a claim costs it.

A program of its own: `python -m acw.benchmark.timed_worker THREADS`. It begins with the first word at the gate,
ends with the second, and then reports the claims: when each began (monotonic), and the seconds that it took.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import django

from acw.benchmark import gate
from acw.benchmark.errors import BenchmarkError

if TYPE_CHECKING:
    from jobs.process import Worker

CLAIMS = ("claim", "complete_and_claim")
"""The functions of ``jobs.claims`` by which the threads of a worker get jobs."""

Timed = tuple[float, float]


def timed(function: Callable[..., Any], into: list[Timed]) -> Callable[..., Any]:
    """The function, each call of which is noted."""

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        began = time.monotonic()
        result = function(*arguments, **options)
        # Takes no lock: the threads must not wait for each other here.
        into.append((began, time.monotonic() - began))
        return result

    return call


def main(threads: int) -> None:
    """Work from the first word at the gate to the second."""
    django.setup()
    from jobs import claims
    from jobs.process import Worker

    noted: list[Timed] = []
    for name in CLAIMS:
        setattr(claims, name, timed(getattr(claims, name), noted))
    worker = Worker(threads=threads)
    gate.wait()
    threading.Thread(target=_stop_when_told, args=(worker,), daemon=True).start()
    status = worker.run()
    if status:
        raise BenchmarkError(f"the worker ended with status {status}")
    gate.report({"claims": noted})


def _stop_when_told(worker: Worker) -> None:
    # Also where the parent ends without a word.
    sys.stdin.readline()
    worker.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]))
