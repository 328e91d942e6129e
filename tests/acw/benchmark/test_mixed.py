from __future__ import annotations

import psycopg
import pytest

from acw.benchmark import mixed
from acw.benchmark.scratch import Scratch


def test_with_batches_of_one_each_job_is_claimed_by_itself(
    scratch: Scratch, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(mixed, "REPEATS_SHORT", 2)
    monkeypatch.setattr(mixed, "SLOW_SECONDS_SHORT", 0.01)
    waits = mixed._drain(scratch, short=True, largest_batch=1)
    assert len(waits) == 2 * mixed.QUICK
    assert min(waits) > 0
    # Of one statement all rows have one time; two threads may now and then ask in the same microsecond.
    ((times, jobs),) = connection.execute(
        "SELECT count(DISTINCT started_at), count(*) FROM jobs WHERE type = 'bench.mixed'"
    )
    assert jobs == 200
    assert times > 190


def test_both_sizes_of_batches_take_turns(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    taken = []

    def drain(scratch: Scratch, *, short: bool, largest_batch: int) -> list[float]:
        taken.append(largest_batch)
        return [2.0] if largest_batch else [1.0]

    monkeypatch.setattr(mixed, "_drain", drain)
    figures = mixed.measure(scratch, rounds=2, short=True)
    assert taken == [1, 0] * 2
    assert [figure.ratio for figure in figures] == [0.5] * len(mixed.PERCENTS)
