from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from jobs import thread_connection
from tests.workspaces.factories import WorkspaceFactory, WorktreeFactory
from workspaces import holds
from workspaces.fetch import fetch_together
from workspaces.fetching import fetch_rows
from workspaces.fetching.fetch_rows import Candidate
from workspaces.models import Workspace, Worktree

pytestmark = pytest.mark.django_db

SOON = dt.timedelta(minutes=2)
LATER = dt.timedelta(hours=1)


def found(workspace: Workspace, *, soon: dt.timedelta = SOON) -> list[Workspace]:
    listed = fetch_rows.find_idle(workspace.pk, soon=soon)
    return [candidate.workspace for candidate in listed]


def test_it_is_the_workspace_with_what_a_fetch_needs(workspace: Workspace):
    (candidate,) = fetch_rows.find_idle(workspace.pk, soon=SOON)
    assert candidate.workspace == workspace
    for field in fetch_rows._FIELDS:
        assert field not in candidate.workspace.get_deferred_fields()
        assert getattr(candidate.workspace, field) == getattr(workspace, field)
    assert candidate.branches == []


def test_what_the_seal_knows_comes_along():
    entries = [{"where": "config", "key": "core.pager", "digest": "x"}]
    workspace = WorkspaceFactory(approved_config=entries, tampered_config=entries)
    (candidate,) = fetch_rows.find_idle(workspace.pk, soon=SOON)
    assert candidate.workspace.approved_config == entries
    assert candidate.workspace.tampered_config == entries


def test_one_that_is_gone_or_not_cloned_is_not_found():
    assert fetch_rows.find_idle(12345, soon=SOON) == []
    for state in (Workspace.State.CLONING, Workspace.State.FAILED):
        assert found(WorkspaceFactory(state=state)) == []


def test_idle_means_the_same_as_everywhere(workspace: Workspace, worktree: Worktree):
    assert found(workspace) == [workspace]
    holds.acquire(workspace, holder="agent")
    assert found(workspace) == []
    assert not Workspace.objects.idle().exists()


def test_with_it_come_those_of_its_remote_that_are_due_soon_or_that_the_remote_fails():
    asked = WorkspaceFactory(next_fetch_at=Now() + LATER)
    due = WorkspaceFactory(next_fetch_at=Now() - LATER)
    soon = WorkspaceFactory(next_fetch_at=Now() + SOON / 2)
    parked = WorkspaceFactory(next_fetch_at=Now() + LATER, fetch_problem="auth")
    WorkspaceFactory(next_fetch_at=Now() + LATER)
    WorkspaceFactory(next_fetch_at=Now() + LATER, fetch_problem="corrupt")
    WorkspaceFactory(host="elsewhere")
    WorkspaceFactory(url="https://git.example/another.git")
    WorktreeFactory(workspace=WorkspaceFactory(), held_by="x", held_since=Now())
    assert found(asked) == [asked, due, soon, parked]
    candidates = fetch_rows.find_idle(asked.pk, soon=SOON)
    assert [c.is_due for c in candidates] == [False, True, False, False]
    assert [c.is_parked for c in candidates] == [False, False, False, True]


def test_the_branches_of_its_worktrees_come_along(workspace: Workspace):
    for branch in ("a", "b"):
        WorktreeFactory(workspace=workspace, branch=branch)
    (candidate,) = fetch_rows.find_idle(workspace.pk, soon=SOON)
    assert sorted(candidate.branches) == ["a", "b"]


def test_a_fetch_that_worked_is_recorded(workspace: Workspace):
    other = WorkspaceFactory()
    assert fetch_rows.record_fetched(workspace, next_in=LATER)
    before = workspace.last_fetched_at
    workspace.refresh_from_db()
    assert before is not None
    assert workspace.last_fetched_at is not None
    assert workspace.last_fetched_at > before
    assert workspace.next_fetch_at == workspace.last_fetched_at + LATER
    other.refresh_from_db()
    assert other.last_fetched_at is None


def test_where_something_turns_nothing_is_recorded(workspace: Workspace):
    before = workspace.last_fetched_at
    Workspace.objects.update(failing_since=Now())
    assert not fetch_rows.record_fetched(workspace, next_in=LATER)
    Workspace.objects.update(failing_since=None, default_branch="trunk")
    assert not fetch_rows.record_fetched(workspace, next_in=LATER)
    workspace.refresh_from_db()
    assert workspace.last_fetched_at == before
    gone = WorkspaceFactory()
    Workspace.objects.filter(pk=gone.pk).delete()
    assert not fetch_rows.record_fetched(gone, next_in=LATER)


def test_a_fetch_after_which_nothing_has_turned_is_two_statements(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    statements: list[str] = []
    execute = thread_connection.execute

    def noted(query: str, parameters: list[Any]) -> list[Any]:
        statements.append(query)
        return execute(query, parameters)

    monkeypatch.setattr(thread_connection, "execute", noted)
    with CaptureQueriesContext(connection) as on_djangos:
        candidates = fetch_rows.find_idle(workspace.pk, soon=SOON)
        fetch_together(candidates)
    assert len(statements) == 2
    # Whatever a job uses of Django's connection, that is made as new after it.
    assert not on_djangos.captured_queries


def test_a_candidate_is_due_unless_it_is_said():
    assert Candidate(workspace=Workspace()).is_due
