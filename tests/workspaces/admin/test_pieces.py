from __future__ import annotations

import datetime as dt

from django.utils.timezone import now

from workspaces.admin import pieces
from workspaces.pruning.contents import Contents, Found


def test_contents_are_listed_by_kind_and_escaped():
    found = Contents(
        untracked=Found(7, ("<i>", "b")),
        commits=Found(1, ("abc fix",)),
        recreatable=Found(1, ("node_modules/",)),
        operations=("merge",),
        unchecked=("more files than can be listed",),
        size_bytes=2048,
        recreatable_bytes=1024,
    )
    html = pieces.contents(found.as_data())
    for part in (
        "merge in progress",
        "more files than can be listed",
        "Untracked files: 7",
        "&lt;i&gt;",
        "and 5 more",
        "Commits that are not pushed: 1",
        "Caches that can be made again, which are left out: 1",
        "2.0\xa0KB, of which 1.0\xa0KB can be made again",
    ):
        assert part in html, part


def test_of_nothing_and_of_what_is_no_contents_a_sentence_is_made():
    for data in (Contents().as_data(), {}, {"commits": 3, "operations": None}):
        assert "Nothing that is nowhere else" in pieces.contents(data)


def test_times_are_told_by_their_distance():
    at = now()
    hour = dt.timedelta(hours=1)
    assert ">1h ago<" in pieces.since(at - hour, at)
    assert ">0s ago<" in pieces.since(at + hour, at)
    assert ">in 1h<" in pieces.until(at + hour, at)
    assert ">due<" in pieces.until(at - hour, at)
    for nothing in (
        pieces.since(None, at),
        pieces.until(None, at),
        pieces.moment(None),
    ):
        assert nothing == "-"


def test_what_cannot_be_seen_is_made_visible_and_credentials_go():
    assert pieces.shown("a\u202eb https://u:p@h/") == (
        "a\N{REPLACEMENT CHARACTER}b https://u:***@h/"
    )


def test_a_size_says_how_long_ago_it_was_counted():
    at = now()
    html = pieces.sampled(2048, at - dt.timedelta(hours=3), at)
    assert html.startswith('2.0\xa0KB <span class="aside"><time')
    assert "3h ago" in html
    assert pieces.sampled(None, None, at) == "-"
