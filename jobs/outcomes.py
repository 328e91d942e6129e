"""How an execution can end, as plain values: what the executor decides and ``leases.finish`` writes."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace

from jobs.models import Status
from jobs.redaction import storable as storable
from jobs.redaction import words
from jobs.tracebacks import formatted
from jobs.wording import named

ERROR_LIMIT = 4_000
TRACEBACK_LIMIT = 32_000
"""Characters kept of an error and of a traceback: the head and the tail."""

LONGEST_DELAY = dt.timedelta(days=3650)
"""No delay is longer: a time far enough ahead could be stored and not be read again."""

_NOW = dt.timedelta(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What becomes of a job after an execution.

    ``status`` is ``completed``, ``dead``, ``cancelled`` or ``pending``, the last after ``delay``. A completed job's row
    stays where ``keep`` is true. ``refund`` gives the attempt back. ``error`` None means that the execution did not fail; otherwise it becomes ``last_error`` and an
    attempt's row. ``tried`` means that it may have been written already, by a statement whose answer was lost.
    """

    status: str
    delay: dt.timedelta = _NOW
    refund: bool = False
    error: str | None = None
    traceback: str | None = None
    keep: bool = True
    tried: bool = field(default=False, compare=False)


COMPLETED = Outcome(status=Status.COMPLETED)
COMPLETED_AND_DELETED = Outcome(status=Status.COMPLETED, keep=False)
NOT_BEGUN = Outcome(status=Status.PENDING, refund=True)
"""Leased and given back before its handler was called."""


def dead(error: str, traceback: str | None = None) -> Outcome:
    """Never again, unless an operator retries it."""
    return Outcome(status=Status.DEAD, error=error, traceback=traceback)


def retry(delay: dt.timedelta, *, error: str, traceback: str | None = None) -> Outcome:
    """Again after ``delay``; the attempt is spent."""
    return Outcome(
        status=Status.PENDING,
        delay=_bounded(delay),
        error=error,
        traceback=traceback,
    )


def cancelled(error: str, traceback: str | None = None) -> Outcome:
    """Not wanted any more, as its handler says; nobody is told of a death."""
    return Outcome(status=Status.CANCELLED, error=error, traceback=traceback)


def tried(outcome: Outcome) -> Outcome:
    """The same, after a first try to write it, or the job's completion, of which nobody knows how it ended."""
    return replace(outcome, tried=True)


def snooze(delay: dt.timedelta) -> Outcome:
    """Again after ``delay``; the attempt is given back."""
    return Outcome(status=Status.PENDING, delay=_bounded(delay), refund=True)


def interrupted(error: str) -> Outcome:
    """Cut off by a shutdown: due at once, the attempt given back, since a deploy is not the job's failure."""
    return Outcome(status=Status.PENDING, refund=True, error=error)


def _bounded(delay: dt.timedelta) -> dt.timedelta:
    """Not below zero, not above ``LONGEST_DELAY``, and of no class of its own, which a driver may not know."""
    plain = dt.timedelta(delay.days, delay.seconds, delay.microseconds)
    return min(max(plain, _NOW), LONGEST_DELAY)


def describe(error: BaseException) -> str:
    """``Type: message`` in a form that can be stored: capped, redacted, without NUL or lone surrogates."""
    name, message = named(type(error)), words(error)
    return storable(f"{name}: {message}" if message else name, ERROR_LIMIT)


def describe_traceback(error: BaseException) -> str:
    """The traceback in a form that can be stored; see :func:`describe`."""
    return storable(formatted(error), TRACEBACK_LIMIT)
