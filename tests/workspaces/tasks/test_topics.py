from __future__ import annotations

from notify.topics import Topic, topics, webhook_topics
from workspaces.tasks import topics as own
from workspaces.tasks.transitions import TRANSITIONS


def defined() -> dict[str, Topic]:
    return {
        name: value for name, value in vars(own).items() if isinstance(value, Topic)
    }


def test_every_topic_is_known_and_may_be_a_webhook():
    assert {topic.name for topic in defined().values()} == {
        name for name in topics() if name.startswith("task.")
    }
    assert set(defined().values()) <= set(webhook_topics())


def test_each_warning_and_outcome_has_a_topic_of_its_own():
    told = {row.topic for row in TRANSITIONS} - {None}
    # Those two are no change of a task.
    assert set(defined().values()) - told == {own.OPINION, own.REPORT}


def test_no_two_have_the_same_title():
    titles = [topic.title for topic in defined().values()]
    assert len(titles) == len(set(titles)) == 17
