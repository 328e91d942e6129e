"""What ``manage.py jobs`` prints about jobs: lists, one job, figures; as tables or as JSON."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast

from jobs import stats
from jobs.display import duration, first_line, payload, payload_text, state
from jobs.models import Attempt, Job
from jobs.querysets import JobQuerySet
from jobs.tables import Writes, print_json, print_table, printable

ATTEMPTS_SHOWN = 50

_LISTED = (
    "id",
    "type",
    "status",
    "attempts",
    "max_attempts",
    "queue",
    "ref_id",
    "run_at",
    "cancel_requested_at",
    "last_error",
)
_SHOWN = (
    "id",
    "type",
    "ref_id",
    "status",
    "queue",
    "priority",
    "attempts",
    "max_attempts",
    "unique_key",
    "created_at",
    "run_at",
    "started_at",
    "completed_at",
    "updated_at",
    "leased_by",
    "lease_until",
    "lease_seq",
    "cancel_requested_at",
    "last_error",
)
_ATTEMPT = ("number", "started_at", "finished_at", "worker", "error", "traceback")


def print_jobs(stdout: Writes, jobs: JobQuerySet, *, as_json: bool) -> None:
    """The jobs, one line each; their payloads are not read."""
    rows = list(jobs.values(*_LISTED))
    if as_json:
        print_json(stdout, rows)
        return
    headers = (
        "ID",
        "TYPE",
        "STATUS",
        "ATTEMPTS",
        "QUEUE",
        "REF ID",
        "RUN AT",
        "LAST ERROR",
    )
    table = [
        (
            row["id"],
            row["type"],
            state(row["status"], row["cancel_requested_at"]),
            f"{row['attempts']}/{row['max_attempts']}",
            row["queue"],
            row["ref_id"],
            row["run_at"],
            first_line(row["last_error"]),
        )
        for row in rows
    ]
    print_table(stdout, headers, table, empty="no jobs")


def print_job(stdout: Writes, job_id: uuid.UUID, *, as_json: bool) -> bool:
    """All that is known about one job, its newest attempts and its payload; False where there is none."""
    job = (
        Job.objects.filter(pk=job_id)
        # As text: some JSONB cannot be read by Python, and shows all the same.
        .values(*_SHOWN, stored=Cast("payload", TextField()))
        .first()
    )
    if job is None:
        return False
    stored = job.pop("stored")
    newest = Attempt.objects.filter(job=job_id).order_by("-pk").values(*_ATTEMPT)
    attempts = list(reversed(newest[:ATTEMPTS_SHOWN]))
    if as_json:
        print_json(
            stdout, {**job, "payload": payload(stored), "failed_attempts": attempts}
        )
        return True
    print_table(stdout, ("FIELD", "VALUE"), job.items())
    stdout.write("\n")
    table = [
        (
            attempt["number"],
            attempt["started_at"],
            attempt["finished_at"],
            attempt["worker"],
            first_line(attempt["error"]),
        )
        for attempt in attempts
    ]
    headers = ("ATTEMPT", "STARTED", "FINISHED", "WORKER", "ERROR")
    print_table(stdout, headers, table, empty="no failed attempts")
    if attempts and attempts[-1]["traceback"]:
        _print_block(stdout, "Traceback of the last:", attempts[-1]["traceback"])
    _print_block(stdout, "Payload:", payload_text(stored))
    return True


def print_stats(stdout: Writes, *, as_json: bool) -> None:
    """How the queue is doing."""
    lag = stats.lag()
    counts = stats.count_by_status()
    loads = stats.load_by_queue()
    groups = stats.dead_groups()
    workers = stats.workers()
    if as_json:
        report: dict[str, Any] = {
            "lag": lag,
            "jobs": counts,
            "queues": [dataclasses.asdict(load) for load in loads],
            "dead": [dataclasses.asdict(group) for group in groups],
            "workers": [
                {**dataclasses.asdict(worker), "state": worker.state}
                for worker in workers
            ],
        }
        print_json(stdout, report)
        return
    waited = (
        "nothing is due"
        if lag is None
        else f"the oldest due job has waited {duration(lag)}"
    )
    stdout.write(f"Lag: {waited}\n\n")
    print_table(stdout, ("STATUS", "JOBS"), counts.items())
    stdout.write("\n")
    print_table(
        stdout,
        ("QUEUE", "PENDING", "DUE", "RUNNING", "LAG"),
        [
            (load.queue, load.pending, load.due, load.running, duration(load.lag))
            for load in loads
        ],
        empty="no queue has live jobs",
    )
    stdout.write("\n")
    print_table(
        stdout,
        ("DEAD", "TYPE", "NEWEST", "ERROR"),
        [(group.count, group.type, group.newest, group.error) for group in groups],
        empty="no dead jobs",
    )
    stdout.write("\n")
    print_table(
        stdout,
        ("WORKER", "STATE", "THREADS", "HEARTBEAT", "QUEUES"),
        [
            (
                worker.name,
                worker.state,
                worker.threads,
                f"{duration(worker.age)} ago",
                worker.queues,
            )
            for worker in workers
        ],
        empty="no workers",
    )


def _print_block(stdout: Writes, title: str, text: str) -> None:
    stdout.write(f"\n{title}\n")
    for line in text.splitlines():
        stdout.write(f"  {printable(line)}\n")
