from __future__ import annotations

import datetime as dt

import pytest

from workspaces.tasks.facts import Facts
from workspaces.tasks.states import Deadline, Status, Template

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
MOMENT = dt.timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("at", "passed"),
    [(NOW - MOMENT, True), (NOW, True), (NOW + MOMENT, False), (None, False)],
)
def test_a_deadline_has_passed_from_its_very_moment(
    at: dt.datetime | None, passed: bool
):
    facts = Facts(
        now=NOW,
        status=Status.HELD,
        template=Template.DIRECT,
        deadlines={Deadline.HOLD_UNTIL: at},
    )
    assert facts.passed(Deadline.HOLD_UNTIL) is passed
    assert not facts.passed(Deadline.REVIEW_UNTIL)
