from __future__ import annotations

from pathlib import Path

import pytest

from acw.benchmark import drains, growth
from acw.benchmark.measurements import MEASUREMENTS, Extent
from acw.benchmark.scratch import Scratch

EXTENT = Extent(rounds=2, rows=7, short=True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("drain", {"rounds": 2, "short": True}),
        ("growth", {"rounds": 2, "short": True, "rows": 7}),
    ],
)
def test_each_is_told_what_it_needs_to_know(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    expected: dict[str, object],
):
    told: list[dict[str, object]] = []

    def measure(scratch: Scratch, **extent: object) -> list[object]:
        told.append(extent)
        return []

    monkeypatch.setattr(drains, "measure_kept", measure)
    monkeypatch.setattr(growth, "measure", measure)
    MEASUREMENTS[name](Scratch("acw_bench_ffffffffffffffff", tmp_path), EXTENT)
    assert told == [expected]
