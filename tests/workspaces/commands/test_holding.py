"""``manage.py worktree acquire``, ``heartbeat`` and ``release``."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from django.core.management import CommandError

from notify.models import AuditEntry
from tests.workspaces.commands.calling import worktree as run
from tests.workspaces.factories import WorkspaceFactory, WorktreeFactory
from workspaces import prune
from workspaces.holding import leases
from workspaces.models import Workspace, Worktree

pytestmark = pytest.mark.django_db


def answer(*arguments: object) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return said


def lasts(said: dict[str, Any]) -> dt.timedelta:
    until, heard_of = (
        dt.datetime.fromisoformat(said[name])
        for name in ("lease_expires_at", "heartbeat_at")
    )
    return until - heard_of


def held() -> Worktree:
    row: Worktree = WorktreeFactory()
    return leases.hold(row.pk, holder="agent", lease=None)


def test_a_script_keeps_what_it_acquired_by_its_number(workspace: Workspace):
    said = answer("acquire", "demo", "--holder", "agent", "--lease", "2h")
    assert (said["fencing_no"], lasts(said)) == (1, dt.timedelta(hours=2))
    key = said["id"]
    kept = answer("heartbeat", key, "--fencing", 1)
    assert lasts(kept) == dt.timedelta(hours=2)
    assert run("heartbeat", key, "--fencing", 1, "--lease", "30m").startswith(
        f"{key}: held until 20"
    )
    assert run("release", key, "--fencing", 1) == f"{key}: released\n"
    assert run("release", key, "--fencing", 1) == f"{key}: was released already\n"
    said = answer("release", key, "--fencing", 1)
    assert (said["id"], said["held_by"], said["was_held"]) == (key, None, False)
    # Whose word it was is written once.
    assert AuditEntry.objects.filter(action="worktree.release").count() == 1


def test_a_hold_without_an_end_says_so():
    worktree = held()
    Worktree.objects.update(lease_expires_at=None)
    assert run("heartbeat", worktree.pk, "--fencing", 1) == (
        f"{worktree.pk}: held until it is released\n"
    )


def test_what_is_over_is_exit_status_1():
    worktree = held()
    leases.release(worktree.pk)
    leases.hold(worktree.pk, holder="other", lease=None)
    for verb in ("heartbeat", "release"):
        with pytest.raises(CommandError, match=r"hold 1 of .* is over") as error:
            run(verb, worktree.pk, "--fencing", 1)
        assert error.value.returncode == 1
    worktree.refresh_from_db()
    assert worktree.held_by == "other"


def test_a_release_names_the_holder_and_the_hold():
    worktree = held()
    with pytest.raises(CommandError, match="held by 'agent', not by 'other'"):
        run("release", worktree.pk, "--holder", "other", "--fencing", 1)
    run("release", worktree.pk, "--holder", "agent", "--fencing", 1)


def test_this_very_worktree_is_acquired_also_when_it_was_pruned(
    workspace: Workspace, worktree: Worktree
):
    printed = f"{worktree.pk}\t{worktree.path}\n"
    for _ in range(2):
        assert run("acquire", "demo", "--id", worktree.pk, "--holder", "x") == printed
        run("release", worktree.pk)
        prune.archive_worktree(worktree.pk, actor="ada")


def test_one_of_another_workspace_is_refused(workspace: Workspace, worktree: Worktree):
    WorkspaceFactory(name="other")

    def refused() -> None:
        said = f"worktree {worktree.pk} is of workspace demo, not of other"
        with pytest.raises(CommandError, match=said):
            run("acquire", "other", "--id", worktree.pk)

    refused()
    prune.archive_worktree(worktree.pk, actor="ada")
    refused()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["acquire", "demo", "--holder", ""], "holder '': it must be"),
        (["acquire", "demo", "--lease", "2"], "it has no unit"),
        (["acquire", "demo", "--lease", "0s"], "at most 3650 days"),
        (["acquire", "demo", "--id", "1", "--branch", "x"], "not allowed with"),
        (["acquire", "demo", "--id", "12345"], "no archive of worktree 12345"),
        (["heartbeat", "12345"], "--fencing"),
        (["heartbeat", "12345", "--fencing", "1"], "there is no worktree 12345"),
        (["release", "9" * 30, "--fencing", "9" * 30], "there is no worktree 9"),
    ],
    ids=lambda value: None if isinstance(value, list) else value.replace(" ", "-"),
)
def test_a_wrong_call_is_an_error(
    workspace: Workspace, arguments: list[str], said: str
):
    with pytest.raises(CommandError) as error:
        run(*arguments)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
