from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.factories import WorkspaceFactory
from tests.workspaces.remote import git
from workspaces.fetching import remote_stamps
from workspaces.models import Workspace


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home/.ssh").mkdir(parents=True)
    monkeypatch.setattr(remote_stamps, "_home", lambda: tmp_path / "home")
    monkeypatch.setattr(remote_stamps, "_SYSTEM", tmp_path / "etc")
    return tmp_path / "home"


@pytest.fixture
def ssh() -> Workspace:
    workspace: Workspace = WorkspaceFactory.build(url="git@git.example:a.git")
    return workspace


def test_while_nothing_changes_it_is_the_same(home: Path, ssh: Workspace):
    (home / ".ssh/known_hosts").write_text("x")
    first = remote_stamps.of(ssh)
    (home / "other").write_text("x")
    assert remote_stamps.of(ssh) == first
    assert len(first) == 64


def test_everything_that_a_refusal_depends_on_changes_it(
    home: Path,
    ssh: Workspace,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
):
    seen = [remote_stamps.of(ssh)]
    keys = home / ".ssh/id_ed25519"
    keys.write_text("key")
    seen.append(remote_stamps.of(ssh))
    keys.write_text("another")
    seen.append(remote_stamps.of(ssh))
    keys.chmod(0o400)
    seen.append(remote_stamps.of(ssh))
    keys.unlink()
    (home / ".ssh/known_hosts").write_text("x")
    seen.append(remote_stamps.of(ssh))
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ssh_known_hosts").write_text("x")
    seen.append(remote_stamps.of(ssh))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    seen.append(remote_stamps.of(ssh))
    (tmp_path / "agent").touch()
    seen.append(remote_stamps.of(ssh))
    settings.ACW_GIT_MAX_FILE = 2**40
    seen.append(remote_stamps.of(ssh))
    settings.ACW_GIT_PROTOCOLS = ["ssh"]
    seen.append(remote_stamps.of(ssh))
    Path(ssh.path).mkdir(parents=True)
    seen.append(remote_stamps.of(ssh))
    ssh.url = "git@git.example:b.git"
    seen.append(remote_stamps.of(ssh))
    assert len(set(seen)) == len(seen)


def test_a_repository_that_comes_back_or_is_mended_changes_that_of_a_path(
    tmp_path: Path,
):
    for url in (f"file://{tmp_path}/remote.git", f"{tmp_path}/remote.git"):
        workspace = WorkspaceFactory.build(url=url)
        before = remote_stamps.of(workspace)
        seen = [before]
        (tmp_path / "remote.git").mkdir()
        seen.append(remote_stamps.of(workspace))
        git("init", "--quiet", "--bare", "--template=", str(tmp_path / "remote.git"))
        seen.append(remote_stamps.of(workspace))
        (tmp_path / "remote.git/refs").rename(tmp_path / "refs")
        seen.append(remote_stamps.of(workspace))
        (tmp_path / "refs").rename(tmp_path / "remote.git/refs")
        seen.append(remote_stamps.of(workspace))
        assert [seen.count(stamp) for stamp in seen] == [1, 1, 2, 1, 2]
        (tmp_path / "remote.git").rename(tmp_path / "remote.git.git")
        assert remote_stamps.of(workspace) not in seen
        shutil.rmtree(tmp_path / "remote.git.git")


def test_what_is_not_there_or_no_directory_is_no_error(home: Path, ssh: Workspace):
    (home / ".ssh").rmdir()
    assert remote_stamps.of(ssh)
    ssh.url = "/a\0b"
    assert remote_stamps.of(ssh)
