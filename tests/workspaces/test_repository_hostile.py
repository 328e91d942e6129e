"""What agents may write into a clone's files, and where no fetch of it lets itself be led."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.remote import Remote, git
from workspaces.exceptions import GitFailed, RefusedUrl
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:1/x"


@pytest.mark.parametrize("way", ["include", "commondir", "worktree", "one line"])
def test_no_detour_of_the_configuration_hides_another_url(
    repository: Repository, remote: Remote, tmp_path: Path, way: str
):
    git("clone", "--quiet", "--bare", str(remote.path), str(tmp_path / "evil"))
    evil = tmp_path / "evil" / "config"
    evil.write_text(f'[url "/elsewhere/x"] insteadOf = {remote.url}\n')
    config = repository.path / "config"
    match way:
        case "include":
            git("config", "include.path", str(evil), cwd=repository.path)
        case "commondir":
            (repository.path / "commondir").write_text(f"{evil.parent}\n")
        case "worktree":
            git("config", "extensions.worktreeConfig", "true", cwd=repository.path)
            (repository.path / "config.worktree").write_text(evil.read_text())
        case "one line":
            config.write_text(config.read_text() + evil.read_text())
    with pytest.raises(RefusedUrl, match="/elsewhere/x"):
        repository.fetch(remote.url, timeout=None, stop=None)


def test_a_file_that_stands_for_a_remote_hides_no_other_url(
    repository: Repository, settings: Settings
):
    settings.ACW_GIT_PROTOCOLS = ["ssh", "file"]
    (repository.path / "remotes").mkdir()
    (repository.path / "remotes" / "git@host:x").write_text("URL: /elsewhere/x\n")
    with pytest.raises(RefusedUrl, match="/elsewhere/x"):
        repository.fetch("git@host:x", timeout=None, stop=None)


@pytest.mark.parametrize(
    "key",
    [
        "http.proxy",
        "http.sslCAInfo",
        "http.cookieFile",
        f"http.{NOBODY}.sslVerify",
        "http.http://*.example/.proxyAuthMethod",
        f"remote.{NOBODY}.proxy",
    ],
)
def test_nobody_is_put_between_and_no_check_is_turned_off(
    repository: Repository, settings: Settings, key: str
):
    settings.ACW_GIT_PROTOCOLS = ["http"]
    git("config", key, "x", cwd=repository.path)
    with pytest.raises(
        RefusedUrl, match=r"sets '(http|remote)\..*/config.*https_proxy"
    ):
        repository.fetch(NOBODY, timeout=None, stop=None)
    with pytest.raises(RefusedUrl):
        repository.find_default_branch(NOBODY)


def test_what_an_included_file_sets_counts_too(
    repository: Repository, settings: Settings, tmp_path: Path
):
    settings.ACW_GIT_PROTOCOLS = ["http"]
    (tmp_path / "more").write_text("[http]\n\tproxy = http://127.0.0.1:2\n")
    git("config", "include.path", str(tmp_path / "more"), cwd=repository.path)
    with pytest.raises(RefusedUrl, match=r"sets 'http\.proxy'"):
        repository.fetch(NOBODY, timeout=None, stop=None)


def test_what_leads_nowhere_is_the_clones_own_affair(
    repository: Repository, remote: Remote, settings: Settings
):
    settings.ACW_GIT_PROTOCOLS = ["http", "file"]
    git("config", "http.postBuffer", "1000000", cwd=repository.path)
    with pytest.raises(GitFailed, match="Failed to connect"):
        repository.fetch(NOBODY, timeout=None, stop=None)
    git("config", "http.proxy", "http://127.0.0.1:2", cwd=repository.path)
    assert repository.fetch(remote.url, timeout=None, stop=None) == 0
