"""Pieces of HTML for the admin's pages of this app. What comes in is escaped here, and what cannot be seen in it made visible."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from jobs.display import first_line, seen

NOTHING = "-"

_GOOD = frozenset({"completed", "alive", "on schedule"})
_BAD = frozenset({"dead", "failed", "lost", "overdue", "stalled"})
_BUSY = frozenset({"running", "stopping", "asked to stop"})


def badge(state: str, word: str = "") -> SafeString:
    """The state as a word, or ``word`` in its place, on a colour that goes with it."""
    word = word or state
    for kind, states in (("good", _GOOD), ("bad", _BAD), ("busy", _BUSY)):
        if state in states:
            return format_html('<span class="state state-{}">{}</span>', kind, word)
    return format_html('<span class="state">{}</span>', word)


def block(text: str) -> SafeString | str:
    """Text as it was written, with its lines."""
    return format_html('<pre class="text">{}</pre>', seen(text)) if text else NOTHING


def cut(text: str) -> SafeString | str:
    """The first line, short; the rest shows when the pointer is over it."""
    text = seen(text)
    line = first_line(text)
    if not line:
        return NOTHING
    return format_html('<span class="cut" title="{}">{}</span>', text, line)


def folded(summary: str, text: str) -> SafeString:
    """Text that opens on a click."""
    if not text:
        return mark_safe("")
    return format_html(
        '<details><summary>{}</summary><pre class="text">{}</pre></details>',
        summary,
        seen(text),
    )
