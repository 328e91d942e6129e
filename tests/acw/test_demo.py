from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from acw import demo
from workspaces import attachments
from workspaces.models import Attachment, Conversation, Workspace

# A clone's directory would outlive a rollback, so rows and directories are both real.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def data_dir(settings: Settings, tmp_path: Path) -> Path:
    settings.ACW_DATA_DIR = tmp_path / "data"
    return tmp_path / "data"


@pytest.fixture
def owner() -> User:
    return User.objects.create_superuser("ann")


def git(*arguments: str, cwd: Path) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True
    ).stdout


def test_builds_a_workspace_with_two_idle_worktrees_and_a_conversation(owner: User):
    assert demo.build(owner=owner)
    workspace = Workspace.objects.get()
    assert (workspace.name, workspace.owner) == ("demo", owner)
    worktrees = list(workspace.worktrees.all())
    assert len(worktrees) == 2
    assert [worktree.held_by for worktree in worktrees] == [None, None]
    assert all((Path(worktree.path) / "greet.py").is_file() for worktree in worktrees)
    attachment = Attachment.objects.get(conversation=Conversation.objects.get())
    with attachments.open_bytes(attachment) as file:
        assert file.read() == b"It should say good morning.\n"


def test_the_remote_has_commits_and_takes_more_from_the_checkout(owner: User):
    demo.build(owner=owner)
    remote, checkout = demo.directory() / "remote.git", demo.directory() / "checkout"
    assert git("rev-list", "--count", "main", cwd=remote) == "3\n"
    (checkout / "more.txt").write_text("more")
    git("add", ".", cwd=checkout)
    git("commit", "--quiet", "--message", "more", cwd=checkout)
    git("push", "--quiet", cwd=checkout)
    assert git("rev-list", "--count", "main", cwd=remote) == "4\n"


def test_is_built_once(owner: User):
    demo.build(owner=owner)
    assert not demo.build(owner=owner)
    assert Workspace.objects.count() == 1


def test_goes_on_where_it_was_interrupted(owner: User, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patched:
        patched.setattr(attachments, "attach", interrupt)
        with pytest.raises(KeyboardInterrupt):
            demo.build(owner=owner)
    assert demo.build(owner=owner)
    assert Workspace.objects.get().worktrees.count() == 2
    assert Conversation.objects.count() == Attachment.objects.count() == 1


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_remote_that_was_half_made_is_made_anew(owner: User):
    (demo.directory() / "draft.git").mkdir(parents=True)
    (demo.directory() / "checkout" / ".git").mkdir(parents=True)
    assert demo.build(owner=owner)


def test_keeps_out_of_the_way_of_real_workspaces(owner: User):
    Workspace.objects.create(
        name="real", url="https://host/r.git", host="elsewhere", path="/srv/r"
    )
    assert not demo.build(owner=owner)
    assert not demo.directory().exists()
