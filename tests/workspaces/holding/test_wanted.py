from __future__ import annotations

from typing import Any

import pytest

from tests.workspaces.factories import WorkspaceFactory, WorktreeFactory
from workspaces.exceptions import (
    UnknownArchive,
    WorktreeBusy,
    WorktreeHeld,
    WorktreeQuarantined,
)
from workspaces.holding import leases
from workspaces.holding.wanted import Wanted
from workspaces.models import Workspace, Worktree, WorktreeArchive

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    row: Workspace = WorkspaceFactory()
    return row


def wanted(workspace: Workspace, **which: Any) -> Wanted:
    return Wanted(workspace=workspace, holder="agent", lease=None, **which)


def test_what_would_do_is_told_by_number_branch_or_holder(workspace: Workspace):
    mine = WorktreeFactory(workspace=workspace, branch="one", last_held_by="agent")
    theirs = WorktreeFactory(workspace=workspace, branch="two", last_held_by="other")
    WorktreeFactory(branch="two", last_held_by="agent")
    assert wanted(workspace).rows().get() == mine
    assert wanted(workspace, branch="two").rows().get() == theirs
    assert wanted(workspace, worktree_id=theirs.pk).rows().get() == theirs
    assert not wanted(workspace).is_one


def test_so_is_what_was_archived(workspace: Workspace):
    archive = WorktreeArchive.objects.create(
        workspace=workspace,
        worktree_id=7,
        branch="one",
        path="/p",
        last_held_by="agent",
        state=WorktreeArchive.State.VERIFIED,
        reason=WorktreeArchive.Reason.PRUNED,
        actor="system",
    )
    assert wanted(workspace).archive() == archive
    assert wanted(workspace, branch="one").archive() == archive
    assert wanted(workspace, branch="two").archive() is None
    assert wanted(workspace, worktree_id=7).archive() == archive
    with pytest.raises(UnknownArchive):
        wanted(workspace, worktree_id=8).archive()


def test_why_it_cannot_be_had_is_said_of_one_that_is_wanted_only(workspace: Workspace):
    row = WorktreeFactory(workspace=workspace, branch="one", last_held_by="agent")
    one = wanted(workspace, branch="one")
    one.refuse(unfinished=False)
    with pytest.raises(WorktreeBusy):
        one.refuse(unfinished=True)
    Worktree.objects.update(state="quarantined", state_reason="why")
    with pytest.raises(WorktreeQuarantined, match="why"):
        one.refuse(unfinished=False)
    Worktree.objects.update(state="ready")
    leases.hold(row.pk, holder="other", lease=None)
    with pytest.raises(WorktreeHeld, match="'other'"):
        one.refuse(unfinished=False)
    wanted(workspace).refuse(unfinished=True)
