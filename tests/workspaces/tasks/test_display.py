from __future__ import annotations

import datetime as dt
import io

import pytest

from jobs.models import Job
from tests.workspaces.factories import WorktreeFactory
from tests.workspaces.tasks.market import (
    HOUR,
    MINUTE,
    agent,
    contest,
    held,
    now,
    pass_time,
    publish,
)
from workspaces.tasks import actions, clock, display, lookup
from workspaces.tasks.models import Task

pytestmark = pytest.mark.django_db


def printed(task: Task, *, limit: int = 100) -> str:
    out = io.StringIO()
    at = clock.now()
    display.print_task(out, lookup.shown(task.pk, limit=limit, now=at), now=at)
    return out.getvalue()


def words(text: str) -> list[str]:
    """The lines, with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_row_of_the_list():
    task = now(held("bob", title="Sort"))
    assert display.list_row(lookup.tasks().get(pk=task.pk)) == (
        task.pk,
        "held",
        "direct",
        "Sort",
        "alice",
        "bob",
        None,
        "hold_timeout",
        task.hold_until,
    )
    actions.cancel(task.pk, by=agent("alice"))
    ended = display.list_row(lookup.tasks().get(pk=task.pk))
    assert ended[-2:] == (None, None)


def test_a_held_task_for_people():
    task = held(
        "bob",
        title="Sort",
        description="All\nof it",
        checklist=["one"],
        checkpoint_every=2 * HOUR,
    )
    worktree = WorktreeFactory(held_by="bob", held_since=clock.now())
    actions.use_worktree(task.pk, by=agent("bob"), worktree=worktree)
    to = agent("carol").agent
    assert to
    actions.offer_transfer(task.pk, by=agent("bob"), to=to, note="please")
    lines = words(printed(task))
    for line in (
        "title Sort",
        "holder bob",
        f"worktree {worktree.pk}: {worktree.path}",
        "offered with please",
        "misses 0, number 2 costs the task",
        "given back 0 times, 3 allowed",
        "checkpoint every 2h",
        "Description:",
        "All",
        "of it",
        "1. one",
        "no submissions",
        "no checkpoints",
    ):
        assert line in lines
    assert any(line.startswith("offered to carol, until ") for line in lines)
    (timeout,) = [line for line in lines if line.startswith("hold_until")]
    assert " 7h 59m hold_timeout Task given back: open " in timeout
    assert timeout.endswith(" pending")
    (taken,) = [line for line in lines if " take bob " in line]
    assert taken.endswith("take bob open → held -")


def test_terms_are_written_as_they_are_given():
    task = held(open_for=7 * 24 * HOUR, hold_for=90 * MINUTE)
    lines = words(printed(task))
    assert {"open for 168h", "hold for 1h30m"} <= set(lines)


def test_an_overdue_deadline_without_its_job():
    task = publish()
    pass_time(10 * HOUR + 5 * MINUTE)
    Job.objects.all().delete()
    (line,) = [line for line in words(printed(task)) if line.startswith("open_until")]
    assert "overdue by 5m" in line
    assert line.endswith(" missing")


def test_an_ended_task_has_no_deadline():
    task = publish()
    actions.cancel(task.pk, by=agent("alice"), reason="no\nmore")
    text = printed(task)
    assert "no deadline is pending\n" in text
    assert "reason no" in text


def test_what_was_handed_in_to_a_contest():
    task = contest()
    actions.submit(
        task.pk, by=agent("bob"), text="first\nsecond", reference="acw/branch"
    )
    lines = words(printed(task))
    number = task.submissions.get().pk
    assert any(
        line.startswith(f"{number} ") and line.endswith("bob pending - acw/branch -")
        for line in lines
    )
    start = lines.index(f"Text of submission {number}:")
    assert lines[start + 1 : start + 3] == ["first", "second"]
    assert not any(line.startswith("misses") for line in lines)


def test_an_opinion_is_shown_in_full():
    task = publish()
    task.events.create(
        action="arbitration_opinion",
        source="open",
        target="open",
        actor="arbiter",
        data={"favours": "holder", "opinion": f"{'long ' * 50}\nand clear"},
        created_at=clock.now(),
    )
    lines = words(printed(task))
    (row,) = [line for line in lines if " arbitration_opinion " in line]
    assert row.endswith(" arbitration_opinion arbiter open favours holder")
    assert ("long " * 50).strip() in lines
    assert "and clear" in lines


def test_what_is_left_out_is_said():
    task = contest("bob", "carol", "dora")
    text = printed(task, limit=1)
    assert "2 earlier submissions are not shown; --limit N shows more\n" in text
    assert "3 earlier history are" not in text
    assert "3 earlier events are not shown; --limit N shows more\n" in text


def test_nothing_reaches_the_terminal_but_text():
    task = held("bob", description="\x1b[2Jgone\rback\x07\u202e")
    actions.checkpoint(task.pk, by=agent("bob"), note="\x1b]0;title\x07")
    actions.submit(task.pk, by=agent("bob"), text="\x1b[31mred")
    actions.reject(task.pk, by=agent("alice"), reason="\x9b31m")
    text = printed(task)
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "\\x1b[2Jgone" in text


def test_a_long_text_is_cut_for_people():
    task = publish(description="x" * 60_000)
    assert len(printed(task)) < 25_000


def test_texts_in_whatever_holds_them_are_redacted():
    secret = "https://u:pw@host/x"
    assert display.redacted(
        {"a": [secret, 1, None], "b": (secret,), "at": dt.timedelta(1)}
    ) == {
        "a": ["https://u:***@host/x", 1, None],
        "b": ["https://u:***@host/x"],
        "at": dt.timedelta(1),
    }
