"""The names of the queue's log events.

They are public: operators search and alert on them, so they stay as written. Each is the
message of one log record, with its facts in ``extra``; ``docs/operations.md`` lists them.
"""

from __future__ import annotations

from enum import StrEnum


class LogEvent(StrEnum):
    """One member for each thing that can happen to a job, a runner or the process."""

    COMPLETED = "job.completed"
    FAIL_RETRY = "job.fail_retry"
    DEAD = "job.dead"
    CANCELLED = "job.cancelled"
    SNOOZED = "job.snoozed"
    RELEASED = "job.released"
    LEASE_LOST = "job.lease_lost"
    LEASE_EXPIRED = "job.lease_expired"
    FINISH_FAILED = "job.finish_failed"
    AFTER_COMMIT_FAILED = "job.after_commit_failed"
    TIMEOUT = "job.timeout"
    PURGE_FAILED = "job.purge_failed"
    BACKOFF_FAILED = "job.backoff_failed"
    DEAD_RECEIVER_FAILED = "job.dead_receiver_failed"
    OPERATOR_ACTION = "job.operator_action"

    RUNNER_COMPLETED = "runner.completed"
    RUNNER_FAILED = "runner.failed"
    RUNNER_RETAKEN = "runner.retaken"

    WORKER_LOST = "jobs.worker_lost"
    JOURNAL_FAILED = "jobs.journal.failed"

    MODULE_STARTED = "jobs.module.started"
    MODULE_STOPPING = "jobs.module.stopping"
    MODULE_STOPPED = "jobs.module.stopped"
    MODULE_DISABLED = "jobs.module.disabled"
    MODULE_RECYCLING = "jobs.module.recycling"
    MODULE_THREADS_LOST = "jobs.module.threads_lost"
    MODULE_SHUTDOWN_TIMEOUT = "jobs.module.shutdown_timeout"
    MODULE_PART_FAILED = "jobs.module.part_failed"
    MODULE_STALLED = "jobs.module.stalled"
    MODULE_RESUMED = "jobs.module.resumed"
    MODULE_LAST_WRITE_FAILED = "jobs.module.last_write_failed"

    DATABASE_UNAVAILABLE = "jobs.database.unavailable"
    DATABASE_RECOVERED = "jobs.database.recovered"
    LISTENER_CONNECTED = "jobs.listener.connected"
    LISTENER_LOST = "jobs.listener.lost"
    LISTENER_POLLING = "jobs.listener.polling"
    NOTIFY_FAILED = "jobs.notify.failed"
