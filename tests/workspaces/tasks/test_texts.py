from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from workspaces.tasks import texts
from workspaces.tasks.exceptions import InvalidTask
from workspaces.tasks.texts import CHECKLIST_LIMIT, ITEM_LIMIT, LONGEST

MOMENT = dt.timedelta(microseconds=1)
MILLISECOND = dt.timedelta(milliseconds=1)


def refused(check: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(InvalidTask) as refusal:
        check(*args, **kwargs)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  as it is \n", "as it is"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred", "\x1b[31mred"),
        ("整理清单 🗒", "整理清单 🗒"),
        ("", ""),
        (" \n", ""),
        ("x" * 20 + "  ", "x" * 20),
    ],
)
def test_a_text_is_kept_without_the_blanks_around_it(given: str, kept: str):
    assert texts.text("note", given, limit=20) == kept


@pytest.mark.parametrize("check", [texts.text, texts.line])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("x" * 5_001, "note: 5,001 characters, at most 5,000 are accepted"),
        ("a\x00b", "note: contains a NUL character, which cannot be stored"),
        ("a\ud800b", "note: contains a lone surrogate, which is no character"),
        (None, "note: must be text, got NoneType"),
        (b"bytes", "note: must be text, got bytes"),
        (7, "note: must be text, got int"),
        ("", "note: must not be empty"),
        ("\u3000\n", "note: must not be empty"),
    ],
)
def test_what_could_not_be_stored_is_refused_by_its_field(
    check: Callable[..., str], given: Any, said: str
):
    assert refused(check, "note", given, limit=5_000, required=True) == said


@pytest.mark.parametrize("given", ["a\nb", "a\x1b[2Jb", "a\x7fb", "a\u202eb", "a\tb"])
def test_a_line_is_printable(given: str):
    assert refused(texts.line, "title", given, limit=20) == (
        "title: must be one line of printable characters"
    )


def test_a_line_may_be_in_any_script():
    assert texts.line("title", " 整理 清单 🗒 ", limit=20) == "整理 清单 🗒"
    assert texts.line("title", "", limit=20) == ""


@pytest.mark.parametrize("given", [["a ", "b"], ("a", "b"), iter(["a", "b"])])
def test_a_checklist_is_any_iterable_of_lines(given: Any):
    assert texts.checklist(given) == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("abc", "checklist: must be a list of texts, got str"),
        (None, "checklist: must be a list of texts, got NoneType"),
        (5, "checklist: must be a list of texts, got int"),
        ([""], "checklist[0]: must not be empty"),
        (["a", 5], "checklist[1]: must be text, got int"),
        (["a\nb"], "checklist[0]: must be one line of printable characters"),
        (
            ["x" * (ITEM_LIMIT + 1)],
            "checklist[0]: 501 characters, at most 500 are accepted",
        ),
        (
            ["x"] * (CHECKLIST_LIMIT + 1),
            "checklist: 101 items, at most 100 are accepted",
        ),
    ],
)
def test_a_checklist_that_could_not_be_shown_is_refused(given: Any, said: str):
    assert refused(texts.checklist, given) == said


def test_a_checklist_may_be_as_long_as_it_says():
    assert texts.checklist(["x" * ITEM_LIMIT] * CHECKLIST_LIMIT)


def test_what_is_done_is_kept_once_each_and_in_order():
    assert texts.done([3, 1, 3], ["a", "b", "c"]) == (1, 3)
    assert texts.done([], []) == ()


@pytest.mark.parametrize("number", [0, 4, -1, True, 1.0, 1.5, "1", None, [1], 10**30])
def test_what_is_no_item_of_the_checklist_is_refused(number: Any):
    assert refused(texts.done, [2, number], ["a", "b", "c"]) == (
        f"done: {number!r} is no item of the checklist, which has 3"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (7, "done: must be a list of numbers, got int"),
        ("12", "done: '1' is no item of the checklist, which has 3"),
    ],
)
def test_what_is_no_list_of_numbers_is_refused(given: Any, said: str):
    assert refused(texts.done, given, ["a", "b", "c"]) == said


@pytest.mark.parametrize("value", [MILLISECOND, LONGEST])
def test_a_duration_is_anything_up_to_ten_years(value: dt.timedelta):
    assert texts.duration("hold_for", value) == value


@pytest.mark.parametrize(
    "value",
    [dt.timedelta(0), -MILLISECOND, MILLISECOND - MOMENT, LONGEST + MOMENT],
)
def test_a_duration_out_of_range_is_refused(value: dt.timedelta):
    assert refused(texts.duration, "hold_for", value) == (
        f"hold_for: {value} is out of range, at most 87600h is accepted, "
        "and no less than 0.001s"
    )


@pytest.mark.parametrize("value", [60, 1.5, "1h", None, True])
def test_a_duration_is_a_timedelta(value: Any):
    assert refused(texts.duration, "hold_for", value) == (
        f"hold_for: must be a timedelta, got {type(value).__name__}"
    )


def test_a_duration_may_be_zero_where_that_means_never():
    assert texts.duration("every", dt.timedelta(0), zero=True) == dt.timedelta(0)
    assert "no less than 0s" in refused(texts.duration, "every", -MOMENT, zero=True)


@pytest.mark.parametrize("value", [1, 10_000])
def test_a_count_is_a_whole_number(value: int):
    assert texts.count("final_miss", value, least=1) == value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "final_miss: 0 is out of range, 1 to 10,000"),
        (10_001, "final_miss: 10001 is out of range, 1 to 10,000"),
        (True, "final_miss: must be a whole number, got True"),
        (1.0, "final_miss: must be a whole number, got 1.0"),
        ("2", "final_miss: must be a whole number, got '2'"),
        (None, "final_miss: must be a whole number, got None"),
    ],
)
def test_a_count_that_is_none_is_refused(value: Any, said: str):
    assert refused(texts.count, "final_miss", value, least=1) == said
