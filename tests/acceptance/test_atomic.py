"""What handlers with ``atomic=True`` write is written exactly once, wherever their processes are killed."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial

from tests.acceptance.bank import BANKED, Bank
from tests.acceptance.product import Process, Product, await_true

KILLS = 50
_AHEAD = 300
"""Jobs that wait, at least, so that no worker is idle when it is killed."""

_LATEST = 0.05
"""Seconds after a worker's first booking until it is killed, at most."""


def test_kills_at_random_points_lose_no_booking_and_double_none(
    install: Callable[..., Product],
) -> None:
    seed = random.randrange(2**32)  # noqa: S311 - no secret
    moments = random.Random(seed)  # noqa: S311
    product = install(**BANKED)

    def worker() -> Process:
        return product.start("runjobs", "--workers", "2")

    def evidence() -> str:
        return f"seed: {seed}\n{product.evidence()}"

    with Bank(product) as bank:
        workers = [worker(), worker()]

        def books(pid: int) -> bool:
            # While one starts, the other may do all that waits.
            if bank.open() < _AHEAD:
                bank.order(_AHEAD)
            return bank.booked_by(pid) > 0

        for _ in range(KILLS):
            victim = moments.randrange(len(workers))
            await_true(
                partial(books, workers[victim].pid),
                "the worker books",
                evidence=evidence,
            )
            threading.Event().wait(moments.uniform(0, _LATEST))
            workers[victim].kill()
            workers[victim] = worker()
        await_true(lambda: bank.open() == 0, "every job completed", evidence=evidence)
        assert bank.wrong() == [], evidence()
        assert bank.repeated() > 0
