"""Writes what a run would have left: jobs through their lives, as plain SQL, with what their handlers note."""

from __future__ import annotations

import uuid

import psycopg

from acw.torture.job_types import QUICK

WORKER = "torture:{pid}:0123abcd"


class History:
    """Each method is one step in the life of a job; the trigger notes it."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self._batch = 0

    def produced(
        self,
        fate: str = "committed",
        *,
        kind: str = QUICK,
        key: str | None = None,
        batch: int = 0,
    ) -> str:
        """What the producer notes of a job; its ``ref_id``."""
        self._batch += 1
        ref_id = f"{self._batch}.0"
        self.connection.execute(
            "INSERT INTO torture_produced (ref_id, batch, type, unique_key, fate) VALUES (%s, %s, %s, %s, %s)",
            [ref_id, batch or self._batch, kind, key, fate],
        )
        return ref_id

    def enqueued(
        self,
        ref_id: str,
        *,
        kind: str = QUICK,
        key: str | None = None,
        max_attempts: int = 5,
        payload: str = "{}",
    ) -> uuid.UUID:
        job_id = uuid.uuid4()
        self.connection.execute(
            "INSERT INTO jobs (id, type, ref_id, unique_key, max_attempts, payload) VALUES (%s, %s, %s, %s, %s, %s)",
            [job_id, kind, ref_id, key, max_attempts, payload],
        )
        return job_id

    def job(self, *, kind: str = QUICK, payload: str = "{}") -> uuid.UUID:
        """One that was committed."""
        ref_id = self.produced(kind=kind)
        return self.enqueued(ref_id, kind=kind, payload=payload)

    def claimed(self, job_id: uuid.UUID, *, pid: int = 1, lease: str = "1 hour") -> int:
        """The number of the lease."""
        row = self.connection.execute(
            "UPDATE jobs SET status = 'running', attempts = attempts + 1, lease_seq = lease_seq + 1, leased_by = %s,"
            " lease_until = clock_timestamp() + %s::interval, started_at = now() WHERE id = %s RETURNING lease_seq",
            [WORKER.format(pid=pid), lease, job_id],
        ).fetchone()
        assert row is not None
        return int(row[0])

    def executed(
        self, job_id: uuid.UUID, *, pid: int = 1, ending: str | None = "completed"
    ) -> None:
        """By the lease that the row shows; ``ending`` None is one that was cut off."""
        self.connection.execute(
            "INSERT INTO torture_executions (id, job_id, ref_id, type, lease_seq, attempt, pid, ending)"
            " SELECT gen_random_uuid(), id, ref_id, type, lease_seq, attempts, %s, %s FROM jobs WHERE id = %s",
            [pid, ending, job_id],
        )
        self.connection.execute(
            "UPDATE torture_executions SET ended_at = clock_timestamp() WHERE ending IS NOT NULL AND ended_at IS NULL"
        )

    def completed(self, job_id: uuid.UUID) -> None:
        self._finished(job_id, "completed")

    def dead(self, job_id: uuid.UUID) -> None:
        self._finished(job_id, "dead")

    def deleted(self, job_id: uuid.UUID) -> None:
        self.connection.execute("DELETE FROM jobs WHERE id = %s", [job_id])

    def returned(
        self, job_id: uuid.UUID, *, error: str | None = None, refund: int = 0
    ) -> None:
        """To ``pending``; with an error as a failed attempt."""
        with self.connection.transaction():
            self.connection.execute(
                "UPDATE jobs SET status = 'pending', attempts = attempts - %s, leased_by = NULL, lease_until = NULL"
                " WHERE id = %s",
                [refund, job_id],
            )
            if error is not None:
                self.connection.execute(
                    "INSERT INTO job_attempts (job_id, number, error) SELECT id, attempts, %s FROM jobs WHERE id = %s",
                    [error, job_id],
                )

    def ran(self, job_id: uuid.UUID, *, pid: int = 1) -> uuid.UUID:
        """Claimed, executed and completed."""
        self.claimed(job_id, pid=pid)
        self.executed(job_id, pid=pid)
        self.completed(job_id)
        return job_id

    def process(self, pid: int, *, status: int, expected: bool = True) -> None:
        self.connection.execute(
            "INSERT INTO torture_processes VALUES (%s, now(), now(), %s, %s, 'log')",
            [pid, status, expected],
        )

    def effect(self, job_id: uuid.UUID, amount: int) -> None:
        self.connection.execute(
            "INSERT INTO torture_effects VALUES (%s, 1, %s)", [job_id, amount]
        )

    def tick(self, slot: str) -> None:
        self.connection.execute(
            "INSERT INTO torture_ticks (id, slot, pid) VALUES (gen_random_uuid(), %s, 1)",
            [slot],
        )

    def tick_ended(self, slot: str) -> None:
        self.connection.execute(
            "INSERT INTO torture_tick_ends (runner, slot, worker) VALUES ('torture_tick', %s, 'w')",
            [slot],
        )

    def _finished(self, job_id: uuid.UUID, status: str) -> None:
        self.connection.execute(
            "UPDATE jobs SET status = %s, completed_at = clock_timestamp(), leased_by = NULL, lease_until = NULL"
            " WHERE id = %s",
            [status, job_id],
        )
