from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.workspaces.tasks.market import (
    HOUR,
    MINUTE,
    SECOND,
    agent,
    contest,
    held,
    pass_time,
    publish,
    reviewing,
)
from workspaces.tasks import actions
from workspaces.tasks.models import Task
from workspaces.tasks.overdue import overdue

pytestmark = pytest.mark.django_db


def offered() -> Task:
    task = held()
    to = agent("carol").agent
    assert to is not None
    actions.offer_transfer(task.pk, by=agent("bob"), to=to)
    return task


@pytest.mark.parametrize(
    ("make", "until"),
    [
        (publish, 10 * HOUR),
        (lambda: contest("bob"), 10 * HOUR),
        (held, 8 * HOUR),
        (lambda: held(checkpoint_every=HOUR), 45 * MINUTE),
        (offered, HOUR),
        (reviewing, 3 * HOUR),
    ],
)
def test_it_is_overdue_a_minute_after_its_first_deadline(
    make: Callable[[], Any], until: Any
):
    make()
    pass_time(until + 50 * SECOND)
    assert not Task.objects.filter(overdue()).exists()
    pass_time(11 * SECOND)
    assert Task.objects.filter(overdue()).count() == 1


def test_deadlines_that_do_not_count_do_not_make_it_overdue():
    task = reviewing()  # whose hold goes on, and does not count
    pass_time(2 * HOUR)
    Task.objects.filter(pk=task.pk).update(hold_until=task.created_at)
    ended = publish()
    actions.cancel(ended.pk, by=agent("alice"))
    assert not Task.objects.filter(overdue()).exists()
    assert not Task.objects.filter(overdue(0 * SECOND)).exists()


def test_a_transfer_that_was_answered_does_not_make_it_overdue():
    task = offered()
    assert actions.decline_transfer(task.pk, by=agent("carol")).ok
    pass_time(2 * HOUR)
    assert not Task.objects.filter(overdue()).exists()
