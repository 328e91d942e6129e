from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from workspaces.tasks import decisions
from workspaces.tasks.decisions import Refusal, decide
from workspaces.tasks.facts import Facts
from workspaces.tasks.states import Action, Deadline, Reason, Role, Status, Template
from workspaces.tasks.transition import ENTERED, Transition
from workspaces.tasks.transitions import TRANSITIONS

NOW = dt.datetime(2030, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
MOMENT = dt.timedelta(microseconds=1)
LATER = NOW + dt.timedelta(hours=1)
ROWS = [pytest.param(row, id=f"{n}-{row.action}") for n, row in enumerate(TRANSITIONS)]
each_row = pytest.mark.parametrize("row", ROWS)


def facts(row: Transition, **values: Any) -> Facts:
    """Such that the row's template, status and times fit; everything else is still to come."""
    deadlines: dict[Deadline, dt.datetime | None] = dict.fromkeys(Deadline, LATER)
    if row.after is not None:
        deadlines[row.after] = NOW
    deadlines |= values.pop("deadlines", {})
    given = {
        "now": NOW,
        "status": row.source,
        "template": row.template or Template.DIRECT,
        "final_miss": 2,
        "returns_allowed": 1,
        "entries": 1,
        **values,
    }
    return Facts(deadlines=deadlines, **given)


def refused(action: Action, given: Facts, *roles: Role) -> Refusal:
    answer = decide(action, given, set(roles))
    assert isinstance(answer, Refusal)
    return answer


@each_row
def test_a_row_applies_in_its_status_at_its_time_to_its_role(row: Transition):
    answer = decide(row.action, facts(row), {row.by})
    assert isinstance(answer, Transition)
    assert (answer.action, answer.source, answer.by) == (row.action, row.source, row.by)


@each_row
def test_it_is_for_nobody_else_to_do(row: Transition):
    for role in set(Role) - {row.by}:
        answer = refused(row.action, facts(row), role)
        assert answer.code == Reason.NOT_YOURS
        assert answer.reason.startswith(f"{row.action} is for ")
    assert refused(row.action, facts(row)).code == Reason.NOT_YOURS


@each_row
def test_it_does_not_apply_in_another_status(row: Transition):
    sources = {r.source for r in TRANSITIONS if r.action is row.action}
    for status in {None, *Status} - sources:
        answer = refused(row.action, facts(row, status=status), row.by)
        assert answer.code in (Reason.WRONG_STATUS, Reason.WRONG_TEMPLATE)


@pytest.mark.parametrize(
    ("row", "deadline"),
    [
        pytest.param(row, deadline, id=f"{n}-{row.action}-{deadline}")
        for n, row in enumerate(TRANSITIONS)
        for deadline in row.before
    ],
)
def test_it_is_too_late_from_the_very_moment_of_the_deadline(
    row: Transition, deadline: Deadline
):
    just = facts(row, deadlines={deadline: NOW + MOMENT})
    assert isinstance(decide(row.action, just, {row.by}), Transition)
    answer = refused(row.action, facts(row, deadlines={deadline: NOW}), row.by)
    assert answer == Refusal(
        code=Reason.TOO_LATE,
        reason=f"too late to {row.action}: {deadline} was 2030-01-02 03:04:05 UTC",
    )


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=f"{n}-{row.action}")
        for n, row in enumerate(TRANSITIONS)
        if row.after is not None
    ],
)
def test_the_worker_comes_too_early_up_to_that_moment(row: Transition):
    assert row.after is not None
    due = NOW + MOMENT
    answer = refused(row.action, facts(row, deadlines={row.after: due}), row.by)
    assert answer == Refusal(
        code=Reason.NOT_DUE,
        reason=f"{row.action} is not due: {row.after} is 2030-01-02 03:04:05 UTC",
        due=due,
    )
    answer = refused(row.action, facts(row, deadlines={row.after: None}), row.by)
    assert answer == Refusal(
        code=Reason.NOT_DUE,
        reason=f"{row.action} does not apply: no {row.after} is set",
    )


@pytest.mark.parametrize(
    ("action", "status", "template", "role", "values", "target"),
    [
        ("checkpoint_miss", "held", "direct", "worker", {"misses": 0}, "held"),
        ("checkpoint_miss", "held", "direct", "worker", {"misses": 1}, "open"),
        (
            "checkpoint_miss",
            "held",
            "direct",
            "worker",
            {"misses": 1, "returns": 1},
            "closed",
        ),
        ("hold_timeout", "held", "direct", "worker", {"returns": 0}, "open"),
        ("hold_timeout", "held", "direct", "worker", {"returns": 1}, "closed"),
        ("give_back", "held", "direct", "holder", {"returns": 0}, "open"),
        ("give_back", "held", "direct", "holder", {"returns": 1}, "closed"),
        ("contest_close", "open", "contest", "worker", {"entries": 1}, "reviewing"),
        ("contest_close", "open", "contest", "worker", {"entries": 0}, "expired"),
    ],
)
def test_a_condition_says_where_it_goes(
    action: str,
    status: str,
    template: str,
    role: str,
    values: dict[str, int],
    target: str,
):
    given = Facts(
        now=NOW,
        status=Status(status),
        template=Template(template),
        deadlines=dict.fromkeys(Deadline, NOW),
        **{"final_miss": 2, "returns_allowed": 1, **values},
    )
    answer = decide(Action(action), given, {Role(role)})
    assert isinstance(answer, Transition)
    assert answer.target == target


@pytest.mark.parametrize(
    ("hold_until", "target"),
    [(NOW + MOMENT, Status.HELD), (NOW, Status.REJECTED)],
)
def test_a_rejected_task_goes_on_while_its_holder_has_time(
    hold_until: dt.datetime, target: Status
):
    (row, *_) = (row for row in TRANSITIONS if row.action is Action.REJECT)
    given = facts(row, deadlines={Deadline.HOLD_UNTIL: hold_until})
    answer = decide(Action.REJECT, given, {Role.PUBLISHER})
    assert isinstance(answer, Transition)
    assert answer.target == target


def test_a_late_warning_of_a_review_is_taken_back_and_tells_nobody():
    (row, *_) = (row for row in TRANSITIONS if row.action is Action.REVIEW_WARN)
    late = facts(row, deadlines={Deadline.REVIEW_UNTIL: NOW})
    answer = decide(Action.REVIEW_WARN, late, {Role.WORKER})
    assert isinstance(answer, Transition)
    assert (answer.topic, answer.tells) == (None, ())


@pytest.mark.parametrize(
    ("action", "template", "code", "reason"),
    [
        (
            Action.PICK_WINNER,
            Template.DIRECT,
            Reason.WRONG_TEMPLATE,
            "pick_winner is nothing that is done to a direct task",
        ),
        (
            Action.TAKE,
            Template.CONTEST,
            Reason.WRONG_TEMPLATE,
            "take is nothing that is done to a contest task",
        ),
        (
            Action.PUBLISH,
            Template.DIRECT,
            Reason.WRONG_STATUS,
            "publish does not apply: the task is accepted",
        ),
        (
            Action.TAKE,
            Template.DIRECT,
            Reason.WRONG_STATUS,
            "take applies to a task that is open, and this one is accepted",
        ),
        (
            Action.CANCEL,
            Template.DIRECT,
            Reason.WRONG_STATUS,
            "cancel applies to a task that is open or held or reviewing, and this one is accepted",
        ),
        (
            Action.SUBMIT,
            Template.CONTEST,
            Reason.WRONG_STATUS,
            "submit applies to a task that is open, and this one is accepted",
        ),
        (
            Action.SUBMIT,
            Template.DIRECT,
            Reason.WRONG_STATUS,
            "submit applies to a task that is held, and this one is accepted",
        ),
    ],
)
def test_the_reason_says_what_is_wrong(
    action: Action, template: Template, code: Reason, reason: str
):
    given = Facts(now=NOW, status=Status.ACCEPTED, template=template, deadlines={})
    assert refused(action, given, *Role) == Refusal(code=code, reason=reason)


def test_what_is_not_published_says_so():
    given = Facts(now=NOW, status=None, template=Template.DIRECT, deadlines={})
    assert refused(Action.TAKE, given, *Role).reason == (
        "take applies to a task that is open, and this one is not published"
    )


@pytest.mark.parametrize(
    ("action", "status", "whose"),
    [
        (Action.SUBMIT, Status.HELD, "its holder"),
        (Action.CANCEL, Status.HELD, "its publisher"),
        (
            Action.ACCEPT_TRANSFER,
            Status.HELD,
            "the agent to whom a transfer is offered",
        ),
        (Action.HOLD_TIMEOUT, Status.HELD, "the worker"),
    ],
)
def test_the_reason_says_whose_it_is(action: Action, status: Status, whose: str):
    given = Facts(now=NOW, status=status, template=Template.DIRECT, deadlines={})
    assert refused(action, given, Role.ANYONE).reason == (
        f"{action} is for {whose} to do"
    )


def test_a_publisher_is_told_that_a_contest_is_for_others():
    given = Facts(now=NOW, status=Status.OPEN, template=Template.CONTEST, deadlines={})
    answer = refused(Action.SUBMIT, given, Role.PUBLISHER, Role.ANYONE)
    assert answer.reason == "submit is for an agent other than its publisher to do"


def test_a_table_that_leaves_a_case_open_is_an_error_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
):
    row = Transition(Action.TAKE, Status.OPEN, Status.HELD, Role.ANYONE, when=ENTERED)
    monkeypatch.setattr(decisions, "TRANSITIONS", (row,))
    with pytest.raises(AssertionError, match="no row of take"):
        decide(Action.TAKE, facts(row, entries=0), {Role.ANYONE})


@pytest.mark.parametrize(
    "action",
    [Action.SUBMIT, Action.USE_WORKTREE, Action.OFFER_TRANSFER, Action.ACCEPT_TRANSFER],
)
@pytest.mark.parametrize("misses", [0, 1])
def test_after_the_last_checkpoint_that_may_be_missed_the_task_is_lost(
    action: Action, misses: int
):
    late = Facts(
        now=NOW,
        status=Status.HELD,
        template=Template.DIRECT,
        deadlines={
            Deadline.HOLD_UNTIL: NOW + dt.timedelta(hours=1),
            Deadline.CHECKPOINT_DUE_AT: NOW,
        },
        misses=misses,
        final_miss=2,
    )
    found = decide(action, late, {Role.HOLDER, Role.OFFERED})
    if misses == 0:
        assert isinstance(found, Transition)
    else:
        assert isinstance(found, Refusal)
        assert found.code == "too_late"
        assert "was the last that could be missed" in found.reason
