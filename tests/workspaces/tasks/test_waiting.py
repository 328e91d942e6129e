from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.workspaces.tasks.market import (
    HOUR,
    agent,
    contest,
    held,
    now,
    pass_and_work,
    pass_time,
    publish,
)
from workspaces.tasks import actions, waiting
from workspaces.tasks.states import Status
from workspaces.tasks.waiting import Load

pytestmark = pytest.mark.django_db


def test_an_empty_market():
    now_ = waiting.waiting()
    assert (now_.live, now_.counts, now_.loads, now_.overdue) == (0, {}, [], 0)
    assert list(now_.lines()) == ["Now:", "  nothing waits"]


def test_what_waits_for_whom():
    publish()
    oldest = publish()
    pass_time(HOUR)
    publish()
    held("bob")
    held("bob")
    task = publish("dave")
    actions.take(task.pk, by=agent("carol"))
    actions.submit(task.pk, by=agent("carol"), text="done")
    ended = publish()
    actions.cancel(ended.pk, by=agent("alice"))
    found = waiting.waiting()
    assert found.counts == {Status.OPEN: 3, Status.HELD: 2, Status.REVIEWING: 1}
    assert list(found.counts) == [Status.OPEN, Status.HELD, Status.REVIEWING]
    assert found.live == 6
    first = min(now(oldest).updated_at, found.oldest[Status.OPEN])
    assert found.oldest[Status.OPEN] == first
    assert found.loads == [
        Load(agent="bob", holds=2, decides=0),
        Load(agent="dave", holds=0, decides=1),
    ]
    lines = list(found.lines())
    assert lines[1].startswith("  3 open, for somebody to take or enter; unchanged")
    assert "  bob: holds 2, has 0 to decide" in lines
    assert lines[-1] == "  dave: holds 0, has 1 to decide"


def test_the_overdue_are_counted_and_the_doctor_named():
    held()
    publish()
    pass_time(9 * HOUR)
    found = waiting.waiting()
    assert found.overdue == 1
    assert any("1 of them overdue" in line for line in found.lines())
    assert any("manage.py doctor" in line for line in found.lines())


def test_an_agents_two_kinds_of_work_count_together():
    held("bob")
    contest("carol", by="bob")
    pass_and_work(10 * HOUR)
    held("bob")
    (load,) = waiting.waiting().loads
    assert load == Load(agent="bob", holds=1, decides=1)


def test_only_those_with_most_to_do_are_named():
    for n in range(12):
        held(f"agent{n:02}")
    held("agent11")
    found = waiting.waiting()
    assert found.agents == 12
    assert [load.agent for load in found.loads] == [
        "agent11",
        *(f"agent{n:02}" for n in range(9)),
    ]
    assert list(found.lines())[-1] == "  and 2 more"


def test_it_takes_as_many_queries_however_many_there_are():
    held("bob")
    with CaptureQueriesContext(connection) as few:
        waiting.waiting()
    for n in range(5):
        held(f"agent{n}")
    with CaptureQueriesContext(connection) as many:
        waiting.waiting()
    assert len(many) == len(few) == 5


def test_it_can_be_told_however_long_the_names_are():
    for n in range(12):
        held(f"service:{'x' * 140}{n}")
    said = waiting.waiting().as_dict()
    assert len(json.dumps(said)) < 4_000
    assert said["agents_in_all"] == 12
    assert said["agents"][0]["agent"].endswith("x…")
    assert set(said["waiting"]) == {"held"}
