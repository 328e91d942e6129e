from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator

import pytest

from jobs import hangs
from jobs.connection import QueueConnection
from jobs.crew import Crew
from jobs.enqueue import enqueue
from jobs.leases import LeasedJob
from jobs.models import Job, Status
from jobs.outcomes import COMPLETED, NOT_BEGUN, Outcome, dead
from jobs.pool import Pool
from jobs.selection import Queues
from jobs.testing import PATIENCE
from jobs.thread import WorkerThread
from tests.jobs.support import claim_one, leased_job

# A thread closes its connections when it ends.
pytestmark = pytest.mark.django_db

TIMED_OUT = dead("timed out")


class Crewed:
    """A crew whose threads do nothing until they are let go; which of them hang, the test says."""

    def __init__(self, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.hang: dict[str, LeasedJob] = {}
        self.start: bool = True
        self._pool = Pool(
            worker="w1",
            threads=1,
            queues=Queues(["default"]),
            lease=dt.timedelta(minutes=5),
        )
        self.crew = Crew(self._make, size)
        monkeypatch.setattr(hangs, "fail", self._fail)
        for thread in self.crew.working:
            thread.start()

    def _make(self, number: int) -> WorkerThread:
        thread = WorkerThread(self._pool, number)
        thread._work = self.go.wait  # type: ignore[method-assign, assignment]
        if not self.start:
            thread.start = self._refused  # type: ignore[method-assign]
        return thread

    def _refused(self) -> None:
        raise RuntimeError("can't start new thread")

    def _fail(self, thread: WorkerThread) -> tuple[LeasedJob, Outcome] | None:
        job = self.hang.pop(thread.name, None)
        return None if job is None else (job, TIMED_OUT)

    def hangs(self, *threads: WorkerThread) -> list[tuple[LeasedJob, Outcome]]:
        self.hang = {thread.name: leased_job() for thread in threads}
        return self.crew.write_off_hanging(replace=True)


@pytest.fixture
def crewed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Crewed]:
    crewed = Crewed(2, monkeypatch)
    yield crewed
    crewed.go.set()


def names(crew: Crew) -> list[str]:
    return [thread.name for thread in crew.working]


def test_a_thread_that_hangs_is_replaced_at_once(crewed: Crewed) -> None:
    crew = crewed.crew
    first, _ = before = crew.working
    waiting = [leased_job(), leased_job()]
    first._waiting.extend(waiting)
    (failed, *released) = crewed.hangs(first)
    assert failed[1] is TIMED_OUT
    assert sorted(job.id for job, _ in released) == sorted(job.id for job in waiting)
    assert {outcome for _, outcome in released} == {NOT_BEGUN}
    assert names(crew) == ["acw-worker-2", "acw-worker-3"]
    assert all(thread.is_alive() for thread in crew.working)
    assert crew.hanging() == 1
    # Who was just looking at the threads is not disturbed.
    assert [thread.name for thread in before] == ["acw-worker-1", "acw-worker-2"]


def test_while_the_process_stops_nobody_is_put_in_its_place(crewed: Crewed) -> None:
    (first, second) = crewed.crew.working
    crewed.hang = {first.name: leased_job()}
    crewed.crew.write_off_hanging(replace=False)
    assert crewed.crew.working == [second]


def test_too_many_are_as_many_as_were_to_work(crewed: Crewed) -> None:
    crew = crewed.crew
    crewed.hangs(crew.working[0])
    assert not crew.has_lost_too_many()
    crewed.hangs(crew.working[0])
    assert crew.has_lost_too_many()
    # Those that came back are not lost.
    crewed.go.set()
    for thread in crew._written_off:
        thread.join(PATIENCE)
    assert crew.hanging() == 0
    assert not crew.has_lost_too_many()


def test_a_crew_of_one_may_lose_one(monkeypatch: pytest.MonkeyPatch) -> None:
    crewed = Crewed(1, monkeypatch)
    crewed.hangs(*crewed.crew.working)
    assert not crewed.crew.has_lost_too_many()
    crewed.hangs(*crewed.crew.working)
    assert crewed.crew.has_lost_too_many()
    crewed.go.set()


def test_one_that_cannot_be_replaced_is_one_too_many(crewed: Crewed) -> None:
    crewed.start = False
    first, second = crewed.crew.working
    crewed.hangs(first)
    assert crewed.crew.working == [second]
    assert crewed.crew.has_lost_too_many()


def test_it_lives_for_as_long_as_one_of_its_threads(crewed: Crewed) -> None:
    crew = crewed.crew
    (first, second) = crew.working
    crewed.hang = {thread.name: leased_job() for thread in (first, second)}
    crew.write_off_hanging(replace=False)
    assert crew.working == []
    assert crew.is_alive()
    crewed.go.set()
    for thread in (first, second):
        thread.join(PATIENCE)
    assert not crew.is_alive()


def test_what_was_executed_counts_whoever_did_it(crewed: Crewed) -> None:
    first, second = crewed.crew.working
    first.done.add(leased_job(), COMPLETED)
    second.done.written = 3
    assert crewed.crew.executed() == 4
    crewed.hangs(first)
    # And the one that it hangs in, which is failed.
    assert crewed.crew.executed() == 5


@pytest.mark.django_db(transaction=True)
def test_what_a_written_off_thread_had_done_before_is_held_and_written(
    crewed: Crewed, queue_connection: QueueConnection, noop: str
) -> None:
    crew = crewed.crew
    (first, _) = crew.working
    enqueue(noop)
    job = claim_one(queue_connection)
    first.done.add(job, COMPLETED)
    crewed.hangs(first)
    assert crew.held() == [job]
    assert crew.has_unwritten()
    crew.flush_written_off(queue_connection)
    assert Job.objects.get().status == Status.COMPLETED
    assert crew.held() == []
    assert not crew.has_unwritten()
    # It still hangs, and is counted; once it has come back it is forgotten.
    assert crew._written_off == [first]
    crewed.go.set()
    first.join(PATIENCE)
    crew.flush_written_off(queue_connection)
    assert crew._written_off == []
