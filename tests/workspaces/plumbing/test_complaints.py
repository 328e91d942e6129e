from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.remote import Remote, git
from workspaces.exceptions import GitDamaged, GitError, GitFailed, GitOutputTooLarge
from workspaces.failures import Failure, classify
from workspaces.plumbing import complaints
from workspaces.plumbing.control import Control
from workspaces.repository import Repository


@pytest.mark.django_db
def test_a_remote_whose_history_is_cut_off_is_refused(
    repository: Repository, remote: Remote, tmp_path: Path
):
    """Git fetches nothing of it then, and says so with exit status 0."""
    remote.push("new")
    cut = tmp_path / "cut.git"
    git("clone", "--quiet", "--bare", "--depth=1", remote.url, str(cut))
    (repository.control / "packed-refs").unlink(missing_ok=True)
    (repository.control / "refs/remotes/origin/main").unlink(missing_ok=True)
    control = Control(repository.directory)
    with pytest.raises(GitError, match="--unshallow") as failure:
        control.fetch(f"file://{cut}")
    assert classify(failure.value) is Failure.REFUSED
    git("fetch", "--quiet", "--unshallow", remote.url, cwd=cut)
    control.fetch(f"file://{cut}")
    assert control.references()


def test_complaints_of_damage_are_errors():
    with pytest.raises(GitDamaged):
        complaints.refuse_half_done("error: packfile x does not match index")
    complaints.refuse_half_done("warning: redirecting to https://git.example/x/")


def test_what_a_remote_says_is_not_taken_for_gits_own_words():
    complaints.refuse_half_done(
        "remote: warning: rejected x because shallow roots are not allowed to be updated"
    )
    error = GitFailed(
        "fetch", 128, stderr="remote: error: index-pack died of signal 25"
    )
    assert complaints.in_our_words(error) is error


def test_a_file_that_is_too_large_is_said_with_the_setting():
    error = GitFailed(
        "fetch",
        128,
        stderr="error: index-pack died of signal 25\nfatal: fetch-pack: invalid index-pack output",
    )
    said = complaints.in_our_words(error)
    assert isinstance(said, GitOutputTooLarge)
    assert "ACW_GIT_MAX_FILE" in str(said)
