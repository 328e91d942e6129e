"""How the queue is doing, as figures: for the doctor, the commands, the console and the metrics alike."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Count, F, Func, Max, Min, Q, TextField, Value
from django.db.models.functions import Left, Now

from jobs import claims, registry
from jobs.connection import TransactionConnection
from jobs.display import LINE_LIMIT
from jobs.heartbeat import alive_within
from jobs.models import Job, Priority, RunnerState, Status, WorkerProcess
from jobs.registry import Runner

DEAD_LOOKED_AT = 10_000
"""The newest dead jobs, which are grouped by their errors; with more of them the older ones count no further."""

# The first job of each queue and level stands first in the index by which jobs are claimed.
_OLDEST_DUE = """
SELECT statement_timestamp() - min(first.run_at)
FROM unnest(%s::text[]) AS wanted (queue)
CROSS JOIN unnest(%s::smallint[]) AS level (priority)
CROSS JOIN LATERAL (
    SELECT run_at FROM jobs
    WHERE status = 'pending' AND jobs.queue = wanted.queue AND jobs.priority = level.priority
    ORDER BY run_at, id LIMIT 1
) AS first
WHERE first.run_at <= statement_timestamp()
"""


def lag() -> dt.timedelta | None:
    """For how long the oldest due job has been due; None where nothing is due."""
    queues = claims.pending_queues(TransactionConnection())
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_OLDEST_DUE, [list(queues), Priority.values])
        age: dt.timedelta | None = cursor.fetchone()[0]
    return age


def count_by_status() -> dict[str, int]:
    """How many jobs are in each status, those with none too. Reads every index entry, no row."""
    live = {
        Status.PENDING: Job.objects.pending().count(),
        Status.RUNNING: Job.objects.running().count(),
    }
    finished = Job.objects.filter(completed_at__isnull=False).count_by_status()
    counts = {status.value: 0 for status in Status}
    return counts | {status.value: n for status, n in live.items()} | finished


@dataclass(kw_only=True, slots=True)
class QueueLoad:
    """The live jobs of one queue; ``lag`` is for how long its oldest due job has been due."""

    queue: str
    pending: int = 0
    due: int = 0
    running: int = 0
    lag: dt.timedelta | None = None


def load_by_queue() -> list[QueueLoad]:
    """The queues that have live jobs, by name."""
    due = Q(run_at__lte=Now())
    pending = (
        Job.objects.pending()
        .order_by()
        .values("queue")
        .annotate(
            pending=Count("*"),
            due=Count("pk", filter=due),
            lag=Now() - Min("run_at", filter=due),
        )
    )
    loads = {row["queue"]: QueueLoad(**row) for row in pending}
    running = Job.objects.running().order_by().values("queue").annotate(n=Count("*"))
    for row in running:
        loads.setdefault(row["queue"], QueueLoad(queue=row["queue"])).running = row["n"]
    return [loads[name] for name in sorted(loads)]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadGroup:
    """Dead jobs of one type whose errors begin with the same line."""

    type: str
    error: str
    count: int
    newest: dt.datetime


def dead_groups(
    *, within: dt.timedelta | None = None, most: int = 20
) -> list[DeadGroup]:
    """The largest groups among the newest dead jobs, those that died ``within`` that time only.

    Looks at ``DEAD_LOOKED_AT`` jobs at most.
    """
    dead = Job.objects.dead()
    if within is not None:
        dead = dead.filter(completed_at__gte=Now() - within)
    newest = dead.order_by("-completed_at").values("pk")[:DEAD_LOOKED_AT]
    line = Func(
        F("last_error"),
        Value("\n"),
        Value(1),
        function="split_part",
        output_field=TextField(),
    )
    groups = (
        Job.objects.filter(pk__in=newest)
        .order_by()
        .values("type", error=Left(line, LINE_LIMIT))
        .annotate(count=Count("*"), newest=Max("completed_at"))
        .order_by("-count", "-newest")[:most]
    )
    return [DeadGroup(**group) for group in groups]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerStatus:
    """A worker process as its row describes it; ``age`` is that of its last heartbeat."""

    name: str
    host: str
    pid: int
    threads: int
    queues: list[str]
    types: list[str]
    stopping: bool
    stalled: list[str]
    started_at: dt.datetime
    age: dt.timedelta

    @property
    def alive(self) -> bool:
        return self.age <= alive_within()

    @property
    def state(self) -> str:
        """``alive``, ``stalled``, ``stopping`` or ``lost``."""
        if not self.alive:
            return "lost"
        if self.stalled:
            return "stalled"
        return "stopping" if self.stopping else "alive"


def workers() -> list[WorkerStatus]:
    """Every worker that has not signed off, by name."""
    columns = [f.name for f in fields(WorkerStatus) if f.name != "age"]
    rows = WorkerProcess.objects.values(*columns, age=Now() - F("beat_at"))
    return [WorkerStatus(**row) for row in rows]


def stalled_parts(*, host: str) -> list[str]:
    """What makes no progress in the live workers of this host, a sentence for each of them."""
    rows = WorkerProcess.objects.stalled(alive_within()).filter(host=host)
    return [
        f"worker {name}: no progress in {', '.join(parts)}"
        for name, parts in rows.values_list("name", "stalled")
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunnerStatus:
    """A runner: as this code knows it (``enabled``, ``interval``) and as the database does.

    ``late`` is by how much its next tick is overdue, None where it is not due yet. ``overdue``: by more than
    an interval, so that a whole tick has been missed. Without a row in the database, which the first
    worker makes, all that it remembers is None or empty.
    """

    name: str
    enabled: bool
    interval: dt.timedelta
    next_run_at: dt.datetime | None = None
    late: dt.timedelta | None = None
    last_started_at: dt.datetime | None = None
    last_finished_at: dt.datetime | None = None
    last_outcome: str = RunnerState.Outcome.NEVER
    last_worker: str = ""
    last_summary: dict[str, Any] = field(default_factory=dict)
    last_error: str = ""

    @property
    def overdue(self) -> bool:
        return self.enabled and self.late is not None and self.late > self.interval

    @property
    def took(self) -> dt.timedelta | None:
        """How long the last tick ran; None while one runs, or after one that was cut off."""
        started, finished = self.last_started_at, self.last_finished_at
        if started is None or finished is None or finished < started:
            return None
        return finished - started

    @property
    def state(self) -> str:
        """``on schedule``, ``overdue``, ``switched off`` or ``not scheduled``."""
        if not self.enabled:
            return "switched off"
        if self.next_run_at is None:
            return "not scheduled"
        return "overdue" if self.overdue else "on schedule"

    @classmethod
    def of(cls, runner: Runner, row: Mapping[str, Any]) -> RunnerStatus:
        """From the runner and what its row says; ``late`` there is the time since ``next_run_at``."""
        remembered = {name: row[name] for name in _REMEMBERED if name in row}
        late = row.get("late")
        return cls(
            **remembered,
            name=runner.name,
            enabled=runner.enabled,
            interval=runner.interval,
            late=late if late is not None and late > dt.timedelta(0) else None,
        )


_REMEMBERED = (
    "next_run_at",
    "last_started_at",
    "last_finished_at",
    "last_outcome",
    "last_worker",
    "last_summary",
    "last_error",
)


def runners() -> list[RunnerStatus]:
    """Every registered runner, by name."""
    late = Now() - F("next_run_at")
    rows = RunnerState.objects.values("name", *_REMEMBERED, late=late)
    by_name = {row["name"]: row for row in rows}
    return [
        RunnerStatus.of(runner, by_name.get(name, {}))
        for name, runner in sorted(registry.runners().items())
    ]


def unserved_types(known: Sequence[str]) -> list[tuple[str, int, dt.timedelta]]:
    """The types of due jobs that are not among ``known``: name, how many, for how long due."""
    return _due_outside("type", known)


def unserved_queues(known: Sequence[str]) -> list[tuple[str, int, dt.timedelta]]:
    """The queues with due jobs that are not among ``known``: name, how many, for how long due."""
    return _due_outside("queue", known)


def _due_outside(
    column: str, known: Sequence[str]
) -> list[tuple[str, int, dt.timedelta]]:
    groups = (
        Job.objects.due()
        .exclude(**{f"{column}__in": known})
        .order_by()
        .values_list(column)
        .annotate(n=Count("*"), age=Now() - Min("run_at"))
        .order_by("-n", column)
    )
    return list(groups)
