"""What ``manage.py task list`` and ``show`` ask of the database."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Collection
from typing import Any

from django.db.models import Model, Q, QuerySet

from workspaces.tasks import outlook, transfers
from workspaces.tasks.display import listed, redacted
from workspaces.tasks.exceptions import UnknownTask
from workspaces.tasks.models import (
    Agent,
    Checkpoint,
    Submission,
    Task,
    TaskEvent,
    Transfer,
)
from workspaces.tasks.querysets import TaskQuerySet

_DURATIONS = ("open_for", "hold_for", "checkpoint_every", "review_for")
_COUNTS = ("misses", "final_miss", "returns", "returns_allowed")


def tasks(
    *,
    statuses: Collection[str] = (),
    template: str | None = None,
    of: Agent | None = None,
    oldest_first: bool = False,
) -> TaskQuerySet:
    """The tasks that fit, newest first if nothing else is said; ``of`` an agent: those that it holds, has published or is offered."""
    found = Task.objects.with_people().with_transfers().select_related("workspace")
    if statuses:
        found = found.filter(status__in=statuses)
    if template:
        found = found.filter(template=template)
    if of is not None:
        offered = Transfer.objects.filter(
            to_agent=of, status=Transfer.State.PENDING
        ).values("task_id")
        found = found.filter(Q(holder=of) | Q(publisher=of) | Q(pk__in=offered))
    return found.order_by("pk" if oldest_first else "-pk")


def shown(task_id: int, *, limit: int, now: dt.datetime) -> dict[str, Any]:
    """All that is known about a task, at most ``limit`` rows (the newest) of each kind. Raises UnknownTask."""
    task = tasks().select_related("worktree__workspace").filter(pk=task_id).first()
    if task is None:
        raise UnknownTask(f"there is no task {task_id}")
    transfer = transfers.pending(task)
    said = {
        **listed(task),
        "description": task.description,
        "checklist": task.checklist,
        "worktree": _worktree(task),
        **{name: getattr(task, name) for name in (*_DURATIONS, *_COUNTS)},
        "deadlines": [
            dataclasses.asdict(one) for one in outlook.expected(task, now=now)
        ],
        "transfer": _transfer(transfer) if transfer is not None else None,
    }
    for name, (rows, as_json) in _parts(task).items():
        count = rows.count()
        newest = rows.order_by("-pk")[:limit]
        said[name] = [as_json(row) for row in reversed(newest)]
        said[f"earlier_{name}"] = max(count - limit, 0)
    return {name: redacted(value) for name, value in said.items()}


def _parts(
    task: Task,
) -> dict[str, tuple[QuerySet[Any], Callable[[Any], dict[str, Any]]]]:
    return {
        "submissions": (_of(Submission, task), _submission),
        "checkpoints": (_of(Checkpoint, task), _checkpoint),
        "history": (TaskEvent.objects.filter(task=task), _event),
    }


def _of(model: type[Model], task: Task) -> QuerySet[Any]:
    return model._default_manager.filter(task=task).select_related("agent__user")


def _worktree(task: Task) -> dict[str, Any] | None:
    worktree = task.worktree
    if worktree is None:
        return None
    return {
        "id": worktree.pk,
        "path": worktree.path,
        "branch": worktree.branch,
        "host": worktree.workspace.host,
    }


def _transfer(transfer: Transfer) -> dict[str, Any]:
    return {
        "id": transfer.pk,
        "from": str(transfer.from_agent),
        "to": str(transfer.to_agent),
        "note": transfer.note,
        "created_at": transfer.created_at,
        "expires_at": transfer.expires_at,
    }


def _submission(row: Submission) -> dict[str, Any]:
    return {
        "id": row.pk,
        "agent": str(row.agent),
        "text": row.text,
        "reference": row.reference,
        "done": row.done,
        "decision": row.decision,
        "reason": row.reason,
        "created_at": row.created_at,
        "decided_at": row.decided_at,
    }


def _checkpoint(row: Checkpoint) -> dict[str, Any]:
    return {
        "id": row.pk,
        "agent": str(row.agent),
        "note": row.note,
        "created_at": row.created_at,
    }


def _event(row: TaskEvent) -> dict[str, Any]:
    return {
        "action": row.action,
        "actor": row.actor,
        "source": row.source,
        "target": row.target,
        "data": row.data,
        "created_at": row.created_at,
    }
