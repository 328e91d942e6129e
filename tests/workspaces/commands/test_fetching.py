from __future__ import annotations

import pytest
from django.core.management import CommandError

from jobs.models import Job
from notify.models import AuditEntry
from tests.workspaces.commands.calling import workspace as run
from tests.workspaces.factories import WorkspaceFactory
from tests.workspaces.remote import Remote
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


def test_one_is_fetched_in_the_foreground(workspace: Workspace, remote: Remote):
    remote.push("new")
    assert run("fetch", "demo") == "demo: fetched, 1 branch changed\n"
    assert AuditEntry.objects.get().action == "workspace.fetch"


def test_a_fetch_that_fails_says_why(workspace: Workspace, remote: Remote):
    remote.vanish()
    with pytest.raises(CommandError, match=r"^demo: git fetch failed"):
        run("fetch", "demo")


def test_one_that_could_not_be_cloned_is_cloned_by_a_worker():
    WorkspaceFactory(name="demo", state="failed")
    assert "will be" in run("fetch", "demo")
    assert Workspace.objects.get().state == "cloning"
    assert Job.objects.get().type == "workspace.clone"


def test_another_remote_is_given_and_fetched_soon(workspace: Workspace):
    url = "https://git.example/moved.git"
    assert run("set-url", "demo", url) == "demo: will be fetched from there\n"
    workspace.refresh_from_db()
    assert workspace.url == url
    assert Job.objects.get().type == "workspace.fetch"
    entry = AuditEntry.objects.get(action="workspace.set_url")
    assert entry.data["after"] == url


def test_a_remote_that_is_refused_changes_nothing(workspace: Workspace):
    with pytest.raises(CommandError, match="leave it out"):
        run("set-url", "demo", "https://u:SECRET@git.example/x")
    before = workspace.url
    workspace.refresh_from_db()
    assert workspace.url == before
