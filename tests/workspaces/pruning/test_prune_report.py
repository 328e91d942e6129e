from __future__ import annotations

from pathlib import Path

import pytest

from notify.models import AuditEntry
from tests.workspaces.conftest import Told
from tests.workspaces.factories import AdminFactory, WorktreeFactory
from workspaces.models import LedgerEntry, Worktree, WorktreeArchive
from workspaces.prune import Outcome, prune_worktree
from workspaces.pruning import prune_report
from workspaces.pruning.clearing import Cleared

pytestmark = pytest.mark.django_db


def fail(_: object) -> None:
    raise RuntimeError


def test_the_report_and_the_notification_are_written_together(
    monkeypatch: pytest.MonkeyPatch,
):
    worktree = WorktreeFactory(state=Worktree.State.PRUNING)
    monkeypatch.setattr(prune_report, "dispatch", fail)
    with pytest.raises(RuntimeError):
        prune_report.blocked(worktree, "it is too large")
    worktree.refresh_from_db()
    assert worktree.prune_blocked_at is None
    assert worktree.state == Worktree.State.PRUNING


def test_row_ledger_audit_and_notification_are_written_together(
    worktree: Worktree,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    with monkeypatch.context() as broken:
        broken.setattr(prune_report, "dispatch", fail)
        with pytest.raises(RuntimeError):
            prune_worktree(worktree.pk)
    assert Worktree.objects.get().state == Worktree.State.PRUNING
    assert not LedgerEntry.objects.exists()
    assert not AuditEntry.objects.exists()
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    (entry,) = LedgerEntry.objects.all()
    assert entry.archive_id == WorktreeArchive.objects.get().pk


def test_what_could_not_be_deleted_is_told_once_and_stays_claimed(told: Told):
    AdminFactory()
    worktree = WorktreeFactory(state=Worktree.State.PRUNING)
    cleared = Cleared(archive=None, verdict="")
    for _ in range(2):
        error = PermissionError(1, "Operation not permitted", "/secret/place")
        prune_report.not_deleted(worktree, cleared, error)
    worktree.refresh_from_db()
    assert worktree.state == Worktree.State.PRUNING
    assert worktree.state_reason.startswith("what is left is below trash/")
    (notification,) = told("worktree.prune_blocked")
    assert "Operation not permitted" in notification.body
    assert "/secret" not in notification.body


def test_one_that_was_pruned_by_somebody_else_meanwhile_is_not_written_down_twice():
    worktree = WorktreeFactory()
    prune_report.pruned(worktree, Cleared(archive=None, verdict=""), actor="system")
    assert not LedgerEntry.objects.exists()
    assert Worktree.objects.exists()


def test_whoever_is_told_learns_what_it_had_and_until_when(told: Told):
    AdminFactory()
    worktree = WorktreeFactory(state=Worktree.State.PRUNING)
    archive = WorktreeArchive.objects.create(
        workspace=worktree.workspace,
        worktree_id=worktree.pk,
        path=worktree.path,
        branch=worktree.branch,
        reason="pruned",
        actor="system",
        contents={"words": ["1 stash (later)"]},
        expires_at="2100-01-01T00:00Z",
    )
    archive.refresh_from_db()
    prune_report.pruned(
        worktree, Cleared(archive=archive, verdict="equal"), actor="system"
    )
    (notification,) = told("worktree.pruned")
    assert "It had: 1 stash (later)." in notification.body
    assert "until 2100-01-01 00:00 UTC" in notification.body
    assert notification.data["archive_id"] == archive.pk
