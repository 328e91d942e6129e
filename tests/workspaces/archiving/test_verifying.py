from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from tests.workspaces.archiving import zoo
from tests.workspaces.remote import commit, git
from workspaces.archiving import restoring, snapshot, verifying
from workspaces.exceptions import ArchiveDamaged
from workspaces.models import Worktree, WorktreeArchive
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def archive(repository: Repository, worktree: Worktree) -> WorktreeArchive:
    """With a committed and an untracked file, to be verified."""
    path = Path(worktree.path)
    commit(path, "committed", "1\n")
    (path / "untracked").write_text("2\n")
    return snapshot.take(
        repository, worktree, reason=WorktreeArchive.Reason.ASKED, actor="somebody"
    )


def test_it_says_what_it_found_and_how_long_that_is_kept(
    repository: Repository, archive: WorktreeArchive, settings: Settings
):
    verdict = verifying.verify(repository, archive)
    assert verdict == (
        f"commit {archive.commit_sha[:12]} is whole in the clone: 4 entries with 10 bytes;"
        " every byte on the disk is equal, so is its registration"
    )
    assert archive.state == WorktreeArchive.State.VERIFIED
    assert archive.verified_at is not None
    kept = archive.expires_at - archive.verified_at  # type: ignore[operator]
    assert kept == settings.ACW_ARCHIVE_RETENTION


def test_one_of_an_earlier_attempt_is_kept_for_as_long_as_a_new_one(
    repository: Repository, archive: WorktreeArchive, settings: Settings
):
    verifying.verify(repository, archive)
    WorktreeArchive.objects.update(expires_at=Now())
    verifying.verify(repository, archive)
    assert archive.expires_at == archive.verified_at + settings.ACW_ARCHIVE_RETENTION


@pytest.mark.parametrize("what", ["bytes", "mode", "gone", "new", "cache", "index"])
def test_what_is_on_the_disk_must_be_what_was_archived(
    repository: Repository, worktree: Worktree, archive: WorktreeArchive, what: str
):
    path = Path(worktree.path)
    if what == "bytes":
        (path / "untracked").write_text("3\n")
    elif what == "mode":
        (path / "untracked").chmod(0o600)
    elif what == "gone":
        (path / "untracked").unlink()
    elif what == "new":
        (path / "new").touch()
    elif what == "cache":
        (path / "node_modules").mkdir()
    else:
        git("add", "untracked", cwd=path)
    with pytest.raises(ArchiveDamaged, match="is not what is on the disk"):
        verifying.verify(repository, archive)
    archive.refresh_from_db()
    assert archive.state == WorktreeArchive.State.WRITING


def unpack(repository: Repository) -> None:
    """Every object as a file of its own."""
    for pack in (repository.path / "objects" / "pack").glob("*.pack"):
        moved = repository.directory / pack.name
        pack.rename(moved)
        for rest in pack.parent.glob(f"{pack.stem}.*"):
            rest.unlink()
        os.system(f"git -C {repository.path} unpack-objects -q < {moved}")  # noqa: S605


@pytest.mark.parametrize("how", ["flipped", "deleted"])
@pytest.mark.parametrize("what", ["tree/untracked", "tree/README", "tree", "^1^{tree}"])
def test_damage_is_found_before_anything_goes_and_before_anything_is_restored(
    repository: Repository,
    worktree: Worktree,
    archive: WorktreeArchive,
    what: str,
    how: str,
):
    verifying.verify(repository, archive)
    separator = "" if what.startswith("^") else ":"
    name = git(
        "rev-parse", f"{archive.commit_sha}{separator}{what}", cwd=repository.path
    )
    unpack(repository)
    file = repository.path / "objects" / name[:2] / name[2:]
    if how == "deleted":
        file.unlink()
    else:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0x10
        file.chmod(0o644)
        file.write_bytes(content)
    with pytest.raises(ArchiveDamaged):
        verifying.verify(repository, archive)
    zoo.remove(repository, worktree)
    with pytest.raises(ArchiveDamaged):
        restoring.restore(worktree.pk, actor="somebody")
    assert not Path(worktree.path).exists()
    assert not Worktree.objects.exists()


def test_a_digest_that_is_not_the_recorded_one_is_damage(
    repository: Repository, archive: WorktreeArchive
):
    archive.manifest_digest = "0" * 64
    with pytest.raises(ArchiveDamaged, match="not the one that was recorded"):
        verifying.verify(repository, archive)


def test_a_ref_that_an_agent_moved_meanwhile_is_set_again(
    repository: Repository, archive: WorktreeArchive
):
    git("update-ref", archive.ref, f"{archive.commit_sha}^1", cwd=repository.path)
    verifying.verify(repository, archive)
    assert repository.commit_of(archive.ref) == archive.commit_sha


def test_one_whose_worktree_is_gone_is_compared_with_nothing(
    repository: Repository, worktree: Worktree, archive: WorktreeArchive
):
    zoo.remove(repository, worktree)
    assert "nothing of it is on the disk" in verifying.verify(repository, archive)
