"""Whether somebody does the work: live workers, for every queue and every type, and the runners."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from django.conf import settings

from jobs import stats
from jobs.display import duration
from jobs.doctor import Finding, error, ok, probe, warning
from jobs.heartbeat import alive_within
from jobs.models import Job, RunnerState
from jobs.selection import HOST_PREFIX
from jobs.stats import RunnerStatus, WorkerStatus

_START = "Start one: manage.py runjobs (under a supervisor that restarts it)."


def _alive() -> list[WorkerStatus]:
    return [worker for worker in stats.workers() if worker.alive]


@probe("workers")
def workers() -> Iterator[Finding]:
    """At least one gives heartbeats; one that has stopped doing so did not end as it should."""
    everyone = stats.workers()
    alive = [worker for worker in everyone if worker.alive]
    if alive:
        threads = sum(worker.threads for worker in alive)
        yield ok(f"{len(alive)} alive, with {threads} threads")
    else:
        yield _nobody()
    for worker in everyone:
        if worker.alive and worker.stalled:
            yield error(
                f"{worker.name} has stalled: no progress in {', '.join(worker.stalled)}",
                advice="It ends by itself within a minute or so, for its supervisor to restart. Its log says under "
                "jobs.module.stalled where the thread hangs.",
            )
        if not worker.alive:
            yield warning(
                f"{worker.name} is lost: its last heartbeat was {duration(worker.age)} ago",
                advice="It was killed, or cannot reach the database; look at its log. job_reaper returns its "
                "jobs, and forgets it after a day.",
            )


def _nobody() -> Finding:
    due = Job.objects.due().count()
    if not settings.JOBS_ENABLED:
        return warning(
            f"JOBS_ENABLED is false, no worker is alive and {due:,} jobs are due",
            advice="Nothing is done until JOBS_ENABLED is true and manage.py runjobs runs.",
        )
    if due:
        return error(f"none is alive, and {due:,} jobs are due", advice=_START)
    return warning("none is alive; nothing is due", advice=_START)


@probe("queues")
def queues() -> Iterator[Finding]:
    """Every queue with due jobs is served."""
    alive = _alive()
    served = sorted({queue for worker in alive for queue in worker.queues})
    # A worker takes a new queue in with its next heartbeat.
    missed = [
        (queue, count, age)
        for queue, count, age in (stats.unserved_queues(served) if alive else [])
        if age > alive_within()
    ]
    for queue, count, age in missed:
        where = (
            f"on the host {queue.removeprefix(HOST_PREFIX)} (its ACW_HOST)"
            if queue.startswith(HOST_PREFIX)
            else f"without --queues, or with {queue} among them"
        )
        yield error(
            f"{count:,} jobs are due in queue {queue} for up to {duration(age)}, and no live worker serves it",
            advice=f"Start manage.py runjobs {where}.",
        )
    if not missed:
        yield ok(
            "every queue with due jobs is served"
            if alive
            else "no worker, no queue served"
        )


@probe("types")
def types() -> Iterator[Finding]:
    """Every type of due jobs has a handler in some live worker."""
    alive = _alive()
    known = sorted({name for worker in alive for name in worker.types})
    missed = stats.unserved_types(known) if alive else []
    grace: dt.timedelta = settings.JOBS_UNKNOWN_TYPE_GRACE
    for name, count, age in missed:
        make = error if age > grace else warning
        yield make(
            f"{count:,} jobs of type {name} are due, and no live worker has a handler for it",
            advice="Deploy the code that has it to the workers. After being due for "
            f"{duration(grace)} (JOBS_UNKNOWN_TYPE_GRACE) such jobs fail and end as dead.",
        )
    if not missed:
        yield ok(
            "every type of due jobs has a handler" if alive else "no worker, no handler"
        )


@probe("runners")
def runners() -> Iterator[Finding]:
    """Each ticks when it should, and its last tick went well."""
    everyone = stats.runners()
    findings = [finding for status in everyone for finding in _runner(status)]
    unscheduled = [s.name for s in everyone if s.enabled and s.next_run_at is None]
    if unscheduled:
        findings.append(
            warning(
                f"never run and not scheduled: {', '.join(unscheduled)}",
                advice="The first worker that starts schedules them: manage.py runjobs.",
            )
        )
    yield from findings
    if not findings:
        yield ok(f"{len(everyone)} on schedule")


def _runner(status: RunnerStatus) -> Iterator[Finding]:
    variable = f"JOBS_{status.name.upper()}_ENABLED"
    if not status.enabled:
        yield warning(
            f"{status.name} is switched off",
            advice=f"Set {variable}=true unless that is meant.",
        )
        return
    if status.overdue:
        never = status.last_started_at is None
        yield error(
            f"{status.name} is overdue by {duration(status.late)}"
            + (
                " and has never run"
                if never
                else f", it runs every {duration(status.interval)}"
            ),
            advice="Runners tick in manage.py runjobs: start one, or look at its log for "
            f"{status.name}. A tick by hand: manage.py runners run {status.name}",
        )
    if status.last_outcome == RunnerState.Outcome.FAILED:
        yield error(
            f"{status.name} failed at its last tick: {status.last_error}",
            advice=f"Mend the cause, then: manage.py runners run {status.name}",
        )
