"""What is told of a change, and to whom: as the transition's row says, to all concerned but who did it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from jobs.redaction import redact
from notify.dispatch import Event, dispatch
from notify.links import admin_page
from notify.recipients import owner_or_admins
from notify.topics import Topic
from workspaces.tasks import agents, topics
from workspaces.tasks.change import Change
from workspaces.tasks.models import Agent, Task
from workspaces.tasks.states import Status, Template
from workspaces.tasks.transition import Party

TEXT_KEPT = 300
"""Characters kept of a reason or note in an event's data."""


def tell(change: Change) -> None:
    """Dispatch the event of the change's row, in the transaction that is open.

    A transfer that comes to nothing because the task goes elsewhere is told as well, to whom it was offered.
    """
    topic = change.row.topic
    if topic is not None:
        _dispatch(topic, change, change.row.tells)
    if change.transfer is not None and change.leaves:
        _dispatch(topics.TRANSFER_ENDED, change, (Party.OFFERED,))


def _dispatch(topic: Topic, change: Change, parties: Iterable[Party]) -> None:
    dispatch(
        Event(
            topic=topic.name,
            recipients=_recipients(change, parties),
            title=title(topic, change.task),
            body="\n".join(_lines(change)),
            data={
                **about(change.task),
                "by": str(change.by),
                **{key: _shortened(value) for key, value in change.data.items()},
            },
        )
    )


def title(topic: Topic, task: Task) -> str:
    """The line under which an event about the task is shown."""
    return f"{topic.title}: {task.title}"


def about(task: Task) -> dict[str, Any]:
    """What the data of every event about a task says of it."""
    return {
        "url": admin_page(task),
        "task_id": task.pk,
        "title": task.title,
        "template": task.template,
        "status": task.status,
        "publisher": str(task.publisher),
        "holder": str(task.holder) if task.holder is not None else None,
    }


def _shortened(value: Any) -> Any:
    """What an event's data has room for in any script; the body says all of it."""
    if not isinstance(value, str) or len(value) <= TEXT_KEPT:
        return value
    # Before the cut: a URL that is parted at its password is no longer known for one.
    return f"{redact(value)[: TEXT_KEPT - 1]}…"


def _recipients(change: Change, parties: Iterable[Party]) -> list[AbstractBaseUser]:
    # Whoever does something knows of it.
    acting = change.by.agent.pk if change.by.agent is not None else None
    told = [agent for party in parties for agent in _agents(party, change)]
    # Each once: of a contest's many entrants, many may have nobody but the admins.
    users = dict.fromkeys(agents.behind(agent) for agent in told if agent.pk != acting)
    return [user for one in users for user in owner_or_admins(one)]


def _agents(party: Party, change: Change) -> Iterable[Agent]:
    match party:
        case Party.PUBLISHER:
            return [change.task.publisher]
        case Party.FORMER:
            return [change.former] if change.former is not None else []
        case Party.OFFERED:
            return [change.transfer.to_agent] if change.transfer is not None else []
        case Party.ENTRANTS:
            return [entry.agent for entry in change.entries]


def _lines(change: Change) -> Iterable[str]:
    task, data = change.task, change.data
    yield f"{change.by} did: {change.action}. The task is {task.status} now."
    if "from" in data:
        became = data.get("transfer", "offered")
        yield f"Transfer from {data['from']} to {data['to']}: {became}."
    if data.get("note"):
        yield f"Note: {data['note']}"
    if "winner" in data:
        yield f"Winner: {data['winner']}, with submission {data['submission_id']}."
    if "misses" in data:
        yield f"Checkpoints missed in a row: {data['misses']}; number {task.final_miss} costs the task."
    if "returns" in data:
        yield f"Given back {data['returns']} times; it may be {task.returns_allowed} times."
    if data.get("reason"):
        yield f"Reason: {data['reason']}"
    yield from _times(task)


def _times(task: Task) -> Iterable[str]:
    """The deadlines that count now."""
    if task.status == Status.OPEN:
        ends = "It closes" if task.template == Template.CONTEST else "It can be taken"
        yield f"{ends} {_until(task.open_until)}."
    if task.status == Status.HELD:
        yield f"It is held {_until(task.hold_until)}."
        if task.checkpoint_due_at is not None:
            yield f"The next checkpoint is due {_until(task.checkpoint_due_at)}."
    if task.transfer_until is not None:
        yield f"The transfer can be answered {_until(task.transfer_until)}."
    if task.status == Status.REVIEWING:
        yield f"It is to be decided {_until(task.review_until)}."


def _until(at: dt.datetime | None) -> str:
    return f"until {at:%Y-%m-%d %H:%M:%S %Z}" if at is not None else "without end"
