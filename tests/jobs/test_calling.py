from __future__ import annotations

import contextvars
import decimal
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.utils import timezone, translation

from jobs.enqueue import enqueue
from jobs.models import Job, Status
from jobs.registry import job_handler
from jobs.testing import run_due_jobs

pytestmark = pytest.mark.django_db

variable = contextvars.ContextVar("variable", default="unset")


async def coroutine(context: Any, payload: Any) -> None:
    raise AssertionError("nobody awaits it")


def generator(context: Any, payload: Any) -> Iterator[None]:
    yield


async def asynchronous_generator(context: Any, payload: Any) -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize(
    ("promise", "kind"),
    [
        (coroutine, "coroutine"),
        (generator, "generator"),
        (asynchronous_generator, "async_generator"),
    ],
)
def test_work_that_was_only_promised_completes_no_job(
    promise: Any, kind: str, atomic: bool
) -> None:
    @job_handler("test.promises", atomic=atomic)
    def promises(context: Any, payload: Any) -> Any:
        return promise(context, payload)

    job = enqueue("test.promises")
    run_due_jobs()
    job.refresh_from_db()
    assert job.status == Status.PENDING
    assert f"returned a {kind}, of which nothing has run" in job.last_error


def test_whatever_else_a_handler_returns_is_dropped() -> None:
    @job_handler("test.returns")
    def returns(context: Any, payload: Any) -> Any:
        return [1, 2]

    job = enqueue("test.returns")
    run_due_jobs()
    assert Job.objects.get(pk=job.pk).status == Status.COMPLETED


@pytest.mark.parametrize("atomic", [False, True])
def test_what_a_handler_activates_is_gone_before_the_next_job(atomic: bool) -> None:
    seen: list[Any] = []

    def look() -> None:
        seen.append(
            (
                translation.get_language(),
                timezone.get_current_timezone_name(),
                decimal.getcontext().prec,
                variable.get(),
            )
        )

    @job_handler("test.activates", atomic=atomic)
    def activates(context: Any, payload: Any) -> None:
        translation.activate("de")
        timezone.activate("Asia/Kolkata")
        decimal.getcontext().prec = 3
        variable.set("set")

    job_handler("test.looks")(lambda context, payload: look())
    look()
    enqueue("test.activates")
    enqueue("test.looks")
    run_due_jobs()
    before, after = seen
    assert after == before


@pytest.mark.parametrize("atomic", [False, True])
def test_a_handler_begins_as_in_a_new_thread_whoever_runs_it(atomic: bool) -> None:
    seen: list[Any] = []

    @job_handler("test.looks", atomic=atomic)
    def looks(context: Any, payload: Any) -> None:
        seen.append((translation.get_language(), variable.get()))

    enqueue("test.looks")
    token = variable.set("set")
    try:
        with translation.override("de"):
            run_due_jobs()
    finally:
        variable.reset(token)
    assert seen == [(settings.LANGUAGE_CODE, "unset")]


@pytest.mark.django_db(transaction=True)
def test_hooks_of_an_atomic_handler_see_what_it_activated() -> None:
    seen: list[Any] = []

    @job_handler("test.activates", atomic=True)
    def activates(context: Any, payload: Any) -> None:
        translation.activate("de")
        transaction.on_commit(lambda: seen.append(translation.get_language()))

    enqueue("test.activates")
    run_due_jobs()
    assert seen == ["de"]


def ending(how: Any) -> Any:
    raise how


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (lambda: None, 0),
        (lambda: sys.exit(), 0),
        (lambda: sys.exit(3), 3),
        (lambda: sys.exit("with a text"), 1),
        (lambda: ending(ValueError("told on stderr")), 1),
    ],
    ids=["returns", "exits", "exits with a status", "exits with a text", "raises"],
)
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_that_comes_back_from_a_handler_is_no_worker(
    ends: Callable[[], object], expected: int, atomic: bool
) -> None:
    statuses: list[int] = []

    @job_handler("test.forks", atomic=atomic)
    def forks(context: Any, payload: Any) -> None:
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            statuses.append(os.waitstatus_to_exitcode(status))
        else:
            ends()

    job = enqueue("test.forks")
    run_due_jobs()
    job.refresh_from_db()
    assert (job.status, job.last_error) == (Status.COMPLETED, "")
    assert statuses == [expected]
