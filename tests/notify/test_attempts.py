from __future__ import annotations

import datetime as dt
import itertools
import threading

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from jobs import thread_connection
from jobs.connection import QueueConnection
from jobs.identifiers import uuid7
from notify import attempts
from notify.models import WebhookAttempt, WebhookEndpoint
from tests.notify.factories import SECRET, TOPIC, AttemptFactory, EndpointFactory

pytestmark = pytest.mark.django_db


def open_attempt(endpoint: WebhookEndpoint, **values):
    return attempts.open_attempt(
        endpoint.pk, **{"job_id": uuid7(), "number": 2, "topic": TOPIC, **values}
    )


def test_an_attempt_is_opened_with_the_endpoint_as_it_is_now():
    made = EndpointFactory(url="https://hooks.example/now")
    job_id = uuid7()

    endpoint, attempt = open_attempt(made, job_id=job_id)

    row = WebhookAttempt.objects.open().get()
    assert row == attempt
    assert (row.job_id, row.endpoint, row.topic, row.number) == (job_id, made, TOPIC, 2)
    assert row.verdict == "unknown"
    assert endpoint == made
    assert attempt.endpoint is endpoint
    assert (attempt.job_id, attempt.topic, attempt.number) == (job_id, TOPIC, 2)
    assert endpoint.url == "https://hooks.example/now"
    assert endpoint.signing_secret() == SECRET
    assert (endpoint.name, endpoint.enabled) == (made.name, True)
    # What was not fetched is there when it is asked for.
    assert endpoint.topics == [TOPIC]
    assert attempt.started_at == row.started_at


def test_one_statement_is_all_that_it_takes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attempts, "_opened", itertools.count(1))
    endpoint = EndpointFactory()
    executed: list[str] = []
    execute = thread_connection.execute

    def counting(query: str, parameters):
        executed.append(query)
        return execute(query, parameters)

    monkeypatch.setattr(thread_connection, "execute", counting)
    with connection.execute_wrapper(lambda *call: pytest.fail(f"{call[1]}")):
        open_attempt(endpoint)

    assert len(executed) == 1


def test_a_disabled_endpoint_is_told_and_no_row_written_unless_it_is_asked_for():
    disabled = EndpointFactory(enabled=False)

    endpoint, attempt = open_attempt(disabled)
    assert (endpoint, attempt) == (disabled, None)
    assert not endpoint.enabled
    assert WebhookAttempt.objects.count() == 0

    _, attempt = open_attempt(disabled, job_id=None, disabled_too=True)
    assert WebhookAttempt.objects.get() == attempt


def test_for_an_endpoint_that_is_gone_there_is_neither():
    endpoint = EndpointFactory()
    WebhookEndpoint.objects.all().delete()

    assert open_attempt(endpoint) == (None, None)
    assert WebhookAttempt.objects.count() == 0


def test_what_was_found_out_is_written_when_it_is_closed():
    _, attempt = open_attempt(EndpointFactory())
    attempt.verdict = WebhookAttempt.Verdict.RETRY
    attempt.status = 503
    attempt.cause = "HTTP 503"
    attempt.duration = dt.timedelta(milliseconds=1500)
    attempt.peer = "2001:db8::1"
    attempt.excerpt = "too busy: 100 % \N{SNOWMAN}"

    attempts.close_attempt(attempt)

    row = WebhookAttempt.objects.get()
    assert (row.verdict, row.status, row.cause) == ("retry", 503, "HTTP 503")
    assert row.duration == dt.timedelta(milliseconds=1500)
    assert (row.peer, row.excerpt) == ("2001:db8::1", "too busy: 100 % \N{SNOWMAN}")
    assert row.finished_at is not None
    assert row.finished_at >= row.started_at


def test_what_is_not_sent_leaves_a_row_that_says_why():
    attempts.skip(None, job_id=uuid7(), number=1, topic=TOPIC, cause="it was deleted")

    row = WebhookAttempt.objects.get()
    assert (row.verdict, row.cause) == ("skipped", "it was deleted")
    assert row.finished_at is not None


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_the_server_has_ended_is_replaced_between_two_statements():
    endpoint = EndpointFactory()
    _, attempt = open_attempt(endpoint)
    attempt.verdict = WebhookAttempt.Verdict.COMPLETED
    attempt.status, attempt.cause, attempt.excerpt = 204, "", ""
    attempt.duration, attempt.peer = dt.timedelta(0), None
    end_from_outside()

    attempts.close_attempt(attempt)

    assert WebhookAttempt.objects.get().status == 204


def end_from_outside() -> None:
    """End this thread's connection as a server that restarts does, and return when it has been told."""
    ended = connection.connection
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(%s, 10000)", [ended.info.backend_pid]
            )
    finally:
        other.close()


def old_rows(count: int, endpoint: WebhookEndpoint) -> None:
    AttemptFactory.create_batch(
        count, endpoint=endpoint, started_at=timezone.now() - dt.timedelta(days=31)
    )


def test_rows_older_than_their_jobs_go_a_number_at_a_time(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    settings.JOBS_JOB_PURGE_DEAD_RETENTION = dt.timedelta(days=30)
    monkeypatch.setattr(attempts, "SWEEP_EVERY", 1)
    endpoint = EndpointFactory()
    old_rows(12, endpoint)
    young = AttemptFactory(endpoint=endpoint)

    attempts.remove_old()
    assert WebhookAttempt.objects.count() == 2 + 1
    attempts.remove_old()
    assert WebhookAttempt.objects.get() == young


def test_one_attempt_of_many_looks_for_old_rows_and_the_first_one_does(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(attempts, "_opened", itertools.count())
    looked: list[int] = []
    monkeypatch.setattr(
        attempts, "remove_old", lambda: looked.append(WebhookAttempt.objects.count())
    )
    endpoint = EndpointFactory(max_in_flight=attempts.SWEEP_EVERY + 1)

    for _ in range(attempts.SWEEP_EVERY + 1):
        open_attempt(endpoint)

    assert looked == [0, attempts.SWEEP_EVERY]


@pytest.mark.django_db(transaction=True)
def test_an_end_that_may_wait_is_written_with_the_threads_next_statement():
    endpoint = EndpointFactory(max_in_flight=1)
    seen: list[object] = []

    def deliver() -> None:
        with QueueConnection() as own:
            thread_connection.lend(own)
            for _ in range(2):
                _, attempt = open_attempt(endpoint)
                assert attempt is not None  # the only place is free by that
                attempt.verdict = WebhookAttempt.Verdict.COMPLETED
                attempt.duration = dt.timedelta(milliseconds=5)
                attempts.close_attempt(attempt, may_wait=True)
                seen.append(WebhookAttempt.objects.open().count())
            own.write_waiting()
        connection.close()

    thread = threading.Thread(target=deliver)
    thread.start()
    thread.join()
    assert seen == [1, 1]
    first, second = WebhookAttempt.objects.order_by("pk")
    for row in (first, second):
        assert row.finished_at is not None
        assert row.finished_at - row.started_at == dt.timedelta(milliseconds=5)
        assert (row.verdict, row.slot) == ("completed", None)


def test_the_rows_that_end_are_looked_up_by_their_keys():
    parameters = attempts._CLOSE.parameters([{"id": 1, "keep_place": False}])
    WebhookAttempt.objects.bulk_create(
        WebhookAttempt(topic=TOPIC, number=1) for _ in range(1_000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE webhook_attempts")
        cursor.execute(f"EXPLAIN {attempts._CLOSE.sql}", parameters)
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "webhook_attempts_pkey" in plan
    assert "Seq Scan" not in plan
