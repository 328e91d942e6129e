from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from django.utils import timezone

from jobs.enqueue import enqueue
from jobs.models import Attempt, Job, RunnerState, Status, WorkerProcess

pytestmark = pytest.mark.django_db


def _sql(text: str) -> RawSQL:
    return RawSQL(text, [])  # noqa: S611 (constants)


def test_the_columns_that_operators_query_are_there_by_name() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_name = 'jobs' AND table_schema = current_schema()"
        )
        columns = dict(cursor.fetchall())
    assert set(columns) == {
        "id",
        "type",
        "ref_id",
        "queue",
        "priority",
        "payload",
        "status",
        "attempts",
        "max_attempts",
        "run_at",
        "leased_by",
        "lease_until",
        "lease_seq",
        "unique_key",
        "cancel_requested_at",
        "last_error",
        "created_at",
        "started_at",
        "completed_at",
        "updated_at",
    }
    assert columns["payload"] == "jsonb"
    assert columns["id"] == "uuid"


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ({"status": "waiting"}, "jobs_completed_at_set_when_terminal"),
        ({"priority": 7}, "jobs_priority_known"),
        ({"attempts": -1}, "jobs_attempts_not_negative"),
        ({"max_attempts": 0}, "jobs_max_attempts_positive"),
        ({"status": Status.COMPLETED}, "jobs_completed_at_set_when_terminal"),
        ({"completed_at": Now()}, "jobs_completed_at_set_when_terminal"),
        ({"status": Status.RUNNING}, "jobs_lease_set_when_running"),
        ({"lease_until": Now()}, "jobs_lease_set_when_running"),
        ({"cancel_requested_at": Now()}, "jobs_pending_without_cancel_request"),
        ({"payload": [1]}, "jobs_payload_is_object"),
        ({"run_at": _sql("'infinity'::timestamptz")}, "jobs_times_readable"),
        ({"created_at": _sql("'-infinity'::timestamptz")}, "jobs_times_readable"),
        ({"run_at": _sql("'20000-01-01'::timestamptz")}, "jobs_times_readable"),
    ],
)
def test_a_row_that_makes_no_sense_is_refused_by_the_table(
    noop: str, change: dict[str, Any], constraint: str
) -> None:
    enqueue(noop)
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Job.objects.update(**change)


def test_a_plain_delete_by_an_operator_takes_the_attempts_along(noop: str) -> None:
    failed_once, failed_and_leased_again, other = (enqueue(noop) for _ in range(3))
    Job.objects.filter(pk=failed_once.pk).update(lease_seq=1, last_error="x")
    Job.objects.filter(pk=failed_and_leased_again.pk).update(lease_seq=2)
    for job in (failed_once, failed_and_leased_again, other):
        Attempt.objects.create(job=job, number=1, error="x")
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM jobs WHERE id = ANY(%s)",
            [[failed_once.id, failed_and_leased_again.id]],
        )
    assert [attempt.job_id for attempt in Attempt.objects.all()] == [other.id]


def test_a_lease_can_be_extended_in_place(noop: str) -> None:
    """No index may hold lease_until, or no heartbeat would be a HOT update."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'jobs'")
        definitions = [definition for (definition,) in cursor.fetchall()]
    assert definitions
    assert not any("lease_until" in definition for definition in definitions)


def test_rows_name_themselves(noop: str) -> None:
    job = enqueue(noop)
    assert str(job) == f"{noop} {job.id}"
    assert str(Attempt(job=job, number=2)) == f"attempt 2 of {job.id}"
    assert str(RunnerState(name="job_purge")) == "job_purge"
    assert str(WorkerProcess(name="h:1:x", started_at=timezone.now())) == "h:1:x"


def test_attempts_go_with_a_truncated_table(noop: str) -> None:
    Attempt.objects.create(job=enqueue(noop), number=1, error="x")
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE jobs")
    assert not Attempt.objects.exists()
