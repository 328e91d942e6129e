"""What an answer to a check-up's request says about the receiver. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from notify import delivery
from notify.checkup.probes import OLD_SECONDS
from notify.checkup.report import Finding, Grade, Step
from notify.delivery import Signal, Verdict
from notify.exchange import Exchange, Failure
from notify.targets import Target

DAYS_LEFT = 21
"""Days before the end of a certificate from which on it is warned of: automatic renewals are done by then."""

CHECKING = "see “Checking the signature” in docs/webhooks.md"
READY = "see “What to be ready for” in docs/webhooks.md"

_ON_THE_WAY = (Step.DNS, Step.CONNECT, Step.TLS)
_ACCEPTS = {
    Step.FORGED: (
        "accepts forgeries",
        "it must compare the signature with its own, and answer 401 where they differ",
    ),
    Step.OLD: (
        "accepts old timestamps",
        "whoever has recorded a request can send it again: it must refuse what was signed more than five minutes ago",
    ),
    Step.ALTERED: (
        "accepts altered bodies",
        "it must compute the signature over the bytes that came in, before anything parses them",
    ),
}
_REFUSES = {
    Step.FORGED: "refuses a signature that is not ours",
    Step.OLD: f"refuses what was signed {OLD_SECONDS} s ago",
    Step.ALTERED: "refuses a body that is not the one that was signed",
}
REFUSED = tuple(_ACCEPTS)
"""The steps at which a receiver has to refuse."""


def of_event(
    exchange: Exchange,
    *,
    target: Target,
    addresses: Sequence[str],
    timeout: dt.timedelta,
    now: dt.datetime,
) -> list[Finding]:
    """What the first request shows, which is genuine: the way to the receiver, and whether it takes events.

    ``addresses`` are all that the name was found to have, ``timeout`` is what bounded the exchange.
    """
    ended = _ended(exchange)
    return [
        _of_dns(exchange, ended, target=target, addresses=addresses),
        _of_connection(exchange, ended),
        _of_tls(exchange, ended, target=target, now=now),
        _of_redirect(exchange),
        _of_latency(exchange, ended, timeout=timeout),
        _of_acceptance(exchange, ended, now=now),
    ]


def of_refusal(step: Step, exchange: Exchange, *, now: dt.datetime) -> Finding:
    """What the answer to a request shows that has to be refused."""
    if exchange.status is None:
        return Finding(
            step=step, grade=Grade.UNKNOWN, message=f"no answer: {exchange.cause}"
        )
    judgement = delivery.judge(exchange, now=now)
    if judgement.verdict is Verdict.COMPLETED:
        message, advice = _ACCEPTS[step]
        return Finding(
            step=step,
            grade=Grade.FAILED,
            message=f"{message} (HTTP {exchange.status})",
            advice=f"{advice}; {CHECKING}",
        )
    if exchange.status in delivery.ASK_AGAIN:
        return Finding(
            step=step,
            grade=Grade.UNKNOWN,
            message=f"asks to be left alone: {judgement.cause}",
            advice="check it up again later",
        )
    if not 400 <= exchange.status <= 499:
        return Finding(
            step=step,
            grade=Grade.WARNING,
            message=f"does not accept it, and does not refuse it either: {judgement.cause}",
            advice=f"anyone can have it fail like that: it should answer 401; {CHECKING}",
        )
    return Finding(
        step=step,
        grade=Grade.PASSED,
        message=f"{_REFUSES[step]} (HTTP {exchange.status})",
    )


def of_duplicate(exchange: Exchange, *, now: dt.datetime) -> Finding:
    """What the answer to the genuine event shows when it comes once more."""
    judgement = delivery.judge(exchange, now=now)
    if judgement.verdict is Verdict.COMPLETED:
        return Finding(
            step=Step.DUPLICATE,
            grade=Grade.PASSED,
            message=f"takes the same event again (HTTP {exchange.status}); whether it acts on it only once cannot be "
            "seen from outside",
        )
    return Finding(
        step=Step.DUPLICATE,
        grade=Grade.UNKNOWN if exchange.status is None else Grade.FAILED,
        message=f"does not take the same event again: {judgement.cause}",
        advice=f"after a lost answer an event comes again, and must be answered 2xx; {READY}",
    )


def not_tried(step: Step, reason: str) -> Finding:
    """What stands for a request that was not sent."""
    return Finding(step=step, grade=Grade.UNKNOWN, message=f"not tried: {reason}")


def _ended(exchange: Exchange) -> Step | None:
    """The step of the way at which it ended; None where the request came through to the receiver."""
    if exchange.status is not None:
        return None
    match exchange.failure:
        case Failure.INVALID | Failure.BLOCKED | Failure.DNS:
            return Step.DNS
        case Failure.CONNECT:
            return Step.CONNECT
        case Failure.TLS:
            return Step.TLS
    # The step that failed has its time as well.
    phases = exchange.phases
    if phases.answer_ms is not None:
        return None
    if phases.tls_ms is not None:
        return Step.TLS
    return Step.DNS if phases.connect_ms is None else Step.CONNECT


def _on_the_way(step: Step, ended: Step | None, exchange: Exchange) -> Finding | None:
    """The finding at a step that failed, or that was not come to."""
    if ended is None or _ON_THE_WAY.index(step) < _ON_THE_WAY.index(ended):
        return None
    if step is ended:
        return Finding(step=step, grade=Grade.FAILED, message=exchange.cause)
    return not_tried(step, f"it ended at {ended}")


def _of_dns(
    exchange: Exchange,
    ended: Step | None,
    *,
    target: Target,
    addresses: Sequence[str],
) -> Finding:
    if failed := _on_the_way(Step.DNS, ended, exchange):
        return failed
    if not addresses:
        message = f"{target.host} is an address, and webhooks may reach it"
    else:
        message = f"{target.host} has {_listed(addresses)}, and webhooks may reach {'it' if len(addresses) == 1 else 'them'}"
        message += _milliseconds(exchange.phases.dns_ms)
    return Finding(step=Step.DNS, grade=Grade.PASSED, message=message)


def _of_connection(exchange: Exchange, ended: Step | None) -> Finding:
    if failed := _on_the_way(Step.CONNECT, ended, exchange):
        return failed
    message = f"connected to {exchange.peer}{_milliseconds(exchange.phases.connect_ms)}"
    return Finding(step=Step.CONNECT, grade=Grade.PASSED, message=message)


def _of_tls(
    exchange: Exchange, ended: Step | None, *, target: Target, now: dt.datetime
) -> Finding:
    if target.scheme == "http" and ended is None:
        return Finding(
            step=Step.TLS,
            grade=Grade.WARNING,
            message="no TLS: whoever is on the way can read the events",
            advice="serve it over https, and change the endpoint's URL",
        )
    if failed := _on_the_way(Step.TLS, ended, exchange):
        return failed
    if exchange.certificate_until is None:
        return Finding(
            step=Step.TLS, grade=Grade.PASSED, message="the certificate is good"
        )
    days = (exchange.certificate_until - now).days
    message = f"the certificate is good for {days} more days{_milliseconds(exchange.phases.tls_ms)}"
    if days < DAYS_LEFT:
        return Finding(
            step=Step.TLS,
            grade=Grade.WARNING,
            message=message,
            advice="renew it; without it every delivery fails",
        )
    return Finding(step=Step.TLS, grade=Grade.PASSED, message=message)


def _of_redirect(exchange: Exchange) -> Finding:
    if exchange.status is None:
        return not_tried(Step.REDIRECT, "there was no answer")
    if not 300 <= exchange.status <= 399:
        return Finding(step=Step.REDIRECT, grade=Grade.PASSED, message="none")
    return Finding(
        step=Step.REDIRECT,
        grade=Grade.FAILED,
        message=f"redirects to {exchange.redirect or 'an address that it does not name'} (HTTP {exchange.status})",
        advice="redirects are not followed: give the endpoint the address that it leads to",
    )


def _of_latency(
    exchange: Exchange, ended: Step | None, *, timeout: dt.timedelta
) -> Finding:
    if exchange.failure is Failure.DEADLINE and ended is None:
        return Finding(
            step=Step.LATENCY,
            grade=Grade.FAILED,
            message=exchange.cause,
            advice="it must answer once the event is safe, and work afterwards",
        )
    if exchange.status is None:
        return not_tried(Step.LATENCY, "there was no answer")
    given = f"of the {timeout.total_seconds():g} s that it has"
    took = exchange.duration
    message = f"answers after {took.total_seconds() * 1000:.0f} ms {given}"
    if took > timeout / 2:
        return Finding(
            step=Step.LATENCY,
            grade=Grade.WARNING,
            message=message,
            advice="it should answer once the event is safe, and work afterwards",
        )
    return Finding(step=Step.LATENCY, grade=Grade.PASSED, message=message)


def _of_acceptance(
    exchange: Exchange, ended: Step | None, *, now: dt.datetime
) -> Finding:
    judgement = delivery.judge(exchange, now=now)
    if judgement.verdict is Verdict.COMPLETED:
        return Finding(
            step=Step.EVENT,
            grade=Grade.PASSED,
            message=f"takes a signed event (HTTP {exchange.status})",
        )
    if judgement.signal is Signal.SKEWED:
        advice = "set its clock"
    elif exchange.status in (400, 401, 403):
        advice = f"does it have the current secret, and verify the bytes that came in? {CHECKING}"
    else:
        advice = ""
    return Finding(
        step=Step.EVENT,
        grade=Grade.FAILED,
        # What the step at which it ended says, the summary need not say twice.
        message=f"does not take a signed event: {f'it ended at {ended}' if ended else judgement.cause}",
        advice=advice,
    )


def _listed(addresses: Sequence[str]) -> str:
    return ("the address " if len(addresses) == 1 else "the addresses ") + ", ".join(
        addresses
    )


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f" ({value:.0f} ms)"
