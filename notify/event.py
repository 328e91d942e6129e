"""The event that is told: a plain value, and its text made safe to store and show."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from jobs.redaction import redact
from notify import topics
from notify.exceptions import InvalidEvent
from notify.models.notification import GROUP_KEY_MAX_LENGTH, TITLE_MAX_LENGTH

BODY_LIMIT = 8_000
"""Characters kept of a body: its beginning and its end."""

DATA_LIMIT = 16_384
"""The most bytes of JSON in ``data``."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """How events of one kind are told as one in the inbox, which counts them.

    An event joins the notification of the same ``key`` that its recipient was given no longer than ``window`` ago. From
    the second on the title is their number and ``title``, and ``url``, a path on this site, leads to all of them.
    """

    key: str
    window: dt.timedelta
    title: str
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One thing that happened. ``title`` is one line, ``body`` plain text.

    ``data`` is a JSON object for programs; its ``url``, a path on this site, becomes a link in the inbox. In-app
    notifications go to ``recipients``; webhooks go to every endpoint that has the topic. ``group`` None: each is told
    by itself.
    """

    topic: str
    recipients: Iterable[AbstractBaseUser]
    title: str
    body: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    group: Group | None = None

    def checked(self) -> Event:
        """The same event, each recipient once, and its texts without credentials and within their limits.

        Raises :class:`~notify.exceptions.UnknownTopic`, and :class:`~notify.exceptions.InvalidEvent` for data
        that is not JSON or too large.
        """
        return replace(
            self,
            topic=topics.topic(self.topic).name,
            recipients=list({user.pk: user for user in self.recipients}.values()),
            title=_title(self.title),
            body=_head_and_tail(_clean(self.body), BODY_LIMIT),
            data=_checked_data(self.data),
            group=self.group and _checked_group(self.group),
        )


def _checked_group(group: Group) -> Group:
    if not 0 < len(group.key) <= GROUP_KEY_MAX_LENGTH or "\x00" in group.key:
        raise InvalidEvent(
            f"group.key: from 1 to {GROUP_KEY_MAX_LENGTH} characters and no NUL, got {group.key!r}"
        )
    return replace(group, title=_title(group.title))


def _title(text: str) -> str:
    return _shortened(" ".join(_clean(text).split()), TITLE_MAX_LENGTH)


def _clean(text: str) -> str:
    """``text`` as PostgreSQL can store it, without credentials."""
    storable = text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return redact(storable.encode(errors="backslashreplace").decode())


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _head_and_tail(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def _checked_data(data: Mapping[str, Any]) -> dict[str, Any]:
    try:
        cleaned = _cleaned(dict(data))
        size = len(json.dumps(cleaned, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidEvent(f"data: must be a JSON object: {error}") from None
    if size > DATA_LIMIT:
        raise InvalidEvent(
            f"data: {size:,} bytes of JSON, at most {DATA_LIMIT:,} are accepted"
        )
    return cleaned  # type: ignore[no-any-return]


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"key {key!r} must be a string")
        return {_clean(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return value
