from __future__ import annotations

import pytest

from jobs.enqueue import NewJob, enqueue_many
from jobs.models import Job, Priority
from jobs.registry import job_types as registered
from tests.workspaces.factories import WorkspaceFactory, WorktreeFactory
from workspaces import job_types

pytestmark = pytest.mark.django_db


def all_kinds() -> list[NewJob]:
    worktree = WorktreeFactory(workspace__host="h" * 255)
    return [
        job_types.fetch(worktree.workspace),
        job_types.fetch_when_due(worktree.workspace),
        job_types.clone(worktree.workspace),
        job_types.prune(worktree),
        job_types.clean_up("h" * 255),
    ]


def test_each_has_a_handler_and_goes_to_its_host_once():
    kinds = all_kinds()
    enqueue_many(kinds)
    enqueue_many(kinds)
    assert Job.objects.count() == len(kinds)
    assert {job.queue for job in Job.objects.all()} == {"host:" + "h" * 255}
    assert {kind.type for kind in kinds} <= set(registered())


def test_two_workspaces_are_two_jobs():
    enqueue_many(job_types.fetch(w) for w in WorkspaceFactory.create_batch(2))
    assert Job.objects.count() == 2


def test_two_hosts_with_long_names_are_two_jobs():
    enqueue_many(job_types.clean_up("h" * 250 + end) for end in "ab")
    assert Job.objects.count() == 2


def test_a_fetch_can_be_asked_for_before_others():
    job = job_types.fetch(WorkspaceFactory(), priority=Priority.HIGH)
    assert job.priority == Priority.HIGH


def test_the_fetch_of_a_remote_is_one_job_for_each_host():
    first, _ = workspaces = WorkspaceFactory.create_batch(2)
    workspaces.append(WorkspaceFactory(host="elsewhere"))
    workspaces.append(WorkspaceFactory(url="https://git.example/another.git"))
    enqueue_many(job_types.fetch_when_due(workspace) for workspace in workspaces)
    assert Job.objects.count() == 3
    enqueue_many([job_types.fetch(first)])
    assert Job.objects.count() == 4


def test_a_storage_that_every_host_reaches_is_cleaned_up_by_any():
    enqueue_many([job_types.clean_up("")])
    assert Job.objects.get().queue == "default"
