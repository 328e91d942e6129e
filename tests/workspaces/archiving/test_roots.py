from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.remote import commit, git
from workspaces.archiving import roots, store
from workspaces.exceptions import ArchiveTooLarge
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


def test_logs_without_end_are_refused(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(roots, "NAMED_MOST", 2)
    with store.opened(repository) as ours, pytest.raises(ArchiveTooLarge, match="3"):
        roots.of(ours, {"1", "2", "3"}, head="", has_index=False)
