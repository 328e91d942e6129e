from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from tests.workspaces.factories import WorkspaceFactory, WorktreeFactory
from workspaces import ledger
from workspaces.models import LedgerEntry, WorktreeArchive

pytestmark = pytest.mark.django_db

Action = LedgerEntry.Action


def test_things_are_named_by_value_and_stay_when_they_go():
    worktree = WorktreeFactory(workspace__name="demo", branch="topic")
    archive = WorktreeArchive.objects.create(
        workspace=worktree.workspace,
        worktree_id=worktree.pk,
        path=worktree.path,
        branch=worktree.branch,
        reason="pruned",
        actor="system",
        commit_sha="c" * 40,
        manifest_digest="d" * 64,
    )
    ledger.record(
        Action.PRUNED,
        actor="ada",
        worktree=worktree,
        archive=archive,
        verified="all is equal",
        data={"a": 1},
    )
    worktree.workspace.delete()
    (entry,) = LedgerEntry.objects.all()
    assert (entry.workspace, entry.branch, entry.path) == (
        "demo",
        "topic",
        worktree.path,
    )
    assert (entry.commit_sha, entry.manifest_digest) == ("c" * 40, "d" * 64)
    assert (entry.verified, entry.data) == ("all is equal", {"a": 1})
    assert (entry.actor, entry.host) == ("ada", "test-host")


def test_what_has_no_worktree_is_written_with_its_workspace():
    WorkspaceFactory(name="demo")
    entry = ledger.record(Action.QUARANTINED, actor="system", workspace="demo")
    assert (entry.workspace, entry.worktree_id) == ("demo", None)


@pytest.mark.parametrize(
    "verb",
    ["UPDATE worktree_ledger SET actor = 'nobody'", "DELETE FROM worktree_ledger"],
)
def test_nobody_changes_or_deletes_what_is_written(verb: str):
    ledger.record(Action.PRUNED, actor="ada", workspace="demo")
    with (
        pytest.raises(DatabaseError, match="only added"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(verb)
    assert LedgerEntry.objects.get().actor == "ada"
