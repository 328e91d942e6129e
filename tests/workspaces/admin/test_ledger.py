from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from tests.workspaces.admin.desk import shown
from tests.workspaces.factories import ArchiveFactory, LedgerEntryFactory
from workspaces.models import LedgerEntry

pytestmark = pytest.mark.django_db

PAGE = "admin:workspaces_ledgerentry"


def test_the_list_shows_what_was_done(admin_client: Client):
    LedgerEntryFactory(
        actor="ada", branch="acw/<i>", verified="12 files are as archived"
    )
    page = shown(admin_client, PAGE)
    for word in (">pruned<", "ada", "acw/&lt;i&gt;", "12 files are as archived"):
        assert word in page, word


def test_an_empty_list_is_a_page_too(admin_client: Client):
    assert "0 ledger entries" in shown(admin_client, PAGE)


def test_it_can_be_searched_and_filtered(admin_client: Client):
    LedgerEntryFactory(
        worktree_id=42, workspace="shop", actor="ada", branch="acw/found"
    )
    LedgerEntryFactory(
        action=LedgerEntry.Action.RESTORED, host="elsewhere", branch="acw/other"
    )
    url = reverse(f"{PAGE}_changelist")
    for query in (
        {"q": "42"},
        {"q": "shop"},
        {"q": "ada"},
        {"action__exact": "pruned"},
    ):
        page = admin_client.get(url, query).content.decode()
        assert "acw/found" in page, query
        assert "acw/other" not in page, query


def test_the_page_shows_all_and_leads_to_the_archive(admin_client: Client):
    archive = ArchiveFactory()
    entry = LedgerEntryFactory(
        archive_id=archive.pk,
        manifest_digest="d" * 64,
        verified="all\nof it",
        path="/data/<i>",
        data={"dry_run": "<b>", "token": "SECRET"},
    )
    page = shown(admin_client, PAGE, entry)
    for word in (
        "d" * 64,
        "all\nof it",
        "/data/&lt;i&gt;",
        f"/worktreearchive/{archive.pk}/change/",
        "&lt;b&gt;",
    ):
        assert word in page, word
    assert "SECRET" not in page
    archive.delete()
    assert "whose row is gone" in shown(admin_client, PAGE, entry)


def test_nobody_changes_the_record(admin_client: Client):
    entry = LedgerEntryFactory()
    assert admin_client.get(reverse(f"{PAGE}_add")).status_code == 403
    for page in ("change", "delete"):
        url = reverse(f"{PAGE}_{page}", args=[entry.pk])
        assert admin_client.post(url, {"actor": "x"}).status_code == 403
    assert LedgerEntry.objects.get().actor == entry.actor
