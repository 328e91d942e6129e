"""``manage.py worktree``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError

from tests.workspaces.commands.calling import worktree as run
from tests.workspaces.factories import WorktreeFactory
from tests.workspaces.remote import git
from workspaces.models import Workspace, Worktree

pytestmark = pytest.mark.django_db


def test_acquire_prints_id_and_path(workspace: Workspace):
    printed = run("acquire", "demo", "--branch", "topic", "--holder", "agent")
    worktree = Worktree.objects.get()
    assert printed == f"{worktree.pk}\t{worktree.path}\n"
    assert worktree.held_by == "agent"
    assert git("branch", "--show-current", cwd=Path(worktree.path)) == "topic"


def test_without_a_holder_it_is_the_systems_user(workspace: Workspace):
    run("acquire", "demo")
    held_by = Worktree.objects.get().held_by
    assert held_by
    assert held_by.startswith("command line (")


def test_acquire_prints_json_for_scripts(workspace: Workspace):
    row = json.loads(run("acquire", "demo", "--holder", "agent", "--json"))
    worktree = Worktree.objects.get()
    assert (row["id"], row["path"], row["held_by"]) == (
        worktree.pk,
        worktree.path,
        "agent",
    )


def test_what_was_released_is_acquired_again(workspace: Workspace):
    first = run("acquire", "demo", "--holder", "agent")
    worktree_id = first.split("\t")[0]
    assert run("release", worktree_id) == f"{worktree_id}: released\n"
    assert run("acquire", "demo", "--holder", "agent") == first


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["acquire", "nothing"], "there is no workspace 'nothing'"),
        (["acquire", "demo", "--branch=-x"], "branch name '-x'"),
        (["acquire", "demo", "--holder", "a\nb"], "holder"),
        (["release", "12345"], "there is no worktree 12345"),
    ],
)
def test_an_error_is_one_line_and_exit_status_1(
    workspace: Workspace, arguments: list[str], said: str
):
    with pytest.raises(CommandError) as error:
        run(*arguments)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.returncode == 1


def test_a_release_can_name_whom_it_is_for(workspace: Workspace):
    worktree_id = run("acquire", "demo", "--holder", "agent").split("\t")[0]
    with pytest.raises(CommandError, match="held by 'agent', not by 'other'"):
        run("release", worktree_id, "--holder", "other")
    run("release", worktree_id, "--holder", "agent")


@pytest.mark.parametrize("arguments", [[], ["release"], ["release", "x"], ["restore"]])
def test_a_wrong_call_is_an_error(arguments: list[str]):
    with pytest.raises(CommandError):
        run(*arguments)


def test_all_are_listed():
    assert run("list") == "no worktrees\n"
    worktree = WorktreeFactory(workspace__name="demo", branch="topic")
    header, row = run("list").splitlines()
    assert header.split()[:4] == ["ID", "WORKSPACE", "HOST", "BRANCH"]
    assert row.split()[:4] == [str(worktree.pk), "demo", "test-host", "topic"]
    (listed,) = json.loads(run("list", "--json"))
    assert listed["branch"] == "topic"
