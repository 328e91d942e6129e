"""The daily report: what became of tasks since the last one, and what waits for whom. In words, to every admin.

Each event of the history is counted in one report and in no other (:mod:`workspaces.tasks.settled`), whenever the
ticks come.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count

from notify.dispatch import Event, dispatch
from notify.recipients import admins
from workspaces.tasks import settled, topics, waiting
from workspaces.tasks.events import LogEvent
from workspaces.tasks.job_types import ARBITRATION_OPINION
from workspaces.tasks.models import TaskEvent, TaskReport
from workspaces.tasks.states import Action
from workspaces.tasks.waiting import Waiting

log = logging.getLogger(__name__)

HAPPENED: Mapping[str, str] = {
    Action.PUBLISH: "published",
    Action.REOPEN: "published again",
    Action.TAKE: "taken",
    Action.USE_WORKTREE: "worktrees chosen",
    Action.CHECKPOINT: "progress reports",
    Action.CHECKPOINT_WARN: "warnings before a checkpoint",
    Action.CHECKPOINT_MISS: "checkpoints missed",
    Action.OFFER_TRANSFER: "transfers offered",
    Action.ACCEPT_TRANSFER: "transfers accepted",
    Action.DECLINE_TRANSFER: "transfers declined",
    Action.WITHDRAW_TRANSFER: "transfers withdrawn",
    Action.TRANSFER_EXPIRE: "transfers that nobody answered",
    Action.GIVE_BACK: "given back by their holders",
    Action.HOLD_TIMEOUT: "lost by their holders, whose time ran out",
    Action.SUBMIT: "submissions",
    Action.CONTEST_CLOSE: "contests closed to entries",
    Action.REVIEW_WARN: "warnings before the end of a review",
    Action.ACCEPT: "accepted",
    Action.PICK_WINNER: "contests decided by their publishers",
    Action.REVIEW_AUTO_ACCEPT: "accepted on their publishers' silence, or by the judge",
    Action.REJECT: "rejected",
    ARBITRATION_OPINION: "opinions of the arbiter",
    Action.CANCEL: "cancelled",
    Action.OPEN_EXPIRE: "expired, since nobody took them",
}
"""What is said of each action, in this order; how many times stands before it."""


def report(stop: threading.Event) -> dict[str, int]:
    """Tell the admins, unless nothing happened and nothing waits.

    Returns whether it was ``reported``, how many ``events`` it counts, and how many tasks are ``live``. Raises what
    :func:`workspaces.tasks.settled.last_event` raises.
    """
    upto = settled.last_event(stop)
    if upto is None:
        return {"reported": 0, "events": 0, "live": 0}
    try:
        with transaction.atomic():
            happened, live = _tell(upto)
    except IntegrityError:
        if not TaskReport.objects.filter(upto_event__gte=upto).exists():
            raise
        # A tick beside this one has reported the same events.
        return {"reported": 0, "events": 0, "live": 0}
    events = sum(happened.values())
    reported = int(bool(events or live))
    if reported:
        log.info(LogEvent.REPORTED, extra={"events": events, "live": live})
    return {"reported": reported, "events": events, "live": live}


def _tell(upto: int) -> tuple[dict[str, int], int]:
    last = TaskReport.objects.order_by("pk").last()
    after = last.upto_event if last is not None else 0
    happened = _happened(after, upto)
    now = waiting.waiting()
    if happened:
        TaskReport.objects.create(after_event=after, upto_event=upto, happened=happened)
    if happened or now.live:
        since = f"{last.created_at:%Y-%m-%d %H:%M %Z}" if last is not None else None
        dispatch(_event(happened, now, since=since))
    return happened, now.live


def _happened(after: int, upto: int) -> dict[str, int]:
    """How often each action was done, in the order of :data:`HAPPENED`."""
    rows = TaskEvent.objects.filter(pk__gt=after, pk__lte=upto).order_by()
    counts = dict(rows.values_list("action").annotate(n=Count("*")))
    known = {action: counts.pop(action) for action in HAPPENED if action in counts}
    return {str(action): n for action, n in {**known, **counts}.items()}


def _event(happened: Mapping[str, int], now: Waiting, *, since: str | None) -> Event:
    data: dict[str, Any] = {
        "since": since,
        "happened": dict(happened),
        **now.as_dict(),
    }
    return Event(
        topic=topics.REPORT.name,
        recipients=admins(),
        title=f"{topics.REPORT.title}: {_title(happened, now)}",
        body="\n".join(_lines(happened, now, since)),
        data=data,
    )


def _title(happened: Mapping[str, int], now: Waiting) -> str:
    said = f"{sum(happened.values()):,} things done, {now.live:,} tasks under way"
    return f"{said}, {now.overdue:,} overdue" if now.overdue else said


def _lines(
    happened: Mapping[str, int], now: Waiting, since: str | None
) -> Iterator[str]:
    yield f"Since the report of {since}:" if since else "So far:"
    for action, n in happened.items():
        yield f"  {n:,} {HAPPENED.get(action, action)}"
    if not happened:
        yield "  nothing"
    yield ""
    yield from now.lines()
