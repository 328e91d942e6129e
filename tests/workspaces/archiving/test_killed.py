"""Archiving and restoring in real processes that are killed at each step: the next one finishes, and nothing is left or lost."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import Settings

from tests.workspaces import programs
from tests.workspaces.archiving import zoo
from tests.workspaces.remote import commit, git
from workspaces import paths
from workspaces.archiving import bundles, restoring
from workspaces.models import LedgerEntry, Worktree, WorktreeArchive
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db(transaction=True)

IN_TAKING = (
    "workspaces.archiving.registration.copy_index",
    "workspaces.archiving.composing.write_blobs",
    "workspaces.archiving.composing.write",
    "workspaces.archiving.store.point",
    "workspaces.archiving.bundles._commit_above",
    "workspaces.archiving.bundles._digest",
    "workspaces.archiving.bundles.write",
    "workspaces.archiving.snapshot.take",
    "workspaces.archiving.verifying.check",
    "os.sync",
)
IN_RESTORING = (
    "workspaces.archiving.bundles._unpack",
    "workspaces.archiving.rebuilding.clear",
    "workspaces.archiving.rebuilding.hold_objects",
    "workspaces.archiving.branches.place",
    "workspaces.archiving.restoring._claimed",
    "workspaces.archiving.unpacking.unpack",
    "workspaces.archiving.rebuilding._register",
    "workspaces.archiving.rebuilding._refresh",
    "workspaces.ledger.record",
)


def kill_at_each(
    worktree: Worktree, verb: str, points: tuple[str, ...], data_dir: Path
) -> None:
    killed = programs.run(
        "archiving.dying",
        [str(worktree.pk), *(f"{verb}: {point}" for point in points)],
        data_dir,
        ACW_ARCHIVE_BUNDLE_OVER="0",
    )
    assert killed.split() == [str(-signal.SIGKILL)] * len(points)


def test_whatever_is_killed_the_next_one_finishes_it(
    repository: Repository, worktree: Worktree, data_dir: Path, settings: Settings
):
    settings.ACW_ARCHIVE_BUNDLE_OVER = 0
    path = Path(worktree.path)
    commit(path)
    (path / "untracked").write_text("2\n")
    status, before = zoo.status(path), zoo.listed(path)

    kill_at_each(worktree, "archive", IN_TAKING, data_dir)
    assert zoo.listed(path).digest == before.digest
    archive = zoo.archive(repository, worktree)
    assert list(WorktreeArchive.objects.all()) == [archive]
    refs = git("for-each-ref", "--format=%(refname)", "refs/acw", cwd=repository.path)
    assert refs == bundles.base_ref(archive)
    kept = paths.bundle_path("demo", archive.pk)
    assert list(kept.parent.iterdir()) == [kept]

    zoo.remove(repository, worktree)
    kill_at_each(worktree, "restore", IN_RESTORING, data_dir)
    restored = restoring.restore(worktree.pk, actor="somebody")
    assert restored.state == Worktree.State.READY
    assert zoo.listed(path).digest == before.digest
    assert zoo.status(path) == status
    assert len(list((repository.path / "worktrees").iterdir())) == 1
    assert not paths.stray_directory(repository.directory).exists()
    assert list(paths.archiving_path(repository.directory).iterdir()) == []


def test_of_many_who_restore_one_at_once_all_get_the_same(
    repository: Repository, worktree: Worktree
):
    zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)

    def restore(who: int) -> tuple[int, str]:
        try:
            restored = restoring.restore(worktree.pk, actor=str(who))
            return restored.pk, restored.path
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        got = list(pool.map(restore, range(6)))
    assert got == [(worktree.pk, worktree.path)] * 6
    restored = LedgerEntry.objects.filter(action=LedgerEntry.Action.RESTORED)
    assert restored.count() == 1
    assert git("status", "--porcelain", cwd=Path(worktree.path)) == ""
