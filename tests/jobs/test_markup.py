from __future__ import annotations

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
