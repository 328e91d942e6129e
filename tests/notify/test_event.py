from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from notify.event import BODY_LIMIT, DATA_LIMIT, Event, Group
from notify.exceptions import InvalidEvent, UnknownTopic
from notify.models.notification import TITLE_MAX_LENGTH
from tests.notify.factories import TOPIC, UserFactory

CREDENTIALS = "https://me:hunter2@git.example/x?token=abc"


def event(**values) -> Event:
    return Event(**{"topic": TOPIC, "recipients": [], "title": "It happened", **values})


def test_a_sound_event_stays_as_it_is():
    checked = event(
        body="line one\nline two\n", data={"id": 1, "list": [1, None]}
    ).checked()

    assert checked == event(
        body="line one\nline two\n", data={"id": 1, "list": [1, None]}
    )


def test_a_topic_that_is_not_defined_is_refused():
    with pytest.raises(UnknownTopic, match=r"test\.hapened"):
        event(topic="test.hapened").checked()


@pytest.mark.django_db
def test_each_recipient_is_told_once():
    one, two = UserFactory(), UserFactory()

    assert event(recipients=(one, two, one)).checked().recipients == [one, two]


def test_credentials_in_urls_are_taken_out_of_all_texts():
    checked = event(
        title=CREDENTIALS,
        body=f"fatal: {CREDENTIALS}",
        data={"a": [{"b": CREDENTIALS}]},
    ).checked()

    assert "hunter2" not in repr(checked)
    assert "token=abc" not in repr(checked)
    assert "git.example" in checked.title


def test_what_the_database_cannot_store_is_replaced():
    checked = event(title="a\x00b", body="\ud800", data={"a": "b\x00"}).checked()

    assert checked.title == "a\N{REPLACEMENT CHARACTER}b"
    assert checked.body == "\\ud800"
    assert checked.data == {"a": "b\N{REPLACEMENT CHARACTER}"}


def test_a_title_is_one_line_of_bounded_length():
    checked = event(title="one\n  two " + "x" * 500).checked()

    assert checked.title.startswith("one two xxx")
    assert len(checked.title) == TITLE_MAX_LENGTH
    assert checked.title.endswith("…")


def test_of_a_long_body_the_beginning_and_the_end_are_kept():
    checked = event(body="begin" + "x" * 2 * BODY_LIMIT + "end").checked()

    assert checked.body.startswith("begin")
    assert checked.body.endswith("end")
    assert "characters left out" in checked.body
    assert len(checked.body) < BODY_LIMIT + 100


def test_credentials_are_taken_out_before_a_body_is_cut():
    """A cut through a URL would leave a password that no pattern finds."""
    half = BODY_LIMIT // 2
    body = "x" * (half - 20) + " " + CREDENTIALS + "y" * BODY_LIMIT

    assert "hunt" not in event(body=body).checked().body


@pytest.mark.parametrize(
    "data",
    [
        {"a": object},
        {"a": float("nan")},
        {"a": {1, 2}},
        [1, 2],
        {1: 2},
        {"a": {None: 1}},
    ],
    ids=repr,
)
def test_data_that_is_not_a_json_object_is_refused(data):
    with pytest.raises(InvalidEvent, match="data: must be a JSON object"):
        event(data=data).checked()


def test_data_that_contains_itself_is_refused():
    data: dict[str, Any] = {}
    data["again"] = data

    with pytest.raises(InvalidEvent, match="data"):
        event(data=data).checked()


def test_data_that_is_too_large_is_refused():
    with pytest.raises(InvalidEvent, match="at most 16,384"):
        event(data={"a": "x" * DATA_LIMIT}).checked()


def group(**values: Any) -> Group:
    return Group(
        **{"key": "k", "window": dt.timedelta(minutes=1), "title": "things", **values}
    )


def test_a_groups_title_is_cleaned_as_the_events_is():
    checked = event(group=group(title=f"things at\n{CREDENTIALS}")).checked().group

    assert checked is not None
    assert "hunter2" not in checked.title
    assert "\n" not in checked.title


@pytest.mark.parametrize("key", ["", "x" * 201, "a\x00b"], ids=["empty", "long", "NUL"])
def test_a_groups_key_that_cannot_be_stored_is_refused(key: str):
    with pytest.raises(InvalidEvent, match=r"group\.key"):
        event(group=group(key=key)).checked()
