"""The jobs of this app: their names and payloads, and how one is asked for."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from jobs.enqueue import NewJob
from workspaces.tasks.states import Action

LEASE = dt.timedelta(seconds=60)
MAX_ATTEMPTS = 5
BACKOFF_BASE = dt.timedelta(seconds=30)
JUDGING = "judging"
"""The queue of what waits for a judge or an arbiter, so that a worker of its own may do that."""

ARBITRATION_OPINION = "arbitration_opinion"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadlinePayload:
    """``deadline`` is the time that the job was made for, in ISO 8601: for people, and whatever stands there, it decides nothing."""

    deadline: Any = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpinionPayload:
    """``asked_by`` is the name of the agent who wants to know, ``words`` what they say about it."""

    submission_id: int
    asked_by: str
    words: str = ""


def deadline_job(
    action: Action, task_id: int, at: dt.datetime, *, judged: bool = False
) -> NewJob:
    """The job that acts on one deadline of one task: there is never more than one of it. ``judged`` by a judge."""
    return NewJob(
        type=action.value,
        payload=DeadlinePayload(deadline=written(at)),
        ref_id=task_id,
        run_at=at,
        unique_key=key(action, task_id, at),
        queue=JUDGING if judged else None,
    )


def key(action: Action, task_id: int, at: dt.datetime) -> str:
    """The unique key of the job for this deadline."""
    return f"{action}:{task_id}:{written(at)}"


def written(at: dt.datetime) -> str:
    """A deadline as text, the same for the same moment in whatever time zone it comes."""
    return at.astimezone(dt.UTC).isoformat()


def opinion_job(task_id: int, payload: OpinionPayload) -> NewJob:
    """The job that asks the arbiter about one rejection: there is never more than one of it."""
    return NewJob(
        type=ARBITRATION_OPINION,
        payload=payload,
        ref_id=task_id,
        unique_key=f"{ARBITRATION_OPINION}:{payload.submission_id}",
    )
