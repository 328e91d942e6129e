from __future__ import annotations

import datetime as dt

import pytest

from jobs.durations import parse_duration, written


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("720h", 2_592_000),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1.s", 1),
        ("100ms", 0.1),
        ("7us", 0.000_007),
        ("7µs", 0.000_007),
        ("7μs", 0.000_007),
        ("2500ns", 0.000_002),
        ("0", 0),
        ("0s", 0),
        ("1h1h", 7200),
    ],
)
def test_reads_what_go_reads(text: str, seconds: float):
    assert parse_duration(text) == dt.timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("30", "no unit"),
        ("1.5", "no unit"),
        ("", "empty"),
        ("-5s", "negative"),
        ("30x", "unknown unit 'x'"),
        ("1d", "unknown unit 'd'"),
        ("5S", "unknown unit 'S'"),
        ("s", "'s' is no number with a unit"),
        ("1h 30m", "' 30m' is no number with a unit"),
        ("1h30", "'30' is no number with a unit"),
        ("1,5h", "unknown unit ','"),
        ("٣s", "no number with a unit"),
        ("1ns", "shorter than a microsecond"),
        ("3000000h", "longer than 292 years"),
        ("9" * 70 + "s", "too long"),
    ],
)
def test_refuses_the_rest_and_says_why(text: str, reason: str):
    with pytest.raises(ValueError, match=reason):
        parse_duration(text)


def test_takes_the_longest_duration_of_go():
    assert parse_duration("2562047h").days == 106_751


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("45s", 45),
        ("1h30m", 5400),
        ("168h", 7 * 86_400),
        ("87600h", 3650 * 86_400),
        ("1h0.25s", 3600.25),
        ("0.000001s", 0.000_001),
        ("1m10s", 70),
    ],
)
def test_writes_what_it_reads(text: str, seconds: float):
    assert written(dt.timedelta(seconds=seconds)) == text
    assert parse_duration(text) == dt.timedelta(seconds=seconds)
