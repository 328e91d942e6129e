"""Everything that the queue raises.

JobsError
├── InvalidJob          an argument of ``enqueue`` that cannot be stored
│   └── InvalidPayload  a payload that cannot be stored, or is not what the handler declares
├── UnknownJobType      no handler is registered under that name
├── Permanent           raised by a handler: never try again
├── Snooze              raised by a handler: later, without using up an attempt
├── Cancelled           raised by a handler: the job is not wanted any more
├── TransactionMisused  a handler did not leave transactions as it found them; its job has failed
└── LeaseLost           the lease has passed on; whoever held it may write nothing more
"""

from __future__ import annotations

import datetime as dt


class JobsError(Exception):
    """Base of every error of the queue."""


class InvalidJob(JobsError, ValueError):
    """An argument of ``enqueue`` is refused; the message names it and what is accepted."""


class InvalidPayload(InvalidJob):
    """The payload is refused; the message names the field, e.g. ``payload.items[3]``."""


class UnknownJobType(JobsError, LookupError):
    """No handler is registered under this name in this process."""


class Permanent(JobsError):
    """Raise it in a handler when trying again cannot help: the job goes ``dead`` at once."""


class Snooze(JobsError):
    """Raise it in a handler to run again later without using up an attempt.

    ``delay`` counts from the moment the outcome is written, on the database's clock.
    """

    def __init__(self, delay: dt.timedelta, reason: str = "") -> None:
        given: object = delay
        if not isinstance(given, dt.timedelta):
            raise TypeError(f"Snooze: delay must be a timedelta, got {delay!r}")
        if delay < dt.timedelta(0):
            raise ValueError(f"Snooze: delay must not be negative, got {delay}")
        self.delay = delay
        super().__init__(reason or f"snoozed for {delay}")


class Cancelled(JobsError):
    """Raise it in a handler whose job is not wanted any more: it becomes ``cancelled``, and is not tried again.

    :meth:`jobs.context.JobContext.check_cancelled` raises it where an operator has asked for that.
    """


class TransactionMisused(JobsError):
    """A handler left a transaction open, or ended one that was not its own: what it wrote is not to be relied on."""


class LeaseLost(JobsError):
    """The lease that this execution was given has passed on: stop, and write nothing."""
