from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from acw import demo
from jobs import wakeup
from workspaces import attachments, holds
from workspaces.models import Attachment, Conversation, Workspace
from workspaces.tasks import actions, agents
from workspaces.tasks.actors import acting
from workspaces.tasks.models import Agent, Task

# A clone's directory would outlive a rollback, so rows and directories are both real.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True, scope="session")
def notifier_closed_before_the_database_goes(django_db_setup: None) -> Iterator[None]:
    yield
    wakeup.close(timeout=5)


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


def test_publishes_a_task_and_a_contest_for_a_service_account(owner: User):
    demo.build(owner=owner)
    assert str(Agent.objects.get(user=None)) == "service:demo"
    task, contest = Task.objects.order_by("pk")
    assert (task.template, task.workspace) == ("direct", Workspace.objects.get())
    assert contest.template == "contest"
    assert {str(each.publisher) for each in (task, contest)} == {"ann"}
    bot = acting(agents.find("service:demo"))
    worktree = holds.acquire(Workspace.objects.get(), holder="service:demo")
    assert actions.take(task.pk, by=bot, worktree=worktree).ok
    assert actions.submit(contest.pk, by=bot, text="Lapwing").ok


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
    assert Task.objects.count() == 2


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
