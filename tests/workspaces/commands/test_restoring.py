from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.workspaces.archiving import zoo
from tests.workspaces.remote import git
from workspaces.models import Worktree, WorktreeArchive
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def archive(repository: Repository, worktree: Worktree) -> WorktreeArchive:
    """Of a worktree with an untracked file, that is gone."""
    (Path(worktree.path) / "mine").touch()
    made = zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    return made


def run(*arguments: str) -> tuple[str, str]:
    stdout, stderr = io.StringIO(), io.StringIO()
    call_command("worktree", *arguments, stdout=stdout, stderr=stderr, no_color=True)
    return stdout.getvalue(), stderr.getvalue()


def test_one_is_restored_and_its_place_printed(archive: WorktreeArchive):
    printed = run("restore", str(archive.worktree_id))
    assert printed == (f"{archive.worktree_id}\t{archive.path}\n", "")
    assert (Path(archive.path) / "mine").exists()


def test_what_is_not_as_before_is_told(
    repository: Repository, archive: WorktreeArchive
):
    tree = git("rev-parse", "acw/work^{tree}", cwd=repository.path)
    moved = git("commit-tree", "-m", "moved", tree, cwd=repository.path)
    git("update-ref", "refs/heads/acw/work", moved, cwd=repository.path)
    stdout, stderr = run("restore", str(archive.worktree_id), "--json")
    own = f"acw/restored-{archive.worktree_id}"
    assert json.loads(stdout)["branch"] == own
    assert own in json.loads(stdout)["state_reason"]
    assert stderr == ""


def test_one_that_there_is_not_is_an_error_of_one_line(worktree: Worktree):
    with pytest.raises(CommandError, match="there is no archive of worktree 999"):
        run("restore", "999")


def test_all_are_listed_with_what_is_in_them(archive: WorktreeArchive):
    (row,) = run("archives")[0].splitlines()[1:]
    assert f"{archive.worktree_id} " in row
    assert f" {archive.workspace.host} " in row
    assert "1 untracked file (mine)" in row
    (listed,) = json.loads(run("archives", "--json")[0])
    assert listed["worktree_id"] == archive.worktree_id
    assert listed["commit"] == archive.commit_sha
    assert listed["state"] == "verified"
    assert listed["expires_at"]


def test_where_there_are_none_it_says_so(db: None):
    assert run("archives")[0] == "no archives\n"
