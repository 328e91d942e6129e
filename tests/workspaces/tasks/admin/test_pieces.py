from __future__ import annotations

import datetime as dt

import pytest

from tests.workspaces.tasks.admin.desk import HOSTILE
from workspaces.tasks.admin import pieces
from workspaces.tasks.models import Agent
from workspaces.tasks.states import Status

AT = dt.datetime(2031, 2, 3, 14, 5, 6, 789_000, tzinfo=dt.UTC)


@pytest.mark.parametrize("status", Status)
def test_a_status_is_a_word_on_a_colour(status: Status):
    assert f">{status}</span>" in pieces.badge(status)


def test_good_and_bad_are_told_apart():
    assert "state-good" in pieces.badge("accepted")
    assert "state-bad" in pieces.badge("missing")
    assert "state-" not in pieces.badge("open")


def test_what_others_wrote_is_escaped():
    assert "<script>" not in pieces.badge(HOSTILE)
    assert "<script>" not in pieces.words(HOSTILE)
    assert "<script>" not in pieces.words(HOSTILE * 50)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("\x1b[31m\x07\x7f\x9b", "�[31m���"),
        ("pay\u202egnp.exe\u2066", "pay�gnp.exe�"),
        ("مرحبا \u200f!", "مرحبا \u200f!"),
        ("https://u:SECRET@git.example/x?t=SECRET", "https://u:***@git.example/x?***"),
    ],
    ids=["plain", "lines", "controls", "directions", "arabic", "credentials"],
)
def test_what_cannot_be_seen_is_made_visible_and_credentials_are_not(
    text: str, shown: str
):
    assert pieces.shown(text) == shown


@pytest.mark.parametrize(
    ("text", "title"),
    [("Sort\nthe lists", "Sort"), ("", "-"), ("\n", "-"), ("x" * 99, "x" * 79 + "…")],
)
def test_a_title_is_one_short_line(text: str, title: str):
    assert pieces.title(text) == title


def test_a_short_text_stands_as_it_is():
    assert pieces.words("a\nb") == '<div class="words">a\nb</div>'


def test_no_text_is_a_dash():
    assert pieces.words("") == "-"


@pytest.mark.parametrize("text", ["x" * 401, "a\n" * 8])
def test_a_long_text_is_folded(text: str):
    folded = pieces.words(text)
    assert folded.startswith("<details><summary>")
    assert f"({len(text):,} characters)" in folded


def test_a_moment_is_to_the_second_and_in_full_for_programs():
    assert pieces.moment(AT) == (
        '<time datetime="2031-02-03T14:05:06.789000+00:00" title="2031-02-03 14:05:06.789+00:00">'
        "2031-02-03 14:05:06 UTC</time>"
    )


def test_no_moment_is_a_dash():
    assert pieces.moment(None) == "-"


def test_what_is_to_come_and_what_is_over():
    assert pieces.distance(AT + dt.timedelta(minutes=5), AT) == "in 5m"
    for late in (0, 60):
        assert pieces.distance(AT - dt.timedelta(seconds=late), AT) == "due now"
    over = pieces.distance(AT - dt.timedelta(seconds=61), AT)
    assert over == '<span class="state state-bad">overdue</span> since 1m 1s'


def test_an_agent_who_may_not_act_is_marked():
    bot = Agent(name="bot")
    assert pieces.agent(bot) == "service:bot"
    bot.enabled = False
    assert pieces.agent(bot) == 'service:bot <span class="state">disabled</span>'


def test_nobody_is_a_dash():
    assert pieces.agent(None) == "-"
