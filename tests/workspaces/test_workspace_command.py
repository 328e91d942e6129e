"""``manage.py workspace``."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from notify.models import AuditEntry
from tests.workspaces.factories import UserFactory, WorkspaceFactory
from tests.workspaces.remote import Remote
from workspaces.models import Workspace, Worktree

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("workspace", *arguments, stdout=out)
    return out.getvalue()


def test_one_is_added_for_its_owner(remote: Remote):
    UserFactory(username="ada")
    printed = run("add", "demo", remote.url, "--owner", "ada")
    workspace = Workspace.objects.get()
    assert printed == f"demo: cloned to {workspace.path}\n"
    assert workspace.owner
    assert workspace.owner.get_username() == "ada"
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target) == ("workspace.add", "workspace:demo")
    assert entry.actor.startswith("command line (")


def test_an_owner_must_be_a_user(remote: Remote):
    with pytest.raises(CommandError, match="--owner: there is no user 'nobody'"):
        run("add", "demo", remote.url, "--owner", "nobody")
    assert not Workspace.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "../x", "{url}"], "workspace name '../x'"),
        (["add", "demo", "https://u:SECRET@h/x"], "leave it out"),
        (["add", "demo", "file:///nowhere"], "git fetch failed"),
        (["fetch", "nothing"], "there is no workspace 'nothing'"),
        (["remove", "nothing"], "there is no workspace 'nothing'"),
    ],
)
def test_an_error_is_one_line_and_exit_status_1(
    remote: Remote, arguments: list[str], said: str
):
    with pytest.raises(CommandError) as error:
        run(*(argument.format(url=remote.url) for argument in arguments))
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert "SECRET" not in str(error.value)
    assert error.value.returncode == 1


@pytest.mark.parametrize("arguments", [[], ["add"], ["add", "x"], ["nonsense"]])
def test_a_wrong_call_is_an_error(arguments: list[str]):
    with pytest.raises(CommandError):
        run(*arguments)


def test_all_are_listed(capsys: pytest.CaptureFixture[str]):
    assert run("list") == "no workspaces\n"
    WorkspaceFactory(name="one", url="https://u:SECRET@git.example/x")
    WorkspaceFactory(name="two", host="elsewhere", owner=UserFactory(username="ada"))
    printed = run("list")
    assert printed.splitlines()[0].split()[:3] == ["NAME", "HOST", "REMOTE"]
    assert [line.split()[:2] for line in printed.splitlines()[1:]] == [
        ["one", "test-host"],
        ["two", "elsewhere"],
    ]
    assert "SECRET" not in printed


def test_scripts_get_json():
    WorkspaceFactory(name="one")
    (row,) = json.loads(run("list", "--json"))
    assert (row["name"], row["host"], row["owner"]) == ("one", "test-host", None)


def test_one_is_fetched_in_the_foreground(workspace: Workspace, remote: Remote):
    remote.push("new")
    assert run("fetch", "demo") == "demo: fetched, 1 branches changed\n"


def test_a_fetch_that_fails_says_why(workspace: Workspace, remote: Remote):
    remote.vanish()
    with pytest.raises(CommandError, match=r"^demo: git fetch failed"):
        run("fetch", "demo")


def test_one_is_removed(workspace: Workspace):
    assert run("remove", "demo") == "demo: removed\n"
    assert not Path(workspace.path).exists()
    assert AuditEntry.objects.get().action == "workspace.remove"


def test_work_is_discarded_only_when_asked(workspace: Workspace, worktree: Worktree):
    (Path(worktree.path) / "new").touch()
    with pytest.raises(CommandError, match="--discard-work"):
        run("remove", "demo")
    assert run("remove", "demo", "--discard-work") == "demo: removed\n"
    assert AuditEntry.objects.get().data == {"discard_work": True}
