from __future__ import annotations

import datetime as dt

import pytest

from jobs.connection import QueueConnection
from jobs.models import WorkerProcess
from jobs.pool import Pool
from jobs.presence import Presence
from jobs.selection import Queues


@pytest.fixture
def presence(transactional_db: None) -> Presence:
    lease = dt.timedelta(minutes=5)
    return Presence(Pool(worker="w1", threads=3, queues=Queues(["a"]), lease=lease))


def test_the_row_says_what_it_serves_and_what_has_stalled(
    presence: Presence, queue_connection: QueueConnection, noop: str
) -> None:
    presence.announce(queue_connection)
    row = WorkerProcess.objects.get()
    assert (row.name, row.threads, row.queues, row.stalled) == ("w1", 3, ["a"], [])
    assert noop in row.types
    presence.stalled = ("acw-listener",)
    presence.announce(queue_connection)
    again = WorkerProcess.objects.get()
    assert again.stalled == ["acw-listener"]
    assert again.beat_at > row.beat_at


def test_whoever_has_signed_off_does_not_come_back(
    presence: Presence, queue_connection: QueueConnection
) -> None:
    presence.announce(queue_connection)
    presence.sign_off(queue_connection)
    assert not WorkerProcess.objects.exists()
    presence.announce(queue_connection)
    assert not WorkerProcess.objects.exists()
