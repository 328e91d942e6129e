"""Pieces of HTML for the admin's pages of this app. What comes in was written by agents and remotes: it is made visible and escaped here."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from jobs.display import duration, seen
from jobs.markup import NOTHING
from jobs.redaction import redact
from workspaces import job_types

KINDS = {
    "commits": "Commits that are not pushed",
    "loose": "Commits on no branch",
    "changed": "Uncommitted changes",
    "untracked": "Untracked files",
    "ignored": "Ignored files",
    "hidden": "Files that git is told not to compare",
    "nested": "Repositories inside",
    "stashes": "Stashes",
    "recreatable": "Caches that can be made again, which are left out",
}
"""What :meth:`workspaces.pruning.contents.Contents.as_data` lists, as headings."""


_FEW = 5
"""So many names are shown without a click."""


def shown(text: str) -> str:
    """The text without credentials, each character that cannot be seen replaced by one that can."""
    return seen(redact(text))


def clamped(text: str) -> SafeString | str:
    """A name in a list, on two lines at most; the pointer shows all of it."""
    text = shown(text)
    if not text:
        return NOTHING
    return format_html('<span class="clamped" title="{}">{}</span>', text, text)


def moment(at: dt.datetime | None) -> SafeString | str:
    """A time to the minute; for programs and pointers in full."""
    if at is None:
        return NOTHING
    local = localtime(at)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(),
        local.isoformat(" ", "seconds"),
        local.strftime("%Y-%m-%d %H:%M %Z"),
    )


def since(at: dt.datetime | None, now: dt.datetime) -> SafeString | str:
    """How long ago it was: ``3h 20m ago``; the pointer shows when."""
    if at is None:
        return NOTHING
    return _pointed(at, f"{duration(max(now - at, dt.timedelta(0)))} ago")


def until(at: dt.datetime | None, now: dt.datetime) -> SafeString | str:
    """How long until then: ``in 3d 2h``, or ``due``; the pointer shows when."""
    if at is None:
        return NOTHING
    return _pointed(at, f"in {duration(at - now)}" if at > now else "due")


def _pointed(at: dt.datetime, words: str) -> SafeString:
    local = localtime(at)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(),
        local.strftime("%Y-%m-%d %H:%M:%S %Z"),
        words,
    )


def size(count: int | None) -> str:
    """A number of bytes, as people read it."""
    return NOTHING if count is None else filesizeformat(count)


def sampled(
    count: int | None, at: dt.datetime | None, now: dt.datetime
) -> SafeString | str:
    """A number of bytes, and how long ago it was counted: it may have changed since."""
    if count is None or at is None:
        return size(count)
    return format_html('{} <span class="aside">{}</span>', size(count), since(at, now))


def aside(text: str) -> SafeString | str:
    """A remark on a line of its own; "" for none."""
    return format_html('<span class="aside">{}</span>', text) if text else ""


def link(page: str, key: object, text: object) -> SafeString:
    """To the page of a row, ``workspaces_worktree`` say, in the admin."""
    url = reverse(f"admin:{page}_change", args=[key])
    return format_html('<a href="{}">{}</a>', url, shown(str(text)))


def listed(page: str, text: str, **query: object) -> SafeString:
    """To the list of a table, filtered."""
    url = reverse(f"admin:{page}_changelist", query=query)
    return format_html('<a href="{}">{}</a>', url, text)


def of_worktree(key: int, *, archives: str) -> SafeString:
    """To what there is of the worktree with this ID and of no other: ``archives`` says which those are, ledger and jobs.

    By the column and not by a search, which takes the number for an ID of anything.
    """
    jobs = format_html_join(
        ", ",
        "{}",
        (
            (listed("jobs_job", name.rpartition(".")[2], q=key, type=name),)
            for name in job_types.OF_WORKTREES
        ),
    )
    return format_html(
        "{}, {}, jobs: {}",
        listed("workspaces_worktreearchive", archives, worktree_id__exact=key),
        listed("workspaces_ledgerentry", "its ledger", worktree_id__exact=key),
        jobs,
    )


def host(name: str) -> SafeString:
    """To what is known of the host's data directory."""
    return listed("workspaces_workspacehost", shown(name), q=name)


def contents(data: Mapping[str, Any]) -> SafeString | str:
    """What a worktree has, from what ``Contents.as_data()`` says, whichever part of that is there."""
    parts = [
        format_html('<p class="found">{}</p>', shown(text))
        for text in (*_texts(data.get("unchecked")), *_progress(data))
    ]
    for kind, heading in KINDS.items():
        found = data.get(kind)
        if isinstance(found, Mapping) and found.get("count"):
            parts.append(_kind(heading, found))
    if not parts:
        parts.append(
            format_html(
                '<p class="found">{}</p>',
                "Nothing that is nowhere else: all of it is committed and pushed.",
            )
        )
    total, again = data.get("size_bytes"), data.get("recreatable_bytes")
    if isinstance(total, int):
        told = size(total)
        if isinstance(again, int) and again:
            told += f", of which {size(again)} can be made again"
        parts.append(format_html('<p class="aside">{}</p>', told))
    return format_html_join("", "{}", ((part,) for part in parts))


def _progress(data: Mapping[str, Any]) -> list[str]:
    return [f"{what} in progress" for what in _texts(data.get("operations"))]


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, Sequence) else []


def _kind(heading: str, found: Mapping[str, Any]) -> SafeString:
    names = _texts(found.get("names"))
    left_out = int(found["count"]) - len(names)
    few = len(names) <= _FEW
    opening = "<details open>" if few else "<details>"
    return format_html(
        opening + "<summary>{}: {}</summary><ul>{}</ul>{}</details>",
        heading,
        f"{int(found['count']):,}",
        format_html_join("", "<li>{}</li>", ((shown(name),) for name in names)),
        aside(f"and {left_out:,} more") if left_out > 0 else "",
    )
