from __future__ import annotations

import threading

import pytest
from django.db.models.functions import Now

from jobs.models import Job
from jobs.registry import runners
from jobs.testing import run_due_jobs
from tests.workspaces.conftest import Told
from tests.workspaces.factories import AdminFactory
from workspaces import clones
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

NEVER = threading.Event()


def test_a_clone_that_ends_its_worker_each_time_is_given_up_and_told(told: Told):
    AdminFactory()
    workspace = clones.request_workspace("demo", "https://git.example/x", actor="ada")
    # As after the last of its workers was killed.
    Job.objects.update(
        status="running",
        attempts=5,
        leased_by="a worker that is gone",
        lease_until=Now(),
        lease_seq=5,
    )
    runners()["job_reaper"].tick(NEVER)
    assert Job.objects.get().status == "dead"
    workspace.refresh_from_db()
    assert workspace.state == "failed"
    assert "worker lost" in workspace.last_fetch_error
    assert len(told("workspace.clone_failed")) == 1
    assert runners()["workspace_fetch"].tick(NEVER)["clones"] == 0


def test_the_death_of_another_job_changes_nothing(
    told: Told,
):
    AdminFactory()
    workspace = clones.request_workspace("demo", "https://git.example/x", actor="ada")
    Job.objects.update(type="nobody.knows", max_attempts=1)
    run_due_jobs(queues=["host:test-host"])
    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.CLONING
