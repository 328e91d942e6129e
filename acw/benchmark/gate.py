"""The far side of a :class:`acw.benchmark.children.Child`: prepare, wait at the gate, then report.

Free of Django, so that a plain loop has nothing in its process but itself.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

READY = "ready"
GO = "go"

_PREPARED_WITHIN = 60.0

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Run(Generic[T]):
    """What the threads returned, and when (monotonic) they could begin and had all ended."""

    results: list[T]
    began: float
    ended: float


def run(prepare: Callable[[], Callable[[], T]], threads: int) -> Run[T]:
    """In each of so many threads: prepare, wait for the parent's word, and do what was prepared."""
    prepared = threading.Barrier(threads + 1)
    may_go = threading.Event()

    def work() -> T:
        try:
            action = prepare()
        except BaseException:
            prepared.abort()
            raise
        prepared.wait(_PREPARED_WITHIN)
        may_go.wait()
        return action()

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(work) for _ in range(threads)]
        try:
            prepared.wait(_PREPARED_WITHIN)
        except threading.BrokenBarrierError:
            # The error itself, rather than that somebody had one.
            for future in futures:
                if not isinstance(future.exception(), threading.BrokenBarrierError):
                    future.result()
            raise
        began = wait()
        may_go.set()
        results = [future.result() for future in futures]
        ended = time.monotonic()
    return Run(results=results, began=began, ended=ended)


def wait() -> float:
    """Say that all is prepared, wait for the word, and return the moment (monotonic).

    Ends the process where the parent ends instead of giving it.
    """
    print(READY, flush=True)  # noqa: T201 - the channel to the parent
    if sys.stdin.readline().strip() != GO:
        os._exit(1)
    return time.monotonic()


def report(facts: Mapping[str, object]) -> None:
    """Tell the parent what came of it."""
    print(json.dumps(facts), flush=True)  # noqa: T201 - as above
