from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.remote import git
from workspaces import paths
from workspaces.archiving import store
from workspaces.exceptions import NotArchivable
from workspaces.models import Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def test_nothing_of_the_clones_own_counts_in_it_but_objects(repository: Repository):
    head = git("rev-parse", "refs/remotes/origin/main", cwd=repository.path)
    with store.opened(repository) as ours, ours.importing() as stream:
        stream.write(b"commit refs/heads/other\ncommitter x <x> 0 +0000\ndata 0\n\n")
        stream.flush()
        other = ours.commit_of("refs/heads/other")
    git("replace", head, other, cwd=repository.path)
    (repository.path / "config").write_text("[this is no configuration")
    with store.opened(repository) as ours:
        assert ours.kinds([head, other, "0" * 40]) == {head: "commit", other: "commit"}
        shown = ours.run("cat-file", "commit", head).stdout
    assert b"somebody@example.org" in shown


def test_what_is_written_apart_goes_with_it(repository: Repository):
    with store.opened_apart(repository) as apart:
        with apart.importing() as stream:
            stream.blob([b"ab", b"c"], 3)
        name = "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f"
        assert apart.kinds([name]) == {name: "blob"}
        assert apart.blob(name) == b"abc"
    with store.opened(repository) as ours:
        assert ours.kinds([name]) == {}
    assert list(paths.archiving_path(repository.directory).iterdir()) == []


def test_a_blob_of_another_size_than_was_said_is_refused(repository: Repository):
    with (
        store.opened(repository) as ours,
        pytest.raises(NotArchivable, match="changed its size"),
        ours.importing() as stream,
    ):
        stream.blob([b"abc"], 2)


def test_large_streams_go_in_batches(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(store, "_BATCH_BYTES", 10)
    with store.opened(repository) as ours:
        with ours.importing() as stream:
            for n in range(3):
                stream.blob([b"%020d" % n], 20)
        packs = list((repository.path / "objects" / "pack").glob("*.pack"))
    assert len(packs) >= 3


def test_a_path_is_named_as_git_reads_it(repository: Repository):
    path = b'a b/"q"\\back\nline\xff'
    with store.opened(repository) as ours:
        with ours.importing() as stream:
            stream.write(b"commit refs/heads/x\ncommitter x <x> 0 +0000\ndata 0\n\n")
            stream.write(b"M 100644 inline %s\ndata 1\nx\n" % store.quoted(path))
        listed = ours.run("ls-tree", "-r", "-z", "--name-only", "refs/heads/x").stdout
    assert listed == path + b"\0"


def test_objects_that_lie_elsewhere_are_refused(repository: Repository, tmp_path: Path):
    objects = repository.path / "objects"
    objects.rename(tmp_path / "moved")
    objects.symlink_to(tmp_path / "moved")
    with pytest.raises(NotArchivable, match="symbolic link"), store.opened(repository):
        pass


def test_what_an_interruption_has_left_is_swept(
    repository: Repository, worktree: Worktree
):
    left = paths.archiving_path(repository.directory) / "left" / "git"
    left.mkdir(parents=True)
    store.sweep(repository)
    assert not left.parent.exists()


def test_a_ref_is_set_and_dropped_and_no_hook_is_asked(repository: Repository):
    main = git("rev-parse", "refs/remotes/origin/main", cwd=repository.path)
    store.point(repository, "refs/acw/archive/1", main)
    assert repository.commit_of("refs/acw/archive/1") == main
    store.drop(repository, "refs/acw/archive/1")
    store.drop(repository, "refs/acw/archive/1")
    assert repository.commit_of("refs/acw/archive/1") is None
