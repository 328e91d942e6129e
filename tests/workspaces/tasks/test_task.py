"""The table of tasks: states that it cannot hold, whoever writes to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from tests.workspaces.factories import WorkspaceFactory
from tests.workspaces.tasks.market import (
    HOUR,
    agent,
    contest,
    held,
    in_review,
    now,
    publish,
    reviewing,
    unwatched,
    worktree,
)
from workspaces.tasks import actions
from workspaces.tasks.models import Task

pytestmark = pytest.mark.django_db


def cancelled() -> Task:
    task = publish()
    actions.cancel(task.pk, by=agent("alice"))
    return task


BROKEN: list[tuple[Callable[[], Task], dict[str, Any], str]] = [
    (publish, {"status": "lost"}, "tasks_(status_known|ended_at)"),
    (publish, {"template": "lottery"}, "tasks_(template_known|direct_has_hold_for)"),
    (publish, {"hold_for": None}, "tasks_direct_has_hold_for"),
    (contest, {"hold_for": HOUR}, "tasks_direct_has_hold_for"),
    (
        contest,
        {"status": "held", "holder_id": F("publisher_id"), "hold_until": Now()},
        "tasks_contest_not_held",
    ),
    (held, {"holder": None}, "tasks_holder_with_status"),
    (reviewing, {"holder": None}, "tasks_holder_with_status"),
    (publish, {"holder_id": F("publisher_id")}, "tasks_holder_with_status"),
    (
        lambda: in_review("bob"),
        {"holder_id": F("publisher_id")},
        "tasks_holder_with_status",
    ),
    (cancelled, {"holder_id": F("publisher_id")}, "tasks_holder_with_status"),
    (publish, {"open_until": None}, "tasks_open_until"),
    (held, {"hold_until": None}, "tasks_hold_until"),
    (reviewing, {"review_until": None}, "tasks_review_until"),
    (publish, {"ended_at": Now()}, "tasks_ended_at"),
    (cancelled, {"ended_at": None}, "tasks_ended_at"),
    (publish, {"misses": -1}, "tasks_misses_check"),
    (publish, {"returns": -1}, "tasks_returns_check"),
]


@pytest.mark.parametrize(
    ("make", "values", "constraint"),
    BROKEN,
    ids=[f"{n}-{constraint}" for n, (_, _, constraint) in enumerate(BROKEN)],
)
def test_a_state_that_cannot_be_is_refused_by_the_database(
    make: Callable[[], Task], values: dict[str, Any], constraint: str
):
    task = make()
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Task.objects.filter(pk=task.pk).update(**values)


def test_a_workspace_that_goes_leaves_its_tasks():
    row = worktree("bob")
    task = publish(workspace=row.workspace)
    actions.take(task.pk, by=agent("bob"), worktree=row)
    row.workspace.delete()
    task = now(task)
    assert (task.workspace, task.worktree, task.status) == (None, None, "held")
    assert unwatched(task) == set()
    assert actions.submit(task.pk, by=agent("bob"), text="x").ok


def test_a_task_takes_its_rows_along():
    task = reviewing()
    actions.reject(task.pk, by=agent("alice"), reason="no tests")
    actions.checkpoint(task.pk, by=agent("bob"))
    task.delete()
    assert not Task.objects.exists()


def test_it_is_named_by_number_and_title():
    task = publish(title="Sort", workspace=WorkspaceFactory())
    assert str(task) == f"task {task.pk} (Sort)"
