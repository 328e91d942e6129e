from __future__ import annotations

import datetime as dt
import threading
import time
import uuid
from typing import Any

import pytest
from django.db import close_old_connections, connection, connections, transaction
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from jobs import enqueue as enqueue_module
from jobs import wakeup
from jobs.connection import QueueConnection
from jobs.enqueue import NewJob, enqueue, enqueue_many
from jobs.exceptions import InvalidJob, InvalidPayload, UnknownJobType
from jobs.models import Job, Priority, Status
from jobs.registry import job_handler
from jobs.testing import PATIENCE

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def types(noop: str) -> None:
    job_handler("test.mail", queue="mail", max_attempts=9, priority=Priority.HIGH)(
        lambda context, payload: None
    )


def test_the_returned_job_is_the_row_as_it_was_written() -> None:
    job = enqueue("test.noop", {"a": [1]}, ref_id=7)
    stored = Job.objects.get()
    for field in Job._meta.concrete_fields:
        assert getattr(job, field.attname) == getattr(stored, field.attname), field.name
    assert stored.status == Status.PENDING
    assert stored.ref_id == "7"
    assert stored.payload == {"a": [1]}
    assert stored.id.version == 7
    assert not job.deduplicated


def test_a_returned_job_can_be_refreshed_and_saved() -> None:
    job = enqueue("test.noop")
    job.refresh_from_db()
    job.save()
    assert Job.objects.count() == 1


def test_defaults_are_those_of_the_registered_type() -> None:
    job = enqueue("test.mail")
    assert (job.queue, job.max_attempts, job.priority) == ("mail", 9, Priority.HIGH)


def test_arguments_override_them() -> None:
    at = timezone.now() + dt.timedelta(days=1)
    job = enqueue(
        "test.mail", run_at=at, priority=Priority.LOW, queue="other", max_attempts=1
    )
    assert (job.queue, job.max_attempts, job.priority) == ("other", 1, Priority.LOW)
    assert job.run_at == at


def test_without_a_time_a_job_is_due_at_once_on_the_databases_clock() -> None:
    job = enqueue("test.noop")
    assert Job.objects.due().get() == job
    assert job.run_at == job.created_at


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"run_at": dt.datetime(2026, 1, 1)}, "run_at: must have a time zone"),  # noqa: DTZ001
        ({"priority": 9}, "priority: must be one of"),
        ({"max_attempts": 0}, "max_attempts: must be from 1"),
        ({"max_attempts": 2**31}, "max_attempts: must be from 1"),
        ({"queue": ""}, "queue: must not be empty"),
        ({"queue": "q" * 301}, "queue: 301 characters, at most 300"),
        ({"ref_id": "a\x00b"}, "ref_id: must not hold a NUL"),
        ({"ref_id": "r" * 201}, "ref_id: 201 characters"),
        ({"ref_id": "\ud800"}, "ref_id: must not hold a lone surrogate"),
        ({"unique_key": "k" * 201}, "unique_key: 201 characters"),
        ({"unique_key": 5}, "unique_key: must be text, got int"),
    ],
)
def test_what_could_not_be_stored_is_refused_by_name(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidJob, match=message):
        enqueue("test.noop", **arguments)
    assert Job.objects.count() == 0


def test_a_bad_payload_is_refused() -> None:
    with pytest.raises(InvalidPayload):
        enqueue("test.noop", {"a": object()})


def test_an_unknown_type_is_refused_with_the_closest_name() -> None:
    with pytest.raises(UnknownJobType, match=r"'test.nop'.*did you mean 'test.noop'"):
        enqueue("test.nop")


@pytest.mark.parametrize("status", [Status.PENDING, Status.RUNNING])
def test_a_live_unique_key_returns_the_live_job_and_says_so(status: Status) -> None:
    first = enqueue("test.noop", {"n": 1}, unique_key="k")
    if status == Status.RUNNING:
        Job.objects.update(status=status, lease_until=timezone.now())
    second = enqueue("test.noop", {"n": 2}, unique_key="k")
    assert second.deduplicated
    assert second.id == first.id
    assert second.payload == {"n": 1}
    assert second.status == status


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.DEAD, Status.CANCELLED])
def test_the_key_of_a_finished_job_is_free_again(status: Status) -> None:
    first = enqueue("test.noop", unique_key="k")
    Job.objects.update(status=status, completed_at=timezone.now())
    second = enqueue("test.noop", unique_key="k")
    assert not second.deduplicated
    assert second.id != first.id


def test_many_come_in_one_statement_in_the_order_given(
    django_assert_num_queries: Any,
) -> None:
    with django_assert_num_queries(1):
        ids = enqueue_many(
            [NewJob(type="test.noop", payload={"n": n}) for n in range(50)]
        )
    assert [job.payload["n"] for job in Job.objects.order_by("id")] == list(range(50))
    assert ids == list(Job.objects.order_by("id").values_list("id", flat=True))


def test_many_with_keys_name_the_live_job_for_each_that_was_taken() -> None:
    live = enqueue("test.noop", unique_key="a")
    ids = enqueue_many(
        [
            NewJob(type="test.noop", unique_key="a"),
            NewJob(type="test.noop", unique_key="b"),
            NewJob(type="test.noop", unique_key="b"),
            NewJob(type="test.noop"),
        ]
    )
    assert ids[0] == live.id
    assert ids[1] == ids[2]
    assert len(set(ids)) == 3
    assert Job.objects.count() == 3


def test_one_bad_job_refuses_them_all_and_its_position_is_named() -> None:
    with pytest.raises(InvalidPayload, match=r"jobs\[1\]: payload.a: bytes"):
        enqueue_many(
            [NewJob(type="test.noop"), NewJob(type="test.noop", payload={"a": b""})]
        )
    assert Job.objects.count() == 0


def test_none_at_all_is_no_statement(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert enqueue_many([]) == []


def test_workers_of_its_queue_are_woken_after_the_commit_only(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    woken: list[set[str]] = []
    monkeypatch.setattr(wakeup, "wake", lambda queues: woken.append(set(queues)))
    with django_capture_on_commit_callbacks() as callbacks:
        enqueue_many([NewJob(type="test.noop"), NewJob(type="test.mail")])
    assert woken == []
    for callback in callbacks:
        callback()
    assert woken == [{"default", "mail"}]


def test_a_taken_key_wakes_nobody(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    enqueue("test.noop", unique_key="k")
    with django_capture_on_commit_callbacks() as callbacks:
        enqueue("test.noop", unique_key="k")
    assert callbacks == []


@pytest.mark.django_db(transaction=True)
def test_a_job_is_visible_at_commit_and_vanishes_at_rollback() -> None:
    other = connections.create_connection("default")
    try:
        with transaction.atomic():
            enqueue("test.noop")
            with other.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM jobs")
                assert cursor.fetchone() == (0,)
        with other.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM jobs")
            assert cursor.fetchone() == (1,)
        with transaction.atomic():
            enqueue("test.noop")
            transaction.set_rollback(True)
        assert Job.objects.count() == 1
    finally:
        other.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("winner_commits", [True, False])
def test_of_twenty_transactions_with_one_key_exactly_one_job_is_left(
    winner_commits: bool,
) -> None:
    """Also where the one that came first rolls back late: then another takes its place."""
    ids: list[Any] = []
    others_started = threading.Barrier(20)

    def attempt() -> None:
        others_started.wait()
        ids.append(enqueue("test.noop", unique_key="k").id)
        connection.close()

    threads = [threading.Thread(target=attempt) for _ in range(19)]
    with transaction.atomic():
        first = enqueue("test.noop", unique_key="k")
        for thread in threads:
            thread.start()
        others_started.wait()
        if not winner_commits:
            transaction.set_rollback(True)
    for thread in threads:
        thread.join()
    left = Job.objects.get()
    assert set(ids) == {left.id}
    assert (left.id == first.id) is winner_commits


def test_an_empty_key_is_a_key_like_any_other() -> None:
    first, second = (enqueue("test.noop", unique_key="") for _ in range(2))
    assert second.deduplicated
    assert second.id == first.id
    new = [NewJob(type="test.noop", unique_key=""), NewJob(type="test.noop")]
    assert enqueue_many(new)[0] == first.id


def test_of_a_key_that_comes_twice_the_first_is_enqueued() -> None:
    new = [
        NewJob(type="test.noop", unique_key=key, payload={"n": n})
        for n, key in enumerate(["b", "a", "b", "a"])
    ]
    ids = enqueue_many(new)
    assert ids[2:] == ids[:2]
    assert [Job.objects.get(pk=pk).payload for pk in ids[:2]] == [{"n": 0}, {"n": 1}]


def test_a_live_job_that_vanishes_before_it_is_read_frees_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with a type that keeps no completed rows."""
    first = enqueue("test.noop", unique_key="a")
    really = enqueue_module._live_jobs

    def live(keys: list[str | None]) -> dict[str | None, uuid.UUID]:
        found = really(keys)
        Job.objects.filter(pk=first.pk).delete()
        return found

    monkeypatch.setattr(enqueue_module, "_live_jobs", live)
    second = enqueue("test.noop", unique_key="a")
    assert second.id != first.id
    assert not second.deduplicated


@pytest.mark.django_db(transaction=True)
def test_one_that_comes_alone_brings_its_notification(
    queue_connection: QueueConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[list[str]] = []
    monkeypatch.setattr(wakeup, "_notifier", wakeup.Notifier())
    monkeypatch.setattr(wakeup, "wake", lambda queues: told.append(list(queues)))
    queue_connection.execute(f"LISTEN {wakeup.CHANNEL}", [])
    enqueue("test.mail")
    heard = queue_connection.raw().notifies(timeout=PATIENCE, stop_after=1)
    assert [notification.payload for notification in heard] == ['["mail"]']
    assert told == []
    # As if it was the next moment, which on a busy machine is over by now.
    wakeup._notifier._next_at = time.monotonic() + 3600
    enqueue("test.mail")
    assert told == [["mail"]]


@pytest.mark.django_db(transaction=True)
def test_a_transaction_never_takes_the_lock_of_notifications(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[list[str]] = []
    monkeypatch.setattr(wakeup, "_notifier", wakeup.Notifier())
    monkeypatch.setattr(wakeup, "wake", lambda queues: told.append(list(queues)))
    with transaction.atomic():
        enqueue("test.mail")
    assert told == [["mail"]]


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_was_cut_since_the_last_request_is_replaced(
    queue_connection: QueueConnection,
) -> None:
    """As the ORM does it: the settings ask for a look at the connection before it is used again."""
    assert connection.settings_dict["CONN_HEALTH_CHECKS"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    queue_connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    close_old_connections()  # a request begins
    enqueue("test.noop")
    assert Job.objects.count() == 1
