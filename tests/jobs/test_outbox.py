from __future__ import annotations

import threading

import psycopg
import pytest

from jobs import outcomes
from jobs.leases import LeasedJob
from jobs.outbox import Outbox
from jobs.outcomes import Outcome
from jobs.testing import PATIENCE
from tests.jobs.support import leased_job

Entries = list[tuple[LeasedJob, Outcome]]


class Nowhere:
    """A connection that is never used: the write is replaced."""

    def execute(self, query: str, parameters: object) -> list[object]:
        raise AssertionError(query)


def test_what_is_written_is_gone_and_what_is_not_waits_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = leased_job(), leased_job()
    outbox = Outbox("w1")
    assert not outbox
    assert outbox.age() == 0
    outbox.add(first, outcomes.COMPLETED)
    outbox.add(second, outcomes.dead("x"))

    def write_one(
        connection: object, finished: Entries, **_: object
    ) -> list[LeasedJob]:
        del finished[0]
        raise psycopg.OperationalError("gone")

    with monkeypatch.context() as patched:
        patched.setattr("jobs.outbox.write", write_one)
        with pytest.raises(psycopg.OperationalError):
            outbox.flush(Nowhere())
    assert outbox.jobs() == [second]
    assert outbox.age() > 0


def test_adding_and_looking_never_wait_for_a_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(connection: object, finished: Entries, **_: object) -> list[LeasedJob]:
        begun.set()
        go.wait(PATIENCE)
        finished.clear()
        return []

    monkeypatch.setattr("jobs.outbox.write", slow)
    outbox = Outbox("w1")
    first, second = leased_job(), leased_job()
    outbox.add(first, outcomes.COMPLETED)
    writer = threading.Thread(target=outbox.flush, args=[Nowhere()])
    writer.start()
    assert begun.wait(PATIENCE)
    outbox.add(second, outcomes.COMPLETED)
    assert outbox.jobs() == [first, second]
    outbox.flush(Nowhere(), wait=False)
    go.set()
    writer.join(PATIENCE)
    assert outbox.jobs() == [second]


def test_it_counts_what_waits_and_what_has_been_dealt_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outbox = Outbox("w1")
    for _ in range(3):
        outbox.add(leased_job(), outcomes.COMPLETED)
    counts = [(len(outbox), outbox.written)]

    def write(connection: object, finished: Entries, **_: object) -> list[LeasedJob]:
        del finished[:2]
        return []

    monkeypatch.setattr("jobs.outbox.write", write)
    outbox.flush(Nowhere())
    counts.append((len(outbox), outbox.written))
    assert counts == [(3, 0), (1, 2)]
