from __future__ import annotations

import datetime as dt

import pytest

from jobs.enqueue import enqueue_many
from jobs.models import Job
from jobs.registry import job_types as registered
from tests.workspaces.tasks.market import publish
from workspaces.tasks import job_types
from workspaces.tasks.job_types import OpinionPayload
from workspaces.tasks.states import Action
from workspaces.tasks.watches import WORKER_ACTIONS

pytestmark = pytest.mark.django_db

AT = dt.datetime(2030, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC)
EIGHT = {
    "open_expire",
    "hold_timeout",
    "checkpoint_miss",
    "contest_close",
    "checkpoint_warn",
    "review_warn",
    "transfer_expire",
    "review_auto_accept",
}


def test_there_are_exactly_eight_types_of_deadlines():
    assert {action.value for action in WORKER_ACTIONS} == EIGHT


def test_each_has_a_handler_five_attempts_and_a_lease_of_60_seconds():
    for name in EIGHT:
        job_type = registered()[name]
        assert job_type.max_attempts == 5
        assert job_type.lease == dt.timedelta(seconds=60)


def test_a_deadlines_job_names_its_task_and_its_time():
    job = job_types.deadline_job(Action.HOLD_TIMEOUT, 7, AT)
    enqueue_many([job])
    row = Job.objects.get()
    assert (row.type, row.ref_id, row.run_at) == ("hold_timeout", "7", AT)
    assert row.payload == {"deadline": "2030-01-02T03:04:05.000678+00:00"}
    assert row.unique_key == "hold_timeout:7:2030-01-02T03:04:05.000678+00:00"


def test_the_same_moment_in_another_time_zone_is_the_same_deadline():
    there = AT.astimezone(dt.timezone(dt.timedelta(hours=9)))
    for at in (AT, there):
        enqueue_many([job_types.deadline_job(Action.OPEN_EXPIRE, 7, at)])
    assert Job.objects.count() == 1


def test_another_task_type_or_time_is_another_deadline():
    later = AT + dt.timedelta(microseconds=1)
    enqueue_many(
        [
            job_types.deadline_job(Action.OPEN_EXPIRE, 7, AT),
            job_types.deadline_job(Action.OPEN_EXPIRE, 8, AT),
            job_types.deadline_job(Action.OPEN_EXPIRE, 7, later),
            job_types.deadline_job(Action.HOLD_TIMEOUT, 7, AT),
        ]
    )
    assert Job.objects.count() == 4


def test_the_longest_key_is_one_that_a_job_may_have():
    enqueue_many(
        job_types.deadline_job(action, 2**63 - 1, AT) for action in WORKER_ACTIONS
    )
    assert Job.objects.count() == 8


def test_an_opinion_is_asked_for_once_for_each_rejection():
    task = publish()
    for asker in ("alice", "bob"):
        payload = OpinionPayload(submission_id=3, asked_by=asker)
        enqueue_many([job_types.opinion_job(task.pk, payload)])
    job = Job.objects.get(type="arbitration_opinion")
    assert (job.ref_id, job.payload["asked_by"]) == (str(task.pk), "alice")
