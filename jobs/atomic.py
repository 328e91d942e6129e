"""Handlers with ``atomic=True``: what they write and their job's completion commit together, or neither does.

That is why such a handler's effects on the queue's own database happen exactly once: the completion names the lease, and where that has
passed on the transaction is rolled back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from psycopg.pq import TransactionStatus

from jobs import calling, leases
from jobs.connection import TransactionConnection
from jobs.context import JobContext
from jobs.events import LogEvent
from jobs.exceptions import LeaseLost, TransactionMisused
from jobs.handler_connections import watch
from jobs.leases import LeasedJob
from jobs.registry import JobType

log = logging.getLogger(__name__)


def run(job: LeasedJob, job_type: JobType, context: JobContext, value: object) -> None:
    """Call the handler and complete its job, in one transaction on the default connection.

    Raises what the handler and the commit raise, :class:`LeaseLost` where the lease has passed on, and
    :class:`TransactionMisused` where the handler did not leave the transaction to this function; nothing is
    written then, unless it was the commit's answer that got lost. What is raised after the commit is logged.
    """
    hooks = _Hooks(job)
    try:
        with transaction.atomic():
            enclosing = _Enclosing()
            hooks.begin()
            calling.call(job_type, context, value)
            enclosing.check()
            # From here on what the heartbeat sees of the lease is this transaction's doing.
            context.settling = True
            _complete(job, job_type)
            hooks.take_over()
    except BaseException as error:
        context.settling = False
        if not hooks.committed:
            raise
        report_after_commit(job, error)
    log.debug(LogEvent.COMPLETED, extra=_facts(job))


def report_after_commit(job: LeasedJob, error: BaseException) -> None:
    """Log what went wrong when the job was already completed, which it remains."""
    log.error(LogEvent.AFTER_COMMIT_FAILED, extra=_facts(job), exc_info=error)


def _complete(job: LeasedJob, job_type: JobType) -> None:
    kept, gone = ([job], []) if job_type.keep_completed else ([], [job])
    if leases.complete(TransactionConnection(), leases.completion(kept, gone)):
        log.warning(
            LogEvent.LEASE_LOST, extra={**_facts(job), "lease_seq": job.lease_seq}
        )
        raise LeaseLost(f"job {job.id}: lease {job.lease_seq} has passed on")


def _facts(job: LeasedJob) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "type": job.type,
        "ref_id": job.ref_id,
        "attempt": job.attempts,
    }


class _Enclosing:
    """The transaction just begun around a handler."""

    def __init__(self) -> None:
        self._wrapper = connections[DEFAULT_DB_ALIAS]
        self._raw = self._wrapper.connection
        self._block = self._wrapper.atomic_blocks[-1]
        self._watch = watch(self._raw)
        self._watch.used = False

    def check(self) -> None:
        """Raise :class:`TransactionMisused` unless it is still the innermost one, and open."""
        wrapper = connections[DEFAULT_DB_ALIAS]
        if wrapper is not self._wrapper or wrapper.connection is not self._raw:
            raise _misused("replaced its connection")
        if wrapper.closed_in_transaction:
            raise _misused("closed its connection")
        if self._block not in wrapper.atomic_blocks:
            raise _misused("left its transaction")
        if wrapper.atomic_blocks[-1] is not self._block:
            raise _misused("left a transaction.atomic() of its own open")
        # The driver begins a transaction with the first statement.
        status = self._raw.info.transaction_status
        if self._watch.used and status == TransactionStatus.IDLE:
            raise _misused("committed or rolled back by hand")


def _misused(what: str) -> TransactionMisused:
    return TransactionMisused(
        f"the handler {what}: with atomic=True its transaction is the queue's to end, together with the job"
    )


class _Hooks:
    """The on_commit hooks of a handler's transaction: none of them may undo what was committed, nor keep the others from running."""

    def __init__(self, job: LeasedJob) -> None:
        self.committed = False
        self._job = job
        self._before = 0

    def begin(self) -> None:
        """Called as the transaction begins: the hooks there are belong to one around it."""
        self._before = len(connections[DEFAULT_DB_ALIAS].run_on_commit)

    def take_over(self) -> None:
        """Called when no more hooks can come."""
        wrapper = connections[DEFAULT_DB_ALIAS]
        hooks: list[Any] = wrapper.run_on_commit
        hooks[self._before :] = [
            (set(wrapper.savepoint_ids), self._commit, False),
            *(
                (savepoints, self._guarded(hook), False)
                for savepoints, hook, _ in hooks[self._before :]
            ),
        ]

    def _commit(self) -> None:
        self.committed = True

    def _guarded(self, hook: Callable[[], object]) -> Callable[[], None]:
        def guarded() -> None:
            try:
                hook()
            # Also SystemExit: the job is done, and no hook ends the worker.
            except BaseException as error:
                report_after_commit(self._job, error)

        return guarded
