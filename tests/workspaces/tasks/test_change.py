from __future__ import annotations

import pytest
from django.utils import timezone

from workspaces.tasks.actors import WORKER, Actor
from workspaces.tasks.change import Change, Details
from workspaces.tasks.models import Agent, Task
from workspaces.tasks.states import Action, Role, Status
from workspaces.tasks.transition import Transition

LEAVING = Transition(Action.HOLD_TIMEOUT, Status.HELD, Status.OPEN, Role.WORKER)
STAYING = Transition(Action.CHECKPOINT, Status.HELD, Status.HELD, Role.HOLDER)


def change(row: Transition, by: Actor) -> Change:
    return Change(
        action=row.action,
        row=row,
        task=Task(),
        by=by,
        now=timezone.now(),
        details=Details(),
    )


def test_it_knows_whether_the_task_goes_elsewhere():
    assert change(LEAVING, WORKER).leaves
    assert change(LEAVING, WORKER).target == Status.OPEN
    assert not change(STAYING, WORKER).leaves


def test_who_does_it_is_an_agent_unless_it_is_the_worker():
    agent = Agent(name="bot")
    assert change(STAYING, Actor(agent=agent)).agent is agent
    with pytest.raises(ValueError, match="hold_timeout is not for the worker"):
        _ = change(LEAVING, WORKER).agent
