"""The time that a recovery goes back to, as people write it."""

from __future__ import annotations

import datetime as dt

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from jobs import durations

ACCEPTED = "how long ago (2h, 90m, 36h), or a time (2026-11-30T08:00, 2026-11-30T08:00:00+01:00)"


def parse_since(text: str) -> dt.datetime | dt.timedelta:
    """The time, or how long ago; ValueError says what is accepted. A time without a zone is in ``TIME_ZONE``."""
    text = text.strip()
    try:
        time = parse_datetime(text)
        if time is None:
            return durations.parse_duration(text)
        if timezone.is_naive(time):
            time = timezone.make_aware(time)
        # Nothing is older than the queue, and what lies near the ends of the calendar has no UTC.
        if not 2000 <= time.year < 9000:
            raise ValueError("its year is out of range")
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{error}; accepted: {ACCEPTED}") from None
    return time
