from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.archiving import zoo
from tests.workspaces.remote import commit, git
from tests.workspaces.witness import Tripwire, plant
from workspaces import paths, worktrees
from workspaces.archiving import (
    bundles,
    composing,
    manifest,
    restoring,
    snapshot,
    store,
    verifying,
)
from workspaces.exceptions import ArchiveTooLarge, NotArchivable
from workspaces.models import Conversation, Worktree, WorktreeArchive
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(worktree: Worktree) -> Path:
    return Path(worktree.path)


def take(
    repository: Repository, worktree: Worktree, at: Path | None = None
) -> WorktreeArchive:
    return snapshot.take(
        repository,
        worktree,
        at=at,
        reason=WorktreeArchive.Reason.PRUNED,
        actor="somebody",
    )


def paths_in(repository: Repository, archive: WorktreeArchive) -> set[str]:
    listed = git(
        "ls-tree", "-r", "--name-only", archive.commit_sha, cwd=repository.path
    )
    return set(listed.splitlines())


def refs(repository: Repository) -> str:
    return git("for-each-ref", "--format=%(refname)", "refs/acw", cwd=repository.path)


def test_what_is_committed_costs_no_object_again(
    repository: Repository, worktree: Worktree, path: Path
):
    commit(path, "committed", "y" * 5000)
    readme = git("rev-parse", "HEAD:README", cwd=path)
    before = {*(repository.path / "objects" / "pack").glob("*.idx")}
    archive = take(repository, worktree)
    assert {"tree/README", "tree/committed"} <= paths_in(repository, archive)
    (new,) = {*(repository.path / "objects" / "pack").glob("*.idx")} - before
    packed = git("verify-pack", "-v", str(new), cwd=repository.path)
    assert archive.commit_sha in packed
    assert readme not in packed
    assert git("rev-parse", "HEAD:committed", cwd=path) not in packed
    assert git("rev-parse", f"{archive.commit_sha}^1", cwd=path) == git(
        "rev-parse", "HEAD", cwd=path
    )


def test_its_row_says_what_it_is_of(
    repository: Repository, worktree: Worktree, path: Path
):
    conversation = Conversation.objects.create(title="about", worktree=worktree)
    (path / "untracked").write_text("12345")
    archive = take(repository, worktree)
    assert archive.state == WorktreeArchive.State.WRITING
    assert (archive.worktree_id, archive.path, archive.branch) == (
        worktree.pk,
        worktree.path,
        "acw/work",
    )
    assert archive.last_held_by == "agent"
    assert archive.conversation_ids == [conversation.pk]
    assert archive.size_bytes == len("hello\n12345")
    assert archive.entries == 3
    assert archive.contents["untracked"]["names"] == ["untracked"]
    assert refs(repository) == archive.ref


def test_one_that_was_made_already_is_returned_again(
    repository: Repository, worktree: Worktree, path: Path
):
    (path / "file").write_text("x")
    first = zoo.archive(repository, worktree)
    assert take(repository, worktree).pk == first.pk
    (path / "file").write_text("y")
    assert take(repository, worktree).pk != first.pk


def test_what_broke_off_goes_and_leaves_one_archive(
    repository: Repository, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    first = take(repository, worktree)
    second = take(repository, worktree)
    assert list(WorktreeArchive.objects.all()) == [second]
    assert refs(repository) == second.ref != first.ref

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for module, step in (
        (composing, "write_blobs"),
        (composing, "write"),
        (store, "publish"),
        (store, "point"),
        (bundles, "is_large"),
    ):
        with monkeypatch.context() as broken:
            broken.setattr(module, step, fail)
            with pytest.raises(OSError, match="No space"):
                take(repository, worktree)
        assert not WorktreeArchive.objects.exists()
        assert refs(repository) == ""
        assert list(paths.archiving_path(repository.directory).iterdir()) == []


def test_more_new_bytes_than_are_allowed_are_refused_before_anything_is_written(
    repository: Repository, worktree: Worktree, path: Path, settings: Settings
):
    commit(path, "committed", "y" * 5000)
    settings.ACW_ARCHIVE_MAX_SIZE = 2000 + 4000
    (path / "file").write_text("x" * 2000)
    take(repository, worktree)
    (path / "more").write_text("z" * 7000)
    with pytest.raises(ArchiveTooLarge, match="ACW_ARCHIVE_MAX_SIZE"):
        take(repository, worktree)
    assert not WorktreeArchive.objects.exists()


def test_a_stale_lock_of_the_index_is_no_hindrance_and_not_archived(
    repository: Repository, worktree: Worktree, path: Path
):
    admin = worktrees.registration(repository, path)
    assert admin is not None
    (admin / "index.lock").touch()
    archive = zoo.archive(repository, worktree)
    assert (admin / "index.lock").exists()
    assert "admin/index" in paths_in(repository, archive)
    assert "admin/index.lock" not in paths_in(repository, archive)


@pytest.mark.parametrize(
    "state",
    [
        "detached",
        "unborn",
        "amended",
        "merging",
        "stash",
        "tag",
        "sparse",
        "shallow",
        "split",
    ],
)
def test_whatever_state_it_is_in_comes_back(
    repository: Repository,
    worktree: Worktree,
    path: Path,
    checkout: Path,
    state: str,
):
    kept = []
    if state == "detached":
        git("checkout", "--quiet", "--detach", cwd=path)
        kept.append(commit(path))
        git("checkout", "--quiet", "HEAD^", cwd=path)
    elif state == "unborn":
        git("checkout", "--quiet", "--orphan", "begun", cwd=path)
    elif state == "amended":
        kept.append(commit(path))
        git("commit", "--quiet", "--amend", "--message", "better", cwd=path)
        admin = worktrees.registration(repository, path)
        assert admin is not None
        (admin / "logs" / "HEAD").unlink()
    elif state == "merging":
        kept.append(commit(path, "README", "ours\n"))
        git("checkout", "--quiet", "--detach", "HEAD^", cwd=path)
        kept.append(commit(path, "README", "theirs\n"))
        git("checkout", "--quiet", "acw/work", cwd=path)
        with pytest.raises(Exception, match="returned non-zero"):
            git("merge", kept[1], cwd=path)
    elif state == "stash":
        (path / "README").write_text("stashed\n")
        git("stash", "--quiet", cwd=path)
        kept.append(git("rev-parse", "refs/stash", cwd=path))
        git("update-ref", "refs/acw-test", "HEAD", cwd=path)
    elif state == "tag":
        git("tag", "--annotate", "--message", "x", "marked", cwd=path)
        kept.append(git("rev-parse", "refs/tags/marked", cwd=path))
        git("update-ref", "refs/worktree/marked", kept[0], cwd=path)
        git("tag", "--delete", "marked", cwd=path)
    elif state == "sparse":
        (path / "d").mkdir()
        commit(path, "d/file")
        git("sparse-checkout", "set", "--no-cone", "/README", cwd=path)
    elif state == "shallow":
        commit(checkout, "more")
        git("fetch", "--quiet", "--depth=1", checkout.as_uri(), "main", cwd=path)
        git("checkout", "--quiet", "--detach", "FETCH_HEAD", cwd=path)
        kept.append(commit(path))
        # It has its parents, so that nothing is hidden by it.
        with (repository.path / "shallow").open("a") as shallow:
            shallow.write(f"{kept[0]}\n")
    else:
        git("update-index", "--split-index", cwd=path)
        (path / "staged").write_text("x")
        git("add", "staged", cwd=path)
    before, status = zoo.listed(path), zoo.status(path)
    index = git("ls-files", "--stage", "-t", cwd=path)
    zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    zoo.clean_out(repository)
    restoring.restore(worktree.pk, actor="somebody")
    assert zoo.listed(path).digest == before.digest
    assert zoo.status(path) == status
    assert git("ls-files", "--stage", "-t", cwd=path) == index
    for name in kept:
        assert git("cat-file", "-t", name, cwd=path) in {"commit", "tag"}


def test_a_submodule_is_kept_with_its_repository(
    repository: Repository, worktree: Worktree, path: Path, checkout: Path
):
    allowed = ("-c", "protocol.file.allow=always")
    git(*allowed, "submodule", "--quiet", "add", str(checkout), "sub", cwd=path)
    git("commit", "--quiet", "--message", "sub", cwd=path)
    mine = commit(path / "sub")
    before = zoo.listed(path)
    zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    restoring.restore(worktree.pk, actor="somebody")
    assert zoo.listed(path).digest == before.digest
    assert git("rev-parse", "HEAD", cwd=path / "sub") == mine
    assert git("status", "--porcelain", cwd=path / "sub") == ""


def test_its_files_are_read_where_they_were_moved(
    repository: Repository, worktree: Worktree, path: Path
):
    (path / "file").write_text("x")
    trash = paths.trash_path(repository.directory, worktree.pk)
    trash.parent.mkdir()
    path.rename(trash)
    archive = take(repository, worktree, trash)
    assert (
        "every byte on the disk is equal, so is its registration"
        in verifying.verify(repository, archive, at=trash)
    )
    assert "tree/file" in paths_in(repository, archive)


def test_without_a_registration_its_files_are_archived_caches_and_all(
    repository: Repository, worktree: Worktree, path: Path
):
    (path / ".gitignore").write_text("node_modules\n")
    (path / "node_modules").mkdir()
    (path / "node_modules" / "file").touch()
    admin = worktrees.registration(repository, path)
    assert admin is not None
    admin.rename(repository.directory / "forgotten")
    archive = zoo.archive(repository, worktree)
    assert "tree/node_modules/file" in paths_in(repository, archive)
    zoo.remove(repository, worktree)
    restoring.restore(worktree.pk, actor="somebody")
    assert (path / "node_modules" / "file").exists()
    assert git("branch", "--show-current", cwd=path) == "acw/work"


def test_without_files_its_registration_is_and_they_are_checked_out_again(
    repository: Repository, worktree: Worktree, path: Path
):
    mine = commit(path)
    (path / "staged").write_text("staged only\n")
    git("add", "staged", cwd=path)
    worktrees.delete_tree(path)
    zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    restoring.restore(worktree.pk, actor="somebody")
    assert git("rev-parse", "HEAD", cwd=path) == mine
    assert git("status", "--porcelain", cwd=path) == "A  staged"


def test_without_anything_there_is_nothing_to_archive(
    repository: Repository, worktree: Worktree, path: Path
):
    zoo.remove(repository, worktree)
    worktree.save(force_insert=True)
    with pytest.raises(NotArchivable, match="there is nothing of"):
        take(repository, worktree)


@pytest.mark.parametrize(
    "what", ["repository", "pipe index", "broken index", "HEAD", "no HEAD"]
)
def test_what_cannot_be_understood_is_no_archive(
    repository: Repository, worktree: Worktree, path: Path, what: str
):
    admin = worktrees.registration(repository, path)
    assert admin is not None
    if what == "repository":
        (path / ".git").unlink()
        (path / ".git").mkdir()
    elif what == "HEAD":
        (admin / "HEAD").write_text("ref: ../../../etc/passwd\n")
    elif what == "no HEAD":
        (admin / "HEAD").unlink()
        (admin / "HEAD").mkdir()
    else:
        (admin / "index").unlink()
        if what == "pipe index":
            os.mkfifo(admin / "index")
        else:
            (admin / "index").write_bytes(b"DIRC\0\0\0\2garbage")
    with pytest.raises(Exception, match=r"HEAD|index|\.git|worktree"):
        take(repository, worktree)
    assert not WorktreeArchive.objects.exists()
    assert path.is_dir()


def test_no_program_of_the_repository_is_run(
    repository: Repository, worktree: Worktree, path: Path, tripwire: Tripwire
):
    program = str(tripwire.program)
    (path / ".gitattributes").write_text("* filter=evil diff=evil\n")
    for key in (
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "core.fsmonitor",
        "diff.external",
        "gpg.program",
        "core.alternateRefsCommand",
    ):
        git("config", key, program, cwd=repository.path)
    plant(repository.path / "hooks" / "reference-transaction", program)
    zoo.archive(repository, worktree)
    assert tripwire.fired == ""


def test_a_link_that_takes_the_place_of_a_file_while_it_is_read_gives_nothing_away(
    repository: Repository,
    worktree: Worktree,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    secret = tmp_path / "secret"
    secret.write_text("of the server")
    (path / "file").write_text("of the agent!")
    real = composing.write_blobs

    def exchanged(*args: object, **options: object) -> None:
        (path / "file").unlink()
        (path / "file").symlink_to(secret)
        real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(composing, "write_blobs", exchanged)
    with pytest.raises(NotArchivable):
        take(repository, worktree)
    name = manifest.blob_name(b"of the server")
    with pytest.raises(Exception, match="returned non-zero"):
        git("cat-file", "-e", name, cwd=repository.path)
