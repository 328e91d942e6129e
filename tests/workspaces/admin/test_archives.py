from __future__ import annotations

import datetime as dt

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs.models import Job, Status
from notify.models import AuditEntry
from tests.workspaces.admin.desk import act, press, queries, shown, staff
from tests.workspaces.factories import ArchiveFactory, WorktreeFactory
from workspaces.models import WorktreeArchive
from workspaces.pruning.contents import Contents, Found

pytestmark = pytest.mark.django_db

PAGE = "admin:workspaces_worktreearchive"


@pytest.fixture
def archive() -> WorktreeArchive:
    row: WorktreeArchive = ArchiveFactory(
        branch="acw/<i>",
        contents=Contents(untracked=Found(2, ("<b>", "c"))).as_data(),
        size_bytes=2048,
        entries=12,
        expires_at=timezone.now() + dt.timedelta(days=80.01),
        last_held_by="agent",
        commit_sha="c" * 40,
    )
    return row


def test_the_list_shows_what_they_have_and_until_when(
    admin_client: Client, archive: WorktreeArchive
):
    ArchiveFactory(state=WorktreeArchive.State.EXPIRED)
    page = shown(admin_client, PAGE)
    for word in (
        "acw/&lt;i&gt;",
        "2 untracked files (&lt;b&gt;, c)",
        "2.0\xa0KB",
        "in 80d",
        "verified",
        ">gone<",
    ):
        assert word in page, word


def test_an_empty_list_is_a_page_too(admin_client: Client):
    assert "0 worktree archives" in shown(admin_client, PAGE)


def test_the_page_shows_all_of_it(admin_client: Client, archive: WorktreeArchive):
    page = shown(admin_client, PAGE, archive)
    for word in (
        "Untracked files: 2",
        "&lt;b&gt;",
        f"refs/acw/archive/{archive.pk}",
        "c" * 40,
        "Pruned, by system",
        "its worktree is not there",
        "agent",
    ):
        assert word in page, word
    assert "verb-restore" in page


def test_it_can_be_searched_and_filtered(
    admin_client: Client, archive: WorktreeArchive
):
    ArchiveFactory(branch="acw/other", state=WorktreeArchive.State.EXPIRED)
    url = reverse(f"{PAGE}_changelist")
    for query in (
        {"q": str(archive.worktree_id)},
        {"q": "agen"},
        {"state__exact": "verified"},
        {"workspace__id__exact": str(archive.workspace.pk)},
    ):
        page = admin_client.get(url, query).content.decode()
        assert "acw/&lt;i&gt;" in page, query
        assert "acw/other" not in page, query


def test_it_is_restored_by_a_job_of_its_host_which_is_shown(
    admin_client: Client, archive: WorktreeArchive
):
    page = press(admin_client, PAGE, "restore", archive)
    assert "1 to be restored" in page
    job = Job.objects.get(type="worktree.restore")
    assert job.queue == f"host:{archive.workspace.host}"
    assert job.payload == {"worktree_id": archive.worktree_id, "actor": "admin"}
    assert AuditEntry.objects.get().action == "worktree.restore"
    assert f"/admin/jobs/job/{job.pk}/change/" in page
    assert ">pending<" in page
    Job.objects.update(
        status=Status.DEAD, last_error="its objects are <gone>", completed_at=Now()
    )
    page = shown(admin_client, PAGE, archive)
    assert "its objects are &lt;gone&gt;" in page


def test_what_is_there_or_gone_for_good_has_no_button(
    admin_client: Client, archive: WorktreeArchive
):
    older = WorktreeArchive.objects.get(pk=archive.pk)
    newest = ArchiveFactory(
        worktree_id=archive.worktree_id, workspace=archive.workspace
    )
    assert "verb-restore" not in shown(admin_client, PAGE, older)
    assert "verb-restore" in shown(admin_client, PAGE, newest)
    WorktreeFactory(pk=archive.worktree_id)
    page = shown(admin_client, PAGE, newest)
    assert "verb-restore" not in page
    assert f"worktree {archive.worktree_id}</a> is there" in page
    expired = ArchiveFactory(state=WorktreeArchive.State.EXPIRED)
    assert "verb-restore" not in shown(admin_client, PAGE, expired)


def test_those_that_cannot_be_restored_are_named(
    admin_client: Client, archive: WorktreeArchive
):
    expired = ArchiveFactory(
        state=WorktreeArchive.State.EXPIRED, expires_at=timezone.now()
    )
    page = act(admin_client, PAGE, "restore", [archive, expired])
    assert "1 to be restored" in page
    assert "was removed after its retention" in page
    assert Job.objects.count() == 1


def test_only_by_who_has_that_permission(client: Client, archive: WorktreeArchive):
    staff(client, "view_worktreearchive")
    act(client, PAGE, "restore", [archive])
    url = reverse(f"{PAGE}_restore", args=[archive.pk])
    assert client.post(url).status_code == 403
    assert "verb-restore" not in shown(client, PAGE, archive)
    assert not Job.objects.exists()


def test_it_is_only_looked_at(admin_client: Client, archive: WorktreeArchive):
    url = reverse(f"{PAGE}_change", args=[archive.pk])
    assert admin_client.post(url, {"path": "/"}).status_code == 403
    url = reverse(f"{PAGE}_delete", args=[archive.pk])
    assert admin_client.post(url).status_code == 403


def test_the_list_takes_as_many_queries_for_many_rows(admin_client: Client):
    ArchiveFactory()
    one = queries(admin_client, PAGE)
    ArchiveFactory.create_batch(10)
    assert queries(admin_client, PAGE) == one
