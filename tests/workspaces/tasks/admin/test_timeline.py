from __future__ import annotations

from typing import Any

import pytest

from tests.workspaces.tasks.market import agent, held, publish
from workspaces.tasks import actions
from workspaces.tasks.admin import timeline as timeline_module
from workspaces.tasks.admin.timeline import Happening, timeline
from workspaces.tasks.models import Task, TaskEvent

pytestmark = pytest.mark.django_db


def newest(task: Task, **values: Any) -> Happening:
    """As which an event of these values is read."""
    given = {"action": "checkpoint", "source": "held", "target": "held", **values}
    TaskEvent.objects.create(
        task=task, actor="bob", created_at=task.created_at, **given
    )
    return timeline(task).happenings[0]


def test_it_says_who_did_what_and_where_that_led():
    task = held("bob")
    taken, published = timeline(task).happenings
    assert (taken.who, taken.what, taken.source, taken.target) == (
        "bob",
        "took it",
        "open",
        "held",
    )
    assert taken.moved
    assert (published.who, published.source, published.target) == (
        "alice",
        None,
        "open",
    )


def test_what_changes_no_status_has_not_moved():
    task = held("bob")
    actions.checkpoint(task.pk, by=agent("bob"), note="half of it")
    done = timeline(task).happenings[0]
    assert not done.moved
    assert [(label, "half of it" in value) for label, value in done.facts] == [
        ("note", True)
    ]


def test_the_facts_are_named_and_in_an_order_to_be_read():
    data = {
        "reason": "r",
        "x_y": 1,
        "to": "b",
        "from": "a",
        "returns": 2,
        "transfer_id": 7,
        "note": "",
        "worktree_id": None,
    }
    facts = newest(publish(), data=data).facts
    assert [label for label, _ in facts] == [
        "from",
        "to",
        "times given back",
        "reason",
        "x y",
    ]


@pytest.mark.parametrize("data", [[], ["a"], "text", 5, {"a": {"b": [1]}}])
def test_data_of_any_form_is_shown(data: Any):
    assert len(newest(publish(), data=data).facts) == 1


def test_an_action_of_another_time_is_named_as_it_is():
    assert newest(publish(), action="of_another_time").what == "of another time"


def test_credentials_are_not_shown():
    done = newest(publish(), data={"note": "https://u:SECRET@git.example/x"})
    assert "SECRET" not in str(done.facts)
    assert "git.example" in str(done.facts)


def test_the_newest_are_shown_and_that_there_are_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(timeline_module, "SHOWN", 2)
    task = held("bob")
    assert not timeline(task).left_out
    actions.checkpoint(task.pk, by=agent("bob"))
    found = timeline(task)
    assert [each.action for each in found.happenings] == ["checkpoint", "take"]
    assert found.left_out
