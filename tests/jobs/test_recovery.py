from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from pytest_django import Settings

from jobs import claims, journal, leases, registry
from jobs.connection import QueueConnection
from jobs.journal import Journal, open_journal
from jobs.lease_lengths import LeaseLengths
from jobs.leases import LeasedJob
from jobs.models import Job, Status, WorkerProcess
from jobs.recovery import LOOK_EVERY, Recovery, recover
from jobs.signals import job_dead
from tests.jobs.support import add, claim_for

WORKER = "test-host:1:abc"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("noop"),
]


@pytest.fixture(autouse=True)
def data_dir(settings: Settings, tmp_path: Path) -> Path:
    settings.ACW_DATA_DIR = tmp_path
    settings.ACW_HOST = "test-host"
    return tmp_path


class Dying:
    """A worker with a journal, which ends when it is told to."""

    def __init__(self, connection: QueueConnection) -> None:
        made = open_journal(WORKER)
        assert made is not None
        self.journal: Journal = made
        slot = made.slot()
        assert slot is not None
        self.slot = slot
        self._connection = connection

    def claim(self, count: int, **fields: int) -> list[LeasedJob]:
        add(count, **fields)
        return claims.claim(self._connection, claim_for(WORKER))

    def die(self, crash: str = "") -> None:
        (path,) = journal.left_behind()
        data = path.read_bytes()
        self.journal.close()
        path.write_bytes(data)
        path.with_suffix(journal.CRASH_SUFFIX).write_text(crash)


@pytest.fixture
def dying(queue_connection: QueueConnection) -> Iterator[Dying]:
    made = Dying(queue_connection)
    yield made
    made.journal.close()


def row(job: LeasedJob) -> Job:
    return Job.objects.get(pk=job.id)


def test_each_job_gets_what_it_deserves(dying: Dying):
    done, begun, waiting = dying.claim(3)
    dying.slot.begin(done)
    dying.slot.done()
    dying.slot.begin(begun)
    WorkerProcess.objects.create(name=WORKER, host="test-host", pid=1, threads=1)
    dying.die()
    assert recover() == 3
    assert row(done).status == Status.COMPLETED
    assert row(done).last_error == ""
    assert (row(begun).status, row(begun).attempts) == (Status.PENDING, 1)
    assert row(begun).last_error.startswith(
        f"worker lost: {WORKER} ended while this job ran: without a word"
    )
    assert row(begun).run_at > row(begun).updated_at
    assert (row(waiting).status, row(waiting).attempts) == (Status.PENDING, 0)
    assert row(waiting).last_error == ""
    assert not WorkerProcess.objects.exists()
    assert recover() == 0


def test_the_traceback_of_a_fatal_signal_is_the_attempts(dying: Dying):
    (job,) = dying.claim(1)
    dying.slot.begin(job)
    dying.die("Fatal Python error: Segmentation fault\n\nCurrent thread: here\n")
    recover()
    assert row(job).last_error.endswith(": Fatal Python error: Segmentation fault")
    (attempt,) = row(job).attempt_set.all()
    assert "Current thread: here" in attempt.traceback
    assert attempt.worker == WORKER


def test_with_its_last_attempt_it_goes_dead_and_that_is_told(dying: Dying):
    heard = []

    def hear(job: Job, **facts: object) -> None:
        heard.append(job.pk)

    job_dead.connect(hear)
    (job,) = dying.claim(1, max_attempts=1)
    dying.slot.begin(job)
    dying.die()
    recover()
    job_dead.disconnect(hear)
    assert row(job).status == Status.DEAD
    assert heard == [job.id]


def test_a_completed_job_that_is_not_to_be_kept_is_deleted(dying: Dying):
    (job,) = dying.claim(1)
    registry._job_types.pop("test.noop")
    registry.job_handler("test.noop", keep_completed=False)(lambda context, value: None)
    dying.slot.begin(job)
    dying.slot.done()
    dying.die()
    recover()
    assert not Job.objects.exists()


def test_what_an_incomplete_journal_does_not_tell_of_waits_for_its_lease(dying: Dying):
    begun, unknown = dying.claim(2)
    dying.slot.begin(begun)
    while dying.journal.slot() is not None:
        pass
    dying.die()
    assert recover() == 1
    assert row(begun).status == Status.PENDING
    assert (row(unknown).status, row(unknown).attempts) == (Status.RUNNING, 1)


def test_a_lease_that_has_passed_on_is_somebody_elses(
    dying: Dying, second_connection: QueueConnection
):
    (job,) = dying.claim(1)
    dying.slot.begin(job)
    dying.slot.done()
    Job.objects.update(status=Status.PENDING, lease_until=None)
    (again,) = claims.claim(second_connection, claim_for("other"))
    dying.die()
    assert recover() == 0
    assert row(again).leased_by == "other"
    assert row(again).status == Status.RUNNING


def test_while_the_database_is_away_the_journal_is_kept(
    dying: Dying, monkeypatch: pytest.MonkeyPatch
):
    (job,) = dying.claim(1)
    dying.die()
    with monkeypatch.context() as patch:
        patch.setattr(
            claims, "_HELD_BY", "SELECT pg_terminate_backend(pg_backend_pid())"
        )
        with pytest.raises(Exception, match="terminat"):
            recover()
    assert recover() == 1
    assert row(job).status == Status.PENDING


def test_a_claim_that_commits_after_the_worker_died_is_found_by_a_later_look(
    dying: Dying,
):
    add(1)
    dying.die()
    assert recover() == 0
    with QueueConnection() as connection:
        (job,) = claims.claim(connection, claim_for(WORKER))
    assert recover() == 1
    assert (row(job).status, row(job).attempts) == (Status.PENDING, 0)


def test_a_journal_that_cannot_be_dealt_with_holds_up_no_other(
    dying: Dying, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    (job,) = dying.claim(1)
    dying.die()
    with monkeypatch.context() as patch:
        patch.setattr("jobs.recovery._what_happened", lambda found: 1 / 0)
        assert recover() == 0
    assert "jobs.journal.failed" in caplog.messages
    assert recover() == 1
    assert row(job).status == Status.PENDING


def test_it_looks_now_and_then(dying: Dying, monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    # The module's name for it alone: other threads go by the real clock.
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("jobs.recovery.time", clock)
    recovery = Recovery()
    recovery.look()
    (job,) = dying.claim(1)
    dying.die()
    recovery.look()
    assert row(job).status == Status.RUNNING
    now[0] += LOOK_EVERY
    recovery.look()
    assert row(job).status == Status.PENDING


def test_the_lease_of_one_that_was_taken_back_cannot_be_used(
    dying: Dying, queue_connection: QueueConnection
):
    (job,) = dying.claim(1)
    dying.die()
    recover()
    assert leases.complete(queue_connection, leases.completion([job])) == {job.id}
    lengths = LeaseLengths(dt.timedelta(minutes=1))
    news = leases.extend(queue_connection, [job], lengths)
    assert news.lost == {job.key}
