"""What tests plug in: a judge that takes the first entry, an arbiter who is for the holder; tests put others in their place."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Sequence

from django.utils import timezone

from jobs.context import JobContext
from workspaces.tasks.arbiter import Case, Opinion
from workspaces.tasks.judge import ContestTask, Entry, Verdict

JUDGE = f"{__name__}.judge"
ARBITER = f"{__name__}.arbiter"


def judge(
    task: ContestTask, checklist: Sequence[str], entries: Sequence[Entry]
) -> Verdict:
    return Verdict(winner=entries[0].id, reasons="it came first")


def arbiter(case: Case) -> Opinion:
    return Opinion(text="All of it is done.", favours="holder")


async def coroutine(*_: object) -> None:
    """Nothing that the worker can call."""


def context(*, job_type: str = "review_auto_accept", late: bool = False) -> JobContext:
    """An execution, which has gone on past its time where it is ``late``."""
    return JobContext(
        job_id=uuid.uuid4(),
        type=job_type,
        ref_id=None,
        queue="default",
        attempt=1,
        max_attempts=5,
        lease_seq=1,
        enqueued_at=timezone.now(),
        timeout=dt.timedelta(minutes=10),
        started=time.monotonic() - (601 if late else 0),
    )
