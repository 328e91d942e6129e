from __future__ import annotations

import traceback

import pytest

from jobs import tracebacks
from jobs.tracebacks import formatted


def fail() -> None:
    raise ValueError("at the bottom")


def caught() -> ValueError:
    try:
        fail()
    except ValueError as error:
        return error
    raise AssertionError


def led_to(*, suppressed: bool) -> ValueError:
    try:
        try:
            raise KeyError("first")
        except KeyError as error:
            if suppressed:
                raise ValueError("second") from None
            raise ValueError("second") from error
    except ValueError as error:
        return error


def during() -> ValueError:
    try:
        try:
            raise KeyError("first")
        except KeyError:
            fail()
    except ValueError as error:
        return error
    raise AssertionError


class Ours(Exception):
    pass


def noted() -> Exception:
    error = Ours("noted")
    error.add_note("a note")
    error.add_note("another")
    return error


@pytest.mark.parametrize(
    "error",
    [
        caught(),
        led_to(suppressed=False),
        led_to(suppressed=True),
        during(),
        noted(),
        ValueError(),
        ValueError("raised by nobody"),
    ],
    ids=["plain", "caused", "suppressed", "during", "noted", "wordless", "unraised"],
)
def test_what_is_short_is_shown_as_python_does(error: Exception) -> None:
    assert formatted(error) == "".join(traceback.format_exception(error))


def test_the_members_of_a_group_are_shown_with_their_frames() -> None:
    group = ExceptionGroup("both", [caught(), KeyError("k")])
    lines = formatted(group).splitlines()
    assert lines[0] == "ExceptionGroup: both (2 sub-exceptions)"
    assert lines[1] == "  +---------------- 1 of 2 ----------------"
    assert lines[2] == "  | Traceback (most recent call last):"
    assert "  | ValueError: at the bottom" in lines
    assert lines[-1] == "  | KeyError: 'k'"


def test_of_many_members_the_first_are_shown() -> None:
    members = [ValueError(str(n)) for n in range(tracebacks.MEMBERS + 7)]
    shown = formatted(ExceptionGroup("many", members))
    assert f"ValueError: {tracebacks.MEMBERS - 1}\n" in shown
    assert f"ValueError: {tracebacks.MEMBERS}\n" not in shown
    assert shown.endswith("… 7 members left out …\n")


def test_of_a_long_chain_the_last_are_shown() -> None:
    error = ValueError("0")
    for number in range(1, 100):
        later = ValueError(str(number))
        later.__context__ = error
        error = later
    shown = formatted(error)
    assert shown.startswith("… more than 20 errors led to each other")
    assert shown.endswith("ValueError: 99\n")
    assert "ValueError: 80\n" in shown
    assert "ValueError: 79\n" not in shown


def test_of_many_notes_the_first_are_shown() -> None:
    error = ValueError("noted")
    for number in range(tracebacks.NOTES + 5):
        error.add_note(f"note {number}")
    assert formatted(error).endswith("note 19\n… 5 notes left out …\n")


def test_of_many_frames_the_first_and_the_last_are_shown() -> None:
    def first(depth: int) -> None:
        second(depth - 1) if depth else fail()

    def second(depth: int) -> None:
        first(depth)

    try:
        first(200)
    except ValueError as error:
        shown = formatted(error)
    assert shown.startswith("Traceback (most recent call last):\n")
    assert "in test_of_many_frames" in shown
    assert "in fail\n" in shown
    assert shown.count('  File "') == tracebacks.FIRST_FRAMES + tracebacks.LAST_FRAMES
    # The test's own, first() for 200 down to 0, second() between them, and fail().
    assert f"… {1 + 201 + 200 + 1 - 100:,} frames left out …" in shown
