from __future__ import annotations

import pytest
from django.db.models.functions import Now

from tests.workspaces.factories import WorkspaceFactory, WorktreeFactory
from workspaces import holds, keeping, prune
from workspaces.archiving import lookup
from workspaces.exceptions import ArchiveExpired, UnknownArchive, UnknownWorktree
from workspaces.models import Workspace, WorktreeArchive

pytestmark = pytest.mark.django_db

State = WorktreeArchive.State


def make(workspace: Workspace, worktree_id: int, **values: object) -> WorktreeArchive:
    return WorktreeArchive.objects.create(
        workspace=workspace,
        worktree_id=worktree_id,
        **{
            "path": "/x",
            "branch": "topic",
            "state": State.VERIFIED,
            "reason": WorktreeArchive.Reason.PRUNED,
            "actor": "somebody",
            "last_held_by": "agent",
            **values,
        },
    )


def test_the_newest_that_is_whole_is_the_one_to_restore_from():
    workspace = WorkspaceFactory()
    make(workspace, 1)
    newest = make(workspace, 1, state=State.RESTORED)
    make(workspace, 1, state=State.WRITING)
    make(workspace, 2)
    assert lookup.latest(1) == newest
    assert lookup.latest(3) is None


def test_by_branch_and_by_holder_only_what_is_gone_and_not_restored_since():
    workspace = WorkspaceFactory()
    there = WorktreeFactory(workspace=workspace)
    make(workspace, there.pk)
    make(workspace, there.pk + 1, state=State.RESTORED)
    make(WorkspaceFactory(), there.pk + 2)
    make(workspace, there.pk + 3, branch="other", last_held_by="else")
    assert lookup.of_branch(workspace, "topic") is None
    assert lookup.of_holder(workspace, "agent") is None
    gone = make(workspace, there.pk + 4)
    assert lookup.of_branch(workspace, "topic") == gone
    assert lookup.of_holder(workspace, "agent") == gone


def test_what_cannot_be_restored_is_refused_with_the_reason():
    with pytest.raises(UnknownArchive, match="there is no archive of worktree 1"):
        lookup.required(1)
    make(WorkspaceFactory(), 1, state=State.EXPIRED, expires_at=Now())
    with pytest.raises(ArchiveExpired, match=r"ACW_ARCHIVE_RETENTION.*'topic'"):
        lookup.required(1)


def test_who_asks_for_a_worktree_that_was_pruned_is_told_how_it_comes_back():
    workspace = WorkspaceFactory()
    make(workspace, 1)
    make(workspace, 2, state=State.EXPIRED)
    assert "`worktree restore 1` brings it back" in str(lookup.unknown(1))
    assert str(lookup.unknown(2)) == (
        "there is no worktree 2; `worktree list` shows those there are"
    )
    for refused in (
        lambda: holds.heartbeat(1, fencing_no=1),
        lambda: keeping.pin(1, actor="ada"),
        lambda: prune.archive_worktree(1, actor="ada"),
    ):
        with pytest.raises(UnknownWorktree, match="it was pruned"):
            refused()
