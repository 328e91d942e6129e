from __future__ import annotations

import contextlib
import datetime as dt
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from jobs import thread_connection
from jobs.connection import QueueConnection
from jobs.enqueue import enqueue_many
from jobs.exceptions import LeaseLost, Permanent, Snooze
from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from tests.workspaces.conftest import Told, context, database_time
from tests.workspaces.factories import AdminFactory, WorkspaceFactory
from tests.workspaces.remote import Remote
from workspaces import clones, fetch, holds, job_types, paths, remotes
from workspaces.fetching import fetch_handlers, fetch_rows, slots
from workspaces.job_types import FetchPayload
from workspaces.models import Workspace
from workspaces.plumbing import locking

pytestmark = pytest.mark.django_db

HERE = ["host:test-host"]
COMPLETES = "WITH done AS (SELECT 1) SELECT count(*) FROM done"


def fetch_in_worker(workspace: Workspace, meanwhile: Callable[[], object]) -> None:
    """In a worker's thread, whose next statement comes after ``meanwhile``, and is one together with what waits for it."""

    def work() -> None:
        with QueueConnection() as own, pytest.MonkeyPatch.context() as patched:
            thread_connection.lend(own)
            with contextlib.suppress(Snooze):
                payload = FetchPayload(workspace_id=workspace.pk)
                fetch_handlers.fetch(context(), payload)
            meanwhile()
            patched.setattr(own, "write_waiting", lambda: pytest.fail("apart"))
            own.execute(COMPLETES, {})
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


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
    fetch_handlers.fetch(context(), FetchPayload(workspace_id=workspace.pk))
    workspace.refresh_from_db()
    assert workspace.last_fetched_at == before


def test_a_workspace_that_was_removed_meanwhile_is_no_error():
    fetch_handlers.fetch(context(), FetchPayload(workspace_id=12345))


def test_the_jobs_deadline_bounds_the_fetch(workspace: Workspace):
    none_left = context(timeout=dt.timedelta(0))
    fetch_handlers.fetch(none_left, FetchPayload(workspace_id=workspace.pk))
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
        fetch_handlers.fetch(context(), FetchPayload(workspace_id=workspace.pk))
    assert snooze.value.delay == dt.timedelta(seconds=30)


def test_a_worker_that_stops_leaves_the_job_to_the_next(workspace: Workspace):
    stopping = context()
    stopping.notify_stop()
    with pytest.raises(Snooze) as snooze:
        fetch_handlers.fetch(stopping, FetchPayload(workspace_id=workspace.pk))
    assert snooze.value.delay == dt.timedelta(0)
    workspace.refresh_from_db()
    assert workspace.failing_since is None


def test_who_lost_the_lease_writes_nothing_more(workspace: Workspace):
    lost = context()
    lost.notify_lease_lost()
    with pytest.raises(LeaseLost):
        fetch_handlers.fetch(lost, FetchPayload(workspace_id=workspace.pk))


def test_one_of_another_host_is_dead():
    elsewhere = WorkspaceFactory(host="elsewhere")
    with pytest.raises(Permanent, match="lies on host 'elsewhere'"):
        fetch_handlers.fetch(context(), FetchPayload(workspace_id=elsewhere.pk))


def when_due(workspace: Workspace) -> bool:
    """Run the job that a tick enqueues; whether anything was fetched, or tried."""
    before = Workspace.objects.get(pk=workspace.pk)
    payload = FetchPayload(workspace_id=workspace.pk, when_due=True)
    fetch_handlers.fetch(context(), payload)
    after = Workspace.objects.get(pk=workspace.pk)
    return (before.last_fetched_at, before.fetch_failures) != (
        after.last_fetched_at,
        after.fetch_failures,
    )


def test_one_that_was_fetched_meanwhile_is_not_fetched_again(workspace: Workspace):
    Workspace.objects.update(next_fetch_at=Now() + dt.timedelta(minutes=1))
    assert not when_due(workspace)
    Workspace.objects.update(next_fetch_at=Now())
    assert when_due(workspace)
    assert not when_due(workspace)


def test_those_of_its_remote_come_along_when_due(
    workspace: Workspace, remote: Remote, monkeypatch: pytest.MonkeyPatch
):
    # As if there were a network in between.
    statement = fetch_rows._OF_REMOTE.replace(remotes.PATHS, "^no path")
    monkeypatch.setattr(fetch_rows, "_OF_REMOTE", statement)
    other = clones.add_workspace("other", remote.url)
    Workspace.objects.update(next_fetch_at=Now())
    assert when_due(workspace)
    assert not when_due(other)
    times = Workspace.objects.values_list("last_fetched_at", flat=True)
    assert all(at and at > other.created_at for at in times)


def test_those_of_a_path_are_fetched_each_by_its_own_job(
    workspace: Workspace, remote: Remote
):
    other = clones.add_workspace("other", remote.url)
    Workspace.objects.update(next_fetch_at=Now())
    assert when_due(workspace)
    assert when_due(other)


def test_asking_for_one_that_is_held_fetches_no_other(
    workspace: Workspace, remote: Remote
):
    other = clones.add_workspace("other", remote.url)
    Workspace.objects.update(next_fetch_at=Now())
    holds.acquire(workspace, holder="agent")
    payload = FetchPayload(workspace_id=workspace.pk)
    fetch_handlers.fetch(context(), payload)
    before = other.last_fetched_at
    other.refresh_from_db()
    assert other.last_fetched_at == before


def test_one_that_is_refused_is_asked_again_when_something_changes(
    workspace: Workspace, remote: Remote, told: Told
):
    AdminFactory()
    remote.vanish()
    Workspace.objects.update(next_fetch_at=Now())
    assert when_due(workspace)
    assert not when_due(workspace)
    remote.come_back()
    assert when_due(workspace)
    workspace.refresh_from_db()
    assert workspace.failing_since is None
    assert len(told("workspace.sync_recovered")) == 1


def test_one_that_is_refused_is_asked_once_a_day_anyway(
    workspace: Workspace, remote: Remote
):
    remote.vanish()
    fetch.fetch_workspace(workspace)
    workspace.refresh_from_db()
    assert workspace.next_fetch_at - database_time() > dt.timedelta(hours=21)
    Workspace.objects.update(next_fetch_at=Now())
    assert when_due(workspace)


def test_a_lock_that_somebody_has_is_waited_for_a_moment(workspace: Workspace):
    lock = Path(workspace.path) / "refs/remotes/origin/main.lock"
    (Path(workspace.path) / "refs/remotes/origin/main").unlink()
    lock.touch()
    with pytest.raises(Snooze) as snooze:
        fetch_handlers.fetch(context(), FetchPayload(workspace_id=workspace.pk))
    assert snooze.value.delay == dt.timedelta(seconds=30)
    workspace.refresh_from_db()
    assert workspace.fetch_problem == "lock"


def test_where_many_fetch_from_a_host_it_waits_a_moment(settings: Settings):
    settings.ACW_GIT_HOST_LIMIT = 1
    workspace = WorkspaceFactory()
    directory = Path(workspace.path).parent
    Path(workspace.path).mkdir(parents=True)
    paths.fetch_lock_path(directory).touch()
    with slots.taken(workspace.url), pytest.raises(Snooze) as snooze:
        fetch_handlers.fetch(context(), FetchPayload(workspace_id=workspace.pk))
    assert snooze.value.delay <= dt.timedelta(seconds=3)
    workspace.refresh_from_db()
    assert workspace.failing_since is None


def test_a_fetch_that_is_asked_for_does_not_wait_for_the_one_that_is_due(
    workspace: Workspace,
):
    later = database_time() + dt.timedelta(hours=1)
    enqueue_many([job_types.fetch_when_due(workspace, run_at=later)])
    enqueue_many([job_types.fetch(workspace)])
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.COMPLETED
    assert Job.objects.filter(status=Status.PENDING).count() == 1


@pytest.mark.django_db(transaction=True)
def test_what_a_lone_fetch_came_to_is_written_with_its_jobs_completion_as_of_its_end(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    hour = dt.timedelta(hours=1)
    Workspace.objects.update(last_fetched_at=Now() - 2 * hour)
    workspace.refresh_from_db()
    seen: list[Workspace] = []

    def wait_an_hour() -> None:
        seen.append(Workspace.objects.get())
        later = time.monotonic() + hour.total_seconds()
        clock = SimpleNamespace(monotonic=lambda: later)
        monkeypatch.setattr("workspaces.fetching.fetch_rows.time", clock)

    fetch_in_worker(workspace, wait_an_hour)
    assert seen[0].last_fetched_at == workspace.last_fetched_at
    row = Workspace.objects.get()
    assert row.last_fetched_at is not None
    ago = database_time() - row.last_fetched_at
    assert hour <= ago < hour + dt.timedelta(minutes=1)
    assert row.next_fetch_at - row.last_fetched_at < hour


@pytest.mark.django_db(transaction=True)
def test_nothing_is_written_later_of_a_fetch_that_did_not_work_or_after_something_turned(
    workspace: Workspace, remote: Remote, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fetch, "LOCK_WAIT", dt.timedelta(0))
    row = Workspace.objects.filter(pk=workspace.pk)
    fields = [field.name for field in Workspace._meta.fields if not field.generated]
    lock = paths.fetch_lock_path(Path(workspace.path).parent)
    turns: tuple[dict[str, Any], ...] = (
        {"failing_since": Now()},
        {"default_branch": "trunk"},
        {"url": "https://git.example/another.git"},
        {"last_fetched_at": Now()},
    )
    for turned in turns:
        before = row.values(*fields).get()
        fetch_in_worker(workspace, partial(row.update, **turned))
        after = row.values(*fields).get()
        row.update(**before)
        changed = {name for name in before if before[name] != after[name]}
        assert changed == turned.keys()

    before = row.values(*fields).get()
    with locking.locked(lock, wait=dt.timedelta(0)):
        fetch_in_worker(workspace, lambda: None)
    assert row.values(*fields).get() == before

    remote.vanish()
    fetch_in_worker(workspace, lambda: None)
    failed = row.get()
    assert failed.last_fetched_at == before["last_fetched_at"]
    assert (failed.fetch_problem, failed.fetch_failures) == ("not_found", 1)
    remote.come_back()
    fetch_in_worker(workspace, row.delete)
    assert not row.exists()
