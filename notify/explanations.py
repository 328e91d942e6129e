"""What an attempt's end means, in plain words, and what to do next: for people who know neither HTTP nor this code. Pure."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

from notify.exchange import Failure
from notify.models import WebhookAttempt

Verdict = WebhookAttempt.Verdict

_SKEW = re.compile(r"its clock is ([0-9,]+) s (ahead of|behind) ours")
_UNSIGNED = frozenset({400, 401, 403})


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """``what`` was the matter, and what there is ``to_do`` about it; that is empty where there is nothing."""

    what: str
    to_do: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.to_do}".rstrip()


def explain(
    attempt: WebhookAttempt,
    *,
    goes_on: bool | None = None,
    resendable: bool = True,
    secret_changed_at: dt.datetime | None = None,
) -> Explanation:
    """What came of an attempt.

    ``goes_on`` says whether its delivery is still tried, where that is known: a refused one may wait, since its endpoint
    refuses all of them. One that is not may be sent again where it is ``resendable``. ``secret_changed_at`` is since when
    the endpoint's current secret signs first.
    """
    if attempt.verdict == Verdict.UNKNOWN:
        return _of_unknown(goes_on, resendable=resendable)
    settled = _SETTLED.get(attempt.verdict)
    if settled is not None:
        return settled
    if attempt.verdict == Verdict.SKIPPED:
        return Explanation(what=f"It was not sent: {attempt.cause}.")
    found = (
        _of_failure(attempt)
        if attempt.status is None
        else _of_status(attempt, attempt.status, secret_changed_at)
    )
    if attempt.job_id is None:
        # A person has sent it, and sees what came of it.
        return found
    return Explanation(
        what=found.what,
        to_do=f"{found.to_do} {_after(attempt, goes_on, resendable=resendable)}".rstrip(),
    )


def _of_unknown(goes_on: bool | None, *, resendable: bool) -> Explanation:
    known_by_id = "the receiver tells by the event's id whether it has it."
    if goes_on is not False:
        return Explanation(
            what="It is under way, or its worker was killed meanwhile: whether the receiver has the event is not known.",
            to_do=f"It is tried again by itself; {known_by_id}",
        )
    return Explanation(
        what="Its worker was killed meanwhile: whether the receiver has the event is not known.",
        to_do=f"Resend it; {known_by_id}" if resendable else "",
    )


def _after(attempt: WebhookAttempt, goes_on: bool | None, *, resendable: bool) -> str:
    if goes_on:
        return "It is tried again by itself."
    if goes_on is None and attempt.verdict == Verdict.RETRY:
        return "It is tried again by itself while attempts are left."
    return "Then resend it." if resendable else ""


_SETTLED: dict[str, Explanation] = {
    Verdict.COMPLETED: Explanation(what="The receiver has it."),
    Verdict.REPEATED: Explanation(
        what="The receiver refused it while its secret was being changed.",
        to_do="It was sent again at once, signed with the other secret alone: see the attempt after this one.",
    ),
    Verdict.SUPERSEDED: Explanation(
        what="A later event about the same thing went in its place."
    ),
}


def _of_failure(attempt: WebhookAttempt) -> Explanation:
    if attempt.failure == Failure.TLS:
        return Explanation(
            what=f"The connection cannot be trusted: {attempt.cause}.",
            to_do=_of_certificate(attempt.cause),
        )
    try:
        what, to_do = _FAILURES[Failure(attempt.failure)]
    except ValueError:
        # There was no exchange at all: a key is missing.
        return Explanation(
            what=f"It was not sent: {attempt.cause}.", to_do="Mend that first."
        )
    cause = f": {attempt.cause}" if attempt.cause else ""
    return Explanation(what=f"{what}{cause}.", to_do=to_do)


_FAILURES = {
    Failure.INVALID: (
        "The request cannot be sent as the endpoint is set",
        "Correct the endpoint's URL or its own headers.",
    ),
    Failure.BLOCKED: (
        "Nothing was sent, since webhooks may not reach the receiver's address",
        "Where the receiver is meant to be inside, add its network to NOTIFY_WEBHOOK_ALLOW_NETWORKS; otherwise correct "
        "the endpoint's URL, or the name's addresses.",
    ),
    Failure.DNS: (
        "The receiver's name leads nowhere",
        "See whether the host in the endpoint's URL is spelt right, and whether names can be looked up on the "
        "worker's host.",
    ),
    Failure.CONNECT: (
        "Nobody answers at the receiver's address",
        "See whether the receiver runs, whether the port in the endpoint's URL is right, and whether a firewall stands "
        "between.",
    ),
    Failure.NETWORK: (
        "The receiver, or something on the way, broke off without a whole answer",
        "Look into the receiver's log at the time of the attempt: it may have crashed on the event.",
    ),
    Failure.DEADLINE: (
        "The receiver was too slow",
        "It should answer 2xx as soon as it has stored the event, and work afterwards; the endpoint's timeout can be "
        "made longer. It may have the event all the same.",
    ),
    Failure.UNEXPECTED: (
        "It failed in a way that was not foreseen",
        "Look into the worker's log at the time of the attempt.",
    ),
}


def _of_certificate(cause: str) -> str:
    for said, to_do in _CERTIFICATES.items():
        if said in cause.lower():
            return to_do
    return (
        "The receiver's server must speak TLS at the port of the endpoint's URL, with a certificate that is valid for "
        "its name."
    )


_CERTIFICATES = {
    "has expired": "The receiver's owner has to renew its certificate.",
    "not yet valid": "See whether the clock of the worker's host is right; the certificate begins later.",
    "mismatch": "The certificate is for another name: correct the host in the endpoint's URL, or the certificate.",
    "self-signed": "Have it issued by an authority, or put its own authority into NOTIFY_WEBHOOK_CA_BUNDLE.",
    "local issuer": "The receiver's server has to send its chain whole, or its authority has to be in "
    "NOTIFY_WEBHOOK_CA_BUNDLE.",
}


def _of_status(
    attempt: WebhookAttempt, status: int, secret_changed_at: dt.datetime | None
) -> Explanation:
    if skew := _SKEW.search(attempt.cause):
        seconds, direction = skew.groups()
        return Explanation(
            what=f"The receiver refused it, and its clock is {seconds} s {direction} ours: what was signed just now looks "
            "old or early to it.",
            to_do="Set the clock that is wrong.",
        )
    if status in _UNSIGNED:
        return Explanation(
            what=f"The receiver does not take it for ours, or not for well-formed (HTTP {status})."
            + _of_change(attempt, secret_changed_at),
            to_do="See whether it has the endpoint's secret, checks the body's bytes as they came in, and wants a header "
            "or token of its own.",
        )
    if status in _STATUSES:
        what, to_do = _STATUSES[status]
        return Explanation(what=f"{what} (HTTP {status}).", to_do=to_do)
    for statuses, what, to_do in _CLASSES:
        if status in statuses:
            return Explanation(what=f"{what} ({attempt.cause}).", to_do=to_do)
    return Explanation(
        what=f"The receiver answered with {status}, which is no status of HTTP.",
        to_do="See whether the endpoint's URL leads to an HTTP server.",
    )


def _of_change(attempt: WebhookAttempt, secret_changed_at: dt.datetime | None) -> str:
    if secret_changed_at is None or attempt.started_at < secret_changed_at:
        return ""
    return f" The secret was changed before that, on {secret_changed_at:%Y-%m-%d at %H:%M} UTC."


_MOVED = (
    "The receiver has moved, and redirects are not followed",
    "Ask its owner whether the new address is right, and set it as the endpoint's URL.",
)
_BUSY = ("The receiver asks for time", "It may get more events than it can take.")
_BEFORE_IT = (
    "What stands before the receiver cannot reach it",
    "See whether the receiver runs.",
)
_STATUSES = {
    301: _MOVED,
    308: _MOVED,
    404: (
        "The receiver knows nothing at that address",
        "Correct the path of the endpoint's URL, or have the receiver's owner set the address up.",
    ),
    405: (
        "The receiver takes no POST at that address",
        "Correct the path of the endpoint's URL.",
    ),
    408: _BUSY,
    410: (
        "The receiver says that it is gone, and wants no more events; that disables the endpoint",
        "If it is back, or elsewhere, correct the endpoint and enable it.",
    ),
    413: (
        "The event is too large for the receiver",
        "Have the receiver's owner allow larger bodies.",
    ),
    415: (
        "The receiver does not take JSON",
        "See whether the endpoint's URL leads to what was meant.",
    ),
    425: _BUSY,
    429: _BUSY,
    502: _BEFORE_IT,
    503: (
        "The receiver is out of service for the moment",
        "See whether the receiver runs.",
    ),
    504: _BEFORE_IT,
}
_CLASSES = (
    (
        range(100, 200),
        "The receiver announced an answer and gave none",
        "It should answer with a status of 2xx.",
    ),
    (
        range(300, 400),
        "The receiver sends elsewhere, perhaps to a page to log in, and redirects are not followed",
        "Give the endpoint an address that answers by itself.",
    ),
    (
        range(400, 500),
        "The receiver refuses the event",
        "Look at the beginning of its answer, and into its log.",
    ),
    (
        range(500, 600),
        "The receiver failed on its side",
        "Look into its log at the time of the attempt.",
    ),
)
