from __future__ import annotations

import datetime as dt
import random
from collections import Counter

import pytest

from jobs import backoff

BASE = dt.timedelta(seconds=30)
CAP = dt.timedelta(hours=1)


@pytest.mark.parametrize(
    ("attempt", "seconds"),
    [
        (0, 30),
        (1, 30),
        (2, 60),
        (3, 120),
        (7, 1920),
        (8, 3600),
        (9, 3600),
        (10_000, 3600),
    ],
)
def test_the_plain_delay_doubles_up_to_the_cap(attempt: int, seconds: int) -> None:
    assert backoff.plain_delay(attempt, base=BASE, cap=CAP) == dt.timedelta(
        seconds=seconds
    )


def test_a_huge_attempt_with_a_long_base_does_not_overflow() -> None:
    century = dt.timedelta(days=36_500)
    assert backoff.plain_delay(2**31, base=century, cap=century) == century


def test_a_base_of_zero_stays_zero() -> None:
    assert backoff.plain_delay(5, base=dt.timedelta(0), cap=CAP) == dt.timedelta(0)


@pytest.mark.parametrize("attempt", range(1, 12))
def test_jitter_only_ever_lengthens_and_by_no_more_than_its_share(attempt: int) -> None:
    rng = random.Random(attempt)  # noqa: S311 (jitter, not a secret)
    plain = backoff.plain_delay(attempt, base=BASE, cap=CAP)
    delays = [backoff.delay(attempt, base=BASE, cap=CAP, rng=rng) for _ in range(500)]
    assert min(delays) >= plain
    assert max(delays) <= plain * (1 + backoff.JITTER)
    assert len(set(delays)) > 400


def test_the_spread_of_what_failed_together_grows_with_the_delay() -> None:
    rng = random.Random(0)  # noqa: S311 (jitter, not a secret)

    def spread(attempt: int) -> dt.timedelta:
        tried = [
            backoff.delay(attempt, base=BASE, cap=CAP, rng=rng) for _ in range(2000)
        ]
        return max(tried) - min(tried)

    for attempt in range(1, 9):
        plain = backoff.plain_delay(attempt, base=BASE, cap=CAP)
        assert spread(attempt) > plain * backoff.JITTER * 0.95


def test_no_second_has_twice_its_share_of_what_failed_together() -> None:
    rng = random.Random(0)  # noqa: S311 (jitter, not a secret)
    delays = [backoff.delay(3, base=BASE, cap=CAP, rng=rng) for _ in range(500)]

    per_second = Counter(int(delay.total_seconds()) for delay in delays)

    assert len(per_second) == 120 * backoff.JITTER
    assert max(per_second.values()) <= 2 * 500 / len(per_second)
