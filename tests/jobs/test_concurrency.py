from __future__ import annotations

import datetime as dt

import pytest

from jobs import concurrency
from jobs.pool import Pool
from jobs.selection import Queues


def test_the_pool_says_how_many_threads_it_has(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(concurrency, "_threads", 0)
    assert concurrency.threads() == 0

    Pool(
        worker="w1",
        threads=3,
        queues=Queues(["default"]),
        lease=dt.timedelta(minutes=5),
    )

    assert concurrency.threads() == 3
