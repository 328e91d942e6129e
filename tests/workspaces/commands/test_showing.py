from __future__ import annotations

import json
import re

import pytest
from django.utils import timezone

from tests.workspaces.commands.calling import workspace
from tests.workspaces.factories import UserFactory, WorkspaceFactory, WorktreeFactory
from workspaces.models import Worktree

pytestmark = pytest.mark.django_db


def test_all_are_listed():
    assert workspace("list") == "no workspaces\n"
    WorkspaceFactory(name="one", url="https://u:SECRET@git.example/x")
    WorkspaceFactory(name="two", host="elsewhere", owner=UserFactory(username="ada"))
    printed = workspace("list")
    assert printed.splitlines()[0].split()[:4] == ["NAME", "HOST", "STATE", "REMOTE"]
    assert [line.split()[:3] for line in printed.splitlines()[1:]] == [
        ["one", "test-host", "ready"],
        ["two", "elsewhere", "ready"],
    ]
    assert "SECRET" not in printed


def test_the_list_says_when_each_is_fetched_and_why_then():
    WorkspaceFactory(last_fetched_at=timezone.now(), fetch_problem="auth")
    WorkspaceFactory(state="cloning", clone_progress="receiving objects 45 %")
    printed = workspace("list")
    assert "the remote refuses this host's keys" in printed
    assert "being cloned: receiving objects 45 %" in printed


def test_one_that_is_due_and_held_says_what_it_waits_for():
    held = WorktreeFactory(held_by="agent", held_since=timezone.now())
    said = "but not while a worktree is held"
    assert said in workspace("list")
    assert said in workspace("show", held.workspace.name)
    Worktree.objects.update(held_by=None, held_since=None)
    assert said not in workspace("list")


def test_scripts_get_json():
    WorkspaceFactory(name="one")
    (row,) = json.loads(workspace("list", "--json"))
    assert (row["name"], row["host"], row["owner"]) == ("one", "test-host", None)
    assert row["next_fetch_why"] == "the first"
    assert row == json.loads(workspace("show", "one", "--json"))


def test_one_is_shown_with_all_that_is_known():
    WorkspaceFactory(
        name="one",
        url="https://u:SECRET@git.example/x",
        fetch_problem="network",
        fetch_failures=3,
        failing_since=timezone.now(),
        last_fetch_error="no route",
        maintenance_error="loose object is corrupt",
        default_branch="\x1b[2Jmain",
        tampered_config=[{"key": "core.sshcommand", "value": "x"}],
        size_bytes=2_000_000,
    )
    printed = workspace("show", "one")
    assert "fetch problem: network\n" in printed
    assert "last fetch error: no route\n" in printed
    assert "next fetch why: the remote could not be reached, 3 times" in printed
    assert "maintenance error: loose object is corrupt\n" in printed
    assert "core.sshcommand" in printed
    assert r"default branch: \x1b[2Jmain" in printed
    assert re.search(r"^failing since: .* UTC$", printed, re.MULTILINE)
    assert "1.9 MB" in workspace("list")
    assert "clone progress" not in printed
    assert "SECRET" not in printed


def test_one_that_is_not_cloned_has_no_next_fetch():
    WorkspaceFactory(name="one", state="failed")
    assert json.loads(workspace("show", "one", "--json"))["next_fetch_at"] is None
