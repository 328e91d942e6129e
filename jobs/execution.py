"""One execution of one leased job."""

from __future__ import annotations

from jobs import registry
from jobs.context import JobContext
from jobs.executor import execute
from jobs.handler_connections import HandlerConnections
from jobs.leases import LeasedJob
from jobs.outcomes import Outcome


class Execution:
    """One job being executed, with the context that its handler sees."""

    __slots__ = ("context", "job", "overdue_at")

    def __init__(self, job: LeasedJob) -> None:
        job_type = registry.find_job_type(job.type)
        self.job = job
        self.overdue_at: float | None = None
        self.context = JobContext(
            job_id=job.id,
            type=job.type,
            ref_id=job.ref_id,
            queue=job.queue,
            attempt=job.attempts,
            max_attempts=job.max_attempts,
            lease_seq=job.lease_seq,
            enqueued_at=job.created_at,
            timeout=job_type.timeout if job_type else None,
        )

    def run(self, connections: HandlerConnections) -> Outcome | None:
        """See :func:`jobs.executor.execute`."""
        return execute(self.job, self.context, connections)
