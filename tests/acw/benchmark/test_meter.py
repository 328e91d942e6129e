from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from acw.benchmark import meter
from acw.benchmark.meter import Meter

ROOT = Path(__file__).resolve().parents[3]
COUNT_IN_ANOTHER_PROCESS = """
import pathlib, sys
from acw.benchmark.meter import Meter
own = Meter(pathlib.Path(sys.argv[1]))
for _ in range(5):
    own.count()
own.note(0.5)
"""


def test_threads_count_without_losing_any(tmp_path: Path):
    own = Meter(tmp_path)

    def count(number: int) -> None:
        for _ in range(10_000):
            own.count()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(4)))
    assert meter.counted(tmp_path) == 40_000


def test_processes_are_added_up(tmp_path: Path):
    own = Meter(tmp_path)
    own.count()
    own.note(0.25)
    subprocess.run(
        [sys.executable, "-c", COUNT_IN_ANOTHER_PROCESS, tmp_path], cwd=ROOT, check=True
    )
    assert meter.counted(tmp_path) == 6
    assert sorted(meter.noted(tmp_path)) == [0.25, 0.5]


def test_more_times_than_there_is_room_for_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    own = Meter(tmp_path)
    for _ in range(meter.SAMPLES):
        own.note(1)
    with pytest.raises(IndexError):
        own.note(1)
    assert len(meter.noted(tmp_path)) == meter.SAMPLES


def test_nothing_counted_is_nothing(tmp_path: Path):
    Meter(tmp_path)
    (tmp_path / "1.meter").touch()  # made, and not yet of its size
    assert meter.counted(tmp_path) == 0
    assert meter.noted(tmp_path) == []
