from __future__ import annotations

from typing import Any

import pytest

from tests.workspaces.factories import WorktreeFactory
from workspaces.admin import acting
from workspaces.exceptions import WorktreeHeld, WorktreeNotHeld
from workspaces.models import Worktree

pytestmark = pytest.mark.django_db


def refuse_odd(row: Worktree, *, actor: str) -> None:
    if row.branch.startswith("odd"):
        raise WorktreeNotHeld(f"{row.branch} is odd")
    if row.branch == "gone":
        raise WorktreeHeld("gone is held")


def test_rows_that_refuse_are_told_by_what_they_have_in_common():
    for branch in ("even", "odd1", "odd2", "gone"):
        WorktreeFactory(branch=branch)
    act = acting.each("done", refuse_odd)
    result = act(Worktree.objects.all(), "ada", 20.0)
    assert str(result) == (
        "1 done, 2 skipped: such as, odd1 is odd, 1 skipped: gone is held"
    )


def test_what_does_not_fit_into_the_time_is_left():
    WorktreeFactory()
    act = acting.each("done", refuse_odd)
    assert act(Worktree.objects.all(), "ada", -1.0).unfinished


def test_a_row_that_goes_meanwhile_is_passed_by():
    WorktreeFactory.create_batch(2)

    def take_all(row: Any, *, actor: str) -> None:
        Worktree.objects.all().delete()

    act = acting.each("done", take_all)
    assert str(act(Worktree.objects.all(), "ada", 20.0)) == "1 done"
