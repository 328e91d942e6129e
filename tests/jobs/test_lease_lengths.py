from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection

from jobs.lease_lengths import LENGTH, LONGEST_LEASE, SHORTEST_LEASE, LeaseLengths

MINUTE = dt.timedelta(minutes=1)
ODD = dt.timedelta(days=1, microseconds=1)
LENGTHS = LeaseLengths(5 * MINUTE, {"brief": MINUTE, "long": LONGEST_LEASE, "odd": ODD})


@pytest.mark.parametrize(
    ("type_name", "length"),
    [*LENGTHS.own.items(), ("other", 5 * MINUTE), ("", 5 * MINUTE)],
)
def test_the_database_is_told_what_the_worker_goes_by(
    db: None, type_name: str, length: dt.timedelta
) -> None:
    assert LENGTHS.seconds(type_name) == length.total_seconds()
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {LENGTH} FROM (VALUES (%(type)s::text)) AS jobs (type)",
            {**LENGTHS.parameters, "type": type_name},
        )
        assert cursor.fetchone() == (length,)


def test_without_lengths_of_their_own_all_are_the_default(db: None) -> None:
    lengths = LeaseLengths(MINUTE)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {LENGTH} FROM (VALUES ('any'::text)) AS jobs (type)",
            lengths.parameters,
        )
        assert cursor.fetchone() == (MINUTE,)
    assert lengths.seconds("any") == 60


def test_the_shortest_is_that_of_any_type_or_the_default() -> None:
    assert LENGTHS.shortest == MINUTE
    assert LeaseLengths(MINUTE, {"long": 5 * MINUTE}).shortest == MINUTE
    assert LeaseLengths(SHORTEST_LEASE).shortest == SHORTEST_LEASE
