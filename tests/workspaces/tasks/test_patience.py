from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator

import pytest
from django.db import connection

from jobs.connection import QueueConnection
from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from tests.workspaces.tasks.market import HOUR, now, pass_time, publish
from workspaces.tasks import machine, patience, reconcile
from workspaces.tasks.actors import WORKER
from workspaces.tasks.exceptions import TaskBusy
from workspaces.tasks.models import Task
from workspaces.tasks.states import Action
from workspaces.tasks.states import Status as TaskStatus

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LONGEST_WAIT", dt.timedelta(milliseconds=50))


@pytest.fixture
def somebody(db: None) -> Iterator[QueueConnection]:
    """A connection with a transaction that stays open."""
    with QueueConnection() as other:
        other.execute("BEGIN", [])
        yield other


def changes(somebody: QueueConnection, task: Task) -> None:
    somebody.execute("SELECT FROM tasks WHERE id = %s FOR UPDATE", [task.pk])


def job_of(task: Task) -> Job:
    return Job.objects.get(ref_id=str(task.pk), type="open_expire")


def test_the_worker_leaves_a_task_alone_that_somebody_is_changing(
    somebody: QueueConnection,
) -> None:
    busy, other = publish(), publish()
    pass_time(10 * HOUR)
    changes(somebody, busy)
    run_due_jobs()
    assert now(other).status == TaskStatus.EXPIRED
    job = job_of(busy)
    assert (job.status, job.attempts) == (Status.PENDING, 0)
    assert job.run_at - job.updated_at == patience.AGAIN_AFTER
    somebody.execute("COMMIT", [])
    Job.objects.filter(pk=job.pk).update(run_at=job.created_at)
    run_due_jobs()
    assert now(busy).status == TaskStatus.EXPIRED


def test_it_says_what_is_the_matter(somebody: QueueConnection) -> None:
    task = publish()
    changes(somebody, task)
    with pytest.raises(TaskBusy, match=f"task {task.pk} is being changed"):
        machine.apply(task.pk, Action.OPEN_EXPIRE, by=WORKER)


def test_the_reconciliation_goes_on_to_the_next(somebody: QueueConnection) -> None:
    busy, other = publish(), publish()
    Job.objects.all().delete()
    changes(somebody, busy)
    counts = reconcile.reconcile(threading.Event())
    assert counts == {"looked_at": 2, "mended": 1, "waiting": 0, "failed": 1}
    assert job_of(other).status == Status.PENDING


def test_the_wait_is_over_with_the_transaction() -> None:
    task = publish()
    machine.apply(task.pk, Action.OPEN_EXPIRE, by=WORKER)
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("0",)
