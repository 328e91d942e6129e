from __future__ import annotations

from pathlib import Path

import pytest

from jobs.enqueue import enqueue_many
from jobs.exceptions import Snooze
from jobs.models import Status
from jobs.testing import run_due_jobs
from notify.models import AuditEntry
from tests.workspaces.archiving import zoo
from tests.workspaces.conftest import context
from workspaces import job_types
from workspaces.archiving.handlers import restore_worktree
from workspaces.job_types import RestorePayload
from workspaces.models import Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

HERE = ["host:test-host"]


def test_a_worktree_is_restored_for_who_asked(
    repository: Repository, worktree: Worktree
):
    archive = zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    enqueue_many([job_types.restore(archive, actor="ada")] * 2)
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.COMPLETED
    assert (Path(worktree.path) / "README").exists()
    assert AuditEntry.objects.get(action="worktree.restored").actor == "ada"


def test_what_cannot_be_restored_is_not_tried_again(
    repository: Repository, worktree: Worktree
):
    archive = zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    archive.manifest_digest = "0" * 64
    archive.save()
    enqueue_many([job_types.restore(archive, actor="ada")])
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.DEAD
    assert "not the one that was recorded" in str(job.last_error)


def test_one_that_is_stopped_is_left_to_the_next(
    repository: Repository, worktree: Worktree
):
    zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    stopping = context()
    stopping.notify_stop()
    with pytest.raises(Snooze):
        restore_worktree(stopping, RestorePayload(worktree_id=worktree.pk, actor="ada"))
    assert not Path(worktree.path).exists()
