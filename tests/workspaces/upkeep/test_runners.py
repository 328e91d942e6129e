from __future__ import annotations

import datetime as dt
import threading

import pytest
from django.utils import timezone
from pytest_django import Settings

from jobs.models import Job, Priority
from jobs.registry import runners
from tests.workspaces.factories import WorkspaceFactory
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


def tick(name: str, *, stopping: bool = False) -> dict[str, int]:
    stop = threading.Event()
    if stopping:
        stop.set()
    return dict(runners()[name].tick(stop))


def test_each_host_that_has_workspaces_is_passed_over_once():
    for host in ("one", "two", "one"):
        WorkspaceFactory(host=host)
    for _ in range(2):
        assert tick("workspace_reconcile") == {"enqueued": 2}
    queues = Job.objects.order_by("queue").values_list("queue", flat=True)
    assert list(queues) == ["host:one", "host:two"]


def test_each_clone_is_maintained_in_its_own_time_within_a_quarter_of_the_interval(
    settings: Settings,
):
    settings.JOBS_WORKSPACE_MAINTENANCE_INTERVAL = dt.timedelta(hours=4)
    WorkspaceFactory.create_batch(20)
    WorkspaceFactory(state=Workspace.State.FAILED)
    assert tick("workspace_maintenance") == {"enqueued": 20}
    jobs = Job.objects.filter(type="workspace.maintain")
    times = {job.run_at for job in jobs}
    assert len(times) == 20
    assert max(times) - min(times) > dt.timedelta(minutes=15)
    assert max(times) < timezone.now() + dt.timedelta(hours=1, minutes=1)
    assert {job.priority for job in jobs} == {Priority.LOW}
    tick("workspace_maintenance")
    assert Job.objects.count() == 20


@pytest.mark.parametrize("name", ["workspace_reconcile", "workspace_maintenance"])
def test_nothing_is_begun_once_the_worker_stops(name: str):
    WorkspaceFactory()
    assert tick(name, stopping=True) == {"enqueued": 0}
    assert not Job.objects.exists()
