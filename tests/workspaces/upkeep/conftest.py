from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.factories import AdminFactory
from tests.workspaces.remote import git
from workspaces.models import Worktree
from workspaces.repository import Repository
from workspaces.upkeep import registrations
from workspaces.upkeep.registrations import Registration
from workspaces.upkeep.survey import Found, survey


@pytest.fixture
def path(worktree: Worktree) -> Path:
    """The directory of the worktree."""
    return Path(worktree.path)


@pytest.fixture
def admin(db: None) -> None:
    """Somebody who is told."""
    AdminFactory()


def rows_of(worktree: Worktree) -> list[Worktree]:
    rows = Worktree.objects.filter(workspace=worktree.workspace)
    return list(rows.select_related("workspace"))


def look(repository: Repository, worktree: Worktree) -> list[Found]:
    return survey(repository, rows_of(worktree))


def registered(repository: Repository, path: Path) -> Registration:
    (found,) = (each for each in registrations.all_of(repository) if each.path == path)
    return found


def status(path: Path) -> str:
    return git("status", "--porcelain=v2", "--ignored", cwd=path)


def everything(path: Path) -> dict[str, bytes]:
    """Each file in it but git's own, by its name."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != ".git"
    }
