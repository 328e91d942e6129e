"""``manage.py worktree show``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from django.core.management import CommandError
from pytest_django import Settings

from tests.workspaces.commands.calling import worktree as run
from workspaces.models import Worktree

pytestmark = pytest.mark.django_db


def test_it_says_what_would_be_archived(worktree: Worktree):
    (Path(worktree.path) / "mine").touch()
    Worktree.objects.update(upstream_gone_at="2026-01-02T03:04Z")
    shown = run("show", worktree.pk)
    assert "upstream gone at: 2026-01-02 03:04:00 UTC\n" in shown
    assert f"branch: {worktree.branch}\n" in shown
    assert "would be archived: it has 1 untracked file (mine); it takes " in shown
    said = json.loads(run("show", worktree.pk, "--json"))
    assert (said["id"], said["contents_unknown"]) == (worktree.pk, "")
    assert said["contents"]["untracked"]["names"] == ["mine"]


def test_where_its_files_cannot_be_looked_at_it_says_why(
    worktree: Worktree, settings: Settings
):
    shutil.rmtree(worktree.path)
    assert "archived: its directory is not on the disk" in run("show", worktree.pk)
    settings.ACW_HOST = "elsewhere"
    said = json.loads(run("show", worktree.pk, "--json"))
    assert said["contents"] is None
    assert "on test-host only" in said["contents_unknown"]


def test_one_that_there_is_not_is_an_error_of_one_line(db: None):
    with pytest.raises(CommandError, match=r"no worktree 9; `worktree list` shows"):
        run("show", 9)
