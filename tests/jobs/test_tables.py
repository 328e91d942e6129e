from __future__ import annotations

import datetime as dt
import io
import json
import uuid

import pytest

from jobs.tables import cell, print_json, print_table


def table(*rows: tuple[object, ...], **options: str) -> list[str]:
    stdout = io.StringIO()
    print_table(stdout, ("NAME", "COUNT"), rows, **options)
    return stdout.getvalue().splitlines()


def test_columns_are_aligned_and_numbers_stand_to_the_right():
    assert table(("a", 5), ("longer", 1000)) == [
        "NAME    COUNT",
        "a           5",
        "longer   1000",
    ]


def test_yes_and_no_stand_to_the_left():
    assert table(("a", True), ("b", False)) == ["NAME  COUNT", "a     yes", "b     no"]


def test_no_line_ends_in_spaces():
    assert table(("a", "x"), ("b", "")) == ["NAME  COUNT", "a     x", "b     -"]


def test_wide_characters_take_two_columns():
    assert table(("工作", "x"), ("abcde", "y")) == [
        "NAME   COUNT",
        "工作   x",
        "abcde  y",
    ]


def test_without_rows_the_headers_stand_alone():
    assert table() == ["NAME  COUNT"]


def test_without_rows_a_sentence_can_be_printed():
    assert table(empty="nothing") == ["nothing"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("", "-"),
        ([], "-"),
        (["a", "b"], "a,b"),
        (0, "0"),
        (True, "yes"),
        (False, "no"),
        (
            dt.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC),
            "2026-01-02 03:04:05 UTC",
        ),
        ("two\nlines", "two\\nlines"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
    ],
)
def test_a_cell_is_one_printable_line(value: object, text: str):
    assert cell(value) == text


def test_json_has_seconds_and_iso_times():
    stdout = io.StringIO()
    value = {
        "age": dt.timedelta(seconds=90.5),
        "at": dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
        "id": uuid.UUID(int=1),
    }
    print_json(stdout, value)
    assert json.loads(stdout.getvalue()) == {
        "age": 90.5,
        "at": "2026-01-02T00:00:00Z",
        "id": "00000000-0000-0000-0000-000000000001",
    }


@pytest.mark.parametrize(
    ("encoding", "written"),
    [("utf-8", "é→"), ("UTF8", "é→"), ("latin-1", "\\u00e9\\u2192")],
)
def test_json_is_ascii_where_not_all_of_unicode_can_be_written(
    encoding: str, written: str
):
    raw = io.BytesIO()
    stdout = io.TextIOWrapper(raw, encoding=encoding)
    print_json(stdout, "é→")
    stdout.flush()
    assert raw.getvalue().decode() == f'"{written}"\n'
