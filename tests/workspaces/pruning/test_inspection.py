from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.workspaces.remote import Remote, commit, git
from tests.workspaces.witness import Tripwire
from workspaces import worktrees
from workspaces.models import Worktree
from workspaces.pruning import contents
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(worktree: Worktree) -> Path:
    return Path(worktree.path)


def work(repository: Repository, path: Path, at: Path | None = None) -> str:
    found = contents.look(repository, path, at=at, measure=False)
    return "; ".join(found.in_words())


def test_a_fresh_worktree_has_nothing_to_lose(repository: Repository, path: Path):
    assert work(repository, path) == ""


def test_nothing_is_written_by_looking(repository: Repository, path: Path, admin: Path):
    os.utime(path / "README", (1, 1))
    before = (admin / "index").read_bytes()
    work(repository, path)
    assert (admin / "index").read_bytes() == before


def test_changes_count(repository: Repository, path: Path):
    (path / "README").write_text("changed\n")
    assert work(repository, path) == "1 uncommitted change (README)"


def test_a_deleted_file_counts(repository: Repository, path: Path):
    (path / "README").unlink()
    assert work(repository, path) == "1 uncommitted change (README)"


def test_staged_files_count(repository: Repository, path: Path):
    (path / "new").touch()
    git("add", "new", cwd=path)
    assert work(repository, path) == "1 uncommitted change (new)"


def test_a_staged_rename_names_both_ends(repository: Repository, path: Path):
    git("mv", "README", "LIESMICH", cwd=path)
    assert work(repository, path) == "2 uncommitted changes (LIESMICH, README)"


def test_untracked_files_count_and_the_first_are_named(
    repository: Repository, path: Path
):
    for name in "abcd":
        (path / name).touch()
    assert work(repository, path) == "4 untracked files (a, b, c, …)"


def test_untracked_files_count_where_the_repository_hides_them(
    repository: Repository, path: Path
):
    git("config", "status.showUntrackedFiles", "no", cwd=path)
    (path / "a").touch()
    assert work(repository, path) == "1 untracked file (a)"


def test_names_are_made_presentable(repository: Repository, path: Path):
    (path / "a\x1b[2Jb\nc").touch()
    (path / ("x" * 200)).touch()
    Path(os.fsdecode(os.fsencode(path) + b"/\xff\xfe")).touch()
    said = work(repository, path)
    assert said.isprintable()
    assert "a [2Jb c" in said
    assert len(said) < 200


def test_ignored_files_count_unless_tools_make_them_again(
    repository: Repository, path: Path, remote: Remote
):
    (repository.path / "info").mkdir()
    (repository.path / "info" / "exclude").write_text(".env\nnode_modules/\n*.pyc\n")
    (path / "node_modules" / "x").mkdir(parents=True)
    (path / "node_modules" / "x" / "index.js").touch()
    (path / "m.pyc").touch()
    assert work(repository, path) == ""
    (path / ".env").write_text("KEY=1\n")
    assert work(repository, path) == "1 ignored file (.env)"


def test_an_ignored_file_beside_committed_ones_counts_whatever_the_directory(
    repository: Repository, path: Path, remote: Remote
):
    (path / "build").mkdir()
    commit(path, "build/run.sh")
    commit(path, ".gitignore", ".env\n")
    git("push", "--quiet", "origin", "HEAD:refs/heads/topic", cwd=path)
    repository.fetch(remote.url, timeout=None, stop=None)
    assert work(repository, path) == ""
    (path / "build" / ".env").write_text("KEY=1\n")
    assert work(repository, path) == "1 ignored file (build/.env)"


def test_a_directory_that_ignores_itself_does_not_count(
    repository: Repository, path: Path
):
    (path / ".venv" / "bin").mkdir(parents=True)
    (path / ".venv" / "bin" / "python").touch()
    (path / ".venv" / ".gitignore").write_text("*\n")
    assert work(repository, path) == ""


def test_a_repository_within_counts(repository: Repository, path: Path):
    git("init", "--quiet", str(path / "nested"))
    assert work(repository, path) == "1 untracked directory (nested/)"


def test_a_merge_in_progress_counts(repository: Repository, path: Path, admin: Path):
    (admin / "MERGE_HEAD").touch()
    (admin / "rebase-merge").mkdir()
    assert work(repository, path) == "a merge in progress; a rebase in progress"


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_changes_that_git_was_told_not_to_see_count(
    repository: Repository, path: Path, flag: str
):
    git("update-index", flag, "README", cwd=path)
    (path / "README").write_text("local settings\n")
    said = "1 file that git is told not to compare (README)"
    assert work(repository, path) == said


def test_a_file_that_a_sparse_checkout_leaves_out_does_not_count(
    repository: Repository, path: Path
):
    git("update-index", "--skip-worktree", "README", cwd=path)
    (path / "README").unlink()
    assert work(repository, path) == ""


def test_a_submodule_with_a_repository_of_its_own_counts(
    repository: Repository, path: Path, remote: Remote
):
    git("clone", "--quiet", str(remote.path), str(path / "sub"))
    git("-c", "advice.addEmbeddedRepo=false", "add", "sub", cwd=path)
    git("commit", "--quiet", "-m", "sub", cwd=path)
    git("push", "--quiet", "origin", "HEAD:refs/heads/topic", cwd=path)
    repository.fetch(remote.url, timeout=None, stop=None)
    said = "1 submodule with a repository of its own (sub)"
    assert work(repository, path) == said


def test_files_elsewhere_than_they_were_can_be_looked_at(
    repository: Repository, path: Path, tmp_path: Path
):
    moved = tmp_path / "moved"
    path.rename(moved)
    assert work(repository, path, at=moved) == ""
    (moved / "new").touch()
    assert work(repository, path, at=moved) == "1 untracked file (new)"


def test_a_directory_that_is_gone_leaves_only_commits_to_lose(
    repository: Repository, path: Path
):
    commit(path)
    shutil.rmtree(path)
    assert work(repository, path) == ""  # its branch stays


def test_neither_directory_nor_registration_is_nothing_to_lose(
    repository: Repository, path: Path
):
    worktrees.discard(repository, path)
    assert work(repository, path) == ""


def test_a_directory_that_git_does_not_know_cannot_be_checked(
    repository: Repository, path: Path, admin: Path
):
    shutil.rmtree(admin)
    assert "cannot be checked" in work(repository, path)


def test_a_directory_that_was_made_another_repository_cannot_be_checked(
    repository: Repository, path: Path
):
    (path / ".git").unlink()
    git("init", "--quiet", str(path))
    assert "cannot be checked" in work(repository, path)


def test_files_that_another_work_tree_setting_would_hide_count(
    repository: Repository, path: Path, tmp_path: Path
):
    (tmp_path / "empty").mkdir()
    git("config", "extensions.worktreeConfig", "true", cwd=path)
    git("config", "--worktree", "core.worktree", str(tmp_path / "empty"), cwd=path)
    (path / "new").touch()
    assert "1 untracked file (new)" in work(repository, path)


def test_a_stale_lock_of_the_index_is_no_hindrance(
    repository: Repository, path: Path, admin: Path
):
    (admin / "index.lock").touch()
    os.utime(path / "README", (1, 1))
    assert work(repository, path) == ""


def test_no_program_of_the_repository_is_run(
    repository: Repository, path: Path, tmp_path: Path
):
    tripwire = Tripwire(tmp_path)
    program = str(tripwire.program)
    (repository.path / "info").mkdir()
    (repository.path / "info" / "attributes").write_text("* filter=evil diff=evil\n")
    for key in (
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.command",
        "diff.evil.textconv",
        "diff.external",
        "core.fsmonitor",
        "core.pager",
        "gpg.program",
    ):
        git("config", key, program, cwd=repository.path)
    git("config", "log.showSignature", "true", cwd=repository.path)
    os.utime(path / "README", (1, 1))
    assert work(repository, path) == ""
    assert tripwire.fired == ""


def test_no_program_of_a_submodule_is_run(
    repository: Repository, path: Path, tripwire: Tripwire
):
    sub = path / "sub"
    git("init", "--quiet", str(sub))
    commit(sub, ".gitattributes", "* filter=evil\n")
    commit(sub, "file")
    git("-c", "advice.addEmbeddedRepo=false", "add", "sub", cwd=path)
    git("config", "filter.evil.clean", str(tripwire.program), cwd=sub)
    (sub / "file").write_text("eork\n")  # as long as before, so that git must compare
    assert "1 submodule with a repository of its own (sub)" in work(repository, path)
    assert tripwire.fired == ""
    git("status", cwd=path)
    assert "tripwire.sh" in tripwire.fired  # with git alone it is
