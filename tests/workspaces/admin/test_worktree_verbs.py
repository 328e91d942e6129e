from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs.models import Job
from notify.models import AuditEntry
from tests.workspaces.admin.desk import act, press, shown, staff
from tests.workspaces.factories import WorktreeFactory
from workspaces.admin.worktree_verbs import VERBS
from workspaces.models import Worktree

pytestmark = pytest.mark.django_db

PAGE = "admin:workspaces_worktree"


def held() -> Worktree:
    row: Worktree = WorktreeFactory(held_by="agent", held_since=timezone.now())
    return row


def buttons(client: Client, worktree: Worktree) -> set[str]:
    page = shown(client, PAGE, worktree)
    return {verb.name for verb in VERBS if f"verb-{verb.name}" in page}


def test_a_page_has_the_buttons_that_apply(admin_client: Client):
    assert buttons(admin_client, held()) == {"release", "keep", "pin"}
    assert buttons(admin_client, WorktreeFactory()) == {"keep", "pin", "archive"}
    assert buttons(admin_client, WorktreeFactory(pinned=True)) == {"unpin"}


def test_worktrees_are_released_and_the_others_named(admin_client: Client):
    worktree, free = held(), WorktreeFactory()
    page = act(admin_client, PAGE, "release", [worktree, free])
    assert f"1 released, 1 skipped: worktree {free.pk} is not held" in page
    worktree.refresh_from_db()
    assert worktree.held_by is None
    assert AuditEntry.objects.get().actor == "admin"


def test_one_is_kept_pinned_and_unpinned(admin_client: Client):
    worktree = WorktreeFactory(prune_warning_at=timezone.now())
    assert "1 kept" in press(admin_client, PAGE, "keep", worktree)
    worktree.refresh_from_db()
    assert worktree.kept_until > timezone.now()
    assert worktree.prune_warning_at is None
    assert "1 pinned" in press(admin_client, PAGE, "pin", worktree)
    worktree.refresh_from_db()
    assert worktree.pinned
    assert "1 unpinned" in press(admin_client, PAGE, "unpin", worktree)
    worktree.refresh_from_db()
    assert not worktree.pinned
    assert list(AuditEntry.objects.order_by("pk").values_list("action", "actor")) == [
        ("worktree.keep", "admin"),
        ("worktree.pin", "admin"),
        ("worktree.unpin", "admin"),
    ]


def test_one_is_archived_by_a_job_of_its_host(admin_client: Client):
    worktree = WorktreeFactory(workspace__host="there")
    page = press(admin_client, PAGE, "archive", worktree)
    assert "1 to be archived by the host that has them" in page
    job = Job.objects.get(type="worktree.archive")
    assert (job.ref_id, job.queue) == (str(worktree.pk), "host:there")
    assert job.payload["worktree_id"] == worktree.pk
    assert job.payload["actor"] == "admin"


def test_a_held_one_is_not(admin_client: Client):
    worktree = held()
    page = press(admin_client, PAGE, "archive", worktree)
    assert "1 skipped: " in page
    assert not Job.objects.exists()


def test_nothing_is_done_by_who_may_only_look(client: Client):
    worktree = held()
    staff(client, "view_worktree")
    assert buttons(client, worktree) == set()
    for verb in VERBS:
        act(client, PAGE, verb.name, [worktree])
        url = reverse(f"{PAGE}_{verb.name}", args=[worktree.pk])
        assert client.post(url).status_code == 403, verb.name
    after = Worktree.objects.get()
    assert (after.held_by, after.pinned, after.kept_until) == ("agent", False, None)
    assert not AuditEntry.objects.exists()
    assert not Job.objects.exists()


def test_each_permission_lets_do_its_own(client: Client):
    staff(client, "view_worktree", "keep_worktree")
    assert buttons(client, held()) == {"keep", "pin"}


def test_nothing_is_done_by_following_a_link(admin_client: Client):
    worktree = held()
    for verb in VERBS:
        url = reverse(f"{PAGE}_{verb.name}", args=[worktree.pk])
        assert admin_client.get(url).status_code == 405, verb.name
    admin_client.get(
        reverse(f"{PAGE}_changelist"),
        {"action": "release", "_selected_action": str(worktree.pk)},
    )
    worktree.refresh_from_db()
    assert worktree.held_by == "agent"
