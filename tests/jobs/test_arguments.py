from __future__ import annotations

import datetime as dt
import uuid

import pytest

from jobs import arguments
from jobs.exceptions import InvalidJob
from jobs.models import Priority

AT = dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)


def test_what_is_sound_is_taken_as_it_is() -> None:
    assert arguments.text("ref_id", "ümlaut", 6) == "ümlaut"
    assert arguments.text("ref_id", "", 6) == ""
    assert arguments.text("ref_id", None, 6) is None
    assert arguments.required_text("queue", "q", 6) == "q"
    assert arguments.priority(Priority.LOW) == 3
    assert arguments.max_attempts(arguments.MOST_ATTEMPTS) == 1_000_000


@pytest.mark.parametrize(
    ("ref_id", "text"),
    [(None, None), (7, "7"), (uuid.UUID(int=1), str(uuid.UUID(int=1)))],
)
def test_of_a_reference_a_text_is_made(ref_id: object, text: str | None) -> None:
    assert arguments.reference(ref_id, 40) == text


@pytest.mark.parametrize("edge", [arguments.EARLIEST, arguments.LATEST, AT])
@pytest.mark.parametrize("hours", [-23, 0, 23])
def test_a_time_of_any_zone_is_made_one_in_utc(edge: dt.datetime, hours: int) -> None:
    there = edge.astimezone(dt.timezone(dt.timedelta(hours=hours)))
    made = arguments.time(there)
    assert made == edge
    assert made is not None
    assert made.tzinfo is dt.UTC


def test_without_a_time_there_is_none() -> None:
    assert arguments.time(None) is None


@pytest.mark.parametrize(
    "outside",
    [
        arguments.EARLIEST - dt.timedelta.resolution,
        arguments.LATEST + dt.timedelta.resolution,
        dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=23))),
        dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=23))),
    ],
)
def test_a_time_that_could_not_be_read_again_is_refused(outside: dt.datetime) -> None:
    with pytest.raises(InvalidJob, match="run_at: must be from the year 2 to 9998"):
        arguments.time(outside)
