from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.factories import WorkspaceFactory
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
    settings.ACW_GIT_PROTOCOLS = ["ssh"]
    seen.append(remote_stamps.of(ssh))
    Path(ssh.path).mkdir(parents=True)
    seen.append(remote_stamps.of(ssh))
    ssh.url = "git@git.example:b.git"
    seen.append(remote_stamps.of(ssh))
    assert len(set(seen)) == len(seen)


def test_a_directory_that_comes_back_changes_that_of_a_path(tmp_path: Path):
    for url in (f"file://{tmp_path}/remote.git", f"{tmp_path}/remote.git"):
        workspace = WorkspaceFactory.build(url=url)
        before = remote_stamps.of(workspace)
        (tmp_path / "remote.git").mkdir()
        assert remote_stamps.of(workspace) != before
        (tmp_path / "remote.git").rmdir()


def test_what_is_not_there_or_no_directory_is_no_error(home: Path, ssh: Workspace):
    (home / ".ssh").rmdir()
    assert remote_stamps.of(ssh)
    ssh.url = "/a\0b"
    assert remote_stamps.of(ssh)
