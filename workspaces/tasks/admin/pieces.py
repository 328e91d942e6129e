"""Pieces of HTML for the admin's pages of tasks. What comes in was written by others: it is redacted and escaped here."""

from __future__ import annotations

import datetime as dt

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from jobs.display import duration, first_line, seen
from jobs.markup import NOTHING
from jobs.redaction import redact
from workspaces.tasks.models import Agent
from workspaces.tasks.overdue import GRACE

FOLDED_FROM = 400
"""Characters from which a text is folded."""

_FOLDED_LINES = 8
_TITLE_SHOWN = 80

_GOOD = frozenset({"accepted"})
_BAD = frozenset({"missing", "dead", "overdue", "rejected", "expired", "closed"})
_BUSY = frozenset({"held", "reviewing", "running"})


def badge(state: str) -> SafeString:
    """The state as a word on a colour that goes with it."""
    for kind, states in (("good", _GOOD), ("bad", _BAD), ("busy", _BUSY)):
        if state in states:
            return format_html('<span class="state state-{}">{}</span>', kind, state)
    return format_html('<span class="state">{}</span>', state)


def shown(text: str) -> str:
    """The text without credentials, each character that cannot be seen replaced by one that can."""
    return seen(redact(text))


def title(text: str) -> str:
    """A title as one line, short enough for a heading."""
    return first_line(shown(text), _TITLE_SHOWN) or NOTHING


def words(text: str) -> SafeString | str:
    """Text with its lines; a long one opens on a click."""
    text = shown(text)
    if not text:
        return NOTHING
    if len(text) <= FOLDED_FROM and text.count("\n") < _FOLDED_LINES:
        return format_html('<div class="words">{}</div>', text)
    return format_html(
        '<details><summary>{} <span class="size">({} characters)</span></summary><pre class="text">{}</pre></details>',
        first_line(text),
        f"{len(text):,}",
        text,
    )


def moment(at: dt.datetime | None) -> SafeString | str:
    """A time to the second; for programs and pointers in full."""
    if at is None:
        return NOTHING
    local = localtime(at)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(),
        local.isoformat(" ", "milliseconds"),
        local.strftime("%Y-%m-%d %H:%M:%S %Z"),
    )


def distance(at: dt.datetime, now: dt.datetime) -> SafeString | str:
    """How long until then, or that the time is over and since when; a job has a moment to act on it before that is amiss."""
    if at > now:
        return f"in {duration(at - now)}"
    if now - at <= GRACE:
        return "due now"
    return format_html("{} since {}", badge("overdue"), duration(now - at))


def agent(who: Agent | None) -> SafeString | str:
    """An agent by name, and whether it may not act."""
    if who is None:
        return NOTHING
    name = shown(str(who))
    return name if who.may_act else format_html("{} {}", name, badge("disabled"))
