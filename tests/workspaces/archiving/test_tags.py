from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.workspaces.archiving import zoo
from tests.workspaces.remote import git
from workspaces.archiving import restoring, store, tags
from workspaces.exceptions import GitFailed
from workspaces.models import Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def tag(path: Path, name: str, *message: str) -> str:
    words = [word for line in message or ("x",) for word in ("--message", line)]
    git("tag", "--annotate", *words, name, cwd=path)
    return git("rev-parse", f"refs/tags/{name}", cwd=path)


def test_they_are_read_and_written_to_the_byte(repository: Repository, path: Path):
    names = {tag(path, "one"), tag(path, "two", "first", "ä second")}
    with store.opened(repository) as clone, store.opened_apart(repository) as apart:
        texts = tags.read(clone, names)
        assert texts.keys() == names
        (apart.objects / "info" / "alternates").unlink()
        assert apart.kinds(names) == {}
        tags.write(apart, texts.values())
        assert apart.kinds(names) == dict.fromkeys(names, "tag")
        assert tags.read(apart, names) == texts


def test_of_none_nothing_is_asked(repository: Repository):
    with store.opened(repository) as ours:
        assert tags.read(ours, ()) == {}
        tags.write(ours, ())


def test_what_is_no_tag_is_not_written(repository: Repository):
    with store.opened(repository) as ours, pytest.raises(GitFailed):
        tags.write(ours, [b"no tag\n"])


def test_a_worktree_with_many_is_archived_and_restored_by_as_many_processes(
    repository: Repository,
    worktree: Worktree,
    path: Path,
    admin: Path,
    started: list[Sequence[str]],
):
    def processes(named: list[str]) -> int:
        """As ``git fetch --tags`` leaves them, without whose tags git forgets them."""
        head = admin / "FETCH_HEAD"
        head.write_text("".join(f"{name}\tnot-for-merge\ttag\n" for name in named))
        started.clear()
        zoo.archive(repository, worktree)
        zoo.remove(repository, worktree)
        restoring.restore(worktree.pk, actor="ada")
        return len(started)

    few = processes([tag(path, "0")])
    many = [tag(path, str(n)) for n in range(1, 8)]
    git("tag", "--delete", *map(str, range(8)), cwd=path)
    assert processes(many) == few
    assert {git("cat-file", "-t", name, cwd=path) for name in many} == {"tag"}
