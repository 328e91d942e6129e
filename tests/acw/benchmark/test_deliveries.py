from __future__ import annotations

import urllib.request

import psycopg
import pytest

from acw.benchmark import deliveries
from acw.benchmark.errors import CountError
from acw.benchmark.scratch import Scratch


def test_every_delivery_is_made_once_and_beside_each_floor(
    scratch: Scratch,
    connection: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(deliveries, "JOBS_SHORT", 6)
    by_queue, beside_record = deliveries.measure(scratch, rounds=1, short=True)
    assert by_queue.ceiling is not None
    assert by_queue.ratio == pytest.approx(by_queue.value / by_queue.ceiling)
    assert beside_record.value == by_queue.value
    assert beside_record.ceiling not in (None, by_queue.ceiling)
    completed = connection.execute(
        "SELECT type, status, count(*) FROM jobs WHERE type = 'webhook.deliver' GROUP BY 1, 2"
    )
    assert completed.fetchall() == [("webhook.deliver", "completed", 6)]
    for table in ("webhook_endpoints", "webhook_attempts"):
        left = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert left == (0,)


def test_a_delivery_that_is_missing_is_no_figure(scratch: Scratch):
    with deliveries.receiver(scratch, 2) as (url, check):
        request = urllib.request.Request(url, data=b"{}", method="POST")  # noqa: S310
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            assert answer.status == 200
        with pytest.raises(CountError, match="2 events were to be delivered, and 1"):
            check()
