from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection, connections
from pytest_django import Settings

from jobs.exceptions import Cancelled, LeaseLost
from jobs.models import Job, Status
from jobs.testing import PATIENCE, run_due_jobs
from tests.workspaces.tasks import plugs
from tests.workspaces.tasks.market import (
    HOUR,
    agent,
    contest,
    entry,
    history,
    now,
    pass_and_work,
    pass_time,
    publish,
    reviewing,
    unwatched,
)
from workspaces.tasks import actions, judge, judging
from workspaces.tasks.exceptions import JudgeMissing, RefusedVerdict, UnknownTask
from workspaces.tasks.judge import ContestTask, Entry, Verdict
from workspaces.tasks.models import Submission, Task
from workspaces.tasks.sockets import SocketError
from workspaces.tasks.states import Reason
from workspaces.tasks.states import Status as TaskStatus

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def a_judge(settings: Settings) -> None:
    settings.TASKS_CONTEST_JUDGE = plugs.JUDGE


def to_be_judged(*entrants: str) -> Task:
    """A contest whose publisher's time is over."""
    task = contest(*entrants)
    pass_and_work(10 * HOUR)
    pass_time(6 * HOUR)
    return now(task)


def auto_accept_job(task: Task) -> Job:
    return Job.objects.filter(type="review_auto_accept", ref_id=str(task.pk)).latest(
        "pk"
    )


def test_silence_accepts_a_direct_task_and_asks_no_judge(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(plugs, "judge", lambda *_: pytest.fail("asked"))
    task = reviewing()
    pass_time(6 * HOUR)
    assert judging.auto_accept(task.pk).ok
    assert entry(task, "bob").decision == "accepted"


def test_the_judges_winner_is_accepted_with_its_reasons(
    caplog: pytest.LogCaptureFixture,
):
    task = to_be_judged("bob", "carol")
    with caplog.at_level(logging.INFO, "workspaces.tasks"):
        assert judging.auto_accept(task.pk, context=plugs.context()).ok
    bob, carol = entry(task, "bob"), entry(task, "carol")
    assert (bob.decision, bob.reason) == ("accepted", "it came first")
    assert (carol.decision, carol.reason) == ("rejected", "another entry was chosen")
    last = task.events.latest("pk")
    assert (last.action, last.actor, last.target) == (
        "review_auto_accept",
        "worker",
        "accepted",
    )
    assert last.data["winner"] == "bob"
    assert last.data["reason"] == "it came first"
    (judged,) = (r for r in caplog.records if r.message == "task.judged")
    assert vars(judged)["submission_id"] == bob.pk


def test_its_job_is_then_done():
    task = to_be_judged("bob")
    run_due_jobs()
    assert now(task).status == TaskStatus.ACCEPTED
    assert auto_accept_job(task).status == Status.COMPLETED


def test_no_judge_is_asked_before_the_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plugs, "judge", lambda *_: pytest.fail("asked"))
    task = contest("bob")
    pass_and_work(10 * HOUR)
    outcome = judging.auto_accept(task.pk)
    assert (outcome.ok, outcome.code) == (False, Reason.NOT_DUE)


def test_no_judge_is_asked_of_what_is_decided(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plugs, "judge", lambda *_: pytest.fail("asked"))
    task = to_be_judged("bob")
    actions.pick_winner(task.pk, by=agent("alice"), submission=entry(task, "bob").pk)
    outcome = judging.auto_accept(task.pk)
    assert (outcome.ok, outcome.code) == (False, Reason.WRONG_STATUS)


def test_a_task_that_is_not_there_is_unknown():
    with pytest.raises(UnknownTask):
        judging.auto_accept(2**40)


def test_without_a_judge_it_fails_and_the_publisher_may_still_pick(
    settings: Settings,
):
    settings.TASKS_CONTEST_JUDGE = ""
    task = to_be_judged("bob")
    with pytest.raises(JudgeMissing):
        judging.auto_accept(task.pk)
    assert now(task).status == TaskStatus.REVIEWING
    run_due_jobs()
    job = auto_accept_job(task)
    assert job.status == Status.PENDING
    assert job.last_error.startswith("JudgeMissing: review_auto_accept for a contest")
    assert unwatched(task) == set()
    assert actions.pick_winner(
        task.pk, by=agent("alice"), submission=entry(task, "bob").pk
    ).ok
    Job.objects.filter(pk=job.pk).update(run_at=task.created_at)
    run_due_jobs()
    assert auto_accept_job(task).status == Status.COMPLETED
    assert history(task)[-1] == "pick_winner"


def test_a_judge_that_raises_decides_nothing_and_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
):
    task = to_be_judged("bob")
    calls: list[int] = []

    def failing_once(*given: Any) -> Verdict:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("no budget")
        return Verdict(winner=given[2][0].id, reasons="at last")

    monkeypatch.setattr(plugs, "judge", failing_once)
    run_due_jobs()
    job = auto_accept_job(task)
    assert (job.status, job.attempts) == (Status.PENDING, 1)
    assert (
        job.last_error
        == "JudgeError: TASKS_CONTEST_JUDGE: it raised ValueError: no budget"
    )
    assert now(task).status == TaskStatus.REVIEWING
    Job.objects.filter(pk=job.pk).update(run_at=task.created_at)
    run_due_jobs()
    assert now(task).status == TaskStatus.ACCEPTED
    assert entry(task, "bob").reason == "at last"


def test_an_answer_that_comes_too_late_is_not_applied():
    task = to_be_judged("bob")
    with pytest.raises(SocketError, match="TASKS_JUDGE_TIMEOUT"):
        judging.auto_accept(task.pk, context=plugs.context(late=True))
    assert now(task).status == TaskStatus.REVIEWING


@pytest.mark.parametrize(
    ("news", "raised"),
    [("notify_lease_lost", LeaseLost), ("notify_cancel", Cancelled)],
)
def test_nor_is_one_that_nobody_wants_any_more(
    monkeypatch: pytest.MonkeyPatch, news: str, raised: type[Exception]
):
    task = to_be_judged("bob")
    context = plugs.context()
    judge = plugs.judge

    def told_meanwhile(*given: Any) -> Verdict:
        getattr(context, news)()
        return judge(*given)

    monkeypatch.setattr(plugs, "judge", told_meanwhile)
    with pytest.raises(raised):
        judging.auto_accept(task.pk, context=context)
    assert now(task).status == TaskStatus.REVIEWING


def test_a_winner_that_is_gone_when_the_judge_answers_fails(
    monkeypatch: pytest.MonkeyPatch,
):
    task = to_be_judged("bob", "carol")

    def removed_meanwhile(
        _: ContestTask, __: Sequence[str], entries: Sequence[Entry]
    ) -> Verdict:
        Submission.objects.filter(pk=entries[0].id).delete()
        return Verdict(winner=entries[0].id, reasons="it was good")

    monkeypatch.setattr(plugs, "judge", removed_meanwhile)
    with pytest.raises(RefusedVerdict, match="is no undecided entry"):
        judging.auto_accept(task.pk)
    assert now(task).status == TaskStatus.REVIEWING


@pytest.mark.django_db(transaction=True)
def test_a_pick_while_the_judge_thinks_counts(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    settings.TASKS_CONTEST_JUDGE = plugs.JUDGE
    task = to_be_judged("bob", "carol")
    asked, answer = threading.Event(), threading.Event()
    in_transaction: list[bool] = []

    def thinking(_: object, __: object, entries: Sequence[Entry]) -> Verdict:
        in_transaction.append(connection.in_atomic_block)
        asked.set()
        assert answer.wait(PATIENCE)
        return Verdict(winner=entries[0].id, reasons="bob's")

    def work() -> None:
        try:
            run_due_jobs()
        finally:
            connections.close_all()

    monkeypatch.setattr(plugs, "judge", thinking)
    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert asked.wait(PATIENCE)
        picked = actions.pick_winner(
            task.pk, by=agent("alice"), submission=entry(task, "carol").pk
        )
    finally:
        answer.set()
        worker.join(PATIENCE)
    assert picked.ok
    assert in_transaction == [False]
    job = auto_accept_job(task)
    assert (job.status, job.attempts, job.last_error) == (Status.COMPLETED, 1, "")
    assert history(task)[-1] == "pick_winner"
    assert entry(task, "carol").decision == "accepted"
    assert entry(task, "bob").decision == "rejected"


def test_a_contest_that_nobody_entered_is_none_to_judge():
    task = publish(template="contest")
    pass_and_work(16 * HOUR)
    assert now(task).status == TaskStatus.EXPIRED
    assert not Job.objects.filter(type="review_auto_accept").exists()


def test_a_pick_before_the_judge_is_given_the_entries_is_harmless(
    monkeypatch: pytest.MonkeyPatch,
):
    task = to_be_judged("bob")
    judge_it = judge.judge

    def picked_first(read: Task) -> Verdict:
        chosen = entry(task, "bob").pk
        assert actions.pick_winner(task.pk, by=agent("alice"), submission=chosen).ok
        return judge_it(read)

    monkeypatch.setattr(judge, "judge", picked_first)
    run_due_jobs()
    job = auto_accept_job(task)
    assert (job.status, job.attempts, job.last_error) == (Status.COMPLETED, 1, "")
    assert history(task)[-1] == "pick_winner"
