from __future__ import annotations

import datetime as dt

import pytest

from jobs import outcomes


class BrokenError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "described"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (ValueError(), "ValueError"),
        (KeyError("k"), "KeyError: 'k'"),
        (SystemExit(3), "SystemExit: 3"),
        (ValueError("a\x00b"), "ValueError: a\N{REPLACEMENT CHARACTER}b"),
        (ValueError("a\ud800b"), r"ValueError: a\ud800b"),
        (ValueError("https://u:secret@h/x"), "ValueError: https://u:***@h/x"),
        (BrokenError(), "BrokenError: (its message could not be made: RuntimeError)"),
    ],
)
def test_an_error_is_described_in_a_form_that_can_be_stored(
    error: BaseException, described: str
) -> None:
    assert outcomes.describe(error) == described


def test_a_huge_message_keeps_its_head_and_tail() -> None:
    text = outcomes.describe(ValueError("head" + "x" * 50_000_000 + "tail"))
    assert len(text) < outcomes.ERROR_LIMIT + 100
    assert text.startswith("ValueError: head")
    assert text.endswith("tail")
    assert "characters left out" in text


def recurse(depth: int) -> None:
    if depth:
        recurse(depth - 1)
    else:
        raise ValueError("at the bottom")


def test_a_deep_traceback_is_capped_and_ends_with_the_error() -> None:
    try:
        recurse(900)
    except ValueError as error:
        text = outcomes.describe_traceback(error)
    assert len(text) < outcomes.TRACEBACK_LIMIT + 100
    assert text.rstrip().endswith("ValueError: at the bottom")


def test_a_traceback_of_an_error_without_words_is_still_made() -> None:
    assert "BrokenError" in outcomes.describe_traceback(BrokenError())


def test_a_death_and_a_retry_are_failed_attempts_and_a_snooze_is_none() -> None:
    second = dt.timedelta(seconds=1)
    assert outcomes.dead("x").error == "x"
    assert outcomes.retry(second, error="x").refund is False
    assert outcomes.snooze(second).error is None
    assert outcomes.snooze(second).refund is True
    assert outcomes.interrupted("x").refund is True


def test_an_outcome_that_was_tried_is_the_same_outcome() -> None:
    once = outcomes.tried(outcomes.COMPLETED)
    assert once.tried
    assert once == outcomes.COMPLETED
