from __future__ import annotations

import pytest

from tests.workspaces.factories import AdminFactory
from tests.workspaces.tasks.market import agent, contest, held, now, offered, publish
from workspaces.tasks import actions, agents, transfers
from workspaces.tasks.actors import WORKER, Actor, acting, operating
from workspaces.tasks.models import Task
from workspaces.tasks.states import Role

pytestmark = pytest.mark.django_db


def roles(actor: Actor, task: Task) -> set[str]:
    return {str(role) for role in actor.roles(now(task), transfers.pending(task))}


def test_each_is_to_a_task_what_the_task_says():
    task = offered("carol")
    assert roles(agent("alice"), task) == {"publisher", "anyone"}
    assert roles(agent("bob"), task) == {"holder", "anyone", "contestant"}
    assert roles(agent("carol"), task) == {"offered", "anyone", "contestant"}
    assert roles(agent("dave"), task) == {"anyone", "contestant"}
    assert roles(WORKER, task) == {"worker"}


def test_a_publisher_may_hold_their_own_task():
    assert roles(agent("alice"), held("alice")) == {"publisher", "holder", "anyone"}


def test_an_operator_acts_in_the_publishers_place_and_in_nobody_elses():
    root = operating(AdminFactory(username="root"))
    assert roles(root, held()) == {"publisher", "anyone", "contestant"}
    # Their own contest they cannot enter, as operator or not.
    task = contest(by="root")
    assert Role.CONTESTANT not in root.roles(now(task), None)


def test_who_acts_is_named_in_the_history():
    root = operating(AdminFactory(username="root"))
    assert str(root) == "root (operator)"
    assert str(WORKER) == "worker"
    assert str(acting(agents.add("bot"))) == "service:bot"
    task = publish()
    assert actions.cancel(task.pk, by=root).ok
    assert task.events.latest("pk").actor == "root (operator)"


def test_nobody_but_the_publisher_and_operators_decides():
    task = publish()
    assert not actions.cancel(task.pk, by=acting(agents.of_user(AdminFactory()))).ok
    assert actions.cancel(task.pk, by=operating(AdminFactory())).ok
