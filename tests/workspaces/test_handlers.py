from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone
from pytest_django import Settings

from jobs.enqueue import enqueue_many
from jobs.exceptions import Permanent, Snooze
from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from tests.workspaces.conftest import context
from tests.workspaces.storages import MEMORY, use
from workspaces import attachments, handlers, job_types
from workspaces.job_types import CleanUpPayload
from workspaces.models import Attachment

pytestmark = pytest.mark.django_db

HERE = ["host:test-host"]


def test_a_job_that_reached_the_wrong_host_is_dead(settings: Settings):
    with pytest.raises(Permanent, match="of host 'elsewhere'"):
        handlers.clean_up(context(), CleanUpPayload(host="elsewhere"))


def test_attachments_are_cleaned_up():
    attachments.attach(None, name="a", content=b"x")
    Attachment.objects.update(orphaned_at=timezone.now() - dt.timedelta(days=31))
    enqueue_many([job_types.clean_up("test-host")])
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.COMPLETED
    assert not Attachment.objects.exists()


def test_a_cleanup_that_is_stopped_is_left_to_the_next():
    stopping = context()
    stopping.notify_stop()
    with pytest.raises(Snooze) as snooze:
        handlers.clean_up(stopping, CleanUpPayload(host="test-host"))
    assert snooze.value.delay == dt.timedelta(0)


def test_other_hosts_jobs_are_left_to_them():
    enqueue_many([job_types.clean_up("elsewhere")])
    assert run_due_jobs(queues=HERE) == []
    assert Job.objects.get().status == Status.PENDING


def test_a_storage_that_every_host_reaches_is_cleaned_up_wherever_the_job_runs(
    settings: Settings,
):
    use(settings, MEMORY)
    attachments.attach(None, name="a", content=b"x")
    Attachment.objects.update(orphaned_at=timezone.now() - dt.timedelta(days=31))
    settings.ACW_HOST = "another"
    handlers.clean_up(context(), CleanUpPayload(host=""))
    assert not Attachment.objects.exists()
    with pytest.raises(Permanent, match="attachments of host 'another'"):
        handlers.clean_up(context(), CleanUpPayload(host="another"))
