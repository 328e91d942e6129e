"""How an execution can end, as plain values: what the executor decides and ``leases.finish`` writes."""

from __future__ import annotations

import datetime as dt
import traceback as traceback_module
from dataclasses import dataclass

from jobs.models import Status
from jobs.redaction import redact

ERROR_LIMIT = 4_000
TRACEBACK_LIMIT = 32_000
"""Characters kept of an error and of a traceback: the head and the tail."""

LONGEST_DELAY = dt.timedelta(days=3650)
"""No delay is longer: a time far enough ahead could be stored and not be read again."""

_NOW = dt.timedelta(0)
_MARGIN = 4_000
"""Characters beside a cut that are looked at for credentials which it would part."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What becomes of a job after an execution.

    ``status`` is ``completed``, ``dead`` or ``pending``, the last after ``delay``. A completed job's row
    stays where ``keep`` is true. ``refund`` gives the attempt back. ``error`` None means that the execution did not fail; otherwise it becomes ``last_error`` and an
    attempt's row.
    """

    status: str
    delay: dt.timedelta = _NOW
    refund: bool = False
    error: str | None = None
    traceback: str | None = None
    keep: bool = True


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
        delay=min(delay, LONGEST_DELAY),
        error=error,
        traceback=traceback,
    )


def snooze(delay: dt.timedelta) -> Outcome:
    """Again after ``delay``; the attempt is given back."""
    return Outcome(status=Status.PENDING, delay=min(delay, LONGEST_DELAY), refund=True)


def interrupted(error: str) -> Outcome:
    """Cut off by a shutdown: due at once, the attempt given back, since a deploy is not the job's failure."""
    return Outcome(status=Status.PENDING, refund=True, error=error)


def describe(error: BaseException) -> str:
    """``Type: message`` in a form that can be stored: capped, redacted, without NUL or lone surrogates."""
    try:
        message = str(error)
    except (
        Exception
    ) as broken:  # an exception's own __str__ may fail; the job must end all the same
        message = f"(its message could not be made: {type(broken).__name__})"
    name = type(error).__name__
    return storable(f"{name}: {message}" if message else name, ERROR_LIMIT)


def describe_traceback(error: BaseException) -> str:
    """The traceback in a form that can be stored; see :func:`describe`."""
    try:
        lines = traceback_module.format_exception(error)
    except Exception as broken:  # as above
        return f"(the traceback could not be made: {type(broken).__name__})"
    return storable("".join(lines), TRACEBACK_LIMIT)


def storable(text: str, limit: int) -> str:
    """``text`` as PostgreSQL can store it: redacted, at most about ``limit`` characters, head and tail kept."""
    if len(text) <= limit:
        return redact(_clean(text))
    half = limit // 2
    left_out = len(text) - 2 * half
    head = redact(_clean(text[: half + _MARGIN]))[:half]
    tail = redact(_clean(text[-half - _MARGIN :]))[-half:]
    return f"{head}\n… {left_out:,} characters left out …\n{tail}"


def _clean(text: str) -> str:
    text = text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return text.encode(errors="backslashreplace").decode()
