from __future__ import annotations

from collections.abc import Iterable

import pytest
from django.contrib.auth.models import Permission, User
from django.db import models
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs.models import Job
from notify.models import AuditEntry
from tests.workspaces.factories import UserFactory, WorkspaceFactory, WorktreeFactory
from workspaces.models import Workspace, Worktree

pytestmark = pytest.mark.django_db

WORKSPACES = "admin:workspaces_workspace"
WORKTREES = "admin:workspaces_worktree"


def staff(client: Client, *permissions: str) -> Client:
    """A client logged in as staff with these permissions only."""
    user = User.objects.create_user("staff", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    return client


def act(client: Client, page: str, action: str, rows: Iterable[models.Model]) -> str:
    chosen = [str(row.pk) for row in rows]
    response = client.post(
        reverse(f"{page}_changelist"),
        {"action": action, "_selected_action": chosen},
        follow=True,
    )
    assert response.status_code == 200
    return response.content.decode()


def held() -> Worktree:
    row: Worktree = WorktreeFactory(held_by="agent", held_since=timezone.now())
    return row


def test_the_list_of_workspaces_shows_how_they_are(admin_client: Client):
    failing = WorkspaceFactory(name="broken", failing_since=timezone.now())
    WorktreeFactory(workspace=failing)
    WorkspaceFactory(name="fresh", last_fetched_at=timezone.now())
    WorkspaceFactory(name="never")
    page = admin_client.get(reverse(f"{WORKSPACES}_changelist")).content.decode()
    for shown in ("failing since", "well", "not fetched yet"):
        assert shown in page


def test_the_list_can_be_searched_and_filtered(admin_client: Client):
    WorkspaceFactory(name="found", failing_since=timezone.now())
    WorkspaceFactory(name="other")
    url = reverse(f"{WORKSPACES}_changelist")
    for query in ({"q": "found"}, {"failing_since__isempty": "0"}):
        page = admin_client.get(url, query).content.decode()
        assert "found" in page
        assert ">other<" not in page


def test_a_credential_in_a_remote_is_never_shown(admin_client: Client):
    workspace = WorkspaceFactory(url="https://user:SECRET@git.example/x?t=SECRET")
    for url in (
        reverse(f"{WORKSPACES}_changelist"),
        reverse(f"{WORKSPACES}_change", args=[workspace.pk]),
    ):
        page = admin_client.get(url).content.decode()
        assert "git.example/x" in page
        assert "SECRET" not in page


def test_of_a_workspace_only_the_owner_can_be_changed(admin_client: Client):
    workspace = WorkspaceFactory()
    owner = UserFactory()
    url = reverse(f"{WORKSPACES}_change", args=[workspace.pk])
    assert "0 worktrees, 0 held" in admin_client.get(url).content.decode()
    admin_client.post(
        url, {"owner": owner.pk, "url": "/evil", "path": "/", "name": "x"}
    )
    after = Workspace.objects.get()
    assert after.owner == owner
    assert (after.url, after.path, after.name) == (
        workspace.url,
        workspace.path,
        workspace.name,
    )


@pytest.mark.parametrize("page", [WORKSPACES, WORKTREES])
def test_rows_are_neither_added_nor_deleted_by_hand(admin_client: Client, page: str):
    worktree = WorktreeFactory()
    pk = worktree.pk if page == WORKTREES else worktree.workspace.pk
    assert admin_client.get(reverse(f"{page}_add")).status_code == 403
    assert admin_client.post(reverse(f"{page}_delete", args=[pk])).status_code == 403


def test_fetches_can_be_asked_for(admin_client: Client):
    page = act(admin_client, WORKSPACES, "fetch_soon", WorkspaceFactory.create_batch(2))
    assert "2 fetches are queued" in page
    assert Job.objects.filter(type="workspace.fetch").count() == 2
    assert AuditEntry.objects.filter(actor="admin").count() == 2


def test_not_by_who_may_only_look(client: Client):
    staff(client, "view_workspace")
    act(client, WORKSPACES, "fetch_soon", [WorkspaceFactory()])
    assert not Job.objects.exists()


def test_by_who_has_that_permission(client: Client):
    staff(client, "view_workspace", "fetch_workspace")
    act(client, WORKSPACES, "fetch_soon", [WorkspaceFactory()])
    assert Job.objects.exists()


def test_the_list_of_worktrees_shows_who_has_them(admin_client: Client):
    held()
    WorktreeFactory()
    WorktreeFactory(state=Worktree.State.PRUNING)
    page = admin_client.get(reverse(f"{WORKTREES}_changelist")).content.decode()
    for shown in ("held by agent", "free", "pruning", "not while held"):
        assert shown in page


def test_a_worktree_is_only_looked_at(admin_client: Client):
    worktree = held()
    url = reverse(f"{WORKTREES}_change", args=[worktree.pk])
    assert worktree.path in admin_client.get(url).content.decode()
    assert admin_client.post(url, {"path": "/"}).status_code == 403


def test_worktrees_are_released_and_the_others_named(admin_client: Client):
    worktree, free = held(), WorktreeFactory()
    page = act(admin_client, WORKTREES, "release", [worktree, free])
    assert "1 released." in page
    assert f"Skipped: worktree {free.pk} is not held." in page
    worktree.refresh_from_db()
    assert worktree.held_by is None
    assert AuditEntry.objects.get().actor == "admin"


def test_not_released_by_who_may_only_look(client: Client):
    staff(client, "view_worktree")
    act(client, WORKTREES, "release", [held()])
    assert Worktree.objects.get().held_by == "agent"


def test_actions_are_not_reached_by_following_a_link(admin_client: Client):
    worktree = held()
    admin_client.get(
        reverse(f"{WORKTREES}_changelist"),
        {"action": "release", "_selected_action": str(worktree.pk)},
    )
    worktree.refresh_from_db()
    assert worktree.held_by == "agent"
