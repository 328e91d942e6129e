from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest
from pytest_django import Settings

from jobs.enqueue import enqueue_many
from jobs.models import Status
from jobs.testing import run_due_jobs
from tests.workspaces.conftest import Told, begin_restoration, context, make_idle
from tests.workspaces.factories import AdminFactory
from workspaces import holds, job_types, keeping
from workspaces.job_types import PrunePayload
from workspaces.models import LedgerEntry, Worktree
from workspaces.prune import archive_worktree
from workspaces.pruning import prune_handlers
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

HERE = ["host:test-host"]


def test_a_worktree_that_is_due_is_pruned(worktree: Worktree):
    make_idle(worktree, days=31)
    enqueue_many([job_types.prune(worktree)])
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.COMPLETED
    assert not Worktree.objects.exists()
    assert not Path(worktree.path).exists()


def test_one_that_is_due_for_a_warning_is_warned_of(worktree: Worktree, told: Told):
    AdminFactory()
    make_idle(worktree, days=28)
    prune_handlers.prune_worktree(context(), PrunePayload(worktree_id=worktree.pk))
    assert len(told("worktree.prune_pending")) == 1
    assert Path(worktree.path).exists()


def test_a_worktree_that_was_used_meanwhile_is_not(worktree: Worktree):
    prune_handlers.prune_worktree(context(), PrunePayload(worktree_id=worktree.pk))
    assert Path(worktree.path).exists()


def test_one_that_somebody_asked_for_is_archived_in_their_name(worktree: Worktree):
    keeping.archive_now(worktree.pk, actor="ada")
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.COMPLETED
    assert not Worktree.objects.exists()
    assert LedgerEntry.objects.get().actor == "ada"


def test_what_keeps_it_is_told_and_nobody_tries_again(
    worktree: Worktree, told: Told, settings: Settings
):
    AdminFactory()
    settings.ACW_ARCHIVE_MAX_SIZE = 1024
    Path(worktree.path, "large").write_bytes(os.urandom(2000))
    keeping.archive_now(worktree.pk, actor="ada")
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.COMPLETED
    assert "ACW_ARCHIVE_MAX_SIZE" in told("worktree.prune_blocked")[0].body
    assert Path(worktree.path, "large").exists()


def test_one_that_was_acquired_meanwhile_is_left_alone(worktree: Worktree):
    keeping.archive_now(worktree.pk, actor="ada")
    holds.acquire_again(worktree.pk, holder="agent")
    (job,) = run_due_jobs(queues=HERE)
    assert job.status == Status.COMPLETED
    assert Path(worktree.path).exists()


def test_what_was_decided_or_done_last_counts(worktree: Worktree):
    """Whoever keeps or uses it after it was to be archived has it; whoever asks for that once more does not wait for the first."""
    for then in ("keep", "use"):
        keeping.archive_now(worktree.pk, actor="ada")
        if then == "keep":
            keeping.keep(worktree.pk, actor="ben")
        else:
            holds.release(holds.acquire_again(worktree.pk, holder="agent").pk)
        (job,) = run_due_jobs(queues=HERE)
        assert job.status == Status.COMPLETED
        assert Path(worktree.path).exists()
    keeping.archive_now(worktree.pk, actor="ada")
    keeping.keep(worktree.pk, actor="ben", duration=dt.timedelta(days=60))
    keeping.archive_now(worktree.pk, actor="ada")
    run_due_jobs(queues=HERE)
    assert not Path(worktree.path).exists()


def test_an_interrupted_restoration_waits_for_a_configuration_without_failing(
    worktree: Worktree, repository: Repository
):
    archive_worktree(worktree.pk, actor="ada")
    begin_restoration(worktree)
    config = repository.path / "config"
    before = config.read_text()
    config.write_text(f'{before}[filter "x"]\n\tclean = /bin/evil\n')
    payload = PrunePayload(worktree_id=worktree.pk)
    prune_handlers.prune_worktree(context(), payload)
    assert Worktree.objects.get().state == Worktree.State.RESTORING
    config.write_text(before)
    prune_handlers.prune_worktree(context(), payload)
    assert Worktree.objects.get().state == Worktree.State.READY
