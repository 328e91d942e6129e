"""The ledger of ``test.record``: what was executed under which lease, and what of that no expired lease explains."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.acceptance.product import Product

RECORDING = {
    "DJANGO_SETTINGS_MODULE": "tests.acceptance.faulted.settings",
    "JOBS_POLL_INTERVAL": "100ms",
    "JOBS_JOB_REAPER_INTERVAL": "200ms",
    "JOBS_JOB_REAPER_LEASE_TIMEOUT": "2s",
    "JOBS_BACKOFF_BASE": "10ms",
}
"""Settings of a product whose jobs keep a ledger, and whose leases run out soon."""


class Entry(NamedTuple):
    """One line: ``what`` is ``begun`` or ``ended``."""

    job_id: str
    lease_seq: int
    attempt: int
    pid: int
    what: str


class Ledger:
    """A file that every execution appends to, whatever becomes of the database."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def entries(self, what: str | None = None) -> list[Entry]:
        found = []
        for line in self.path.read_text().splitlines():
            job_id, lease_seq, attempt, pid, happened = line.split()
            if what in {None, happened}:
                found.append(
                    Entry(job_id, int(lease_seq), int(attempt), int(pid), happened)
                )
        return found

    def pids(self, job_id: str) -> list[int]:
        """The processes that have begun the job, in order."""
        return [e.pid for e in self.entries("begun") if e.job_id == job_id]

    def enqueue(self, product: Product, *jobs: dict[str, Any]) -> list[str]:
        """Enqueue jobs with these payloads, in one transaction; return their ids.

        They are of the type ``test.record``, where none stands with the payload, as ``type``.
        """
        payloads = [
            {"type": "test.record", "ledger": str(self.path), **job} for job in jobs
        ]
        # By a file: some thousands are more than a command line takes.
        script = self.path.with_suffix(".json")
        script.write_text(json.dumps(payloads))
        code = (
            "import json, pathlib; from jobs.enqueue import NewJob, enqueue_many\n"
            f"payloads = json.loads(pathlib.Path({str(script)!r}).read_text())\n"
            "ids = enqueue_many([NewJob(type=each.pop('type'), payload=each) for each in payloads])\n"
            "print(*ids, sep='\\n')"
        )
        return product.manage("shell", "--no-imports", "-c", code).split()

    def await_completed(self, product: Product, ids: Iterable[str]) -> None:
        """Wait until all of these jobs are completed."""
        product.await_sql(
            "SELECT WHERE NOT EXISTS (SELECT FROM unnest(%s::uuid[]) AS mine (id) "
            "LEFT JOIN jobs ON jobs.id = mine.id WHERE status IS DISTINCT FROM 'completed')",
            list(ids),
        )

    def unexplained(self, product: Product) -> list[str]:
        """What must not be, as sentences: the ledger against ``jobs`` and ``job_attempts``."""
        under = Counter((e.job_id, e.lease_seq) for e in self.entries("begun"))
        ended = Counter((e.job_id, e.lease_seq) for e in self.entries("ended"))
        leases = defaultdict(set)
        for job_id, lease_seq in under:
            leases[job_id].add(lease_seq)
        complaints = [
            f"{job_id} was executed {times} times under lease {lease_seq}"
            for (job_id, lease_seq), times in (under | ended).items()
            if times > 1
        ]
        for job_id, status, failed in product.sql(
            "SELECT jobs.id::text, status, (SELECT count(*) FROM job_attempts WHERE job_id = jobs.id) "
            "FROM jobs WHERE type IN ('test.record', 'test.brief')"
        ):
            executed = len(leases.pop(job_id, ()))
            if executed > failed + 1:
                complaints.append(
                    f"{job_id} was executed {executed} times, {failed} explained"
                )
            if (
                status == "completed"
                and max((seq for done, seq in ended if done == job_id), default=0) == 0
            ):
                complaints.append(f"{job_id} is completed and never ended")
        complaints.extend(f"{job_id} was executed and is no job" for job_id in leases)
        return complaints
