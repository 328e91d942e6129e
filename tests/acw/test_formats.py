from __future__ import annotations

import datetime as dt

from django.utils import formats, translation


def test_times_on_pages_are_written_as_in_the_logs():
    at = dt.datetime(2026, 11, 29, 18, 5, 9, tzinfo=dt.UTC)
    with translation.override("en"):
        assert formats.localize(at) == "2026-11-29 18:05:09"
        assert formats.localize(at.date()) == "2026-11-29"
