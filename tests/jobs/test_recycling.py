from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import recycling
from jobs.recycling import NO_LIMITS, Limits, parse_size, resident_memory

MB = 1000**2


def test_without_limits_a_process_goes_on_for_ever() -> None:
    assert NO_LIMITS.reached(10**9) is None


def test_the_number_of_jobs_is_a_limit() -> None:
    limits = Limits(max_jobs=3)
    assert limits.reached(2) is None
    assert limits.reached(3) == {"reason": "max_jobs", "executed": 3, "max_jobs": 3}


def test_memory_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(max_rss=100)
    monkeypatch.setattr(recycling, "resident_memory", lambda: 100)
    assert limits.reached(7) is None
    monkeypatch.setattr(recycling, "resident_memory", lambda: 101)
    reached = {"reason": "max_rss", "executed": 7, "rss": 101, "max_rss": 100}
    assert limits.reached(7) == reached


def test_memory_that_is_used_is_resident_and_memory_that_is_free_is_not() -> None:
    """In a process of its own, whose allocator has nothing in hand."""
    program = (
        "from jobs.recycling import resident_memory as resident\n"
        "before = resident(); more = b'x' * 80_000_000; held = resident(); del more\n"
        "print(before, held, resident())"
    )
    printed = subprocess.check_output(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[2], text=True
    )
    before, held, after = map(int, printed.split())
    assert 5 * MB < before < 200 * MB
    assert held - before > 75 * MB
    assert held - after > 75 * MB


def test_where_the_system_does_not_tell_it_is_the_most_that_was_resident(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(recycling, "_STATM", tmp_path / "none")
    monkeypatch.setattr(sys, "platform", "linux")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert resident_memory() >= most * 1024
    monkeypatch.setattr(sys, "platform", "darwin")
    assert most <= resident_memory() < most * 1024


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512MB", 512 * MB),
        ("512MiB", 512 * 1024**2),
        ("1.5GB", 1500 * MB),
        ("1.5 GiB", 3 * 1024**3 // 2),
        ("900KB", 900_000),
    ],
)
def test_a_size_has_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "512", "MB", "0MB", "-1MB", "512mb", "1e3MB", "512MB ", "512Mb", "\u0665MB"],
)
def test_what_is_no_size_is_refused_with_what_is_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as 512MB, 1\.5GB or 512MiB, got"):
        parse_size(text)
