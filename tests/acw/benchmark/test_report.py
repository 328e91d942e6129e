from __future__ import annotations

import io
import json

import psycopg
import pytest

from acw.benchmark import report
from acw.benchmark.figures import Figure, of_rounds

SAFE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
FIGURES = [
    of_rounds(
        "drain",
        [30_000, 20_000],
        unit="jobs/s",
        ceilings=[40_000, 40_000],
        against="loop",
        goal="≥ 0.85",
    ),
    Figure(name="memory", value=70.25, unit="MiB", ceiling=None),
]


def test_the_conditions_name_versions_and_settings(connection: psycopg.Connection):
    found = report.conditions(connection)
    assert set(found) >= {"PostgreSQL", "Python", "Django", "psycopg", "cores", *SAFE}
    assert all(found.values())


def test_the_tests_own_server_is_one_that_is_warned_of(connection: psycopg.Connection):
    # It does not wait for the disk.
    connection.execute("SET synchronous_commit = off")
    assert "synchronous_commit is off" in report.caution(report.conditions(connection))


@pytest.mark.parametrize(
    ("changed", "warned"),
    [
        ({}, False),
        ({"synchronous_commit": "remote_apply"}, False),
        ({"synchronous_commit": "off"}, True),
        ({"fsync": "off"}, True),
        ({"full_page_writes": "off"}, True),
    ],
)
def test_only_a_server_that_does_not_wait_for_its_disk_is_warned_of(
    changed: dict[str, str], warned: bool
):
    assert bool(report.caution({**SAFE, **changed})) is warned


def test_the_table_shows_median_range_ratio_and_what_that_is_to():
    output = io.StringIO()
    report.print_text(output, {**SAFE, "fsync": "off"}, FIGURES)
    text = output.getvalue()
    assert "Warning: fsync is off" in text
    row = next(line for line in text.splitlines() if line.startswith("drain"))
    for part in (
        "25,000",
        "20,000 to 30,000",
        "jobs/s",
        "0.62",
        "≥ 0.85",
        "loop 40,000",
    ):
        assert part in row


def test_json_has_the_same_and_what_was_refused():
    output = io.StringIO()
    report.print_as_json(output, SAFE, FIGURES, refused={"bulk": "3 are missing"})
    printed = json.loads(output.getvalue())
    assert printed["conditions"] == SAFE
    assert printed["warning"] == ""
    assert printed["refused"] == {"bulk": "3 are missing"}
    drain, memory = printed["figures"]
    assert (drain["value"], drain["ratio"]) == (25_000, 0.625)
    assert drain["ratios"] == [0.75, 0.5]
    assert memory["ratio"] is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12_345.6, "12,346"),
        (123.4, "123"),
        (12.34, "12.3"),
        (1.234, "1.23"),
        (0, "0.00"),
    ],
)
def test_numbers_are_as_long_as_they_mean_something(value: float, text: str):
    assert report.number(value) == text
