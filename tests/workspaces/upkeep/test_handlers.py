from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import pytest

from jobs.enqueue import enqueue_many
from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from workspaces import job_types
from workspaces.models import Workspace, Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

HERE = ["host:test-host"]


def test_a_pass_is_a_job_of_its_host(worktree: Worktree, path: Path):
    shutil.rmtree(path)
    enqueue_many([job_types.reconcile("test-host")])
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.COMPLETED
    worktree.refresh_from_db()
    assert worktree.state == Worktree.State.MISSING


def test_another_hosts_pass_is_refused_for_good(worktree: Worktree):
    enqueue_many([job_types.reconcile("elsewhere")])
    Job.objects.update(queue="host:test-host")
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.DEAD


def test_maintenance_is_put_off_while_the_clone_is_worked_on(
    workspace: Workspace, repository: Repository
):
    enqueue_many([job_types.maintain(workspace)])
    with repository.locked(wait=dt.timedelta(0)):
        (job,) = run_due_jobs(queues=HERE)
    assert (job.status, job.attempts) == (Status.PENDING, 0)
    Job.objects.update(run_at=job.created_at)
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.COMPLETED
    workspace.refresh_from_db()
    assert workspace.maintained_at is not None


def test_a_workspace_that_is_gone_or_not_cloned_is_no_failure(workspace: Workspace):
    Workspace.objects.update(state=Workspace.State.FAILED)
    enqueue_many([job_types.maintain(workspace)])
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.COMPLETED
