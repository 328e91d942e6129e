"""Whether the work moves: how long jobs wait, what is stuck, what died, and whether the table is kept small."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from django.conf import settings
from django.db.models import F, Min
from django.db.models.functions import Now

from jobs import stats
from jobs.display import duration
from jobs.doctor import Finding, error, ok, probe, warning
from jobs.models import Job, Status

LONGEST_LAG = dt.timedelta(minutes=5)
"""From here on the workers do not keep up."""

RECENT = dt.timedelta(hours=24)
LONG_RUN = dt.timedelta(hours=1)
"""From here on a job that runs is named."""

_GROUPS_SHOWN = 5
_LONG_SHOWN = 5
_COUNTED = 10_000

_own_verbs: dict[str, str] = {}


@probe("lag")
def lag() -> Iterator[Finding]:
    """Due jobs do not wait long."""
    age = stats.lag()
    if age is None:
        yield ok("nothing is due")
        return
    if age <= LONGEST_LAG:
        yield ok(f"the oldest due job has waited {duration(age)}")
        return
    yield warning(
        f"the oldest due job has waited {duration(age)}; {_longest_running()}",
        advice="Where all threads are busy, raise JOBS_WORKERS or start more manage.py runjobs; where one job "
        "runs for too long, look at its handler.",
    )


def _longest_running() -> str:
    age = Now() - F("started_at")
    running = Job.objects.running().order_by("started_at")
    longest = running.values_list("type", "pk", "leased_by", age).first()
    if longest is None:
        return "none is running"
    job_type, pk, worker, ran = longest
    return f"the longest-running is {job_type} {pk}, for {duration(ran)} in {worker}"


@probe("long_running")
def long_running() -> Iterator[Finding]:
    """No job runs for so long that it may hang."""
    age = Now() - F("started_at")
    running = Job.objects.running().order_by("started_at")
    long = running.filter(started_at__lt=Now() - LONG_RUN)
    shown = long.values_list("type", "pk", "leased_by", age)[:_LONG_SHOWN]
    for job_type, pk, worker, ran in shown:
        yield warning(
            f"{job_type} {pk} has been running for {duration(ran)} in {worker}",
            advice="Where that is not meant, give its type a timeout in @job_handler, which fails what hangs. To ask this "
            f"one to stop: manage.py jobs cancel {pk}",
        )
    if not shown:
        yield ok(f"none has been running for more than {duration(LONG_RUN)}")
    elif (more := long.count() - len(shown)) > 0:
        yield warning(
            f"{more:,} more have been running for more than {duration(LONG_RUN)}",
            advice="manage.py jobs list --status running",
        )


@probe("leases")
def leases() -> Iterator[Finding]:
    """Leases of workers that were lost are returned."""
    expired = Job.objects.expired()
    count = expired.count()
    if not count:
        yield ok("none has expired")
        return
    age = expired.aggregate(age=Now() - Min("lease_until"))["age"]
    interval: dt.timedelta = settings.JOBS_JOB_REAPER_INTERVAL
    message = f"{count:,} leases have expired, the first {duration(age)} ago"
    if not settings.JOBS_JOB_REAPER_ENABLED:
        yield error(
            f"{message}, and job_reaper is switched off",
            advice="Set JOBS_JOB_REAPER_ENABLED=true; at once: manage.py runners run job_reaper",
        )
    elif age > 2 * interval:
        yield error(
            f"{message}, and job_reaper has not returned them",
            advice="It ticks in manage.py runjobs; at once: manage.py runners run job_reaper",
        )
    else:
        yield warning(
            message,
            advice=f"A worker was lost; job_reaper returns its jobs within {duration(interval)}.",
        )


@probe("purge")
def purge() -> Iterator[Finding]:
    """The table does not only grow: finished jobs go when their time is over."""
    kept: dt.timedelta = settings.JOBS_JOB_PURGE_COMPLETED_RETENTION
    kept_dead: dt.timedelta = settings.JOBS_JOB_PURGE_DEAD_RETENTION
    interval: dt.timedelta = settings.JOBS_JOB_PURGE_INTERVAL
    left = sum(
        _left_over(status, retention + 2 * interval)
        for status, retention in (
            (Status.COMPLETED, kept),
            (Status.CANCELLED, kept),
            (Status.DEAD, kept_dead),
        )
    )
    if not left:
        yield ok("no finished job is kept past its retention")
        return
    count = f"{left:,}" if left < _COUNTED else f"{_COUNTED:,} or more"
    reason = (
        "job_purge does not keep up or does not run"
        if settings.JOBS_JOB_PURGE_ENABLED
        else "job_purge is switched off"
    )
    yield warning(
        f"{count} finished jobs are kept past their retention: {reason}, and the table only grows",
        advice="Set JOBS_JOB_PURGE_ENABLED=true and keep a manage.py runjobs running; at once: "
        "manage.py runners run job_purge",
    )


def _left_over(status: Status, age: dt.timedelta) -> int:
    return Job.objects.filter(status=status, completed_at__lt=Now() - age)[
        :_COUNTED
    ].count()


def mended_by(job_type: str, verbs: str) -> None:
    """Have ``dead`` advise ``verbs`` for this type instead of `jobs retry`: its app has better ones."""
    _own_verbs[job_type] = verbs


@probe("dead")
def dead() -> Iterator[Finding]:
    """What has died in the last day, by type and error."""
    groups = stats.dead_groups(within=RECENT, most=_GROUPS_SHOWN)
    total = stats.count_by_status()[Status.DEAD]
    if not groups:
        yield ok(
            f"none in the last {duration(RECENT)}"
            + (f", {total:,} before" if total else "")
        )
        return
    for group in groups:
        again = f"manage.py jobs retry --all --type {group.type}"
        yield warning(
            f"{group.count:,} jobs of type {group.type} died in the last {duration(RECENT)}: {group.error}",
            advice=f"Mend the cause, then: {_own_verbs.get(group.type, again)}",
        )
