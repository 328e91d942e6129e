from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.workspaces.remote import git
from workspaces.plumbing import loose_references

MAIN = b"refs/remotes/origin/main"
BELOW = b"refs/remotes/origin/a/b"


@pytest.fixture
def head(checkout: Path) -> bytes:
    return git("rev-parse", "HEAD", cwd=checkout).encode()


@pytest.fixture
def next_one(checkout: Path, head: bytes) -> bytes:
    git("commit", "--quiet", "--allow-empty", "-m", "two", cwd=checkout)
    return git("rev-parse", "HEAD", cwd=checkout).encode()


def test_git_finds_what_was_set_and_where_it_was(
    checkout: Path, head: bytes, next_one: bytes
):
    top = checkout / ".git"
    assert loose_references.move(top, {MAIN: head, BELOW: head}, {})
    assert loose_references.move(top, {MAIN: next_one}, {MAIN: head})
    assert git("rev-parse", "origin/main", cwd=checkout) == next_one.decode()
    assert git("rev-parse", "origin/a/b", cwd=checkout) == head.decode()
    assert git("rev-parse", "origin/main@{1}", cwd=checkout) == head.decode()
    assert git("reflog", "show", "--format=%gs", "origin/main", cwd=checkout) == (
        "fetch\nfetch"
    )
    assert not list(top.rglob("*.lock"))
    assert git("fsck", cwd=checkout) == ""


def test_a_lock_of_somebody_is_respected(checkout: Path, head: bytes):
    lock = checkout / ".git" / f"{MAIN.decode()}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    assert not loose_references.move(checkout / ".git", {MAIN: head}, {})
    assert lock.exists()


@pytest.mark.parametrize("below", ["", "logs"])
def test_no_directory_leads_elsewhere(
    checkout: Path, head: bytes, tmp_path: Path, below: str
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = checkout / ".git" / below / "refs/remotes/origin/a"
    place.parent.mkdir(parents=True)
    place.symlink_to(elsewhere)
    assert not loose_references.move(checkout / ".git", {BELOW: head}, {})
    assert not list(elsewhere.iterdir())
    assert not (checkout / ".git" / f"{BELOW.decode()}.lock").exists()


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_log_that_is_no_file_is_not_written_to(
    checkout: Path, head: bytes, tmp_path: Path, kind: str
):
    log = checkout / ".git" / "logs" / MAIN.decode()
    log.parent.mkdir(parents=True)
    if kind == "link":
        log.symlink_to(tmp_path / "victim")
    else:
        os.mkfifo(log)
    assert not loose_references.move(checkout / ".git", {MAIN: head}, {})
    assert not (tmp_path / "victim").exists()
    assert not (checkout / ".git" / MAIN.decode()).exists()


def test_many_are_left_to_git(checkout: Path, head: bytes):
    many = {b"refs/remotes/origin/%d" % n: head for n in range(21)}
    assert not loose_references.move(checkout / ".git", many, {})
    assert not (checkout / ".git" / "refs/remotes/origin").exists()
