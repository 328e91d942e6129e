"""What agents may write into a clone's files, and what no fetch of it obeys."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.remote import Remote, git
from tests.workspaces.witness import Tripwire
from workspaces.exceptions import GitFailed
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:1/x"


@pytest.fixture
def other(remote: Remote, tmp_path: Path) -> Path:
    """Another remote, with another commit on its branch."""
    path = tmp_path / "other.git"
    git("clone", "--quiet", "--bare", str(remote.path), str(path))
    work = tmp_path / "other"
    git("clone", "--quiet", str(path), str(work))
    git("commit", "--quiet", "--allow-empty", "-m", "other", cwd=work)
    git("push", "--quiet", "origin", "main", cwd=work)
    return path


@pytest.mark.parametrize(
    "way",
    ["url", "include", "worktree", "remotes", "remote", "one line"],
)
def test_nothing_in_the_clone_leads_a_fetch_elsewhere(
    repository: Repository, remote: Remote, other: Path, tmp_path: Path, way: str
):
    clone = repository.path
    config = clone / "config"
    instead = f'[url "{other}"]\n\tinsteadOf = {remote.url}\n'
    match way:
        case "url":
            git("config", f"url.{other}.insteadOf", remote.url, cwd=clone)
        case "include":
            (tmp_path / "more").write_text(instead)
            git("config", "include.path", str(tmp_path / "more"), cwd=clone)
        case "worktree":
            git("config", "extensions.worktreeConfig", "true", cwd=clone)
            (clone / "config.worktree").write_text(instead)
        case "remotes":
            (clone / "remotes").mkdir()
            (clone / "remotes" / "origin").write_text(f"URL: {other}\n")
        case "remote":
            git("config", f"remote.{remote.url}.url", str(other), cwd=clone)
        case "one line":
            config.write_text(config.read_text() + instead.replace("]\n\t", "] "))
    new = remote.push("new")
    if way != "remotes":
        # What git alone makes of it.
        reached = git("ls-remote", remote.url, "refs/heads/main", cwd=clone)
        assert new not in reached
    assert repository.fetch(remote.url, timeout=None, stop=None) == 1
    assert repository.find_default_branch(remote.url) == "main"
    assert repository.remote_branch("main") == new


@pytest.mark.parametrize(
    "key",
    [
        "http.proxy",
        "http.sslCAInfo",
        "http.cookieFile",
        f"http.{NOBODY}.proxy",
        f"remote.{NOBODY}.proxy",
    ],
)
def test_nobody_is_put_between(repository: Repository, settings: Settings, key: str):
    settings.ACW_GIT_PROTOCOLS = ["http"]
    git("config", key, "http://127.0.0.1:2/proxy", cwd=repository.path)
    with pytest.raises(GitFailed, match=r"connect to 127.0.0.1 port 1"):
        repository.fetch(NOBODY, timeout=None, stop=None)
    with pytest.raises(GitFailed, match=r"connect to 127.0.0.1 port 1"):
        repository.find_default_branch(NOBODY)


def test_references_of_agents_are_not_written_through(
    repository: Repository, remote: Remote
):
    main = git("rev-parse", "origin/main", cwd=repository.path)
    git("update-ref", "refs/heads/mine", main, cwd=repository.path)
    git(
        "symbolic-ref",
        "refs/remotes/origin/main",
        "refs/heads/mine",
        cwd=repository.path,
    )
    new = remote.push("new")
    assert repository.fetch(remote.url, timeout=None, stop=None) == 1
    assert repository.remote_branch("main") == new
    assert repository.local_branch("mine") == main


def test_hooks_hear_nothing_of_a_fetch(
    repository: Repository, remote: Remote, tripwire: Tripwire
):
    hooks = repository.path / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-checkout", "post-merge"):
        (hooks / name).symlink_to(tripwire.program)
    remote.push("a", branch="gone")
    repository.fetch(remote.url, timeout=None, stop=None)
    remote.delete_branch("gone")
    remote.push("b", branch="gone/below")
    repository.fetch(remote.url, timeout=None, stop=None)
    assert tripwire.fired == ""
    git("update-ref", "refs/heads/x", "origin/main", cwd=repository.path)
    assert "reference-transaction" in tripwire.fired  # with git alone they are run
