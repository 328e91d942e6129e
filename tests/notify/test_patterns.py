from __future__ import annotations

import pytest

from notify import patterns, topics
from notify.exceptions import InvalidTopic, UnknownTopic
from tests.notify.factories import TOPIC


def test_a_topic_is_matched_by_itself_by_what_it_begins_with_and_by_everything():
    assert patterns.matching("worktree.prune.blocked") == [
        "worktree.prune.blocked",
        "worktree.*",
        "worktree.prune.*",
        "*",
    ]


def test_what_is_about_webhooks_is_matched_by_nothing():
    assert patterns.matching("webhook.dead_letter") == []


def test_the_patterns_that_stand_for_something_are_known_with_what_they_mean():
    known = patterns.known()

    assert next(iter(known)) == "*"
    assert known["test.*"] == "Everything about test"
    assert "worktree.*" in known
    assert "webhook.*" not in known
    assert TOPIC not in known


def test_names_and_patterns_are_kept_once_and_in_order():
    given = [TOPIC, "worktree.*", "*", TOPIC]

    assert patterns.checked(given) == ["*", TOPIC, "worktree.*"]


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("test.hapened", UnknownTopic, "did you mean 'test.happened'"),
        ("worktre.*", UnknownTopic, r"stands for no topic; .*'worktree\.\*'"),
        ("worktree.prune*", UnknownTopic, "stands for no topic"),
        ("*.happened", UnknownTopic, "stands for no topic"),
        ("test.happened.*", UnknownTopic, "stands for no topic"),
        ("**", UnknownTopic, "stands for no topic"),
        ("webhook.*", InvalidTopic, "never sent as one"),
        ("webhook.dead_letter", InvalidTopic, "never sent as one"),
    ],
)
def test_what_stands_for_nothing_that_may_go_out_is_refused(
    name: str, error: type[Exception], message: str
):
    with pytest.raises(error, match=message):
        patterns.checked([TOPIC, name])


def test_a_pattern_is_known_from_the_first_topic_that_begins_so():
    topics.define("queue.lag.high", title="x", description="x")

    assert patterns.checked(["queue.*", "queue.lag.*"]) == ["queue.*", "queue.lag.*"]
    assert patterns.is_pattern("queue.*")
    assert not patterns.is_pattern("queue.lag.high")
