"""How long a failed job waits before it is tried again."""

from __future__ import annotations

import datetime as dt
import random

JITTER = 0.25
"""The most by which jitter lengthens a delay, as a share of it."""

_LARGEST_EXPONENT = 62


def plain_delay(attempt: int, *, base: dt.timedelta, cap: dt.timedelta) -> dt.timedelta:
    """``base`` times 2^(attempt - 1), at most ``cap``; ``attempt`` counts executions from 1."""
    factor = 2 ** min(max(attempt - 1, 0), _LARGEST_EXPONENT)
    # Dividing the cap keeps a huge attempt number from overflowing timedelta.
    return cap if base > cap / factor else base * factor


def delay(
    attempt: int,
    *,
    base: dt.timedelta,
    cap: dt.timedelta,
    rng: random.Random | None = None,
) -> dt.timedelta:
    """The plain delay, lengthened by up to ``JITTER`` of itself; never shorter than the plain one."""
    return lengthened(plain_delay(attempt, base=base, cap=cap), rng=rng)


def lengthened(
    plain: dt.timedelta, *, rng: random.Random | None = None
) -> dt.timedelta:
    """``plain`` plus a random share of it, so that jobs that failed together do not return together."""
    uniform = rng.random() if rng else random.random()  # noqa: S311 (spreads load, guards nothing)
    return plain * (1 + JITTER * uniform)
