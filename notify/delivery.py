"""From what an exchange came to, to what becomes of the delivery: a table. Pure.

The contract's: 2xx is done. 4xx is refused for good, but 408, 425 and 429 ask for another try. 5xx and failures
on the way are tried again. No redirect is followed: 301 and 308 say that the address has moved for good; any other
3xx may pass.

Beside the verdict, which is about one event, stands what the answer says about the endpoint as a whole.
"""

from __future__ import annotations

import datetime as dt
import email.utils
import http
import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from notify.exchange import Exchange, Failure

LONGEST_RETRY_AFTER = dt.timedelta(hours=1)
ASK_AGAIN = frozenset({408, 425, 429})
"""The contract's statuses of 4xx that ask for another try; ``NOTIFY_WEBHOOK_RETRY_STATUSES`` may name others."""

UNAUTHORISED = frozenset({401, 403})
"""The answers of who does not accept our signature, or us."""

SKEW = dt.timedelta(seconds=240)
"""How far a receiver's clock may be off: at 300 s it refuses what was signed just now."""

_MOVED = frozenset({301, 308})
_GONE = 410
# What receivers answer to a timestamp that they take for old.
_OF_BAD_TIMES = frozenset({400, 401, 403})
_PERMANENT_FAILURES = frozenset({Failure.INVALID, Failure.BLOCKED})
# Not str.isdigit, which takes the digits of every script.
_SECONDS = re.compile(r"[0-9]{1,20}")


class Verdict(StrEnum):
    """What becomes of a delivery after an attempt."""

    COMPLETED = "completed"
    RETRY = "retry"
    PERMANENT = "permanent"


class Signal(StrEnum):
    """What an answer says about the endpoint, whatever the event."""

    GONE = "gone"
    """It is no more, and wants no further event (410)."""

    REFUSED = "refused"
    """It does not accept our signature, or us (401, 403), for good."""

    SKEWED = "skewed"
    """It refuses, and by its own ``Date`` its clock and ours are minutes apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """A verdict, its ``cause`` in words that can be shown (empty when completed), and how long to wait at least."""

    verdict: Verdict
    cause: str = ""
    retry_after: dt.timedelta | None = None
    signal: Signal | None = None


def judge(
    exchange: Exchange, *, now: dt.datetime, ask_again: Collection[int] = ASK_AGAIN
) -> Judgement:
    """What becomes of the delivery. ``now`` (aware) is this host's clock at the answer; it is what was signed.

    ``ask_again`` are the statuses of 4xx that are tried again.
    """
    if exchange.status is None:
        permanent = exchange.failure in _PERMANENT_FAILURES
        return Judgement(
            verdict=Verdict.PERMANENT if permanent else Verdict.RETRY,
            cause=exchange.cause,
        )
    verdict = verdict_of(exchange.status, ask_again=ask_again)
    if verdict is Verdict.COMPLETED:
        return Judgement(verdict=verdict)
    date = _date(exchange.date)
    ahead = dt.timedelta(0) if date is None else date - now
    signal = _signal(exchange.status, verdict, ahead)
    cause = _cause(exchange.status, exchange.redirect)
    if signal is Signal.SKEWED:
        cause += f"; {_off(ahead)}"
    wait = None
    if verdict is Verdict.RETRY:
        # A date that it names is by its own clock.
        wait = retry_after(exchange.retry_after, now=date or now)
    return Judgement(verdict=verdict, cause=cause, retry_after=wait, signal=signal)


def verdict_of(status: int, *, ask_again: Collection[int] = ASK_AGAIN) -> Verdict:
    """The verdict on a status that ends an exchange, also on one that no standard knows."""
    if 200 <= status <= 299:
        return Verdict.COMPLETED
    if status in _MOVED or status == _GONE:
        return Verdict.PERMANENT
    if 400 <= status <= 499 and status not in ask_again:
        return Verdict.PERMANENT
    return Verdict.RETRY


def retry_after(value: str | None, *, now: dt.datetime) -> dt.timedelta | None:
    """How long a ``Retry-After`` header (RFC 9110 §10.2.3: seconds or a date) asks to wait, at most an hour.

    A date in the past is zero; None for what is neither.
    """
    if value is None:
        return None
    value = value.strip()
    if _SECONDS.fullmatch(value):
        seconds = min(int(value), int(LONGEST_RETRY_AFTER.total_seconds()))
        return dt.timedelta(seconds=seconds)
    asked = _date(value)
    if asked is None:
        return None
    return min(max(asked - now, dt.timedelta(0)), LONGEST_RETRY_AFTER)


def _date(value: str | None) -> dt.datetime | None:
    """An HTTP date; None for what is none."""
    try:
        date = email.utils.parsedate_to_datetime(value or "")
        # Without a zone, or with one of "-0000", it is UTC; in UTC two of them can be subtracted.
        return date.replace(tzinfo=date.tzinfo or dt.UTC).astimezone(dt.UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def _signal(status: int, verdict: Verdict, ahead: dt.timedelta) -> Signal | None:
    if status == _GONE:
        return Signal.GONE
    if status in _OF_BAD_TIMES and abs(ahead) > SKEW:
        return Signal.SKEWED
    # One that is tried again is no refusal, as of a proxy that limits its callers by 403.
    refused = status in UNAUTHORISED and verdict is Verdict.PERMANENT
    return Signal.REFUSED if refused else None


def _off(ahead: dt.timedelta) -> str:
    seconds = round(ahead.total_seconds())
    direction = "ahead of" if seconds > 0 else "behind"
    return f"its clock is {abs(seconds):,} s {direction} ours"


def _cause(status: int, redirect: str | None) -> str:
    if status in _MOVED:
        return f"HTTP {status}: moved to {redirect or 'an address that it does not name'}; redirects are not followed"
    if 300 <= status <= 399 and redirect:
        return f"HTTP {status}: redirects to {redirect}; redirects are not followed"
    try:
        return f"HTTP {status} {http.HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"
