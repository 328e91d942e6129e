"""The history of a task as it is read: who did what when, where that has led, and with which words."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from workspaces.tasks.admin.pieces import badge, shown, words
from workspaces.tasks.admin.wording import DONE
from workspaces.tasks.models import Task, TaskEvent

SHOWN = 200

_LABELS = {
    "from": "from",
    "to": "to",
    "winner": "winner",
    "submission_id": "submission",
    "misses": "missed in a row",
    "returns": "times given back",
    "transfer": "the offer was",
    "worktree_id": "worktree",
    "worktree_released": "released worktree",
    "note": "note",
    "reason": "reason",
}
"""What the data of an event is called, in the order in which it is read; anything else follows."""

_NOT_SHOWN = {"transfer_id"}


@dataclass(frozen=True, kw_only=True)
class Happening:
    """One thing that was done. ``source`` is None before the task was there."""

    at: dt.datetime
    who: str
    what: str
    action: str
    source: str | None
    target: str
    facts: list[tuple[str, SafeString | str]]

    @property
    def moved(self) -> bool:
        return self.source != self.target

    @property
    def source_badge(self) -> SafeString:
        return badge(self.source or "")

    @property
    def target_badge(self) -> SafeString:
        return badge(self.target)


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The newest come first; ``left_out`` says that there are earlier ones."""

    happenings: list[Happening]
    left_out: bool


def timeline(task: Task) -> Timeline:
    """The newest ``SHOWN`` of what was done to the task."""
    newest = TaskEvent.objects.filter(task=task.pk).order_by("-pk")[: SHOWN + 1]
    rows = list(newest)
    return Timeline(
        happenings=[_happening(row) for row in rows[:SHOWN]],
        left_out=len(rows) > SHOWN,
    )


def _happening(row: TaskEvent) -> Happening:
    return Happening(
        at=row.created_at,
        who=shown(row.actor),
        what=DONE.get(row.action, row.action.replace("_", " ")),
        action=row.action,
        source=row.source,
        target=row.target,
        facts=list(_facts(row.data)),
    )


def _facts(data: Any) -> Iterator[tuple[str, SafeString | str]]:
    if not isinstance(data, Mapping):
        yield "data", words(_text(data))
        return
    known = [name for name in _LABELS if name in data]
    for name in dict.fromkeys([*known, *data]):
        if name not in _NOT_SHOWN and data[name] not in (None, ""):
            label = _LABELS.get(name, name.replace("_", " "))
            yield shown(label), words(_text(data[name]))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
