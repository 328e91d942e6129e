from __future__ import annotations

from pathlib import Path

import pytest

from workspaces import worktrees
from workspaces.models import Worktree
from workspaces.pruning import trash
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def test_each_name_says_how_far_it_has_come(
    repository: Repository, worktree: Worktree, path: Path
):
    moved = trash.moved(repository, worktree.pk)
    trash.put_in(repository, worktree.pk, path)
    assert (moved / "README").exists()
    assert trash.archives_of(repository, worktree.pk) == []
    trash.take_out(repository, worktree.pk, path)
    assert (path / "README").exists()
    trash.take_out(repository, worktree.pk, path)  # nothing to take out is no error

    trash.put_in(repository, worktree.pk, path)
    trash.give_up(repository, worktree.pk, 5)
    assert not moved.exists()
    assert trash.archives_of(repository, worktree.pk) == [5]
    assert trash.archives_of(repository, worktree.pk + 1) == []
    trash.take_out(repository, worktree.pk, path)
    assert not path.exists()


def test_deleting_leaves_what_somebody_has_put_at_the_path_meanwhile(
    repository: Repository, worktree: Worktree, path: Path
):
    trash.put_in(repository, worktree.pk, path)
    trash.give_up(repository, worktree.pk, 5)
    path.mkdir()
    (path / "new").touch()
    trash.delete(repository, worktree.pk, 5, path)
    assert (path / "new").exists()
    assert worktrees.registration(repository, path) is None
    assert list(trash.moved(repository, 0).parent.iterdir()) == []
    assert repository.local_branch("acw/work") is not None


def test_what_is_left_is_swept_only_where_its_archive_is_named(
    repository: Repository,
):
    directory = trash.moved(repository, 0).parent
    assert trash.archive_ids(repository) == set()
    for name in ("1", "2.7", "4.8", "5.7.registration", "6.7x", "x"):
        (directory / name / "below").mkdir(parents=True)
    assert trash.archive_ids(repository) == {7, 8}
    assert trash.sweep(repository, archive_ids={7}) == 2
    assert {path.name for path in directory.iterdir()} == {"1", "4.8", "6.7x", "x"}
