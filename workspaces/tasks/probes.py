"""What the doctor asks of tasks: whether their deadlines do what they are there for, and if not, why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from jobs import stats
from jobs.display import first_line
from jobs.doctor import Finding, error, ok, probe, warning
from jobs.models import Status
from workspaces.tasks import clock, sockets, watched
from workspaces.tasks.models import Task
from workspaces.tasks.overdue import GRACE, overdue
from workspaces.tasks.watched import Watched

LOOKED_AT = 1_000
"""Overdue tasks of which the reason is looked for."""


@dataclass(frozen=True, kw_only=True)
class _Reason:
    """Why nothing has come of a deadline; ``says`` follows on how many there are, and an example follows on it."""

    says: str
    advice: str
    make: Callable[..., Finding]


_JUDGE_MISSING = _Reason(
    says="contests wait for their publishers, since no judge is configured",
    advice="The publisher picks a winner, or an operator does: manage.py task pick. Or set TASKS_CONTEST_JUDGE, restart the "
    "workers, then: manage.py runners run task_reconcile",
    make=warning,
)
_MISSING = _Reason(
    says="deadlines are over, and their jobs are missing",
    advice="Was something deleted from jobs, or a deadline changed by hand? task_reconcile mends it; at once: "
    "manage.py runners run task_reconcile",
    make=error,
)
_GIVEN_UP = _Reason(
    says="deadlines are over, and their jobs have died or were cancelled",
    advice="Mend the cause: manage.py jobs show ID. task_reconcile retries them; at once: manage.py jobs retry ID",
    make=error,
)
_FAILING = _Reason(
    says="deadlines are over, and their jobs have failed and are tried again",
    advice="The error says why: manage.py jobs show ID",
    make=warning,
)
_NO_WORKER = _Reason(
    says="deadlines are over, and no worker is alive to act on them",
    advice="Start one: manage.py runjobs",
    make=error,
)
_WAITING = _Reason(
    says="deadlines are over, and their jobs wait for a worker or run",
    advice="Are all threads busy? See lag and queues: more JOBS_WORKERS, or more manage.py runjobs",
    make=warning,
)


@probe("tasks")
def tasks() -> Iterator[Finding]:
    """No deadline is over without that something came of it, and what is plugged in can be called."""
    yield from _sockets()
    rows = Task.objects.live().filter(overdue()).order_by("pk").with_transfers()
    late = list(rows[:LOOKED_AT])
    if not late:
        yield ok("no task is overdue")
        return
    for reason, found in _by_reason(watched.look(late)).items():
        yield reason.make(
            f"{len(found):,}{'' if len(late) < LOOKED_AT else ' or more'} {reason.says}, such as {_example(found[0])}",
            advice=reason.advice,
        )


def _sockets() -> Iterator[Finding]:
    for setting in sockets.SOCKETS:
        try:
            sockets.plugged(setting)
        except sockets.SocketError as failure:
            yield error(
                str(failure),
                advice=f"Set {setting} to the dotted path of a function, or leave it out; then restart the workers.",
            )


def _by_reason(deadlines: Iterable[Watched]) -> dict[_Reason, list[Watched]]:
    now = clock.now()
    alive = any(worker.alive for worker in stats.workers())
    reasons: dict[_Reason, list[Watched]] = {}
    for each in deadlines:
        if each.live.at + GRACE < now:
            reasons.setdefault(_reason(each, alive=alive), []).append(each)
    return reasons


def _reason(each: Watched, *, alive: bool) -> _Reason:
    job = each.job
    if job is not None and job.last_error and each.needs_judge:
        return _JUDGE_MISSING
    if each.is_given_up:
        return _GIVEN_UP
    if job is None or not each.is_watched:
        return _MISSING
    if not alive:
        return _NO_WORKER
    if job.status == Status.PENDING and job.attempts:
        return _FAILING
    return _WAITING


def _example(each: Watched) -> str:
    said = f"{each.live.action} of task {each.task.pk}, since {each.live.at:%Y-%m-%d %H:%M %Z}"
    if each.job is None:
        return said
    what = f"job {each.job.pk}"
    if each.job.last_error:
        what += f": {first_line(each.job.last_error)}"
    return f"{said} ({what})"
