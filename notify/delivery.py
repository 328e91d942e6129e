"""From what an exchange came to, to what becomes of the delivery: a table. Pure.

The contract's: 2xx is done. 4xx is refused for good, but 408, 425 and 429 ask for another try. 5xx and failures
on the way are tried again. No redirect is followed: 301 and 308 say that the address has moved for good; any other
3xx may pass.
"""

from __future__ import annotations

import datetime as dt
import email.utils
import http
import re
from dataclasses import dataclass
from enum import StrEnum

from notify.exchange import Exchange, Failure

LONGEST_RETRY_AFTER = dt.timedelta(hours=1)

_MOVED = frozenset({301, 308})
_ASK_AGAIN = frozenset({408, 425, 429})
_PERMANENT_FAILURES = frozenset({Failure.INVALID, Failure.BLOCKED})
# Not str.isdigit, which takes the digits of every script.
_SECONDS = re.compile(r"[0-9]{1,20}")


class Verdict(StrEnum):
    """What becomes of a delivery after an attempt."""

    COMPLETED = "completed"
    RETRY = "retry"
    PERMANENT = "permanent"


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """A verdict, its ``cause`` in words that can be shown (empty when completed), and how long to wait at least."""

    verdict: Verdict
    cause: str = ""
    retry_after: dt.timedelta | None = None


def judge(exchange: Exchange, *, now: dt.datetime) -> Judgement:
    """What becomes of the delivery. ``now`` (aware) is what a date in ``Retry-After`` is counted from."""
    if exchange.status is None:
        permanent = exchange.failure in _PERMANENT_FAILURES
        return Judgement(
            verdict=Verdict.PERMANENT if permanent else Verdict.RETRY,
            cause=exchange.cause,
        )
    verdict = verdict_of(exchange.status)
    if verdict is Verdict.COMPLETED:
        return Judgement(verdict=verdict)
    return Judgement(
        verdict=verdict,
        cause=_cause(exchange.status, exchange.redirect),
        retry_after=retry_after(exchange.retry_after, now=now)
        if verdict is Verdict.RETRY
        else None,
    )


def verdict_of(status: int) -> Verdict:
    """The verdict on a status that ends an exchange, also on one that no standard knows."""
    if 200 <= status <= 299:
        return Verdict.COMPLETED
    if status in _MOVED or (400 <= status <= 499 and status not in _ASK_AGAIN):
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
    try:
        asked = email.utils.parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    if asked.tzinfo is None:
        asked = asked.replace(tzinfo=dt.UTC)
    return min(max(asked - now, dt.timedelta(0)), LONGEST_RETRY_AFTER)


def _cause(status: int, redirect: str | None) -> str:
    if status in _MOVED:
        return f"HTTP {status}: moved to {redirect or 'an address that it does not name'}; redirects are not followed"
    if 300 <= status <= 399 and redirect:
        return f"HTTP {status}: redirects to {redirect}; redirects are not followed"
    try:
        return f"HTTP {status} {http.HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"
