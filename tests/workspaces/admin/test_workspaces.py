from __future__ import annotations

import datetime as dt
import html
import re
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs.models import Job
from notify.models import AuditEntry
from tests.workspaces.admin.desk import act, press, queries, shown, staff
from tests.workspaces.factories import (
    LedgerEntryFactory,
    UserFactory,
    WorkspaceFactory,
    WorktreeFactory,
)
from workspaces.admin.workspaces import WorkspaceAdmin
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

PAGE = "admin:workspaces_workspace"
HOUR = dt.timedelta(hours=1)


def test_the_list_shows_how_they_are(admin_client: Client):
    WorktreeFactory(
        workspace=WorkspaceFactory(name="broken", failing_since=timezone.now()),
        held_by="agent",
        held_since=timezone.now(),
    )
    WorkspaceFactory(
        name="fresh",
        last_fetched_at=timezone.now() - 3 * HOUR,
        next_fetch_at=timezone.now() + 2.5 * HOUR,
        size_bytes=3 * 1024**3,
    )
    WorkspaceFactory(name="never")
    WorkspaceFactory(name="coming", state="cloning", clone_progress="objects 40%")
    WorkspaceFactory(name="gone", state="failed")
    WorkspaceFactory(
        name="planted", tampered_since=timezone.now(), tampered_config=[{"key": "x"}]
    )
    page = shown(admin_client, PAGE)
    for word in (
        "failing",
        "well",
        "3h ago",
        "in 2h 29m",
        "3.0\xa0GB",
        "never fetched",
        "objects 40%",
        "not cloned",
        "configuration changed",
        "1, 1 held",
    ):
        assert word in page, word


def test_an_empty_list_is_a_page_too(admin_client: Client):
    assert "0 workspaces" in shown(admin_client, PAGE)


def test_the_list_can_be_searched_and_filtered(admin_client: Client):
    found = WorkspaceFactory(name="found", host="here", failing_since=timezone.now())
    WorkspaceFactory(name="other", host="there")
    url = reverse(f"{PAGE}_changelist")
    for query in (
        {"q": "foun"},
        {"q": str(found.pk)},
        {"failing": "yes"},
        {"host": "here"},
    ):
        page = admin_client.get(url, query).content.decode()
        assert ">found</span>" in page, query
        assert ">other</span>" not in page, query
    assert admin_client.get(url, {"q": "9" * 40}).status_code == 200


def test_the_page_says_when_it_is_fetched_next_and_why_then(admin_client: Client):
    workspace = WorkspaceFactory(
        fetch_problem="auth",
        fetch_failures=3,
        failing_since=timezone.now(),
        last_fetch_error="denied <b>\u202e",
    )
    page = shown(admin_client, PAGE, workspace)
    assert "the remote refuses this host&#x27;s keys" in page
    assert "auth, 3 times in a row" in page
    assert "denied &lt;b&gt;\N{REPLACEMENT CHARACTER}" in page


def test_the_page_leads_to_the_ledger_of_its_name_and_no_other(admin_client: Client):
    workspace = WorkspaceFactory(name="7")
    LedgerEntryFactory(workspace="7", branch="acw/own")
    LedgerEntryFactory(workspace="other", worktree_id=7, branch="acw/others")
    page = shown(admin_client, PAGE, workspace)
    (link,) = re.findall(r'href="([^"]*/ledgerentry/\?[^"]*)"', page)
    listed = admin_client.get(html.unescape(link)).content.decode()
    assert "acw/own" in listed
    assert "acw/others" not in listed


def test_a_credential_in_a_remote_is_never_shown(admin_client: Client):
    workspace = WorkspaceFactory(url="https://user:SECRET@git.example/x?t=SECRET")
    for page in (shown(admin_client, PAGE), shown(admin_client, PAGE, workspace)):
        assert "git.example/x" in page
        assert "SECRET" not in page


def test_what_a_fetch_has_written_meanwhile_stays(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
):
    workspace = WorkspaceFactory()
    save = WorkspaceAdmin.save_form

    def saved(*args: Any, **options: Any) -> Any:
        Workspace.objects.update(fetch_failures=3)
        return save(*args, **options)

    monkeypatch.setattr(WorkspaceAdmin, "save_form", saved)
    url = reverse("admin:workspaces_workspace_change", args=[workspace.pk])
    owner = UserFactory()
    admin_client.post(url, {"owner": owner.pk})
    after = Workspace.objects.get()
    assert (after.owner, after.fetch_failures) == (owner, 3)


def test_only_the_owner_can_be_changed(admin_client: Client):
    workspace = WorkspaceFactory()
    owner = UserFactory()
    assert "0 worktrees, 0 held" in shown(admin_client, PAGE, workspace)
    admin_client.post(
        reverse(f"{PAGE}_change", args=[workspace.pk]),
        {
            "owner": owner.pk,
            "url": "/evil",
            "path": "/",
            "name": "x",
            "state": "failed",
        },
    )
    after = Workspace.objects.get()
    assert after.owner == owner
    assert (after.url, after.path, after.name, after.state) == (
        workspace.url,
        workspace.path,
        workspace.name,
        "ready",
    )


def test_not_even_that_by_who_may_only_look(client: Client):
    workspace = WorkspaceFactory()
    staff(client, "view_workspace")
    url = reverse(f"{PAGE}_change", args=[workspace.pk])
    assert client.post(url, {"owner": UserFactory().pk}).status_code == 403
    assert Workspace.objects.get().owner is None


def test_rows_are_neither_added_nor_deleted_by_hand(admin_client: Client):
    workspace = WorkspaceFactory()
    assert admin_client.get(reverse(f"{PAGE}_add")).status_code == 403
    url = reverse(f"{PAGE}_delete", args=[workspace.pk])
    assert admin_client.post(url).status_code == 403


def test_a_fetch_is_asked_for_by_a_button_or_for_many(admin_client: Client):
    workspaces = WorkspaceFactory.create_batch(2)
    page = act(admin_client, PAGE, "fetch", workspaces)
    assert "2 to be fetched" in page
    assert Job.objects.filter(type="workspace.fetch").count() == 2
    assert AuditEntry.objects.filter(actor="admin").count() == 2
    assert "1 to be fetched" in press(admin_client, PAGE, "fetch", workspaces[0])


def test_only_by_who_has_that_permission(client: Client):
    workspace = WorkspaceFactory()
    staff(client, "view_workspace")
    act(client, PAGE, "fetch", [workspace])
    url = reverse(f"{PAGE}_fetch", args=[workspace.pk])
    assert client.post(url).status_code == 403
    assert url not in shown(client, PAGE, workspace)
    assert not Job.objects.exists()


def test_no_button_is_pressed_by_following_a_link(admin_client: Client):
    url = reverse(f"{PAGE}_fetch", args=[WorkspaceFactory().pk])
    assert admin_client.get(url).status_code == 405


def test_the_list_takes_as_many_queries_for_many_rows(admin_client: Client):
    WorktreeFactory(workspace__owner=UserFactory())
    one = queries(admin_client, PAGE)
    for _ in range(5):
        WorktreeFactory.create_batch(2, workspace=WorkspaceFactory(owner=UserFactory()))
    Workspace.objects.update(last_fetched_at=Now())
    assert queries(admin_client, PAGE) == one
