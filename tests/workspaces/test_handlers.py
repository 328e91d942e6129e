from __future__ import annotations

import datetime as dt
import uuid
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from jobs.context import JobContext
from jobs.enqueue import enqueue_many
from jobs.exceptions import LeaseLost, Permanent, Snooze
from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from tests.workspaces.conftest import Told, make_idle
from tests.workspaces.factories import AdminFactory, WorkspaceFactory
from tests.workspaces.remote import Remote
from workspaces import attachments, fetch, handlers, holds, job_types, locking, paths
from workspaces.job_types import CleanUpPayload, FetchPayload, PrunePayload
from workspaces.models import Attachment, Workspace, Worktree

pytestmark = pytest.mark.django_db

HERE = ["host:test-host"]


def context(timeout: dt.timedelta | None = None) -> JobContext:
    return JobContext(
        job_id=uuid.uuid4(),
        type="x",
        ref_id=None,
        queue="x",
        attempt=1,
        max_attempts=5,
        lease_seq=1,
        enqueued_at=timezone.now(),
        timeout=timeout,
    )


def test_a_fetch_that_fails_completes_its_job_and_is_told(
    workspace: Workspace, remote: Remote, told: Told
):
    AdminFactory()
    remote.vanish()
    enqueue_many([job_types.fetch(workspace)])
    (job,) = run_due_jobs(queues=HERE)
    assert (job.status, job.attempts) == (Status.COMPLETED, 1)
    assert len(told("workspace.sync_failed")) == 1


def test_a_fetch_that_works_completes_too(workspace: Workspace, remote: Remote):
    remote.push("new")
    before = workspace.last_fetched_at
    enqueue_many([job_types.fetch(workspace)])
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.COMPLETED
    workspace.refresh_from_db()
    assert workspace.last_fetched_at != before


def test_a_workspace_that_was_acquired_meanwhile_is_not_fetched(workspace: Workspace):
    holds.acquire(workspace, holder="agent")
    before = workspace.last_fetched_at
    handlers.fetch(context(), FetchPayload(workspace_id=workspace.pk))
    workspace.refresh_from_db()
    assert workspace.last_fetched_at == before


def test_a_workspace_that_was_removed_meanwhile_is_no_error():
    handlers.fetch(context(), FetchPayload(workspace_id=12345))


def test_the_jobs_deadline_bounds_the_fetch(workspace: Workspace):
    none_left = context(timeout=dt.timedelta(0))
    handlers.fetch(none_left, FetchPayload(workspace_id=workspace.pk))
    workspace.refresh_from_db()
    assert "took longer than 0:00:00" in workspace.last_fetch_error


def test_a_busy_repository_is_tried_again_soon(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fetch, "LOCK_WAIT", dt.timedelta(0))
    lock = paths.fetch_lock_path(Path(workspace.path).parent)
    with (
        locking.locked(lock, wait=dt.timedelta(0)),
        pytest.raises(Snooze) as snooze,
    ):
        handlers.fetch(context(), FetchPayload(workspace_id=workspace.pk))
    assert snooze.value.delay == dt.timedelta(seconds=30)


def test_a_worker_that_stops_leaves_the_job_to_the_next(workspace: Workspace):
    stopping = context()
    stopping.notify_stop()
    with pytest.raises(Snooze) as snooze:
        handlers.fetch(stopping, FetchPayload(workspace_id=workspace.pk))
    assert snooze.value.delay == dt.timedelta(0)
    workspace.refresh_from_db()
    assert workspace.failing_since is None


def test_who_lost_the_lease_writes_nothing_more(workspace: Workspace):
    lost = context()
    lost.notify_lease_lost()
    with pytest.raises(LeaseLost):
        handlers.fetch(lost, FetchPayload(workspace_id=workspace.pk))


def test_a_job_that_reached_the_wrong_host_is_dead(settings: Settings):
    elsewhere = WorkspaceFactory(host="elsewhere")
    with pytest.raises(Permanent, match="lies on host 'elsewhere'"):
        handlers.fetch(context(), FetchPayload(workspace_id=elsewhere.pk))
    with pytest.raises(Permanent, match="for host 'elsewhere'"):
        handlers.clean_up(context(), CleanUpPayload(host="elsewhere"))


def test_a_worktree_that_is_due_is_pruned(worktree: Worktree):
    make_idle(worktree, days=31)
    enqueue_many([job_types.prune(worktree)])
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.COMPLETED
    assert not Worktree.objects.exists()
    assert not Path(worktree.path).exists()


def test_a_worktree_that_was_used_meanwhile_is_not(worktree: Worktree):
    handlers.prune_worktree(context(), PrunePayload(worktree_id=worktree.pk))
    assert Path(worktree.path).exists()


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
