from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from tests.workspaces.archiving import zoo
from tests.workspaces.remote import commit, git
from workspaces.archiving import bundles, restoring, retention, snapshot
from workspaces.exceptions import ArchiveDamaged, ArchiveExpired, GitStopped
from workspaces.models import LedgerEntry, Workspace, Worktree, WorktreeArchive
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["clone", "bundle"])
def archive(
    request: pytest.FixtureRequest,
    repository: Repository,
    worktree: Worktree,
    settings: Settings,
) -> WorktreeArchive:
    """Verified, of a worktree that is gone; in the clone or in a bundle."""
    if request.param == "bundle":
        settings.ACW_ARCHIVE_BUNDLE_OVER = 0
    commit(Path(worktree.path))
    made = zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    return made


def refs(repository: Repository) -> list[str]:
    listed = git("for-each-ref", "--format=%(refname)", "refs/acw", cwd=repository.path)
    return listed.split()


def age(archive: WorktreeArchive) -> None:
    WorktreeArchive.objects.filter(pk=archive.pk).update(
        expires_at=Now() - dt.timedelta(seconds=1)
    )


def test_one_whose_time_is_over_is_let_go_of_and_that_is_recorded(
    workspace: Workspace, repository: Repository, archive: WorktreeArchive
):
    git(
        "update-ref",
        "refs/acw/archive/99999",
        "refs/remotes/origin/main",
        cwd=repository.path,
    )
    assert retention.expire(workspace, repository) == 0
    age(archive)
    assert retention.expire(workspace, repository) == 1
    assert refs(repository) == ["refs/acw/archive/99999"]
    assert not archive.bundle or not Path(archive.bundle).exists()
    entry = LedgerEntry.objects.get(action=LedgerEntry.Action.EXPIRED)
    assert (entry.archive_id, entry.commit_sha) == (archive.pk, archive.commit_sha)
    with pytest.raises(ArchiveExpired, match="ACW_ARCHIVE_RETENTION"):
        restoring.restore(archive.worktree_id, actor="somebody")
    assert retention.expire(workspace, repository) == 0


def test_an_interrupted_one_is_finished(
    workspace: Workspace,
    repository: Repository,
    archive: WorktreeArchive,
    monkeypatch: pytest.MonkeyPatch,
):
    age(archive)
    with monkeypatch.context() as broken:
        broken.setattr(retention, "_clear_expired", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            retention.expire(workspace, repository)
    assert refs(repository)
    retention.expire(workspace, repository)
    assert refs(repository) == []
    assert not archive.bundle or not Path(archive.bundle).exists()


def test_a_ref_that_an_agent_deleted_or_moved_is_made_again(
    workspace: Workspace, repository: Repository, archive: WorktreeArchive
):
    assert retention.mend_refs(workspace, repository) == 0
    ref = bundles.base_ref(archive) if archive.bundle else archive.ref
    commit_then = repository.commit_of(ref)
    git("update-ref", "-d", ref, cwd=repository.path)
    assert retention.mend_refs(workspace, repository) == 1
    assert repository.commit_of(ref) == commit_then
    assert retention.mend_refs(workspace, repository) == 0


def test_what_cannot_be_mended_is_told_after_the_rest_was(
    workspace: Workspace, repository: Repository, archive: WorktreeArchive
):
    if archive.bundle:
        git("update-ref", "-d", bundles.base_ref(archive), cwd=repository.path)
        Path(archive.bundle).unlink()
    else:
        git("update-ref", "-d", archive.ref, cwd=repository.path)
        zoo.clean_out(repository)
    with pytest.raises(ArchiveDamaged, match=r"not in the clone|cannot be read"):
        retention.mend_refs(workspace, repository)


def test_a_bundled_one_needs_no_ref_of_its_own(
    workspace: Workspace, repository: Repository, archive: WorktreeArchive
):
    git("update-ref", archive.ref, "refs/remotes/origin/main", cwd=repository.path)
    retention.mend_refs(workspace, repository)
    assert (archive.ref in refs(repository)) is not bool(archive.bundle)


def test_what_nobody_finished_is_cleared_away(
    workspace: Workspace, repository: Repository, worktree: Worktree
):
    snapshot.take(
        repository, worktree, reason=WorktreeArchive.Reason.ASKED, actor="somebody"
    )
    retention.expire(workspace, repository)
    assert refs(repository) == []
    assert not WorktreeArchive.objects.exists()


def test_it_ends_when_the_caller_stops(
    workspace: Workspace, repository: Repository, archive: WorktreeArchive
):
    age(archive)
    with pytest.raises(GitStopped):
        retention.expire(workspace, repository, stop=lambda: True)
    assert retention.expire(workspace, repository) == 1
