from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.workspaces.factories import WorktreeFactory
from tests.workspaces.tasks.market import (
    HOUR,
    agent,
    contest,
    held,
    publish,
    reviewing,
)
from workspaces.tasks import actions, clock, display, lookup
from workspaces.tasks.exceptions import UnknownTask
from workspaces.tasks.models import Agent, Task

pytestmark = pytest.mark.django_db

SECRET = "https://ada:s3cret@git.example/x"


def who(name: str) -> Agent:
    found = agent(name).agent
    assert found
    return found


def shown(task: Task, *, limit: int = 100) -> dict[str, Any]:
    return lookup.shown(task.pk, limit=limit, now=clock.now())


def test_tasks_are_found_newest_first_by_what_they_are():
    first, second, third = publish(), held("bob"), contest()
    assert list(lookup.tasks()) == [third, second, first]
    assert list(lookup.tasks(oldest_first=True)) == [first, second, third]
    assert list(lookup.tasks(statuses=["held"])) == [second]
    assert list(lookup.tasks(statuses=["held", "open"], template="direct")) == [
        second,
        first,
    ]


def test_an_agents_are_those_it_holds_published_or_is_offered():
    publish("dora")
    published = publish("bob")
    holding = held("bob")
    offered = held("carol")
    actions.offer_transfer(offered.pk, by=agent("carol"), to=who("bob"))
    answered = held("carol")
    actions.offer_transfer(answered.pk, by=agent("carol"), to=who("bob"))
    actions.decline_transfer(answered.pk, by=agent("bob"))
    assert list(lookup.tasks(of=who("bob"))) == [offered, holding, published]


def test_a_list_costs_one_query(django_assert_num_queries: DjangoAssertNumQueries):
    for name in ("bob", "carol", "service:bot"):
        held(name)
    with django_assert_num_queries(1):
        assert len([display.listed(task) for task in lookup.tasks()]) == 3


def test_all_that_is_known_about_a_task():
    task = held(
        "bob",
        title="Sort",
        description="All of it",
        checklist=["one", "two"],
        checkpoint_every=2 * HOUR,
    )
    worktree = WorktreeFactory(
        workspace__name="demo", held_by="bob", held_since=clock.now()
    )
    actions.use_worktree(task.pk, by=agent("bob"), worktree=worktree)
    actions.checkpoint(task.pk, by=agent("bob"), note="half")
    actions.offer_transfer(task.pk, by=agent("bob"), to=who("carol"), note="please")
    said = shown(task)
    times = {"created_at", "updated_at", "ended_at"}
    assert {name: said[name] for name in said if name not in times} == {
        "id": task.pk,
        "title": "Sort",
        "template": "direct",
        "status": "held",
        "publisher": "alice",
        "holder": "bob",
        "workspace": None,
        "next_deadline": {
            "action": "transfer_expire",
            "at": task.transfers.get().expires_at,
        },
        "description": "All of it",
        "checklist": ["one", "two"],
        "worktree": {
            "id": worktree.pk,
            "path": worktree.path,
            "branch": worktree.branch,
            "host": "test-host",
        },
        "open_for": 10 * HOUR,
        "hold_for": 8 * HOUR,
        "checkpoint_every": 2 * HOUR,
        "review_for": 6 * HOUR,
        "misses": 0,
        "final_miss": 2,
        "returns": 0,
        "returns_allowed": 3,
        "deadlines": said["deadlines"],
        "transfer": {
            "id": task.transfers.get().pk,
            "from": "bob",
            "to": "carol",
            "note": "please",
            "created_at": task.transfers.get().created_at,
            "expires_at": task.transfers.get().expires_at,
        },
        "submissions": [],
        "earlier_submissions": 0,
        "checkpoints": [
            {
                "id": task.checkpoints.get().pk,
                "agent": "bob",
                "note": "half",
                "created_at": task.checkpoints.get().created_at,
            }
        ],
        "earlier_checkpoints": 0,
        "history": said["history"],
        "earlier_history": 0,
    }
    assert [one["action"] for one in said["deadlines"]] == [
        "transfer_expire",
        "checkpoint_warn",
        "checkpoint_miss",
        "hold_timeout",
    ]
    assert set(said["deadlines"][0]) == {
        *("deadline", "action", "at", "target", "says", "job"),
    }
    assert [event["action"] for event in said["history"]] == [
        "publish",
        "take",
        "use_worktree",
        "checkpoint",
        "offer_transfer",
    ]
    taken = said["history"][1]
    assert (taken["actor"], taken["source"], taken["target"]) == ("bob", "open", "held")


def test_what_was_handed_in_is_shown_with_its_decision():
    task = reviewing("bob", checklist=["one"])
    actions.reject(task.pk, by=agent("alice"), reason="slow")
    (submission,) = shown(task)["submissions"]
    decided: dt.datetime = submission.pop("decided_at")
    assert decided >= submission.pop("created_at")
    assert submission == {
        "id": task.submissions.get().pk,
        "agent": "bob",
        "text": "done",
        "reference": "",
        "done": [],
        "decision": "rejected",
        "reason": "slow",
    }


def test_the_newest_rows_are_shown_and_the_others_counted():
    task = contest("bob", "carol", "dora")
    said = shown(task, limit=2)
    assert [row["agent"] for row in said["submissions"]] == ["carol", "dora"]
    assert said["earlier_submissions"] == 1
    assert [event["action"] for event in said["history"]] == ["submit", "submit"]
    assert said["earlier_history"] == 2


def test_no_credential_is_shown():
    task = held(
        "bob", title=f"See {SECRET}", description=SECRET, checklist=[f"read {SECRET}"]
    )
    actions.checkpoint(task.pk, by=agent("bob"), note=SECRET)
    actions.submit(task.pk, by=agent("bob"), text=SECRET, reference=SECRET)
    actions.reject(task.pk, by=agent("alice"), reason=SECRET)
    actions.offer_transfer(task.pk, by=agent("bob"), to=who("carol"), note=SECRET)
    said = shown(task)
    assert "s3cret" not in str(said)
    assert str(said).count("https://ada:***@git.example/x") >= 8
    assert "s3cret" not in str(display.listed(task))


def test_a_task_that_is_not_there():
    with pytest.raises(UnknownTask, match="there is no task 7"):
        lookup.shown(7, limit=1, now=clock.now())
