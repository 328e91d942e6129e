"""What can be told: every topic, defined by the app that tells it.

Each app defines its own in a module named ``topics``, which :class:`notify.apps.NotifyConfig`
imports::

    SYNC_FAILED = define(
        "workspace.sync_failed",
        title="Workspace cannot be fetched",
        description="git fetch failed for a workspace that was well before.",
    )
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from jobs.suggestions import did_you_mean
from notify.exceptions import InvalidTopic, UnknownTopic

NAME_MAX_LENGTH = 100

# It becomes a header's value: no character of it may need quoting there.
_NAME = re.compile(r"[a-z0-9_]+(?:\.[a-z0-9_]+)+")
_NEVER_OUTWARD = "webhook."


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """One kind of event: ``name`` as programs read it, ``title`` and ``description`` for people.

    ``subject`` is the field of the event's data that says what it is about, where a later event about the same makes an
    older one old news; empty where none does.
    """

    name: str
    title: str
    description: str
    subject: str = ""

    def __str__(self) -> str:
        return self.name


_topics: dict[str, Topic] = {}


def define(name: str, *, title: str, description: str, subject: str = "") -> Topic:
    """Register a topic and return it; defining the same again changes nothing.

    ``name`` is lower-case words joined by dots, at least two. With ``subject``, a field of the data, a webhook that
    has not gone out is superseded by a later one of the topic about the same. Raises
    :class:`~notify.exceptions.InvalidTopic` for another form, and where the name is taken.
    """
    if not _NAME.fullmatch(name) or len(name) > NAME_MAX_LENGTH:
        raise InvalidTopic(
            f"topic {name!r}: a name is two or more words of a-z, 0-9 and _ joined by dots, "
            f"at most {NAME_MAX_LENGTH} characters"
        )
    topic = Topic(name=name, title=title, description=description, subject=subject)
    if _topics.setdefault(name, topic) != topic:
        raise InvalidTopic(
            f"topic {name!r} is already defined, as {_topics[name].title!r}"
        )
    return topic


def topic(name: str) -> Topic:
    """The topic of this name; raises :class:`~notify.exceptions.UnknownTopic`, naming the closest."""
    try:
        return _topics[name]
    except KeyError:
        hint = did_you_mean(name, _topics, otherwise="is its app installed?")
        raise UnknownTopic(f"topic {name!r} is not defined; {hint}") from None


def topics() -> Mapping[str, Topic]:
    """Every topic by name."""
    return _topics


def may_be_webhook(name: str) -> bool:
    """Whether events of this topic may be sent to receivers.

    What concerns webhooks themselves never may: a dead letter that is told by webhook dies and
    is told by webhook, for ever.
    """
    return not name.startswith(_NEVER_OUTWARD)


def webhook_topics() -> list[Topic]:
    """The topics that an endpoint may be given, by name."""
    return [_topics[name] for name in sorted(_topics) if may_be_webhook(name)]


DEAD_LETTER = define(
    "webhook.dead_letter",
    title="Webhook not delivered",
    description="A delivery was given up: its attempts are used up, or the receiver refused it. "
    "Told to every admin, in the inbox only.",
)
RECOVERED = define(
    "webhook.recovery_finished",
    title="Recovery finished",
    description="What had died for an endpoint was sent again. Told to who asked for it, in the inbox only.",
)
TEST = define(
    "webhook.test",
    title="Test event",
    description="Sent to one endpoint when an operator asks for it, and never otherwise.",
)
ENDPOINT_FAILING = define(
    "webhook.endpoint_failing",
    title="Receiver of webhooks fails",
    description="Deliveries to an endpoint wait, since it fails or refuses all of them. Told to every admin, in "
    "the inbox only.",
)
ENDPOINT_RECOVERED = define(
    "webhook.endpoint_recovered",
    title="Receiver of webhooks is well again",
    description="Deliveries to an endpoint that had failed go out again. Told to every admin, in the inbox only.",
)
ENDPOINT_DISABLED = define(
    "webhook.endpoint_disabled",
    title="Receiver of webhooks is switched off",
    description="ACW has disabled an endpoint: it is gone, or has failed for too long. Told to every admin, in the "
    "inbox only.",
)
