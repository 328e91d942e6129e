from __future__ import annotations

from typing import Any

import pytest

from acw.benchmark import memory
from acw.benchmark.errors import CountError
from acw.benchmark.meter import Meter
from acw.benchmark.scratch import Scratch


class FakeWorkers:
    """Has handled and recorded everything from the start."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._resident = iter([[60.0], [63.0]])

    def __enter__(self) -> FakeWorkers:
        with self._scratch.connect() as connection:
            connection.execute(
                "UPDATE jobs SET status = 'completed', completed_at = now()"
            )
        own = Meter(self._scratch.meters)
        for _ in range(50):
            own.count()
        return self

    def __exit__(self, *_: object) -> None: ...

    def check(self) -> None: ...

    def rss(self) -> list[float]:
        return next(self._resident)

    def peak_rss(self) -> list[float]:
        return [64.0]


def test_the_end_is_compared_with_the_warm_worker(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(memory, "Workers", FakeWorkers)
    most, end = memory.measure(scratch, rounds=3, short=True, rows=50)
    assert (most.value, most.ratio) == (64.0, None)
    assert end.value == 63.0
    assert end.ratio == pytest.approx(1.05)


def test_a_worker_that_handles_nothing_is_given_up(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(memory, "_STUCK_AFTER", 0.0)
    workers: Any = FakeWorkers(scratch)
    with pytest.raises(CountError, match="no job was handled"):
        memory._await(scratch, workers, 1)
