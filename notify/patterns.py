"""What an endpoint's list of topics may hold: exact names, ``worktree.*``, and ``*``. Pure.

A pattern stands for every topic that begins with its words, also for those that are defined later. None stands for
what is about webhooks themselves.
"""

from __future__ import annotations

from collections.abc import Iterable

from jobs.suggestions import did_you_mean
from notify import topics
from notify.exceptions import InvalidTopic, UnknownTopic

EVERYTHING = "*"
_REST = ".*"


def matching(topic: str) -> list[str]:
    """What an endpoint can have in its list to get this topic: nothing for one that never goes out."""
    if not topics.may_be_webhook(topic):
        return []
    words = topic.split(".")
    begun = [".".join(words[:count]) + _REST for count in range(1, len(words))]
    return [topic, *begun, EVERYTHING]


def known() -> dict[str, str]:
    """Every pattern that stands for some topic now, with what it means; the shortest first."""
    found = {
        pattern: f"Everything about {pattern.removesuffix(_REST)}"
        for topic in topics.webhook_topics()
        for pattern in matching(topic.name)[1:-1]
    }
    return {EVERYTHING: "Everything that may go out", **dict(sorted(found.items()))}


def checked(names: Iterable[str]) -> list[str]:
    """Each name or pattern once, in order.

    Raises :class:`~notify.exceptions.UnknownTopic` for one that stands for no topic, and
    :class:`~notify.exceptions.InvalidTopic` for one that never goes out.
    """
    wanted = sorted(set(names))
    for name in wanted:
        if not topics.may_be_webhook(name):
            raise InvalidTopic(
                f"topic {name!r} is about webhooks, and never sent as one"
            )
        if not is_pattern(name):
            topics.topic(name)
        elif name not in known():
            hint = did_you_mean(name, known(), otherwise="is its app installed?")
            raise UnknownTopic(f"pattern {name!r} stands for no topic; {hint}")
    return wanted


def is_pattern(name: str) -> bool:
    """Whether it may stand for several topics."""
    return EVERYTHING in name
