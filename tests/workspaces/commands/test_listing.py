"""``manage.py worktree list``."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import call_command

from tests.workspaces.conftest import make_idle
from tests.workspaces.factories import WorktreeFactory
from workspaces.holding import leases
from workspaces.models import Worktree

pytestmark = pytest.mark.django_db


def listed() -> dict[str, str]:
    """What is listed of the only worktree, by column."""
    out = io.StringIO()
    call_command("worktree", "list", stdout=out)
    header, row = out.getvalue().splitlines()
    starts = [header.index(name) for name in NAMES]
    ends = [*starts[1:], None]
    return {
        name: row[start:end].strip()
        for name, start, end in zip(NAMES, starts, ends, strict=True)
    }


NAMES = (
    "HOST",
    "BRANCH",
    "STATE",
    "HELD BY",
    "LEASE UNTIL",
    "IDLE FOR",
    "PRUNED AFTER",
    "WARNED",
    "KEPT BECAUSE OF",
    "SIZE",
    "PATH",
)


def test_a_held_one_shows_who_holds_it_until_when():
    row = leases.hold(WorktreeFactory().pk, holder="agent", lease=None)
    assert row.lease_expires_at
    shown = listed()
    assert shown["HOST"] == row.workspace.host
    assert shown["HELD BY"] == "agent"
    assert shown["LEASE UNTIL"].startswith(f"{row.lease_expires_at:%Y-%m-%d %H:%M}")
    assert (shown["IDLE FOR"], shown["PRUNED AFTER"]) == ("-", "-")


def test_a_free_one_shows_how_long_it_is_idle_and_when_it_goes():
    row = WorktreeFactory()
    make_idle(row, days=28)
    assert listed()["IDLE FOR"] == "28d"
    assert listed()["PRUNED AFTER"].startswith("20")
    Worktree.objects.update(pinned=True)
    assert listed()["PRUNED AFTER"] == "never (pinned)"


def test_why_it_is_as_it_is_is_shown():
    WorktreeFactory(state="quarantined", state_reason="it is another's")
    assert listed()["KEPT BECAUSE OF"] == "it is another's"
    Worktree.objects.update(prune_blocked_reason="too large")
    assert listed()["KEPT BECAUSE OF"] == "too large"


def test_scripts_are_told_the_same():
    row = leases.hold(WorktreeFactory().pk, holder="agent", lease=None)
    out = io.StringIO()
    call_command("worktree", "list", "--json", stdout=out)
    (said,) = json.loads(out.getvalue())
    told: dict[str, Any] = {
        name: said[name]
        for name in ("id", "held_by", "fencing_no", "pruned_after", "pinned")
    }
    assert told == {
        "id": row.pk,
        "held_by": "agent",
        "fencing_no": 1,
        "pruned_after": None,
        "pinned": False,
    }
    assert said["lease_expires_at"] > said["heartbeat_at"]
