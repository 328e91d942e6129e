from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from workspaces.tasks.facts import Facts
from workspaces.tasks.states import Deadline, Status, Template
from workspaces.tasks.transition import (
    ENTERED,
    HOLD_LEFT,
    MISSES_LEFT,
    RETURNS_LEFT,
    REVIEW_LEFT,
    Guard,
    reachable,
)
from workspaces.tasks.transitions import TRANSITIONS

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
MOMENT = dt.timedelta(microseconds=1)


def facts(deadline: Deadline | None = None, at: dt.datetime = NOW, **values: Any):
    return Facts(
        now=NOW,
        status=Status.HELD,
        template=Template.DIRECT,
        deadlines={} if deadline is None else {deadline: at},
        **values,
    )


@pytest.mark.parametrize(
    ("guard", "given", "holds"),
    [
        (MISSES_LEFT, facts(misses=0, final_miss=2), True),
        (MISSES_LEFT, facts(misses=1, final_miss=2), False),
        (MISSES_LEFT, facts(misses=0, final_miss=1), False),
        # The setting may have been larger, or the number been changed by hand.
        (MISSES_LEFT, facts(misses=7, final_miss=2), False),
        (RETURNS_LEFT, facts(returns=0, returns_allowed=0), False),
        (RETURNS_LEFT, facts(returns=2, returns_allowed=3), True),
        (RETURNS_LEFT, facts(returns=3, returns_allowed=3), False),
        (HOLD_LEFT, facts(Deadline.HOLD_UNTIL), False),
        (HOLD_LEFT, facts(Deadline.HOLD_UNTIL, NOW + MOMENT), True),
        (REVIEW_LEFT, facts(Deadline.REVIEW_UNTIL), False),
        (REVIEW_LEFT, facts(Deadline.REVIEW_UNTIL, NOW + MOMENT), True),
        (ENTERED, facts(entries=0), False),
        (ENTERED, facts(entries=1), True),
    ],
)
def test_a_guard_holds_up_to_its_limit(guard: Guard, given: Facts, holds: bool):
    assert guard.holds(given) is holds


def test_a_contest_is_never_held():
    everything = {None, *Status}
    assert reachable(Template.DIRECT, TRANSITIONS) == everything
    assert reachable(Template.CONTEST, TRANSITIONS) == everything - {
        Status.HELD,
        Status.CLOSED,
    }
