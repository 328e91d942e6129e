from __future__ import annotations

import datetime as dt
import html
import re

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from jobs.enqueue import enqueue
from tests.workspaces.admin.desk import queries, shown
from tests.workspaces.factories import (
    ArchiveFactory,
    WorkspaceFactory,
    WorktreeFactory,
)
from workspaces.models import Worktree

pytestmark = pytest.mark.django_db

PAGE = "admin:workspaces_worktree"
HOSTILE = "<script>\u202e' onmouseover="
DAY = dt.timedelta(days=1)


def test_the_list_shows_who_has_them_and_when_they_are_pruned(admin_client: Client):
    WorktreeFactory(held_by="agent", held_since=timezone.now())
    WorktreeFactory(last_used_at=timezone.now() - 28.1 * DAY, size_bytes=2048)
    WorktreeFactory(last_used_at=timezone.now() - 31 * DAY)
    WorktreeFactory(pinned=True)
    WorktreeFactory(state=Worktree.State.QUARANTINED)
    WorktreeFactory(state=Worktree.State.RESTORING)
    WorktreeFactory(state=Worktree.State.PRUNING)
    page = shown(admin_client, PAGE)
    for word in (
        ">agent<",
        "not while held",
        "28d 2h",
        "in 1d 21h",
        "2.0\xa0KB",
        ">due<",
        "never: pinned",
        "quarantined",
        "not while quarantined",
        "not while restoring",
        "at this moment",
    ):
        assert word in page, word


def test_a_branch_that_the_remote_has_removed_is_marked(admin_client: Client):
    worktree = WorktreeFactory(
        upstream_gone_at=dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC)
    )
    page = shown(admin_client, PAGE, worktree)
    assert "Branch removed from the remote" in page
    assert "2026-01-02 03:04 UTC" in page


def test_an_empty_list_is_a_page_too(admin_client: Client):
    assert "0 worktrees" in shown(admin_client, PAGE)


def test_the_list_can_be_searched_and_filtered(admin_client: Client):
    found = WorktreeFactory(
        branch="acw/found", workspace__name="shop", workspace__host="here", pinned=True
    )
    WorktreeFactory(branch="acw/other", workspace__name="mill")
    url = reverse(f"{PAGE}_changelist")
    for query in (
        {"q": "FOUND"},
        {"q": str(found.pk)},
        {"q": "sho"},
        {"host": "here"},
        {"pinned__exact": "1"},
        {"workspace__id__exact": str(found.workspace.pk)},
    ):
        page = admin_client.get(url, query).content.decode()
        assert "acw/found" in page, query
        assert "acw/other" not in page, query


def test_what_agents_wrote_is_escaped_and_visible(admin_client: Client):
    worktree = WorktreeFactory(
        branch=HOSTILE,
        held_by=HOSTILE,
        held_since=timezone.now(),
        last_held_by=HOSTILE,
        path=f"/{HOSTILE}",
        prune_blocked_reason=HOSTILE,
        prune_blocked_at=timezone.now(),
        state_reason=HOSTILE,
    )
    for page in (shown(admin_client, PAGE), shown(admin_client, PAGE, worktree)):
        assert "\u202e" not in page
        assert "&lt;script&gt;\N{REPLACEMENT CHARACTER}&#x27; onmouseover=" in page


def test_the_page_says_until_when_it_is_held(admin_client: Client):
    worktree = WorktreeFactory(
        held_by="agent",
        held_since=timezone.now() - dt.timedelta(hours=2),
        heartbeat_at=timezone.now() - dt.timedelta(hours=1),
        lease_expires_at=timezone.now() + dt.timedelta(hours=21.99),
        fencing_no=7,
    )
    page = shown(admin_client, PAGE, worktree)
    for word in ("agent", "2h ago", "1h ago", "in 21h 59m", ">7<"):
        assert word in page, word
    Worktree.objects.update(lease_expires_at=None)
    assert "until it is released" in shown(admin_client, PAGE, worktree)


def test_one_that_was_warned_of_or_cannot_be_pruned_says_so_in_the_list(
    admin_client: Client,
):
    worktree = WorktreeFactory(prune_warning_at=timezone.now())
    assert ">warned<" in shown(admin_client, PAGE)
    Worktree.objects.update(prune_blocked_at=timezone.now())
    assert ">blocked<" in shown(admin_client, PAGE)
    Worktree.objects.update(held_by="agent", held_since=timezone.now())
    assert ">held<" in shown(admin_client, PAGE, worktree)


def test_the_page_leads_to_what_there_is_of_it_and_of_nothing_else(
    admin_client: Client,
):
    worktree = WorktreeFactory()
    key = worktree.pk
    # What a search for the number would find.
    ArchiveFactory(pk=key, branch="acw/others", workspace=worktree.workspace)
    enqueue("workspace.fetch", {"workspace_id": key}, ref_id=str(key))
    page = shown(admin_client, PAGE, worktree)
    assert ">0 archives</a>" in page
    links = re.findall(r'href="(/admin/[^"]+/\?[^"]+)">', page)
    pages = {
        link: admin_client.get(html.unescape(link)).content.decode()
        for link in links
        if "workspacehost" not in link
    }
    assert len(pages) == 5
    for link, listed in pages.items():
        assert 'id="result_list"' not in listed, link

    own = ArchiveFactory(workspace=worktree.workspace, worktree_id=key)
    assert ">1 archive</a>" in shown(admin_client, PAGE, worktree)
    (link,) = (link for link in links if "worktreearchive" in link)
    assert own.branch in admin_client.get(link).content.decode()


def test_a_worktree_is_only_looked_at(admin_client: Client):
    worktree = WorktreeFactory()
    url = reverse(f"{PAGE}_change", args=[worktree.pk])
    assert admin_client.post(url, {"path": "/"}).status_code == 403
    assert admin_client.get(reverse(f"{PAGE}_add")).status_code == 403
    url = reverse(f"{PAGE}_delete", args=[worktree.pk])
    assert admin_client.post(url).status_code == 403


def test_the_list_takes_as_many_queries_for_many_rows(admin_client: Client):
    WorktreeFactory()
    one = queries(admin_client, PAGE)
    WorktreeFactory.create_batch(10, prune_warning_at=Now())
    assert queries(admin_client, PAGE) == one


def test_ten_thousand_worktrees_are_paged_and_not_all_read(admin_client: Client):
    workspace = WorkspaceFactory()
    Worktree.objects.bulk_create(
        Worktree(workspace=workspace, branch=f"acw/{n}", path=f"{workspace.path}/{n}")
        for n in range(10_050)
    )
    with CaptureQueriesContext(connection) as captured:
        page = shown(admin_client, PAGE)
    assert page.count('class="action-select"') == 50
    assert "There are 10000 or more" in page
    unbounded = [
        query["sql"]
        for query in captured
        if '"workspace_worktrees"."branch"' in query["sql"]
        and "LIMIT" not in query["sql"]
    ]
    assert unbounded == []
