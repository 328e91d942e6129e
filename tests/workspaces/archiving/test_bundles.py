from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.archiving import zoo
from tests.workspaces.remote import Remote, commit, git
from workspaces import clones, paths
from workspaces.archiving import bundles, restoring, snapshot, store, verifying
from workspaces.exceptions import ArchiveDamaged, OutsideDataDirectory
from workspaces.models import Workspace, Worktree, WorktreeArchive
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def every_archive_is_large(settings: Settings) -> None:
    settings.ACW_ARCHIVE_BUNDLE_OVER = 0


@pytest.fixture
def archive(repository: Repository, worktree: Worktree) -> WorktreeArchive:
    """Verified, in a bundle; with a commit that is not pushed and a file that is not committed."""
    commit(Path(worktree.path), "committed", "1\n")
    (Path(worktree.path) / "untracked").write_text("2\n")
    return zoo.archive(repository, worktree)


def refs(repository: Repository) -> list[str]:
    listed = git("for-each-ref", "--format=%(refname)", "refs/acw", cwd=repository.path)
    return listed.split()


def test_a_large_one_is_a_file_that_only_we_can_read_and_no_ref_of_the_clone(
    repository: Repository, archive: WorktreeArchive
):
    file = paths.bundle_path("demo", archive.pk)
    assert archive.bundle == str(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert refs(repository) == [bundles.base_ref(archive)]
    with store.opened(repository) as ours:
        assert ours.kinds([archive.commit_sha]) == {}
    assert "is whole in its bundle" in verifying.verify(repository, archive)


def test_a_small_one_stays_in_the_clone(
    repository: Repository, worktree: Worktree, settings: Settings
):
    settings.ACW_ARCHIVE_BUNDLE_OVER = 1024 * 1024
    archive = zoo.archive(repository, worktree)
    assert archive.bundle == ""
    assert refs(repository) == [archive.ref]


def test_it_restores_though_the_remote_was_rewritten_and_the_clone_has_forgotten_all(
    repository: Repository, worktree: Worktree, archive: WorktreeArchive, remote: Remote
):
    status, before = zoo.status(Path(worktree.path)), zoo.listed(Path(worktree.path))
    zoo.remove(repository, worktree)
    git("checkout", "--quiet", "--orphan", "other", cwd=remote.work)
    remote.push("else", branch="main")
    repository.fetch(remote.url, timeout=None, stop=None)
    zoo.clean_out(repository)
    restoring.restore(worktree.pk, actor="somebody")
    path = Path(worktree.path)
    assert zoo.listed(path).digest == before.digest
    assert zoo.status(path) == status
    assert refs(repository) == [bundles.base_ref(archive)]
    git("gc", "--quiet", "--prune=now", cwd=repository.path)
    assert git("log", "-1", "--format=%s", cwd=path) == "committed"


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-50] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("damage", [truncate, flip, Path.unlink])
def test_damage_is_found_before_anything_is_made_of_it(
    repository: Repository,
    worktree: Worktree,
    archive: WorktreeArchive,
    damage: Callable[[Path], None],
):
    damage(Path(archive.bundle))
    with pytest.raises(ArchiveDamaged, match=r"\.bundle"):
        verifying.verify(repository, archive)
    zoo.remove(repository, worktree)
    with pytest.raises(ArchiveDamaged, match=r"\.bundle"):
        restoring.restore(worktree.pk, actor="somebody")
    assert not Path(worktree.path).exists()


def test_what_it_builds_on_is_held_again_or_its_loss_is_found(
    repository: Repository, archive: WorktreeArchive
):
    assert not bundles.hold_base(repository, archive)
    git("update-ref", "-d", bundles.base_ref(archive), cwd=repository.path)
    assert bundles.hold_base(repository, archive)
    assert refs(repository) == [bundles.base_ref(archive)]
    git("update-ref", "-d", bundles.base_ref(archive), cwd=repository.path)
    git("update-ref", "-d", "refs/remotes/origin/main", cwd=repository.path)
    git("symbolic-ref", "--delete", "refs/remotes/origin/HEAD", cwd=repository.path)
    zoo.clean_out(repository)
    for file in repository.path.glob("worktrees/*/HEAD"):
        file.write_text("ref: refs/heads/none\n")
    zoo.clean_out(repository)
    for check in (bundles.hold_base, verifying.verify):
        with pytest.raises(ArchiveDamaged, match="no longer has"):
            check(repository, archive)


def test_what_an_interruption_left_of_it_goes_with_the_next_try(
    repository: Repository, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(store, "make_durable", fail)
        with pytest.raises(OSError, match="No space"):
            zoo.archive(repository, worktree)
    directory = paths.bundle_path("demo", 1).parent
    assert list(directory.iterdir()) == []
    assert refs(repository) == []
    assert not WorktreeArchive.objects.exists()


def test_a_bundle_that_is_not_the_rows_own_is_not_touched(
    repository: Repository, archive: WorktreeArchive, tmp_path: Path
):
    victim = tmp_path / "victim"
    victim.touch()
    archive.bundle = str(victim)
    with pytest.raises(OutsideDataDirectory, match="ACW_DATA_DIR"):
        bundles.discard(repository, archive)
    archive.bundle = ""
    directory = paths.bundle_path("demo", 1).parent
    directory.rename(tmp_path / "moved")
    directory.symlink_to(tmp_path / "moved")
    with pytest.raises(OutsideDataDirectory, match="symbolic link"):
        bundles.discard(repository, archive)
    assert victim.exists()


def test_an_archive_is_discarded_without_a_trace(
    repository: Repository, worktree: Worktree
):
    taken = snapshot.take(
        repository, worktree, reason=WorktreeArchive.Reason.ASKED, actor="somebody"
    )
    snapshot.discard_unfinished(repository, worktree.pk)
    assert not Path(taken.bundle).exists()
    assert refs(repository) == []


def test_it_goes_with_its_workspace(
    workspace: Workspace, archive: WorktreeArchive, worktree: Worktree
):
    clones.remove_workspace(workspace, discard_work=True)
    assert not Path(archive.bundle).parent.exists()
