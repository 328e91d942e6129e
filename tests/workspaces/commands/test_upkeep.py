from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from notify.models import AuditEntry
from tests.workspaces.commands.calling import workspace as workspace_command
from workspaces.holding import expiry
from workspaces.models import Workspace, Worktree

pytestmark = pytest.mark.django_db


def test_a_dry_run_prints_each_cell_and_what_would_be_done(worktree: Worktree):
    shutil.rmtree(worktree.path)
    said = workspace_command("reconcile", "--dry-run")
    assert "R-G" in said
    assert "marked as missing" in said
    assert "1 of their worktrees not as they should be; nothing was done" in said
    worktree.refresh_from_db()
    assert worktree.state == Worktree.State.READY


def test_json_is_for_scripts(worktree: Worktree):
    shutil.rmtree(worktree.path)
    report = json.loads(workspace_command("reconcile", "demo", "--json"))
    (found,) = report["found"]
    assert (found["cell"], found["action"]) == ("R-G", "miss")
    assert found["worktree_id"] == worktree.pk


def test_leases_that_it_ended_are_told(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(expiry, "end_expired", lambda host: 2)
    assert "leases that ran out, and were ended: 2\n" in workspace_command("reconcile")
    assert json.loads(workspace_command("reconcile", "--json"))["leases_ended"] == 2


def test_where_it_stops_itself_it_fails_and_force_is_audited(
    worktree: Worktree, data_dir: Path
):
    workspace_command("reconcile")
    (data_dir / "workspaces" / ".mark").unlink()
    with pytest.raises(CommandError, match=r"nothing was done: .* lost its mark"):
        workspace_command("reconcile")
    assert "nothing would be done" in workspace_command("reconcile", "--dry-run")
    workspace_command("reconcile", "--force")
    assert AuditEntry.objects.get().action == "workspace.reconcile"


def test_what_it_prints_where_it_stops_itself_does_not_say_that_it_was_done(
    worktree: Worktree, data_dir: Path, capsys: pytest.CaptureFixture[str]
):
    workspace_command("reconcile")
    (data_dir / "workspaces" / ".mark").unlink()
    shutil.rmtree(worktree.path)
    with pytest.raises(CommandError):
        call_command("workspace", "reconcile")
    said = capsys.readouterr().out
    assert "1 of their worktrees not as they should be; nothing was done" in said


def test_a_workspace_that_is_unknown_or_elsewhere_is_refused(workspace: Workspace):
    with pytest.raises(CommandError, match="there is no workspace 'x'"):
        workspace_command("reconcile", "x")
    Workspace.objects.update(host="elsewhere")
    with pytest.raises(CommandError, match="elsewhere"):
        workspace_command("reconcile", "demo")


def test_maintain_does_it_now_and_fails_with_the_reason(workspace: Workspace):
    assert workspace_command("maintain", "demo") == "demo: maintained\n"
    lock = Path(workspace.path) / "packed-refs.lock"
    lock.touch()
    with pytest.raises(CommandError, match=r"demo: pack-refs: git maintenance failed"):
        workspace_command("maintain", "demo")
