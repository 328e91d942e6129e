from __future__ import annotations

from typing import Any

import pytest

from jobs.models import Job, Priority
from tests.workspaces.tasks.market import (
    HOUR,
    SECOND,
    agent,
    contest,
    held,
    in_review,
    live_jobs,
    now,
    offered,
    pass_and_work,
    pass_time,
    publish,
    reviewing,
    unwatched,
)
from workspaces.tasks import actions, deadlines
from workspaces.tasks.models import Task
from workspaces.tasks.states import Deadline

pytestmark = pytest.mark.django_db


def cancelled() -> Task:
    task = held(checkpoint_every=HOUR)
    actions.cancel(task.pk, by=agent("alice"))
    return now(task)


@pytest.mark.parametrize(
    ("make", "live"),
    [
        (publish, {"open_expire": "open_until"}),
        (contest, {"contest_close": "open_until"}),
        (held, {"hold_timeout": "hold_until"}),
        (
            lambda: offered(checkpoint_every=HOUR),
            {
                "hold_timeout": "hold_until",
                "checkpoint_warn": "checkpoint_warn_at",
                "checkpoint_miss": "checkpoint_due_at",
                "transfer_expire": "transfer_until",
            },
        ),
        (
            reviewing,
            {"review_warn": "review_warn_at", "review_auto_accept": "review_until"},
        ),
        (
            lambda: in_review("bob"),
            {"review_warn": "review_warn_at", "review_auto_accept": "review_until"},
        ),
        (cancelled, {}),
    ],
    ids=["open", "contest", "held", "offered", "reviewing", "in review", "cancelled"],
)
def test_each_status_has_its_live_deadlines_and_each_of_them_its_job(
    make: Any, live: dict[str, str]
):
    task = now(make())
    expected = {(action, getattr(task, column)) for action, column in live.items()}
    assert {(found.action, found.at) for found in deadlines.live(task)} == expected
    assert expected <= live_jobs(task)
    assert unwatched(task) == set()


def test_the_job_of_a_deadline_names_task_and_moment():
    task = publish()
    (job,) = deadlines.jobs(now(task))
    until = now(task).open_until
    assert until is not None
    assert (job.type, job.ref_id, job.run_at) == ("open_expire", task.pk, until)
    assert job.unique_key == f"open_expire:{task.pk}:{until.isoformat()}"
    stored = Job.objects.get(type="open_expire", ref_id=str(task.pk))
    assert stored.run_at == until
    assert stored.payload == {"deadline": until.isoformat()}


def test_watching_again_makes_no_second_job():
    tasks = [now(publish()), now(held())]
    before = set(Job.objects.values_list("pk", flat=True))
    deadlines.watch(tasks)
    assert set(Job.objects.values_list("pk", flat=True)) == before


def test_watching_gives_back_what_is_missing():
    task = reviewing()
    Job.objects.all().delete()
    assert len(unwatched(task)) == 2
    deadlines.watch([now(task)])
    assert unwatched(task) == set()


def test_a_deadline_that_moves_leaves_its_old_job_harmless():
    task = held(checkpoint_every=2 * HOUR, final_miss=1)
    pass_time(HOUR)
    old = now(task).checkpoint_due_at
    assert actions.checkpoint(task.pk, by=agent("bob")).ok
    assert ("checkpoint_miss", old) in live_jobs(task)
    assert now(task).checkpoint_due_at != old
    pass_and_work(HOUR + SECOND)
    assert (now(task).status, now(task).misses) == ("held", 0)
    assert unwatched(task) == set()


def test_the_times_are_all_that_there_are():
    task = offered()
    assert set(deadlines.times(task)) == set(Deadline)
    assert deadlines.times(task)[Deadline.TRANSFER_UNTIL] == task.transfer_until


def test_what_waits_for_a_judge_has_a_queue_of_its_own():
    judged, silent = contest("bob"), reviewing()
    pass_and_work(10 * HOUR)
    jobs = Job.objects.filter(type="review_auto_accept")
    assert set(jobs.values_list("ref_id", "queue")) == {
        (str(judged.pk), "judging"),
        (str(silent.pk), "default"),
    }


def test_deadlines_come_before_deliveries():
    publish()
    assert set(Job.objects.values_list("priority", flat=True)) == {Priority.HIGH}
