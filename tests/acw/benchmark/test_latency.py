from __future__ import annotations

import pytest

from acw.benchmark import latency
from acw.benchmark.errors import CountError
from acw.benchmark.meter import Meter
from acw.benchmark.scratch import Scratch


def test_floor_and_product_take_turns(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    taken = []

    def measured(name: str, seconds: float) -> object:
        def measure(scratch: Scratch, jobs: int) -> list[float]:
            taken.append(name)
            return [seconds] * jobs

        return measure

    monkeypatch.setattr(latency, "_plain", measured("plain", 0.002))
    monkeypatch.setattr(latency, "_product", measured("product", 0.003))
    figures = latency.measure(scratch, rounds=2, short=True)
    assert taken == ["plain", "product"] * 2
    assert [figure.value for figure in figures] == [3.0] * len(latency.PERCENTS)
    assert [figure.ratio for figure in figures] == [1.5] * len(latency.PERCENTS)


def test_every_job_that_was_sent_must_arrive(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(latency, "_ARRIVE_WITHIN", 0.0)
    Meter(scratch.meters).note(0.001)
    assert latency._arrived(scratch, 1, lambda: None) == [0.001]
    with pytest.raises(CountError, match="2 jobs were enqueued and 1 begun"):
        latency._arrived(scratch, 2, lambda: None)
