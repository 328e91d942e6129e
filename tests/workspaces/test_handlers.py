from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path

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

# Each is a module's constant in capitals.
NAMED = {
    value
    for name, value in vars(job_types).items()
    if name.isupper() and isinstance(value, str)
}


def test_every_job_of_this_app_has_a_handler_in_a_process_that_imports_nothing_else():
    # The tests import handlers that a worker might never see.
    code = "import django; django.setup(); from jobs import registry; print(*registry.job_types())"
    registered = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(NAMED) >= 8
    assert set(registered.stdout.split()) >= NAMED


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
