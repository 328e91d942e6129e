from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.conftest import Told
from tests.workspaces.factories import HOST
from workspaces.models import Worktree
from workspaces.upkeep.places import places_of
from workspaces.upkeep.survey import Action, Cell, Found
from workspaces.upkeep.telling import Line, describe, tell

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("admin")]


def line(action: Action, *, error: str = "", name: str = "odd") -> Line:
    found = Found(
        cell=Cell.DIRECTORY, action=action, path=Path("/x") / name, why="it is odd"
    )
    return Line(workspace="demo", found=found, error=error)


def test_what_is_a_matter_of_course_or_could_not_be_done_is_not_told(
    worktree: Worktree, told: Told
):
    (place,) = places_of(HOST)
    lines = [line(Action.RELINK), line(Action.PUT_ASIDE, error="no room")]
    assert not tell(place, lines)
    assert told("workspace.reconciled") == []


def test_many_are_told_at_once_and_not_all_are_named(worktree: Worktree, told: Told):
    (place,) = places_of(HOST)
    assert tell(place, [line(Action.PUT_ASIDE, name=f"n{n}") for n in range(50)])
    (notification,) = told("workspace.reconciled")
    assert "and 30 more" in notification.body
    assert len(notification.data["found"]) == 20


def test_each_is_one_line():
    said = describe(line(Action.PUT_ASIDE, error="no room", name="a\nb"))
    assert said == "directory a b: it is odd; not done: no room"
