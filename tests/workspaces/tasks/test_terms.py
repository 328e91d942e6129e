from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from pytest_django import Settings

from workspaces.tasks import terms
from workspaces.tasks.models import Task
from workspaces.tasks.states import ENDED, Status, Template

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
MOMENT = dt.timedelta(microseconds=1)
COLUMNS = (
    "open_until",
    "hold_until",
    "checkpoint_warn_at",
    "checkpoint_due_at",
    "review_warn_at",
    "review_until",
    "ended_at",
)


@pytest.fixture(autouse=True)
def leads(settings: Settings) -> None:
    settings.TASKS_CHECKPOINT_WARNING_LEAD = HOUR / 4
    settings.TASKS_REVIEW_WARNING_LEAD = HOUR


def task(template: Template = Template.DIRECT, **values: Any) -> Task:
    return Task(
        title="Sort",
        template=template,
        open_for=10 * HOUR,
        hold_for=8 * HOUR if template == Template.DIRECT else None,
        review_for=6 * HOUR,
        **values,
    )


def everything_set(template: Template = Template.DIRECT) -> Task:
    return task(template, **dict.fromkeys(COLUMNS, NOW - HOUR))


def deadlines(row: Task) -> dict[str, dt.datetime]:
    """Those that are set."""
    found = {column: getattr(row, column) for column in COLUMNS}
    return {column: at for column, at in found.items() if at is not None}


@pytest.mark.parametrize("template", Template)
def test_open_begins_the_time_in_which_it_is_taken(template: Template):
    row = everything_set(template)
    terms.enter(row, Status.OPEN, NOW)
    assert deadlines(row) == {"open_until": NOW + 10 * HOUR}


def test_held_keeps_what_the_hold_has_set():
    row = everything_set()
    row.ended_at = None
    terms.begin_hold(row, NOW)
    terms.enter(row, Status.HELD, NOW)
    assert deadlines(row) == {"hold_until": NOW + 8 * HOUR}


def test_in_review_the_holders_time_goes_on():
    row = task(hold_until=NOW + HOUR, checkpoint_due_at=NOW, checkpoint_warn_at=NOW)
    terms.enter(row, Status.REVIEWING, NOW)
    assert deadlines(row) == {
        "hold_until": NOW + HOUR,
        "review_warn_at": NOW + 5 * HOUR,
        "review_until": NOW + 6 * HOUR,
    }


def test_a_contest_in_review_remembers_when_it_closed():
    row = task(Template.CONTEST, open_until=NOW - HOUR)
    terms.enter(row, Status.REVIEWING, NOW)
    assert row.open_until == NOW - HOUR
    assert row.review_until == NOW + 6 * HOUR


@pytest.mark.parametrize("status", ENDED)
def test_an_end_leaves_no_deadline(status: Status):
    row = everything_set()
    terms.enter(row, status, NOW)
    assert deadlines(row) == {"ended_at": NOW}


def test_a_hold_begins_with_a_checkpoint_ahead_and_none_missed():
    row = task(checkpoint_every=2 * HOUR, misses=3)
    terms.begin_hold(row, NOW)
    assert row.misses == 0
    assert deadlines(row) == {
        "hold_until": NOW + 8 * HOUR,
        "checkpoint_due_at": NOW + 2 * HOUR,
        "checkpoint_warn_at": NOW + 2 * HOUR - HOUR / 4,
    }


def test_nobody_holds_a_contest():
    with pytest.raises(ValueError, match="contest task, which nobody holds"):
        terms.begin_hold(task(Template.CONTEST), NOW)


@pytest.mark.parametrize(
    ("left", "due"),
    [
        (2 * HOUR + MOMENT, NOW + 2 * HOUR),
        # At the end the whole is due, not a word about it.
        (2 * HOUR, None),
        (HOUR, None),
    ],
)
def test_no_checkpoint_is_due_when_the_time_is_over(
    left: dt.timedelta, due: dt.datetime | None
):
    row = task(
        checkpoint_every=2 * HOUR,
        hold_until=NOW + left,
        checkpoint_due_at=NOW,
        checkpoint_warn_at=NOW,
    )
    terms.begin_checkpoint(row, NOW)
    assert row.checkpoint_due_at == due
    assert (row.checkpoint_warn_at is None) is (due is None)


@pytest.mark.parametrize(
    "values", [{"checkpoint_every": HOUR}, {"hold_until": NOW + HOUR}]
)
def test_without_a_period_or_a_hold_there_are_no_checkpoints(values: dict[str, Any]):
    row = task(**values, checkpoint_due_at=NOW, checkpoint_warn_at=NOW)
    terms.begin_checkpoint(row, NOW)
    assert (row.checkpoint_due_at, row.checkpoint_warn_at) == (None, None)


@pytest.mark.parametrize(
    ("period", "warned_after"),
    [
        (HOUR, HOUR * 3 / 4),
        (HOUR / 2, HOUR / 4),
        # A lead that is longer than half of what it warns of comes at its half.
        (HOUR / 3, HOUR / 6),
        (2 * MOMENT, MOMENT),
    ],
)
def test_a_checkpoint_is_warned_of_in_the_second_half(
    period: dt.timedelta, warned_after: dt.timedelta
):
    row = task(checkpoint_every=period, hold_until=NOW + 8 * HOUR)
    terms.begin_checkpoint(row, NOW)
    assert row.checkpoint_warn_at == NOW + warned_after


@pytest.mark.parametrize(
    ("review_for", "warned_after"),
    [(3 * HOUR, 2 * HOUR), (2 * HOUR, HOUR), (HOUR, HOUR / 2)],
)
def test_a_review_is_warned_of_in_the_second_half(
    review_for: dt.timedelta, warned_after: dt.timedelta
):
    row = task()
    row.review_for = review_for
    terms.enter(row, Status.REVIEWING, NOW)
    assert row.review_warn_at == NOW + warned_after
