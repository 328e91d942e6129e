from __future__ import annotations

import pytest

from notify import topics
from notify.exceptions import InvalidTopic, UnknownTopic
from tests.notify.factories import TOPIC


def test_a_defined_topic_is_found_by_its_name():
    defined = topics.define("queue.slow", title="Queue is slow", description="It is.")

    assert topics.topic("queue.slow") is defined
    assert topics.topics()["queue.slow"].title == "Queue is slow"
    assert str(defined) == "queue.slow"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "one",
        "Upper.case",
        "a..b",
        ".a",
        "a.",
        "a.b\n",
        "a b.c",
        "ä.b",
        "a-b.c",
        "a." + "b" * 100,
    ],
)
def test_a_name_that_could_not_stand_in_a_header_is_refused(name: str):
    with pytest.raises(InvalidTopic, match="a name is two or more words"):
        topics.define(name, title="x", description="x")


def test_defining_the_same_again_changes_nothing():
    first = topics.define("queue.slow", title="Queue is slow", description="It is.")

    assert (
        topics.define("queue.slow", title="Queue is slow", description="It is.")
        == first
    )


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(InvalidTopic, match="already defined, as 'Thing happened'"):
        topics.define(TOPIC, title="Another", description="x")


def test_an_unknown_topic_names_the_closest():
    with pytest.raises(UnknownTopic, match=r"did you mean 'test\.happened'"):
        topics.topic("test.hapened")


def test_an_unknown_topic_that_resembles_none_asks_for_its_app():
    with pytest.raises(UnknownTopic, match="is its app installed"):
        topics.topic("zzzzzzzzzzzz.qqqqqqqqqqqqq")


def test_what_is_about_webhooks_never_goes_out_as_one():
    topics.define("webhook.new_thing", title="x", description="x")
    offered = [topic.name for topic in topics.webhook_topics()]

    assert not topics.may_be_webhook("webhook.dead_letter")
    assert TOPIC in offered
    assert offered == sorted(offered)
    assert not [name for name in offered if name.startswith("webhook.")]
