from __future__ import annotations

import datetime as dt
import io

import pytest
from pytest_django import Settings

from tests.workspaces.factories import WorkspaceFactory
from tests.workspaces.tasks.calling import refused, run
from tests.workspaces.tasks.market import agent
from workspaces.tasks.models import Task

pytestmark = pytest.mark.django_db

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture(autouse=True)
def alice(db: None, settings: Settings) -> None:
    agent("alice")
    settings.ACW_AGENT = "alice"


def test_every_option_counts():
    workspace = WorkspaceFactory(name="demo")
    number = run(
        "task",
        *("publish", "Sort", "--description", "All of it", "--workspace", "demo"),
        *("--item", "It sorts", "--item", "Tests, too", "--open-for", "1h30m"),
        *("--hold-for", "20m", "--checkpoint-every", "5m", "--review-for", "0.5h"),
        *("--final-miss", "3", "--returns-allowed", "0"),
    )
    task = Task.objects.get(pk=number)
    assert (task.title, task.description) == ("Sort", "All of it")
    assert (task.template, str(task.publisher)) == ("direct", "alice")
    assert task.workspace == workspace
    assert task.checklist == ["It sorts", "Tests, too"]
    assert (task.open_for, task.hold_for) == (90 * MINUTE, 20 * MINUTE)
    assert (task.checkpoint_every, task.review_for) == (5 * MINUTE, 30 * MINUTE)
    assert (task.final_miss, task.returns_allowed) == (3, 0)


def test_what_is_not_given_is_what_the_settings_say(settings: Settings):
    settings.TASKS_OPEN_FOR = 7 * MINUTE
    settings.TASKS_HOLD_FOR = 6 * MINUTE
    settings.TASKS_CHECKPOINT_EVERY = MINUTE
    settings.TASKS_REVIEW_FOR = 5 * MINUTE
    settings.TASKS_FINAL_MISS = 4
    settings.TASKS_RETURNS_ALLOWED = 2
    run("task", "publish", "Sort")
    run("task", "publish", "Sort", "--checkpoint-every", "0")
    with_checkpoints, without = Task.objects.order_by("pk")
    assert (with_checkpoints.open_for, with_checkpoints.hold_for) == (
        7 * MINUTE,
        6 * MINUTE,
    )
    assert with_checkpoints.checkpoint_every == MINUTE
    assert with_checkpoints.review_for == 5 * MINUTE
    assert (with_checkpoints.final_miss, with_checkpoints.returns_allowed) == (4, 2)
    assert without.checkpoint_every is None


def test_a_contest_has_no_holder():
    number = run("task", "publish", "Sort", "--template", "contest")
    assert Task.objects.get(pk=number).hold_for is None
    assert "hold_for: a contest has no holder" in refused(
        "task",
        *("publish", "Sort", "--template", "contest", "--hold-for", "1h"),
        status=2,
    )


def test_the_description_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("All\nof it\n"))
    number = run("task", "publish", "Sort", "--description", "-")
    assert Task.objects.get(pk=number).description == "All\nof it"
