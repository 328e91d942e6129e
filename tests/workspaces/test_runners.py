from __future__ import annotations

import datetime as dt
import threading

import pytest
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from jobs.models import Job, WorkerProcess
from jobs.registry import runners
from tests.workspaces.conftest import make_idle
from tests.workspaces.factories import (
    AttachmentFactory,
    WorkspaceFactory,
    WorktreeFactory,
)
from tests.workspaces.storages import MEMORY, use
from workspaces import runners as module
from workspaces.models import Workspace, Worktree

pytestmark = pytest.mark.django_db


def tick(name: str, *, stopping: bool = False) -> dict[str, int]:
    stop = threading.Event()
    if stopping:
        stop.set()
    return dict(runners()[name].tick(stop))


def queued() -> set[tuple[str, str | None, str]]:
    return set(Job.objects.values_list("type", "ref_id", "queue"))


def remote(number: int) -> str:
    return f"https://git.example/{number}.git"


def test_each_idle_workspace_is_fetched_by_its_host():
    here, there = (
        WorkspaceFactory(url=remote(n), host=host)
        for n, host in enumerate(("test-host", "elsewhere"))
    )
    WorktreeFactory(held_by="agent", held_since=timezone.now())
    WorkspaceFactory(url=remote(3), state=Workspace.State.FAILED)
    assert tick("workspace_fetch") == {"enqueued": 2, "clones": 0}
    assert queued() == {
        ("workspace.fetch", str(here.pk), "host:test-host"),
        ("workspace.fetch", str(there.pk), "host:elsewhere"),
    }


def test_it_is_fetched_when_it_is_due_if_that_is_before_the_next_tick(
    settings: Settings,
):
    settings.JOBS_WORKSPACE_FETCH_INTERVAL = dt.timedelta(minutes=5)
    overdue, soon, _ = (
        WorkspaceFactory(
            url=remote(n), next_fetch_at=Now() + dt.timedelta(minutes=minutes)
        )
        for n, minutes in enumerate((-60, 4, 6))
    )
    assert tick("workspace_fetch")["enqueued"] == 2
    for workspace in (overdue, soon):
        workspace.refresh_from_db()
        job = Job.objects.get(ref_id=str(workspace.pk))
        assert job.run_at == workspace.next_fetch_at
        assert job.payload == {"workspace_id": workspace.pk, "when_due": True}


@pytest.mark.parametrize("url", ["/srv/project.git", "FILE:///srv/project.git"])
def test_those_of_a_path_are_a_job_each(url: str):
    workspaces = [WorkspaceFactory(url=url, next_fetch_at=Now()) for _ in range(2)]
    assert tick("workspace_fetch")["enqueued"] == 2
    assert {job.ref_id for job in Job.objects.all()} == {
        str(workspace.pk) for workspace in workspaces
    }


def test_those_of_one_remote_are_one_job_of_the_one_that_is_due_first():
    later = WorkspaceFactory(next_fetch_at=Now())
    first = WorkspaceFactory(next_fetch_at=Now() - dt.timedelta(minutes=1))
    WorkspaceFactory(next_fetch_at=Now())
    assert tick("workspace_fetch")["enqueued"] == 1
    assert Job.objects.get().ref_id == str(first.pk)
    Workspace.objects.filter(pk=later.pk).update(
        next_fetch_at=Now() - dt.timedelta(hours=1)
    )
    tick("workspace_fetch")
    assert Job.objects.count() == 1


def test_one_that_is_refused_is_looked_at_by_every_tick():
    tomorrow = Now() + dt.timedelta(days=1)
    refused = WorkspaceFactory(
        url=remote(1), next_fetch_at=tomorrow, fetch_problem="auth"
    )
    WorkspaceFactory(url=remote(2), next_fetch_at=tomorrow, fetch_problem="network")
    assert tick("workspace_fetch")["enqueued"] == 1
    job = Job.objects.get()
    assert job.ref_id == str(refused.pk)
    assert job.run_at == job.created_at


def test_a_clone_that_no_job_makes_any_more_is_taken_up():
    left = WorkspaceFactory(state=Workspace.State.CLONING)
    for _ in range(2):
        assert tick("workspace_fetch") == {"enqueued": 0, "clones": 1}
    assert queued() == {("workspace.clone", str(left.pk), "host:test-host")}


def test_a_fetch_that_waits_is_not_doubled():
    WorkspaceFactory()
    for _ in range(2):
        tick("workspace_fetch")
    assert Job.objects.count() == 1


def test_many_are_enqueued_in_batches(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_BATCH", 2)
    for number in range(5):
        WorkspaceFactory(url=remote(number))
    assert tick("workspace_fetch") == {"enqueued": 5, "clones": 0}
    assert Job.objects.count() == 5


@pytest.mark.parametrize(
    "name", ["workspace_fetch", "worktree_prune", "attachment_cleanup"]
)
def test_nothing_is_begun_once_the_worker_stops(name: str):
    make_idle(WorktreeFactory(), days=31)
    assert tick(name, stopping=True)["enqueued"] == 0
    assert not Job.objects.exists()


def test_a_prune_tick_warns_and_has_pruned_what_is_due():
    soon, due, used = WorktreeFactory.create_batch(3)
    make_idle(soon, days=28)
    make_idle(due, days=31)
    assert tick("worktree_prune") == {"warned": 1, "enqueued": 1}
    assert queued() == {("worktree.prune", str(due.pk), "host:test-host")}
    for worktree, warned in ((soon, True), (due, False), (used, False)):
        worktree.refresh_from_db()
        assert (worktree.prune_warning_at is not None) is warned


def test_what_was_interrupted_is_looked_at_however_new_it_is():
    left = {
        WorktreeFactory(state=Worktree.State.CREATING).pk,
        WorktreeFactory(state=Worktree.State.PRUNING).pk,
    }
    assert tick("worktree_prune") == {"warned": 0, "enqueued": 2}
    assert {int(job.ref_id or 0) for job in Job.objects.all()} == left


def test_each_host_that_may_have_files_cleans_up():
    past = Now() - dt.timedelta(days=31)
    AttachmentFactory(host="retired", conversation=None, orphaned_at=past)
    AttachmentFactory(host="idle")
    WorkerProcess.objects.create(
        name="w", host="busy", pid=1, threads=1, queues=[], types=[]
    )
    assert tick("attachment_cleanup") == {"enqueued": 3}
    assert {queue for _, _, queue in queued()} == {
        "host:test-host",
        "host:busy",
        "host:retired",
    }


def test_a_storage_that_every_host_reaches_is_cleaned_up_once(settings: Settings):
    use(settings, MEMORY)
    AttachmentFactory(host="retired")
    assert tick("attachment_cleanup") == {"enqueued": 1}
    assert Job.objects.get().queue == "default"
