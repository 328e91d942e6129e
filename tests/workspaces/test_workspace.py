from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.utils import timezone

from tests.workspaces.factories import UserFactory, WorkspaceFactory, WorktreeFactory
from workspaces.models import Workspace, Worktree

pytestmark = pytest.mark.django_db


def test_operators_know_the_tables_by_these_names():
    assert Workspace._meta.db_table == "workspaces"
    assert Worktree._meta.db_table == "workspace_worktrees"


def test_times_are_the_databases():
    worktree = WorktreeFactory()
    worktree.refresh_from_db()
    assert worktree.created_at == worktree.last_used_at
    assert worktree.state == Worktree.State.READY


def test_a_name_is_checked_where_it_is_edited():
    with pytest.raises(ValidationError, match="begins with a-z"):
        WorkspaceFactory.build(name="../x", path="/x").full_clean()


def test_an_owner_who_goes_leaves_the_workspace():
    workspace = WorkspaceFactory(owner=UserFactory())
    workspace.owner.delete()
    workspace.refresh_from_db()
    assert workspace.owner is None


def test_a_branch_has_one_worktree_in_a_workspace():
    first = WorktreeFactory(branch="topic")
    WorktreeFactory(branch="topic")
    with pytest.raises(IntegrityError, match="worktrees_branch_once"):
        WorktreeFactory(branch="topic", workspace=first.workspace)


def test_a_directory_has_one_row():
    with pytest.raises(IntegrityError, match="path"):
        WorktreeFactory(path=WorktreeFactory().path)


@pytest.mark.parametrize(
    "values", [{"held_by": "agent"}, {"held_since": timezone.now()}]
)
def test_who_holds_it_and_since_when_go_together(values: dict[str, object]):
    with pytest.raises(IntegrityError, match="worktrees_held_by_with_since"):
        WorktreeFactory(**values)


def test_only_a_ready_one_can_be_held():
    with pytest.raises(IntegrityError, match="worktrees_held_only_when_ready"):
        WorktreeFactory(
            held_by="agent",
            held_since=timezone.now(),
            state=Worktree.State.PRUNING,
        )
