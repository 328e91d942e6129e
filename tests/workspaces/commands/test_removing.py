from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError

from notify.models import AuditEntry
from tests.workspaces.commands.calling import workspace as run
from workspaces.models import LedgerEntry, Workspace, Worktree

pytestmark = pytest.mark.django_db


def test_one_is_removed(workspace: Workspace):
    assert run("remove", "demo") == "demo: removed\n"
    assert not Path(workspace.path).exists()
    assert AuditEntry.objects.get().action == "workspace.remove"


def test_work_is_discarded_only_when_asked(workspace: Workspace, worktree: Worktree):
    (Path(worktree.path) / "new").touch()
    with pytest.raises(CommandError, match="--discard-work"):
        run("remove", "demo")
    assert run("remove", "demo", "--discard-work") == "demo: removed\n"
    assert AuditEntry.objects.get().data == {"discard_work": True}
    entry = LedgerEntry.objects.get()
    assert (entry.action, entry.path) == ("discarded", worktree.path)
    assert entry.actor.startswith("command line (")
