from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from jobs.context import JobContext
from jobs.exceptions import Snooze
from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from tests.workspaces.conftest import Told, context
from tests.workspaces.factories import UserFactory
from tests.workspaces.remote import Remote
from workspaces import clone_handlers, clones, cloning
from workspaces.exceptions import GitFailed, GitStopped
from workspaces.failures import Failure
from workspaces.fetching import slots
from workspaces.job_types import ClonePayload
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

HERE = ["host:test-host"]
UNREACHABLE = GitFailed(
    "fetch", 128, stderr="fatal: unable to access: Could not resolve host: git.example"
)


@pytest.fixture
def requested(remote: Remote) -> Workspace:
    return clones.request_workspace(
        "demo", remote.url, owner=UserFactory(), actor="ada"
    )


def run(workspace: Workspace, *, attempt: int = 1) -> Workspace:
    given = context()
    given.attempt = attempt
    clone_handlers.clone(given, ClonePayload(workspace_id=workspace.pk))
    workspace.refresh_from_db()
    return workspace


def fail_with(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cloning, "make", fail)


def test_what_was_asked_for_is_cloned(requested: Workspace):
    (job,) = run_due_jobs(queues=HERE)
    assert (job.type, job.status) == ("workspace.clone", Status.COMPLETED)
    requested.refresh_from_db()
    assert requested.state == "ready"
    assert Path(requested.path).is_dir()
    run(requested)


def test_one_that_was_removed_meanwhile_is_no_error(requested: Workspace):
    Workspace.objects.all().delete()
    clone_handlers.clone(context(), ClonePayload(workspace_id=requested.pk))


def test_what_passes_by_itself_is_tried_again_and_told_at_the_last_attempt(
    requested: Workspace, told: Told, monkeypatch: pytest.MonkeyPatch
):
    fail_with(UNREACHABLE, monkeypatch)
    for attempt in range(1, 5):
        with pytest.raises(GitFailed):
            run(requested, attempt=attempt)
        requested.refresh_from_db()
        assert requested.state == "cloning"
        assert requested.clone_progress == "failed, and will be tried again"
        assert requested.last_fetch_error == str(UNREACHABLE)
    assert told("workspace.clone_failed") == []
    assert run(requested, attempt=5).state == "failed"
    (notification,) = told("workspace.clone_failed")
    assert notification.user == requested.owner
    assert notification.data["class"] == "network"
    assert "set-url demo" in notification.body


def test_what_does_not_pass_is_told_at_once_and_completes_the_job(
    requested: Workspace, remote: Remote, told: Told
):
    remote.vanish()
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.COMPLETED
    requested.refresh_from_db()
    assert (requested.state, requested.fetch_problem) == ("failed", "not_found")
    assert "does not appear to be a git repository" in requested.last_fetch_error
    assert len(told("workspace.clone_failed")) == 1


def test_a_failure_is_not_told_of_one_that_is_gone(requested: Workspace, told: Told):
    Workspace.objects.all().delete()
    clone_handlers.record_failure(requested.pk, Failure.AUTH, "x", again=False)
    assert told("workspace.clone_failed") == []


def test_what_another_url_failed_with_is_neither_recorded_nor_told(
    requested: Workspace, told: Told, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> None:
        Workspace.objects.update(url="https://git.example/y")
        raise GitFailed("fetch", 128, stderr="ERROR: Repository not found.")

    monkeypatch.setattr(cloning, "make", fail)
    with pytest.raises(Snooze):
        run(requested)
    requested.refresh_from_db()
    assert (requested.state, requested.last_fetch_error) == ("cloning", "")
    assert told("workspace.clone_failed") == []


def test_where_many_fetch_from_its_host_it_waits(settings: Settings):
    settings.ACW_GIT_HOST_LIMIT = 1
    url = "https://git.example/x.git"
    workspace = clones.request_workspace("demo", url, actor="ada")
    with slots.taken(url), pytest.raises(Snooze):
        run(workspace)
    workspace.refresh_from_db()
    assert (workspace.state, workspace.last_fetch_error) == ("cloning", "")


def test_a_worker_that_stops_leaves_it_to_the_next(
    requested: Workspace, monkeypatch: pytest.MonkeyPatch
):
    fail_with(GitStopped("fetch", "was ended"), monkeypatch)
    with pytest.raises(Snooze):
        run(requested)
    assert Job.objects.count() == 1
    requested.refresh_from_db()
    assert requested.state == "cloning"


def test_its_context_stops_it(requested: Workspace):
    stopping: JobContext = context()
    stopping.notify_stop()
    with pytest.raises(Snooze):
        clone_handlers.clone(stopping, ClonePayload(workspace_id=requested.pk))
