"""Telling events and running their deliveries, for tests of how these flow."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.utils import timezone

from jobs.models import Job, Status
from jobs.pool import Pool
from jobs.selection import Queues
from jobs.testing import PATIENCE, run_due_jobs
from notify.dispatch import Event, dispatch
from notify.models import WebhookEndpoint
from tests.notify.factories import TOPIC


def tell(count: int = 1, *, topic: str = TOPIC, **data: Any) -> None:
    """So many events."""
    for number in range(count):
        dispatch(Event(topic=topic, recipients=[], title=f"Event {number}", data=data))


def run_again_now() -> list[Job]:
    """Run what waits, as if its time had come."""
    Job.objects.filter(status=Status.PENDING).update(run_at=timezone.now())
    return run_due_jobs()


def statuses() -> list[tuple[str, int]]:
    """Of all jobs, in the order of their events: the status, and the attempts used up."""
    return list(Job.objects.order_by("id").values_list("status", "attempts"))


def until_passes(**values: Any) -> None:
    """Let the time come at which one delivery may try."""
    WebhookEndpoint.objects.update(breaker_until=timezone.now(), **values)


@contextmanager
def running_pool(threads: int) -> Iterator[Pool]:
    """A worker's threads at work on deliveries."""
    pool = Pool(
        worker="w1",
        threads=threads,
        queues=Queues(["webhooks"]),
        lease=dt.timedelta(minutes=5),
    )
    pool.start()
    try:
        yield pool
    finally:
        pool.stop()
        assert pool.join(time.monotonic() + PATIENCE)
        pool.close()
