from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from jobs import actions, verbs
from jobs.action_result import Result
from jobs.events import LogEvent
from jobs.identifiers import uuid7
from jobs.models import Job, Status
from jobs.signals import operator_acted
from tests.acceptance.pgbouncer import through
from tests.jobs.auditing import recorded_audit
from tests.jobs.factories import JobFactory

ACTOR = "alice"


@pytest.fixture
def audited() -> Iterator[list[dict[str, Any]]]:
    with recorded_audit() as told:
        yield told


def retry(*jobs: Job) -> Result:
    return actions.retry([job.pk for job in jobs], actor=ACTOR)


@pytest.mark.django_db
def test_it_names_what_does_not_exist_and_does_the_rest():
    job = JobFactory(dead=True)
    result = actions.retry([uuid7(), job.pk], actor=ACTOR)
    assert result.done == [job.pk]
    assert [skip.reason for skip in result.skipped] == [verbs.NO_SUCH_JOB]


@pytest.mark.django_db
def test_a_job_that_is_named_twice_is_retried_once():
    job = JobFactory(dead=True)
    result = retry(job, job)
    assert (result.done, result.skipped) == ([job.pk], [])


@pytest.mark.django_db
def test_a_queryset_is_taken_as_it_is_filtered():
    wanted = JobFactory(dead=True, type="test.wanted")
    JobFactory(dead=True, type="test.other")
    result = actions.retry(Job.objects.filter(type="test.wanted"), actor=ACTOR)
    assert result.done == [wanted.pk]


@pytest.mark.django_db
def test_a_large_set_goes_in_batches(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verbs, "BATCH", 2)
    jobs = [JobFactory(dead=True) for _ in range(5)]
    result = actions.retry(Job.objects.dead(), actor=ACTOR)
    assert result.done == [job.pk for job in jobs]
    assert not result.unfinished


@pytest.mark.django_db
def test_a_time_limit_ends_a_large_set_after_a_batch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verbs, "BATCH", 2)
    for _ in range(5):
        JobFactory(dead=True)
    result = actions.retry(Job.objects.dead(), actor=ACTOR, time_limit=0)
    assert (len(result.done), result.unfinished) == (2, True)
    assert Job.objects.dead().count() == 3


@pytest.mark.django_db
def test_what_is_skipped_is_not_audited(audited: list[dict[str, Any]]):
    retry(JobFactory())
    assert audited == []


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_audited_does_not_happen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verbs, "BATCH", 1)
    first, second = JobFactory(dead=True), JobFactory(dead=True)

    def refuse(*, target: str, **_: Any) -> None:
        if target == f"job:{second.pk}":
            raise RuntimeError("no room for the audit")

    operator_acted.connect(refuse)
    try:
        with pytest.raises(RuntimeError, match="no room"):
            actions.retry(Job.objects.dead(), actor=ACTOR)
    finally:
        operator_acted.disconnect(refuse)
    statuses = dict(Job.objects.values_list("pk", "status"))
    assert statuses == {first.pk: Status.PENDING, second.pk: Status.DEAD}


@pytest.mark.django_db(transaction=True)
def test_it_is_logged_after_the_commit(caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    job = JobFactory(dead=True)
    with transaction.atomic():
        retry(job)
        assert LogEvent.OPERATOR_ACTION not in caplog.messages
    assert LogEvent.OPERATOR_ACTION in caplog.messages


@pytest.mark.django_db(transaction=True)
def test_a_large_set_needs_no_cursor_that_a_pooler_would_lose(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(verbs, "BATCH", 2)
    JobFactory.create_batch(7, dead=True)
    act, held = verbs._act_on_batch, []

    def act_and_look(*args: Any, **options: Any) -> None:
        act(*args, **options)
        with connection.cursor() as cursor:
            cursor.execute("SELECT name FROM pg_cursors WHERE is_holdable")
            held.extend(cursor.fetchall())

    monkeypatch.setattr(verbs, "_act_on_batch", act_and_look)
    with through("transaction"):
        result = actions.retry(Job.objects.dead(), actor=ACTOR)
    assert (len(result.done), held) == (7, [])
