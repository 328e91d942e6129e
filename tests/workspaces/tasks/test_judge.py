from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db.models import F
from pytest_django import Settings

from jobs.exceptions import Permanent, Snooze
from tests.workspaces.tasks import plugs
from tests.workspaces.tasks.market import (
    HOUR,
    agent,
    contest,
    entry,
    now,
    pass_and_work,
    publish,
)
from workspaces.tasks import actions
from workspaces.tasks.exceptions import (
    JudgeError,
    JudgeMissing,
    RefusedVerdict,
    UnknownTask,
)
from workspaces.tasks.judge import ContestTask, Entry, Verdict, judge
from workspaces.tasks.models import Submission, Task

pytestmark = pytest.mark.django_db

Plug = Callable[[Callable[..., Any]], None]


@pytest.fixture
def plug(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Plug:
    """Have this judge configured."""
    settings.TASKS_CONTEST_JUDGE = plugs.JUDGE
    return lambda judge: monkeypatch.setattr(plugs, "judge", judge)


def closed(*entrants: str, **values: Any) -> Task:
    """A contest in review."""
    task = contest(*entrants, **values)
    pass_and_work(10 * HOUR)
    return now(task)


def test_without_a_judge_it_says_so_and_what_can_be_done():
    task = closed("bob")
    with pytest.raises(JudgeMissing) as raised:
        judge(task)
    assert str(raised.value) == (
        "review_auto_accept for a contest needs a judge, and none is configured (TASKS_CONTEST_JUDGE), "
        f"id: {task.pk}; its publisher may still pick a winner"
    )


def test_it_is_given_the_task_the_checklist_and_the_entries(plug: Plug):
    seen: list[Any] = []

    def judging(
        task: ContestTask, checklist: Sequence[str], entries: Sequence[Entry]
    ) -> Verdict:
        seen.append((task, checklist, entries))
        return Verdict(winner=entries[1].id, reasons="  shorter ")

    plug(judging)
    task = publish(
        template="contest", description="All of them.", checklist=["one", "two"]
    )
    for name in ("bob", "service:robot", "bob"):
        actions.submit(
            task.pk, by=agent(name), text=name, reference="acw/x", done=[2, 1]
        )
    pass_and_work(10 * HOUR)
    task = now(task)
    verdict = judge(task)
    robot, bob = entry(task, "service:robot"), entry(task, "bob")
    assert verdict == Verdict(winner=bob.pk, reasons="shorter")
    assert seen == [
        (
            ContestTask(
                id=task.pk,
                title="Sort the lists",
                description="All of them.",
                closed_at=task.open_until,
            ),
            ("one", "two"),
            tuple(
                Entry(
                    id=row.pk,
                    agent=name,
                    text=name,
                    reference="acw/x",
                    done=(1, 2),
                    submitted_at=row.created_at,
                )
                for row, name in ((robot, "service:robot"), (bob, "bob"))
            ),
        )
    ]


def test_what_came_too_late_is_not_given_to_it(plug: Plug):
    task = closed("bob", "carol")
    Submission.objects.filter(pk=entry(task, "bob").pk).update(
        created_at=task.open_until
    )
    seen: list[str] = []

    def judging(*given: Any) -> Verdict:
        seen.extend(entry.agent for entry in given[2])
        return Verdict(winner=given[2][0].id, reasons="the only one")

    plug(judging)
    assert judge(task).winner == entry(task, "carol").pk
    assert seen == ["carol"]


def test_where_all_came_too_late_it_is_not_asked(plug: Plug):
    plug(lambda *_: pytest.fail("the judge was asked"))
    task = closed("bob")
    Submission.objects.update(created_at=F("created_at") + 11 * HOUR)
    with pytest.raises(JudgeError, match="needs an entry that came in time"):
        judge(task)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "it must return a Verdict, got NoneType"),
        ({"winner": 1, "reasons": "x"}, "it must return a Verdict, got dict"),
        (Verdict(winner=True, reasons="x"), "winner True is no entry of this contest"),
        (Verdict(winner="1", reasons="x"), "winner '1' is no entry"),  # type: ignore[arg-type]
        (Verdict(winner=0, reasons="x"), "winner 0 is no entry"),
    ],
)
def test_an_answer_that_names_no_winner_is_refused(
    plug: Plug, answer: object, says: str
):
    plug(lambda *_: answer)
    task = closed("bob")
    with pytest.raises(RefusedVerdict, match=f"^TASKS_CONTEST_JUDGE: {says}"):
        judge(task)


@pytest.mark.parametrize(
    ("reasons", "says"),
    [
        ("", "reasons: must not be empty"),
        (" \n", "reasons: must not be empty"),
        ("x" * 4001, "reasons: 4,001 characters, at most 4,000"),
        ("a\x00b", "reasons: contains a NUL character"),
        ("a\ud800", "reasons: contains a lone surrogate"),
        (None, "reasons: must be text, got NoneType"),
    ],
)
def test_reasons_that_cannot_be_kept_are_refused(plug: Plug, reasons: Any, says: str):
    plug(lambda *given: Verdict(winner=given[2][0].id, reasons=reasons))
    task = closed("bob")
    with pytest.raises(RefusedVerdict, match=f"^TASKS_CONTEST_JUDGE: {says}"):
        judge(task)


def test_reasons_may_be_as_long_as_they_can_be_kept(plug: Plug):
    plug(lambda *given: Verdict(winner=given[2][0].id, reasons="x" * 4000))
    assert len(judge(closed("bob")).reasons) == 4000


def test_an_entry_of_another_contest_does_not_win(plug: Plug):
    other, task = closed("bob"), closed("bob")
    foreign = entry(other, "bob").pk
    plug(lambda *_: Verdict(winner=foreign, reasons="x"))
    with pytest.raises(
        RefusedVerdict, match=f"its entries are .{entry(task, 'bob').pk}.$"
    ):
        judge(task)


def test_a_superseded_entry_does_not_win(plug: Plug):
    task = contest("bob")
    older = entry(task, "bob").pk
    actions.submit(task.pk, by=agent("bob"), text="better")
    pass_and_work(10 * HOUR)
    plug(lambda *_: Verdict(winner=older, reasons="x"))
    with pytest.raises(RefusedVerdict, match=f"winner {older} is no entry"):
        judge(now(task))


def test_what_it_does_to_what_it_is_given_does_not_matter(plug: Plug):
    other, task = closed("bob"), closed("bob")
    foreign = entry(other, "bob").pk

    def judging(contest_: ContestTask, _: object, entries: Sequence[Entry]) -> Verdict:
        with pytest.raises(dataclasses.FrozenInstanceError):
            contest_.title = "mine"  # type: ignore[misc]
        with pytest.raises(AttributeError):
            entries.append(1)  # type: ignore[attr-defined]
        object.__setattr__(entries[0], "id", foreign)
        return Verdict(winner=foreign, reasons="x")

    plug(judging)
    with pytest.raises(RefusedVerdict, match="is no entry of this contest"):
        judge(task)


@pytest.mark.parametrize(
    "raised",
    [
        ZeroDivisionError("no budget"),
        Permanent("no budget"),
        Snooze(dt.timedelta(days=300), "no budget"),
        UnknownTask("no budget"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_it_raises_it_has_failed(plug: Plug, raised: Exception):
    def judging(*_: object) -> Verdict:
        raise raised

    plug(judging)
    task = closed("bob")
    said = f"TASKS_CONTEST_JUDGE: it raised {type(raised).__name__}: .*no budget"
    with pytest.raises(JudgeError, match=said):
        judge(task)
