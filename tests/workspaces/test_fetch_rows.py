from __future__ import annotations

import pytest
from django.db.models.functions import Now

from workspaces import fetch_rows, holds
from workspaces.models import Workspace, Worktree

pytestmark = pytest.mark.django_db


def test_it_is_the_workspace_with_what_a_fetch_needs(workspace: Workspace):
    found = fetch_rows.find_idle(workspace.pk)
    assert found == workspace
    needed = ("name", "url", "host", "path", "default_branch", "failing_since")
    assert not found.get_deferred_fields() & set(needed)
    assert all(getattr(found, field) == getattr(workspace, field) for field in needed)


def test_one_that_is_gone_is_not_found():
    assert fetch_rows.find_idle(12345) is None


def test_idle_means_the_same_as_everywhere(workspace: Workspace, worktree: Worktree):
    assert fetch_rows.find_idle(workspace.pk) == workspace
    holds.acquire(workspace, holder="agent")
    assert fetch_rows.find_idle(workspace.pk) is None
    assert not Workspace.objects.idle().exists()


def test_a_fetch_that_worked_is_recorded(workspace: Workspace):
    other = Workspace.objects.create(name="other", url="x", host="x", path="x")
    assert fetch_rows.record_fetched(workspace.pk, default_branch="trunk")
    before = workspace.last_fetched_at
    workspace.refresh_from_db()
    assert before is not None
    assert workspace.last_fetched_at is not None
    assert workspace.last_fetched_at > before
    assert workspace.default_branch == "trunk"
    other.refresh_from_db()
    assert other.last_fetched_at is None


def test_where_something_turns_nothing_is_recorded(workspace: Workspace):
    Workspace.objects.update(failing_since=Now())
    assert not fetch_rows.record_fetched(workspace.pk, default_branch="trunk")
    workspace.refresh_from_db()
    assert workspace.default_branch == "main"
    assert not fetch_rows.record_fetched(12345, default_branch="main")
