from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.witness import Lifeline, plant
from workspaces import git, supervision
from workspaces.exceptions import (
    GitError,
    GitFailed,
    GitMissing,
    GitOutputTooLarge,
    GitStopped,
    GitTimeout,
)

SSH_URL = "ssh://git@git.example/project"


def test_what_git_prints_is_returned(checkout: Path):
    result = git.run(["log", "--format=%s"], cwd=checkout)
    assert result == git.Result(stdout=b"first\n", stderr="", status=0)


def test_a_commit_can_be_made_with_configuration_of_its_own(checkout: Path):
    who = {"user.name": "A = B", "user.email": "a@example.org"}
    git.run(["commit", "--allow-empty", "-m", "two"], cwd=checkout, config=who)
    assert git.run(["log", "-1", "--format=%an"], cwd=checkout).stdout == b"A = B\n"


def test_repository_and_files_can_be_named(checkout: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    status = git.run(
        ["status", "--porcelain"], git_dir=checkout / ".git", work_tree=elsewhere
    )
    assert status.stdout == b" D file\n"


def test_another_exit_status_is_an_error_unless_accepted(checkout: Path):
    arguments = ["rev-parse", "--verify", "--quiet", "refs/heads/nothing"]
    with pytest.raises(GitFailed) as failure:
        git.run(arguments, cwd=checkout)
    assert (failure.value.verb, failure.value.status) == ("rev-parse", 1)
    assert git.run(arguments, cwd=checkout, accept=(0, 1)).status == 1


def test_an_error_is_one_line_with_what_git_said(checkout: Path):
    with pytest.raises(GitFailed) as failure:
        git.run(["rev-parse", "--verify", "refs/heads/nothing"], cwd=checkout)
    said = "fatal: Needed a single revision"
    assert str(failure.value) == f"git rev-parse failed (exit status 128): {said}"


def test_git_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitMissing, match="no git in PATH"):
        git.run(["version"])


def test_a_directory_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(GitError, match=r"cannot run.*nowhere"):
        git.run(["status"], cwd=tmp_path / "nowhere")


def test_an_argument_with_nul_is_an_error_of_git():
    with pytest.raises(GitError, match="null byte"):
        git.run(["log", "a\0b"])


def test_the_version_is_read():
    assert git.version() >= git.OLDEST_VERSION


def test_an_unreadable_version_is_told(programs: Path):
    plant(programs / "git", "echo git of tomorrow")
    with pytest.raises(GitError, match="'git of tomorrow\\\\n'"):
        git.version()


def test_one_that_takes_too_long_is_ended_with_all_its_children(
    programs: Path, lifeline: Lifeline, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(supervision, "TERM_GRACE", 0.3)
    plant(
        programs / "ssh",
        f"exec 9>{lifeline.path}; echo here >&9",
        "trap '' TERM",
        "(trap '' TERM; while :; do sleep 1; done) &",
        "while :; do sleep 1; done",
    )
    with pytest.raises(GitTimeout, match=r"git ls-remote took longer than 0:00:00.5"):
        git.run(["ls-remote", "--", SSH_URL], timeout=dt.timedelta(seconds=0.5))
    assert lifeline.was_held_and_let_go()


def test_the_setting_bounds_every_timeout(programs: Path, settings: Settings):
    settings.ACW_GIT_TIMEOUT = dt.timedelta(seconds=0.3)
    plant(programs / "ssh", "exec sleep 1000")
    with pytest.raises(GitTimeout, match=r"0:00:00.3\d* \(ACW_GIT_TIMEOUT\)"):
        git.run(["ls-remote", "--", SSH_URL], timeout=dt.timedelta(hours=1))


def test_nothing_is_begun_for_a_caller_who_stops():
    with pytest.raises(GitStopped, match="not begun"):
        git.run(["version"], stop=lambda: True)


def test_it_ends_when_the_caller_stops(programs: Path, tmp_path: Path):
    begun = tmp_path / "begun"
    plant(programs / "ssh", f"touch {begun}", "exec sleep 1000")
    with pytest.raises(GitStopped):
        git.run(["ls-remote", "--", SSH_URL], stop=begun.exists)


def test_more_output_than_is_read_is_an_error(checkout: Path):
    with pytest.raises(GitOutputTooLarge, match="more than 3 bytes"):
        git.run(["log"], cwd=checkout, most=3)
