from __future__ import annotations

import datetime as dt

import pytest

from notify.recovering.since import parse_since


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (" 2h ", dt.timedelta(hours=2)),
        ("1h30m", dt.timedelta(minutes=90)),
        ("2026-11-30T08:00", dt.datetime(2026, 11, 30, 8, tzinfo=dt.UTC)),
        ("2026-11-30 08:00:05", dt.datetime(2026, 11, 30, 8, 0, 5, tzinfo=dt.UTC)),
        ("2026-11-30T08:00+01:00", dt.datetime(2026, 11, 30, 7, tzinfo=dt.UTC)),
    ],
    ids=str,
)
def test_a_time_or_how_long_ago_is_read(text: str, meant: object):
    assert parse_since(text) == meant


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2", "-2h", "2026-13-01T00:00", "0001-01-01T00:00"],
    ids=repr,
)
def test_what_is_neither_is_refused_with_what_is_accepted(text: str):
    with pytest.raises(ValueError, match="accepted: how long ago"):
        parse_since(text)
