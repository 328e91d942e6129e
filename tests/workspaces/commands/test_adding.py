from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError

from jobs.models import Job, WorkerProcess
from notify.models import AuditEntry
from tests.workspaces.commands.calling import workspace
from tests.workspaces.factories import UserFactory
from tests.workspaces.remote import Remote
from workspaces.commands import adding
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker() -> None:
    """A worker of this host that lives, and does nothing."""
    WorkerProcess.objects.create(
        name="w",
        host="test-host",
        pid=1,
        threads=1,
        queues=["host:test-host"],
        types=[],
    )


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Each time that the command waits, the next of these changes is made to the row."""

    def schedule(*changes: dict[str, object] | BaseException) -> None:
        left = list(changes)

        def wait() -> None:
            change = left.pop(0)
            if isinstance(change, BaseException):
                raise change
            rows = Workspace.objects.all()
            rows.update(**change) if change else rows.delete()

        monkeypatch.setattr(adding, "_pause", wait)

    return schedule


def test_where_no_worker_lives_it_is_cloned_at_once(
    remote: Remote, capsys: pytest.CaptureFixture[str]
):
    UserFactory(username="ada")
    printed = workspace("add", "demo", remote.url, "--owner", "ada")
    row = Workspace.objects.get()
    assert printed == f"demo: cloned to {row.path}\n"
    assert "no worker of this host is alive" in capsys.readouterr().err
    assert row.state == "ready"
    assert row.owner
    assert row.owner.get_username() == "ada"
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target) == ("workspace.add", "workspace:demo")
    assert entry.actor.startswith("command line (")
    assert not Job.objects.exists()


def test_what_is_refused_is_refused_before_anything_is_said(
    remote: Remote, capsys: pytest.CaptureFixture[str]
):
    workspace("add", "demo", remote.url, "--now")
    capsys.readouterr()
    for name, url, said in (
        ("No Name", remote.url, "workspace name 'No Name'"),
        ("other", "ext::sh", "remote helper"),
        ("demo", remote.url, "there is a workspace 'demo' already"),
    ):
        with pytest.raises(CommandError, match=said):
            workspace("add", name, url)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("worker")
def test_it_can_be_cloned_at_once_in_any_case(remote: Remote):
    workspace("add", "demo", remote.url, "--now")
    assert Workspace.objects.get().state == "ready"
    assert not Job.objects.exists()


def test_an_owner_must_be_a_user(remote: Remote):
    with pytest.raises(CommandError, match="--owner: there is no user 'nobody'"):
        workspace("add", "demo", remote.url, "--owner", "nobody")
    assert not Workspace.objects.exists()


def test_it_can_be_left_to_a_worker(remote: Remote):
    printed = workspace("add", "demo", remote.url, "--no-wait")
    row = Workspace.objects.get()
    assert printed == f"demo: will be cloned to {row.path}\n"
    assert row.state == "cloning"
    assert not Path(row.path).exists()
    assert Job.objects.get().type == "workspace.clone"
    assert AuditEntry.objects.get().action == "workspace.add"


@pytest.mark.usefixtures("worker")
def test_the_progress_of_a_worker_is_shown_until_it_is_done(
    remote: Remote,
    capsys: pytest.CaptureFixture[str],
    meanwhile: Callable[..., None],
):
    meanwhile(
        {"clone_progress": "receiving objects 45 %"},
        {"clone_progress": "receiving objects 45 %"},
        {"state": "ready"},
    )
    printed = workspace("add", "demo", remote.url)
    assert printed.startswith("demo: cloned to ")
    assert capsys.readouterr().err == "receiving objects 45 %\n"


@pytest.mark.usefixtures("worker")
def test_a_worker_that_is_gone_meanwhile_is_told(
    remote: Remote,
    capsys: pytest.CaptureFixture[str],
    meanwhile: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(adding, "_LOOKS_FOR_WORKER", 1)
    alive = iter([True, True, False, False])
    monkeypatch.setattr(adding, "_has_worker", lambda: next(alive))
    meanwhile({"state": "cloning"}, {"state": "cloning"}, {"state": "ready"})
    workspace("add", "demo", remote.url)
    said = "no worker of this host is alive any more: the next one goes on\n"
    assert capsys.readouterr().err == said


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": "failed", "last_fetch_error": "no such host"}, "no such host"),
        ({}, "was removed meanwhile"),
    ],
    ids=["failed", "removed"],
)
def test_what_becomes_of_it_is_the_commands_error(
    remote: Remote, meanwhile: Callable[..., None], change: dict[str, str], said: str
):
    meanwhile(change)
    with pytest.raises(CommandError, match=f"^demo: {said}") as error:
        workspace("add", "demo", remote.url)
    assert error.value.returncode == 1


@pytest.mark.usefixtures("worker")
def test_who_does_not_want_to_wait_leaves_it_going(
    remote: Remote, meanwhile: Callable[..., None]
):
    meanwhile(KeyboardInterrupt())
    with pytest.raises(CommandError, match="goes on being cloned") as error:
        workspace("add", "demo", remote.url)
    assert error.value.returncode == 130
    assert Workspace.objects.get().state == "cloning"
    assert Job.objects.count() == 1
