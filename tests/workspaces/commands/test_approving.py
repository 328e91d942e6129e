from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from notify.models import AuditEntry
from tests.workspaces.remote import git
from workspaces.models import Workspace
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("workspace", *arguments)
    return capsys.readouterr().out


def test_what_is_planted_is_listed_and_approved(
    workspace: Workspace, repository: Repository, capsys: pytest.CaptureFixture[str]
):
    git("config", "core.hooksPath", ".husky", cwd=repository.path)
    listed = json.loads(run(capsys, "approve", "demo", "--list", "--json"))
    assert [(one["where"], one["key"], one["value"]) for one in listed] == [
        ("config", "core.hookspath", ".husky")
    ]
    assert not AuditEntry.objects.filter(action="workspace.approve").exists()
    assert "core.hookspath" in run(capsys, "approve", "demo")
    entry = AuditEntry.objects.get(action="workspace.approve")
    assert entry.actor.startswith("command line")
    assert "nothing is there" in run(capsys, "approve", "demo", "--list")
    assert "nothing was there" in run(capsys, "approve", "demo")


def test_an_unknown_workspace_is_an_error():
    with pytest.raises(CommandError, match="no workspace 'nobody'"):
        call_command("workspace", "approve", "nobody")
