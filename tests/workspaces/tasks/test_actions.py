"""What people and agents give, checked at the edge, and what stays as it was given."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from tests.workspaces.factories import WorkspaceFactory
from tests.workspaces.tasks.market import (
    HOUR,
    agent,
    contest,
    held,
    history,
    now,
    publish,
    reviewing,
)
from workspaces.tasks import actions
from workspaces.tasks.actors import WORKER
from workspaces.tasks.exceptions import InvalidTask, UnknownTask
from workspaces.tasks.models import Submission, Task, Transfer
from workspaces.tasks.states import Action

pytestmark = pytest.mark.django_db

NEVER = dt.timedelta(0)


def refused(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(InvalidTask) as refusal:
        call(*args, **kwargs)
    return str(refusal.value)


def test_a_task_is_published_with_what_the_settings_say(settings: Settings):
    settings.TASKS_OPEN_FOR = 2 * HOUR
    settings.TASKS_HOLD_FOR = 3 * HOUR
    settings.TASKS_CHECKPOINT_EVERY = HOUR
    settings.TASKS_REVIEW_FOR = 4 * HOUR
    settings.TASKS_FINAL_MISS = 5
    settings.TASKS_RETURNS_ALLOWED = 6
    task = actions.publish(by=agent("alice"), title=" Sort  it ")
    task = now(task)
    assert (task.title, task.description, task.template) == ("Sort  it", "", "direct")
    assert (task.open_for, task.hold_for, task.checkpoint_every, task.review_for) == (
        2 * HOUR,
        3 * HOUR,
        HOUR,
        4 * HOUR,
    )
    assert (task.final_miss, task.returns_allowed) == (5, 6)
    assert (task.workspace, task.worktree, task.checklist) == (None, None, [])
    settings.TASKS_CHECKPOINT_EVERY = NEVER
    assert actions.publish(by=agent("alice"), title="x").checkpoint_every is None


def test_a_task_is_published_with_every_option(settings: Settings):
    settings.TASKS_CHECKPOINT_EVERY = HOUR
    workspace = WorkspaceFactory()
    task = actions.publish(
        by=agent("service:bot"),
        title="Sort the lists",
        template="direct",
        description=" all of them\n",
        workspace=workspace,
        checklist=["tests", " docs "],
        open_for=HOUR,
        hold_for=2 * HOUR,
        checkpoint_every=NEVER,
        review_for=3 * HOUR,
        final_miss=1,
        returns_allowed=0,
    )
    task = now(task)
    assert (task.description, task.checklist) == ("all of them", ["tests", "docs"])
    assert (task.workspace, str(task.publisher)) == (workspace, "service:bot")
    assert (task.open_for, task.hold_for, task.checkpoint_every, task.review_for) == (
        HOUR,
        2 * HOUR,
        None,
        3 * HOUR,
    )
    assert (task.final_miss, task.returns_allowed) == (1, 0)


def test_a_contest_has_neither_holder_nor_checkpoints(settings: Settings):
    settings.TASKS_CHECKPOINT_EVERY = HOUR
    task = publish(template="contest")
    assert (task.hold_for, task.checkpoint_every) == (None, None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"title": ""}, "title: must not be empty"),
        ({"title": "x" * 201}, "title: 201 characters, at most 200 are accepted"),
        ({"title": "a\nb"}, "title: must be one line of printable characters"),
        ({"title": None}, "title: must be text, got NoneType"),
        (
            {"description": "x" * 64_001},
            "description: 64,001 characters, at most 64,000 are accepted",
        ),
        (
            {"description": "\x00"},
            "description: contains a NUL character, which cannot be stored",
        ),
        (
            {"template": "auction"},
            "template: 'auction' is neither of direct, contest",
        ),
        ({"template": 5}, "template: 5 is neither of direct, contest"),
        (
            {"template": []},
            "template: [] is neither of direct, contest",
        ),
        ({"checklist": ["a", ""]}, "checklist[1]: must not be empty"),
        ({"final_miss": 0}, "final_miss: 0 is out of range, 1 to 10,000"),
        ({"returns_allowed": -1}, "returns_allowed: -1 is out of range, 0 to 10,000"),
        ({"hold_for": 60}, "hold_for: must be a timedelta, got int"),
        ({"checkpoint_every": "1h"}, "checkpoint_every: must be a timedelta, got str"),
        *(
            (
                {field: NEVER},
                f"{field}: 0:00:00 is out of range, at most 87600h is accepted, "
                "and no less than 0.001s",
            )
            for field in ("open_for", "hold_for", "review_for")
        ),
        *(
            (
                {"template": "contest", field: value},
                f"{field}: a contest has no holder, so it has none",
            )
            for field, value in (
                ("hold_for", HOUR),
                ("checkpoint_every", NEVER),
                ("final_miss", 1),
                ("returns_allowed", 0),
            )
        ),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(given: dict[str, Any], said: str):
    values = {"title": "Sort", **given}
    assert refused(actions.publish, by=agent("alice"), **values) == said
    assert not Task.objects.exists()


def test_the_worker_publishes_nothing():
    assert refused(actions.publish, by=WORKER, title="x") == (
        "publisher: the worker publishes nothing"
    )


def test_a_setting_that_cannot_be_is_named_as_the_field(settings: Settings):
    settings.TASKS_HOLD_FOR = NEVER
    assert refused(actions.publish, by=agent("alice"), title="x").startswith(
        "hold_for: 0:00:00 is out of range"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "text: say what is handed in, or give a reference to it"),
        ({"text": " "}, "text: say what is handed in, or give a reference to it"),
        (
            {"text": "x" * 64_001},
            "text: 64,001 characters, at most 64,000 are accepted",
        ),
        (
            {"reference": "x" * 501},
            "reference: 501 characters, at most 500 are accepted",
        ),
        (
            {"reference": "a\nb"},
            "reference: must be one line of printable characters",
        ),
        (
            {"text": "x", "done": [3]},
            "done: 3 is no item of the checklist, which has 2",
        ),
        ({"text": "x", "done": 3}, "done: must be a list of numbers, got int"),
    ],
)
def test_what_cannot_be_handed_in_is_refused_by_its_name(
    given: dict[str, Any], said: str
):
    task = held(checklist=["tests", "docs"])
    assert refused(actions.submit, task.pk, by=agent("bob"), **given) == said
    assert not Submission.objects.exists()


def test_a_reference_is_enough():
    assert actions.submit(held().pk, by=agent("bob"), reference="acw/sort").ok


@pytest.mark.parametrize("reason", ["", " \n"])
def test_a_rejection_says_why(reason: str):
    task = reviewing()
    assert refused(actions.reject, task.pk, by=agent("alice"), reason=reason) == (
        "reason: must not be empty"
    )
    assert history(task)[-1] == "submit"


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (actions.accept, "reason"),
        (actions.cancel, "reason"),
        (actions.give_back, "reason"),
        (actions.reject, "reason"),
    ],
)
def test_a_reason_is_limited(call: Callable[..., Any], field: str):
    task = publish()
    assert refused(call, task.pk, by=agent("alice"), reason="x" * 4_001) == (
        f"{field}: 4,001 characters, at most 4,000 are accepted"
    )


def test_notes_and_the_winners_reason_are_limited_too():
    bob = agent("bob")
    assert bob.agent is not None
    assert refused(actions.checkpoint, 1, by=bob, note="\ud800") == (
        "note: contains a lone surrogate, which is no character"
    )
    assert refused(
        actions.offer_transfer, 1, by=bob, to=bob.agent, note="x" * 4_001
    ).startswith("note: 4,001 characters")
    assert refused(
        actions.pick_winner, 1, by=bob, submission=1, reason="x" * 4_001
    ).startswith("reason: 4,001 characters")
    assert not Transfer.objects.exists()


@pytest.mark.parametrize("open_for", [NEVER, -HOUR, dt.timedelta(days=3651), 5])
def test_a_task_is_reopened_for_a_time_that_can_be(open_for: Any):
    task = contest()
    actions.cancel(task.pk, by=agent("alice"))
    assert refused(
        actions.reopen, task.pk, by=agent("alice"), open_for=open_for
    ).startswith("open_for: ")


def test_an_unknown_task_is_named_by_each_function():
    bob = agent("bob")
    assert bob.agent is not None
    for call, given in (
        (actions.take, {}),
        (actions.use_worktree, {"worktree": None}),
        (actions.checkpoint, {}),
        (actions.submit, {"text": "x"}),
        (actions.give_back, {}),
        (actions.accept, {}),
        (actions.reject, {"reason": "x"}),
        (actions.pick_winner, {"submission": 1}),
        (actions.cancel, {}),
        (actions.reopen, {}),
        (actions.offer_transfer, {"to": bob.agent}),
        (actions.accept_transfer, {}),
        (actions.decline_transfer, {}),
        (actions.withdraw_transfer, {}),
    ):
        with pytest.raises(UnknownTask, match="there is no task 12345"):
            call(12345, by=bob, **given)


def test_each_function_asks_for_the_action_of_its_name():
    task = held()
    bob = agent("bob")
    assert bob.agent is not None
    asked = [
        actions.take(task.pk, by=bob),
        actions.use_worktree(task.pk, by=bob, worktree=None),
        actions.checkpoint(task.pk, by=bob),
        actions.accept(task.pk, by=bob),
        actions.reject(task.pk, by=bob, reason="x"),
        actions.pick_winner(task.pk, by=bob, submission=1),
        actions.cancel(task.pk, by=bob),
        actions.reopen(task.pk, by=bob),
        actions.offer_transfer(task.pk, by=bob, to=bob.agent),
        actions.accept_transfer(task.pk, by=bob),
        actions.decline_transfer(task.pk, by=bob),
        actions.withdraw_transfer(task.pk, by=bob),
        actions.submit(task.pk, by=bob, text="x"),
        actions.give_back(task.pk, by=bob),
    ]
    assert {outcome.task_id for outcome in asked} == {task.pk}
    assert [outcome.action for outcome in asked] == [
        Action.TAKE,
        Action.USE_WORKTREE,
        Action.CHECKPOINT,
        Action.ACCEPT,
        Action.REJECT,
        Action.PICK_WINNER,
        Action.CANCEL,
        Action.REOPEN,
        Action.OFFER_TRANSFER,
        Action.ACCEPT_TRANSFER,
        Action.DECLINE_TRANSFER,
        Action.WITHDRAW_TRANSFER,
        Action.SUBMIT,
        Action.GIVE_BACK,
    ]
