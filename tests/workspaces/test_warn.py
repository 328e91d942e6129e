from __future__ import annotations

import datetime as dt
import threading

import pytest
from django.db import connection
from pytest_django import Settings

from tests.workspaces.conftest import Told, make_idle
from tests.workspaces.factories import AdminFactory, UserFactory, WorktreeFactory
from workspaces import warn
from workspaces.models import Workspace, Worktree
from workspaces.warn import warn_idle

pytestmark = pytest.mark.django_db


def test_one_that_is_due_soon_is_warned_of_once(told: Told):
    owner = UserFactory()
    worktree = WorktreeFactory(workspace__name="demo", branch="topic")
    Workspace.objects.update(owner=owner)
    # As an operator does it.
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE workspace_worktrees SET last_used_at = now() - INTERVAL '28 days'"
        )
    assert warn_idle(threading.Event()) == 1
    assert warn_idle(threading.Event()) == 0
    worktree.refresh_from_db()
    assert worktree.prune_warning_at is not None
    (notification,) = told("worktree.prune_pending")
    assert notification.user == owner
    assert notification.title.startswith("Worktree topic of demo will be removed after")
    assert notification.data["worktree_id"] == worktree.pk


@pytest.mark.parametrize("days", [0, 26.99, 30.01])
def test_one_that_is_not_due_or_past_it_is_not(days: float):
    make_idle(WorktreeFactory(), days=days)
    assert warn_idle(threading.Event()) == 0


def test_worktrees_of_every_host_are_warned_of(told: Told):
    AdminFactory()
    make_idle(WorktreeFactory(workspace__host="elsewhere"), days=28)
    assert warn_idle(threading.Event()) == 1
    assert len(told("worktree.prune_pending")) == 1


def test_all_are_warned_of_in_batches(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(warn, "_BATCH", 2)
    for _ in range(5):
        make_idle(WorktreeFactory(), days=28)
    assert warn_idle(threading.Event()) == 5
    assert not Worktree.objects.filter(prune_warning_at=None).exists()


def test_nothing_is_begun_once_the_worker_stops():
    make_idle(WorktreeFactory(), days=28)
    stop = threading.Event()
    stop.set()
    assert warn_idle(stop) == 0


def test_the_mark_and_the_notification_are_written_together(
    monkeypatch: pytest.MonkeyPatch,
):
    def fail(_: object) -> None:
        raise RuntimeError

    worktree = WorktreeFactory()
    make_idle(worktree, days=28)
    monkeypatch.setattr(warn, "dispatch", fail)
    with pytest.raises(RuntimeError):
        warn_idle(threading.Event())
    worktree.refresh_from_db()
    assert worktree.prune_warning_at is None


def test_the_settings_say_when(settings: Settings):
    settings.JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD = dt.timedelta(hours=2)
    settings.JOBS_WORKTREE_PRUNE_WARNING_LEAD = dt.timedelta(hours=1)
    make_idle(WorktreeFactory(), minutes=61)
    assert warn_idle(threading.Event()) == 1
