from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.workspaces.remote import commit, git
from workspaces.archiving import roots, store
from workspaces.exceptions import ArchiveTooLarge, NotArchivable
from workspaces.models import Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def test_parents_are_heads_commit_and_those_that_no_other_leads_to(
    repository: Repository, worktree: Worktree
):
    path = Path(worktree.path)
    first = commit(path, "a")
    lost_below = commit(path, "b")
    lost = commit(path, "c")
    git("reset", "--quiet", "--hard", first, cwd=path)
    head = commit(path, "d")
    tree = git("rev-parse", f"{lost}^{{tree}}", cwd=path)
    git("tag", "--annotate", "--message", "x", "marked", lost_below, cwd=path)
    tag = git("rev-parse", "refs/tags/marked", cwd=path)
    named = {first, lost_below, lost, head, tree, tag, "1" * 40}
    with store.opened(repository) as ours:
        found = roots.of(ours, named, head=head, has_index=False)
        assert found.parents == (head, lost)
        assert found.objects == {tree: "tree"}
        assert found.tags == (tag,)
        assert roots.of(ours, set(), head="", has_index=False).parents == ()


def test_all_tags_are_followed_at_once_and_those_of_no_commit_lead_to_none(
    repository: Repository, worktree: Worktree, started: list[Sequence[str]]
):
    """A ``git fetch --tags`` there names every tag of the remote, of which there may be thousands."""
    path = Path(worktree.path)
    commits = [commit(path, str(n)) for n in range(4)]

    def tag(name: str, target: str) -> str:
        git("tag", "--annotate", "--message", "x", name, target, cwd=path)
        return git("rev-parse", f"refs/tags/{name}", cwd=path)

    def processes(named: set[str]) -> int:
        with store.opened(repository) as ours:
            started.clear()
            found = roots.of(ours, named, head="", has_index=False)
        assert set(found.tags) == named
        assert found.parents == (commits[-1],)
        return len(started)

    tags = {tag(str(n), target) for n, target in enumerate(commits)}
    tags |= {tag("of-a-tag", "refs/tags/0"), tag("of-a-tree", "HEAD^{tree}")}
    last = {git("rev-parse", "refs/tags/3", cwd=path)}
    assert processes(tags) == processes(last)


def test_logs_without_end_are_refused(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(roots, "NAMED_MOST", 2)
    with store.opened(repository) as ours, pytest.raises(ArchiveTooLarge, match="3"):
        roots.of(ours, {"1", "2", "3"}, head="", has_index=False)


def test_a_history_that_is_not_all_there_is_said_to_be_no_archive(
    repository: Repository,
):
    head = git("rev-parse", "refs/remotes/origin/main", cwd=repository.path)
    text = git("cat-file", "commit", head, cwd=repository.path)
    broken = text.replace("author ", f"parent {'1' * 40}\nauthor ", 1)
    with store.opened(repository) as ours:
        asked = ("hash-object", "-t", "commit", "-w", "--stdin")
        name = ours.run(*asked, stdin=broken.encode()).stdout.decode().strip()
        with pytest.raises(NotArchivable, match="where its commits come from"):
            roots.of(ours, {head, name}, head="", has_index=False)
