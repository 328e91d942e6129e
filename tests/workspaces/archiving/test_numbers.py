from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from pytest_django import Settings

from tests.workspaces.archiving import zoo
from tests.workspaces.factories import ArchiveFactory
from tests.workspaces.remote import git
from workspaces import holds, paths
from workspaces.archiving import numbers
from workspaces.models import Workspace, Worktree, WorktreeArchive
from workspaces.pruning import trash
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def create(repository: Repository, workspace: Workspace) -> int:
    return numbers.create(repository, ArchiveFactory.build(workspace=workspace)).pk


def begin_at(number: int) -> None:
    """The next archive gets this number, where nothing has it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT setval(pg_get_serial_sequence('worktree_archives', 'id'), %s, false)",
            [number],
        )


@pytest.mark.parametrize("over", [64 * 1024 * 1024, 0], ids=["clone", "bundle"])
def test_an_archive_that_an_older_database_does_not_know_is_not_written_over(
    repository: Repository,
    workspace: Workspace,
    worktree: Worktree,
    settings: Settings,
    over: int,
):
    settings.ACW_ARCHIVE_BUNDLE_OVER = over
    Path(worktree.path, "only-here").write_text("work\n")
    archive = zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    WorktreeArchive.objects.all().delete()
    begin_at(archive.pk)
    other = holds.acquire(workspace, branch="other", holder="agent")
    Path(other.path, "also").write_text("other work\n")

    later = zoo.archive(repository, other)
    assert later.pk == archive.pk + 1
    if archive.bundle:
        fetch = f"{archive.ref}:refs/found"
        git("fetch", "--quiet", archive.bundle, fetch, cwd=repository.path)
    else:
        git("update-ref", "refs/found", archive.ref, cwd=repository.path)
    shown = git("show", "refs/found:tree/only-here", cwd=repository.path)
    assert shown == "work"


def test_whatever_has_a_number_keeps_it(repository: Repository, workspace: Workspace):
    bundle = paths.bundle_path(workspace.name, 101)
    bundle.parent.mkdir(parents=True)
    for file in (bundle, bundle.with_name("102.bundle.part"), bundle.with_name("x")):
        file.touch()
    for ref in ("refs/acw/archive/100", "refs/acw/base/103", "refs/acw/archive/x"):
        git("update-ref", ref, "origin/main", cwd=repository.path)
    trash.archived(repository, 7, 104).mkdir(parents=True)
    begin_at(100)
    assert create(repository, workspace) == 105
    assert create(repository, workspace) == 106
    assert list(WorktreeArchive.objects.values_list("pk", flat=True)) == [106, 105]
