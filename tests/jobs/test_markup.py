from __future__ import annotations

from collections.abc import Callable

import pytest

from jobs import markup

HOSTILE = '<script>alert("x")</script>'


@pytest.mark.parametrize(
    "made",
    [
        markup.badge(HOSTILE),
        markup.block(HOSTILE),
        markup.cut(HOSTILE),
        markup.folded(HOSTILE, HOSTILE),
    ],
)
def test_everything_is_escaped(made: str):
    assert "<script" not in made
    assert 'alert("' not in made
    assert "&lt;script&gt;" in made


@pytest.mark.parametrize("show", [markup.block, markup.cut])
def test_what_cannot_be_seen_is_made_visible(show: Callable[[str], str]):
    made = show("exe.\u202egnp\x1b[31m")
    assert "\u202e" not in made
    assert "\x1b" not in made
    assert "exe.\ufffdgnp\ufffd[31m" in made


def test_a_traceback_keeps_its_lines_and_turns_nothing_around():
    made = markup.folded("Traceback", "one\n\u202etwo")
    assert "one\n\ufffdtwo" in made


@pytest.mark.parametrize(
    ("state", "kind"),
    [("completed", "state-good"), ("dead", "state-bad"), ("running", "state-busy")],
)
def test_a_state_is_a_word_on_a_colour(state: str, kind: str):
    assert markup.badge(state) == f'<span class="state {kind}">{state}</span>'


def test_an_unknown_state_is_a_word_without_one():
    assert markup.badge("pending") == '<span class="state">pending</span>'


def test_nothing_is_a_dash():
    assert (markup.block(""), markup.cut(""), markup.folded("x", "")) == ("-", "-", "")
