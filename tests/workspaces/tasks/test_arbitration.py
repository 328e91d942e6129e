from __future__ import annotations

import logging
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from pytest_django import Settings

from jobs.exceptions import Permanent
from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from notify.models import Notification
from tests.workspaces.tasks import plugs
from tests.workspaces.tasks.market import (
    HOUR,
    agent,
    contest,
    entry,
    held,
    history,
    now,
    pass_and_work,
    reviewing,
    unwatched,
)
from workspaces.tasks import actions, agents, arbitration, sockets
from workspaces.tasks.actors import WORKER, operating
from workspaces.tasks.arbiter import Case, Opinion
from workspaces.tasks.exceptions import (
    ArbiterMissing,
    InvalidTask,
    NothingToArbitrate,
    UnknownTask,
)
from workspaces.tasks.job_types import OpinionPayload
from workspaces.tasks.models import Task

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def arbiter(settings: Settings) -> None:
    settings.TASKS_ARBITER = plugs.ARBITER


def rejected(by: str = "bob", reason: str = "not sorted") -> Task:
    task = reviewing(by)
    assert actions.reject(task.pk, by=agent("alice"), reason=reason).ok
    return now(task)


def payload(task: Task, by: str = "bob", words: str = "") -> OpinionPayload:
    return OpinionPayload(submission_id=entry(task, by).pk, asked_by=by, words=words)


def told() -> list[str]:
    rows = Notification.objects.filter(topic="task.opinion").order_by("pk")
    return [row.user.get_username() for row in rows.select_related("user")]


def test_an_opinion_is_kept_in_the_history_and_told_to_both_sides(
    caplog: pytest.LogCaptureFixture,
):
    task = rejected()
    before = (now(task).status, now(task).holder, now(task).hold_until)
    job_id = arbitration.ask(task.pk, by=agent("bob"), words="They are sorted.")
    with caplog.at_level(logging.INFO, "workspaces.tasks"):
        run_due_jobs()
    assert Job.objects.get(pk=job_id).status == Status.COMPLETED
    event = task.events.latest("pk")
    assert (event.action, event.actor) == ("arbitration_opinion", "arbiter")
    assert (event.source, event.target) == ("held", "held")
    assert event.data == {
        "submission_id": entry(task, "bob").pk,
        "handed_in_by": "bob",
        "favours": "holder",
        "asked_by": "bob",
        "opinion": "All of it is done.",
        "words": "They are sorted.",
    }
    assert sorted(told()) == ["alice", "bob"]
    note = Notification.objects.filter(topic="task.opinion").latest("pk")
    assert note.title == "Opinion on a rejected task: Sort the lists"
    assert "All of it is done." in note.body
    assert "It finds bob to be right" in note.body
    assert note.data["favours"] == "holder"
    assert note.data["task_id"] == task.pk
    # It decides nothing.
    assert (now(task).status, now(task).holder, now(task).hold_until) == before
    assert entry(task, "bob").decision == "rejected"
    assert unwatched(task) == set()
    (given,) = (r for r in caplog.records if r.message == "task.opinion_given")
    assert vars(given)["favours"] == "holder"


@pytest.mark.parametrize("side", ["publisher", "neither"])
def test_whom_it_favours_is_said(monkeypatch: pytest.MonkeyPatch, side: Any):
    monkeypatch.setattr(plugs, "arbiter", lambda _: Opinion(text="So.", favours=side))
    task = rejected()
    arbitration.give_opinion(payload(task))
    note = Notification.objects.filter(topic="task.opinion").latest("pk")
    said = {
        "publisher": "the publisher to be right",
        "neither": "neither side to be right",
    }
    assert said[side] in note.body


def test_an_opinion_of_the_longest_text_can_be_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        plugs, "arbiter", lambda _: Opinion(text="\U0001f600" * 4000, favours="holder")
    )
    task = rejected()
    arbitration.give_opinion(payload(task, words="\U0001f600" * 4000))
    assert sorted(told()) == ["alice", "bob"]


def test_it_is_asked_without_a_transaction_and_told_what_was_said(
    monkeypatch: pytest.MonkeyPatch,
):
    seen: list[Case] = []

    def arbiter(case: Case) -> Opinion:
        seen.append(case)
        return Opinion(text="So.", favours="neither")

    monkeypatch.setattr(plugs, "arbiter", arbiter)
    task = rejected()
    arbitration.ask(task.pk, by=agent("alice"), words=" Look at the second. ")
    run_due_jobs()
    assert [(c.asked_by, c.words, c.reason) for c in seen] == [
        ("alice", "Look at the second.", "not sorted")
    ]


def test_both_sides_and_operators_may_ask():
    task = rejected()
    operator = operating(User.objects.create(username="olga"))
    ids = {
        arbitration.ask(task.pk, by=by)
        for by in (agent("alice"), agent("bob"), operator)
    }
    assert len(ids) == 1  # whoever comes second gets the job that waits
    assert Job.objects.get(pk=ids.pop()).payload["asked_by"] == "alice"


def test_who_has_no_part_in_it_may_not():
    task = rejected()
    for by, who in ((agent("carol"), "carol"), (WORKER, "worker")):
        with pytest.raises(NothingToArbitrate, match=f"{who} is neither"):
            arbitration.ask(task.pk, by=by)
    assert not Job.objects.filter(type="arbitration_opinion").exists()


def test_a_disabled_agent_may_not():
    task = rejected("service:robot")
    robot = agent("service:robot")
    assert robot.agent is not None
    agents.switch(robot.agent, enabled=False)
    with pytest.raises(NothingToArbitrate, match="service:robot is disabled"):
        arbitration.ask(task.pk, by=agent("service:robot"))


def test_where_nothing_was_rejected_there_is_nothing_to_ask():
    for task in (held(), reviewing()):
        for by in ("alice", "bob"):
            with pytest.raises(
                NothingToArbitrate, match=f"nothing of task {task.pk} .* was rejected"
            ):
                arbitration.ask(task.pk, by=agent(by))


def test_a_task_that_is_not_there_is_unknown():
    with pytest.raises(UnknownTask):
        arbitration.ask(2**40, by=agent("alice"))


def test_without_an_arbiter_nothing_is_asked(settings: Settings):
    task = rejected()
    settings.TASKS_ARBITER = ""
    with pytest.raises(ArbiterMissing, match="TASKS_ARBITER"):
        arbitration.ask(task.pk, by=agent("bob"))
    assert not Job.objects.filter(type="arbitration_opinion").exists()


def test_words_that_cannot_be_kept_are_refused():
    task = rejected()
    with pytest.raises(InvalidTask, match="words: 4,001 characters"):
        arbitration.ask(task.pk, by=agent("bob"), words="x" * 4001)


def test_each_of_several_asks_about_their_own_and_the_publisher_about_any():
    task = contest("bob", "carol", "dave")
    pass_and_work(10 * HOUR)
    actions.pick_winner(task.pk, by=agent("alice"), submission=entry(task, "dave").pk)

    def about(by: str, **more: Any) -> int:
        job = Job.objects.get(pk=arbitration.ask(task.pk, by=agent(by), **more))
        submission: int = job.payload["submission_id"]
        return submission

    assert about("bob") == entry(task, "bob").pk
    assert about("carol") == entry(task, "carol").pk
    assert about("alice", submission=entry(task, "bob").pk) == entry(task, "bob").pk
    with pytest.raises(NothingToArbitrate, match="dave is neither"):
        arbitration.ask(task.pk, by=agent("dave"))
    with pytest.raises(NothingToArbitrate, match="bob is neither"):
        arbitration.ask(task.pk, by=agent("bob"), submission=entry(task, "carol").pk)
    won = entry(task, "dave").pk
    with pytest.raises(NothingToArbitrate, match=f"no submission {won} of"):
        arbitration.ask(task.pk, by=agent("alice"), submission=won)


def test_of_several_rejections_the_last_is_meant():
    task = rejected()
    first = entry(task, "bob").pk
    actions.submit(task.pk, by=agent("bob"), text="again")
    actions.reject(task.pk, by=agent("alice"), reason="still not")
    job = Job.objects.get(pk=arbitration.ask(task.pk, by=agent("bob")))
    assert job.payload["submission_id"] == entry(task, "bob").pk != first


def test_there_is_no_second_opinion(monkeypatch: pytest.MonkeyPatch):
    task = rejected()
    first = arbitration.ask(task.pk, by=agent("bob"))
    run_due_jobs()
    monkeypatch.setattr(plugs, "arbiter", lambda _: pytest.fail("asked again"))
    with pytest.raises(NothingToArbitrate, match="has given its opinion"):
        arbitration.ask(task.pk, by=agent("alice"))
    Job.objects.filter(pk=first).update(
        status=Status.PENDING, completed_at=None, run_at=Now()
    )
    run_due_jobs()
    assert Job.objects.get(pk=first).status == Status.COMPLETED
    assert history(task).count("arbitration_opinion") == 1
    assert len(told()) == 2


def test_nor_from_an_execution_beside_it(monkeypatch: pytest.MonkeyPatch):
    task = rejected()

    def overtaken(_: Case) -> Opinion:
        monkeypatch.undo()
        arbitration.give_opinion(payload(task))
        return Opinion(text="The other way.", favours="publisher")

    monkeypatch.setattr(plugs, "arbiter", overtaken)
    arbitration.give_opinion(payload(task))
    (event,) = task.events.filter(action="arbitration_opinion")
    assert event.data["favours"] == "holder"
    assert len(told()) == 2


def test_a_later_rejection_has_an_opinion_of_its_own():
    task = rejected()
    arbitration.ask(task.pk, by=agent("bob"))
    run_due_jobs()
    actions.submit(task.pk, by=agent("bob"), text="again")
    actions.reject(task.pk, by=agent("alice"), reason="still not")
    arbitration.ask(task.pk, by=agent("bob"))
    run_due_jobs()
    assert history(task).count("arbitration_opinion") == 2


def test_an_arbiter_that_fails_is_asked_again(monkeypatch: pytest.MonkeyPatch):
    task = rejected()
    monkeypatch.setattr(plugs, "arbiter", lambda _: None)
    job_id = arbitration.ask(task.pk, by=agent("bob"))
    run_due_jobs()
    job = Job.objects.get(pk=job_id)
    assert (job.status, job.attempts) == (Status.PENDING, 1)
    assert job.last_error.startswith("RefusedOpinion: TASKS_ARBITER: it must return")
    assert "arbitration_opinion" not in history(task)
    monkeypatch.undo()
    Job.objects.filter(pk=job_id).update(run_at=Now())
    run_due_jobs()
    assert history(task)[-1] == "arbitration_opinion"


def test_a_late_answer_is_not_kept():
    task = rejected()
    with pytest.raises(sockets.SocketError, match="TASKS_ARBITER: the answer came"):
        arbitration.give_opinion(payload(task), context=plugs.context(late=True))
    assert "arbitration_opinion" not in history(task)


def test_work_that_was_not_rejected_gets_no_opinion():
    task = reviewing()
    for submission_id in (entry(task, "bob").pk, 2**40):
        asked = OpinionPayload(submission_id=submission_id, asked_by="bob")
        with pytest.raises(Permanent, match=f"no rejected submission {submission_id}"):
            arbitration.give_opinion(asked)


def test_a_service_accounts_side_is_told_to_its_owner():
    task = rejected("service:robot")
    owner = User.objects.create(username="olga")
    robot = agent("service:robot").agent
    assert robot is not None
    robot.owner = owner
    robot.save()
    arbitration.give_opinion(payload(task, "service:robot"))
    assert sorted(told()) == ["alice", "olga"]
