from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.factories import WorktreeFactory
from workspaces.admin import preview
from workspaces.models import Worktree

pytestmark = pytest.mark.django_db


def test_it_says_what_is_nowhere_else(worktree: Worktree):
    path = Path(worktree.path)
    (path / "<b>\u202e.txt").touch()
    shown = preview.of(worktree)
    assert "Untracked files: 1" in shown
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert "\u202e" not in shown


def test_it_says_that_there_is_nothing(worktree: Worktree):
    assert "Nothing that is nowhere else" in preview.of(worktree)


def test_another_hosts_files_are_not_looked_for(worktree: Worktree, settings: Settings):
    settings.ACW_HOST = "elsewhere"
    shown = preview.of(worktree)
    assert shown.startswith("Its files are on host test-host")
    assert f"look there, with `manage.py worktree show {worktree.pk}`" in shown


def test_a_directory_that_is_not_there_is_said_to_be_gone():
    assert preview.of(WorktreeFactory()) == "Its directory is not there."


def test_a_path_that_is_not_its_own_is_not_looked_at(tmp_path: Path):
    worktree = WorktreeFactory(path=str(tmp_path))
    assert "It cannot be looked at" in preview.of(worktree)


def test_a_page_does_not_wait_for_long(
    worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(preview, "PATIENCE", dt.timedelta(seconds=-1))
    shown = preview.of(worktree)
    assert "too much in it" in shown
    assert f"`manage.py worktree show {worktree.pk}`" in shown
