from __future__ import annotations

import pytest

from tests.workspaces.archiving import zoo
from workspaces.archiving import bundles, composing
from workspaces.archiving.manifest import Entry, Kind, Manifest
from workspaces.exceptions import ArchiveDamaged
from workspaces.models import Worktree
from workspaces.repository import Repository


@pytest.mark.parametrize(
    ("path", "odd"),
    [
        (b"nested/.git/config", True),
        (b"nested/.GIT", True),
        (b".gitignore", False),
        (b"a/.github/b", False),
        (b"GIT~1", False),
        (b"x.git/y", False),
        (b".gitmodules", False),
    ],
)
def test_what_lies_in_a_repository_within_is_odd(path: bytes, odd: bool):
    assert composing.is_odd(Entry(path, Kind.FILE, 0o644)) is odd


@pytest.mark.parametrize(
    ("path", "odd"),
    [
        (b".gitmodules", True),
        (b"below/.GitModules", True),
        (b".gitmodules/x", False),
        (b".gitattributes", False),
    ],
)
def test_so_is_a_link_that_git_would_read_submodules_from(path: bytes, odd: bool):
    assert composing.is_odd(Entry(path, Kind.LINK, 0o777)) is odd


def test_each_entry_with_bytes_has_a_place_of_its_own():
    listed = Manifest(
        (
            Entry(b"", Kind.DIRECTORY, 0o755),
            Entry(b"a", Kind.FILE, 0o644, 1, "d", "b1"),
            Entry(b"n/.git/HEAD", Kind.FILE, 0o644, 1, "d", "b2"),
            Entry(b"pipe", Kind.FIFO, 0o644),
        )
    )
    places = [place for _, place in composing.places(listed, composing.FILES)]
    assert places == [b"tree/a", b"odd/2"]


@pytest.mark.django_db
def test_a_manifest_that_is_not_the_recorded_one_is_damage(
    repository: Repository, worktree: Worktree
):
    archive = zoo.archive(repository, worktree)
    with bundles.opened(repository, archive) as ours:
        parts = composing.read(ours, archive.commit_sha, digest=archive.manifest_digest)
        assert parts.facts["branch"] == "refs/heads/acw/work"
        with pytest.raises(ArchiveDamaged, match="not the one that was recorded"):
            composing.read(ours, archive.commit_sha, digest="0" * 64)
