from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.workspaces.archiving import zoo
from tests.workspaces.remote import commit, git
from workspaces import paths, worktrees
from workspaces.archiving import bundles, composing, rebuilding, restoring, unpacking
from workspaces.exceptions import ArchiveDamaged
from workspaces.models import Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def test_what_comes_out_otherwise_than_it_went_in_is_thrown_away(
    repository: Repository, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    (Path(worktree.path) / "file").write_text("x")
    zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    real = unpacking.unpack

    def spoiled(*args: object, target: Path, **options: object) -> None:
        real(*args, target=target, **options)  # type: ignore[arg-type]
        if target.name == "files":
            (target / "file").write_text("y")

    monkeypatch.setattr(unpacking, "unpack", spoiled)
    with pytest.raises(ArchiveDamaged, match="file came out otherwise"):
        restoring.restore(worktree.pk, actor="somebody")
    assert not Path(worktree.path).exists()
    assert not Worktree.objects.exists()
    assert list(paths.archiving_path(repository.directory).iterdir()) == []


def test_a_registration_of_the_same_name_is_left_alone(
    repository: Repository, worktree: Worktree
):
    zoo.archive(repository, worktree)
    admin = worktrees.registration(repository, Path(worktree.path))
    assert admin is not None
    zoo.remove(repository, worktree)
    admin.mkdir()
    (admin / "somebodys").touch()
    restoring.restore(worktree.pk, actor="somebody")
    assert (admin / "somebodys").exists()
    assert git("status", "--porcelain", cwd=Path(worktree.path)) == ""


def test_one_that_git_knows_and_that_is_not_ours_is_put_aside(
    repository: Repository, worktree: Worktree
):
    path = Path(worktree.path)
    worktrees.delete_tree(path)
    (moved,) = rebuilding.clear(repository, path, is_ours=False)
    assert moved.parent == paths.stray_directory(repository.directory)
    assert (moved / "HEAD").exists()
    assert rebuilding.clear(repository, path, is_ours=False) == []


def test_what_only_git_knows_of_a_later_life_outlives_a_restoration_over_it(
    repository: Repository, worktree: Worktree
):
    path = Path(worktree.path)
    zoo.archive(repository, worktree)
    git("checkout", "--quiet", "--detach", cwd=path)
    later = commit(path, "later")
    (path / "new").write_text("only staged")
    git("add", "new", cwd=path)
    blob = git("rev-parse", ":new", cwd=path)
    worktrees.delete_tree(path)
    restoring.restore(worktree.pk, actor="somebody")
    git("reflog", "expire", "--expire=now", "--all", cwd=repository.path)
    git("gc", "--quiet", "--prune=now", cwd=repository.path)
    assert git("cat-file", "-t", later, cwd=path) == "commit"
    assert git("cat-file", "-t", blob, cwd=path) == "blob"


def test_it_is_whole_only_with_every_byte_in_its_place(
    repository: Repository, worktree: Worktree
):
    archive = zoo.archive(repository, worktree)
    with bundles.opened(repository, archive) as ours:
        parts = composing.read(ours, archive.commit_sha, digest=archive.manifest_digest)
    assert rebuilding.is_whole(repository, worktree, parts, stop=None)
    (Path(worktree.path) / "new").touch()
    assert not rebuilding.is_whole(repository, worktree, parts, stop=None)
    worktrees.delete_tree(Path(worktree.path))
    assert not rebuilding.is_whole(repository, worktree, parts, stop=None)


@pytest.mark.parametrize("filtered", [True, False])
def test_a_later_look_is_spared_where_no_filter_could_see_it_otherwise(
    repository: Repository, worktree: Worktree, filtered: bool
):
    path = Path(worktree.path)
    admin = worktrees.registration(repository, path)
    assert admin is not None
    if filtered:
        git("config", "filter.x.clean", "cat", cwd=repository.path)
    os.utime(path / "README", (1e9, 1e9))
    rebuilding._refresh(repository, path, admin, stop=None)
    # Says what differs from the index by its times, and does not look any further.
    assert bool(git("diff-files", cwd=path)) == filtered
