from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.workspaces.remote import git
from workspaces.holding import staged
from workspaces.models import Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def test_what_is_staged_gets_a_branch_and_what_is_committed_none(
    repository: Repository, worktree: Worktree, admin: Path
):
    path = Path(worktree.path)
    assert staged.keep(repository, admin, prefix="acw/rescued-x") == []
    (path / "new").write_text("only staged")
    git("add", "new", cwd=path)
    (branch,) = staged.keep(repository, admin, prefix="acw/rescued-x")
    assert branch.startswith("acw/rescued-x-staged-")
    assert git("show", f"{branch}:new", cwd=repository.path) == "only staged"
    (admin / "index").write_text("no index")
    assert staged.keep(repository, admin, prefix="acw/rescued-x") == []


def test_what_is_staged_beside_a_conflict_is_kept_too(
    repository: Repository, worktree: Worktree, admin: Path
):
    path = Path(worktree.path)
    (path / "new").write_text("only staged")
    git("add", "new", cwd=path)
    blob = git("rev-parse", ":new", cwd=path)
    stages = "".join(f"100644 {blob} {stage}\tREADME\n" for stage in (1, 2, 3))
    subprocess.run(
        ["git", "update-index", "--index-info"],
        cwd=path,
        input=f"0 {'0' * 40}\tREADME\n{stages}",
        text=True,
        check=True,
    )
    (branch,) = staged.keep(repository, admin, prefix="acw/rescued-x")
    assert git("show", f"{branch}:{blob}", cwd=repository.path) == "only staged"
