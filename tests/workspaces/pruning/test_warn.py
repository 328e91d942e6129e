from __future__ import annotations

import datetime as dt
import threading
from pathlib import Path

import pytest
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from jobs.models import WorkerProcess
from tests.workspaces.conftest import Told, make_idle
from tests.workspaces.factories import AdminFactory, UserFactory, WorktreeFactory
from tests.workspaces.pruning.test_contents import everything_in
from tests.workspaces.remote import commit, git
from workspaces import querysets
from workspaces.models import Workspace, Worktree
from workspaces.pruning import warn

pytestmark = pytest.mark.django_db


def warn_idle(*, stopping: bool = False) -> int:
    stop = threading.Event()
    if stopping:
        stop.set()
    return warn.warn_idle(stop)[0]


def test_one_that_is_due_soon_is_warned_of_once(told: Told):
    owner = UserFactory()
    worktree = WorktreeFactory(workspace__name="demo", branch="topic")
    Workspace.objects.update(owner=owner)
    # As an operator does it.
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE workspace_worktrees SET last_used_at = now() - INTERVAL '28 days'"
        )
    assert warn_idle() == 1
    assert warn_idle() == 0
    worktree.refresh_from_db()
    assert worktree.prune_warning_at is not None
    (notification,) = told("worktree.prune_pending")
    assert notification.user == owner
    assert notification.title.startswith(
        "Worktree topic of demo will be archived and removed after"
    )
    assert notification.data["worktree_id"] == worktree.pk
    assert (
        "could not be looked at: its directory is not on the disk" in notification.body
    )


def test_it_is_told_what_is_in_it_and_what_can_be_done(worktree: Worktree, told: Told):
    AdminFactory()
    path = Path(worktree.path)
    everything_in(path)
    git("commit", "--quiet", "--allow-empty", "-m", "Mend the login", cwd=path)
    make_idle(worktree, days=28)
    assert warn_idle() == 1
    (notification,) = told("worktree.prune_pending")
    for said in (
        "2 commits that are not pushed (",
        "Mend the login",
        "1 uncommitted change (README)",
        "2 untracked files and directories (nested/, untracked)",
        "1 ignored file (.env)",
        "can be made again (node_modules/)",
        "restored for 90 days",
        f"`worktree keep {worktree.pk}`",
        f"`worktree pin {worktree.pk}`",
        f"`worktree archive {worktree.pk}`",
    ):
        assert said in notification.body
    assert notification.data["url"].endswith(f"/worktree/{worktree.pk}/change/")
    assert notification.data["contents"]["commits"]["count"] == 2


def test_one_with_nothing_of_its_own_is_said_to_have_nothing(
    worktree: Worktree, told: Told
):
    AdminFactory()
    make_idle(worktree, days=28)
    warn_idle()
    body = told("worktree.prune_pending")[0].body
    assert "nothing that is not somewhere else too" in body


def test_one_that_turns_out_to_be_in_use_is_not_warned_of(
    worktree: Worktree, told: Told
):
    AdminFactory()
    make_idle(worktree, days=28)
    Worktree.objects.update(use_seen_at=Now() - dt.timedelta(hours=1))
    commit(Path(worktree.path))
    assert warn_idle() == 0
    assert told("worktree.prune_pending") == []
    assert Worktree.objects.get().last_used_at > worktree.last_used_at


@pytest.mark.parametrize("days", [0, 26.99, 30.01])
def test_one_that_is_not_due_or_past_it_is_not(days: float):
    make_idle(WorktreeFactory(), days=days)
    assert warn_idle() == 0


def test_one_that_is_past_it_is_where_a_warning_is_required(
    settings: Settings, told: Told
):
    settings.JOBS_WORKTREE_PRUNE_REQUIRE_WARNING = True
    AdminFactory()
    make_idle(WorktreeFactory(), days=300)
    assert warn_idle() == 1
    worktree = Worktree.objects.get()
    assert worktree.prune_warning_at is not None
    until = worktree.prune_warning_at + settings.JOBS_WORKTREE_PRUNE_WARNING_LEAD
    (notification,) = told("worktree.prune_pending")
    assert notification.title.endswith(f"after {until:%Y-%m-%d %H:%M %Z}")


def test_worktrees_of_a_host_without_a_worker_are_warned_of_all_the_same(told: Told):
    AdminFactory()
    make_idle(WorktreeFactory(workspace__host="elsewhere"), days=28)
    assert warn_idle() == 1
    (notification,) = told("worktree.prune_pending")
    assert "its host has no worker now" in notification.body


def test_those_of_a_host_with_a_worker_are_left_to_it():
    WorkerProcess.objects.create(
        name="w",
        host="elsewhere",
        pid=1,
        threads=1,
        queues=[],
        types=[],
        beat_at=Now(),
    )
    worktree = WorktreeFactory(workspace__host="elsewhere")
    make_idle(worktree, days=28)
    assert warn.warn_idle(threading.Event()) == (0, [worktree])
    worktree.refresh_from_db()
    assert worktree.prune_warning_at is None


def test_more_than_one_tick_looks_into_are_left_to_jobs(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(warn, "AT_ONCE", 2)
    monkeypatch.setattr(querysets, "_BATCH", 2)
    for _ in range(5):
        make_idle(WorktreeFactory(), days=28)
    warned, left = warn.warn_idle(threading.Event())
    assert (warned, len(left)) == (2, 3)
    assert sum(warn.warn_worktree(worktree.pk) for worktree in left) == 3
    assert not Worktree.objects.filter(prune_warning_at=None).exists()


def test_nothing_is_begun_once_the_worker_stops():
    make_idle(WorktreeFactory(), days=28)
    assert warn_idle(stopping=True) == 0


def test_the_mark_and_the_notification_are_written_together(
    monkeypatch: pytest.MonkeyPatch,
):
    def fail(_: object) -> None:
        raise RuntimeError

    worktree = WorktreeFactory()
    make_idle(worktree, days=28)
    monkeypatch.setattr(warn, "dispatch", fail)
    with pytest.raises(RuntimeError):
        warn_idle()
    worktree.refresh_from_db()
    assert worktree.prune_warning_at is None


def test_the_settings_say_when(settings: Settings):
    settings.JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD = dt.timedelta(hours=2)
    settings.JOBS_WORKTREE_PRUNE_WARNING_LEAD = dt.timedelta(hours=1)
    make_idle(WorktreeFactory(), minutes=61)
    assert warn_idle() == 1
