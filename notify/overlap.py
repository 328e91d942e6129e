"""Sending while a secret is being changed, to a receiver that may have the one or the other.

A receiver of Standard Webhooks finds the signature that suits it. One that looks at ``X-ACW-Signature`` sees one
signature, by the secret that is likely its own. Where it refuses that one, the same event is sent once more at once, signed
with the other alone: that it is taken both delivers the event and shows which secret the receiver has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from notify import rotation
from notify.delivery import UNAUTHORISED, Judgement, Signal, Verdict
from notify.exceptions import EncryptionError
from notify.exchange import Exchange
from notify.models import WebhookAttempt, WebhookEndpoint

MOST_REQUESTS = 3
"""A receiver that takes its new secret between the first and the second refuses both, and not the third."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """One request of an attempt, the secrets that signed it, and what it came to."""

    attempt: WebhookAttempt
    secrets: Sequence[str]
    judgement: Judgement
    exchange: Exchange


Post = Callable[[WebhookAttempt, Sequence[str]], tuple[Judgement, Exchange]]


def secrets_for(attempt: WebhookAttempt) -> list[str]:
    """The secrets that sign the first request of an attempt. Raises ``EncryptionError``.

    Before an old one is retired, one delivery shows whether the receiver does without it; its second attempt would be
    signed with both again.
    """
    endpoint = attempt.endpoint
    assert endpoint is not None  # noqa: S101 - it was opened for one
    secrets = rotation.signing_secrets(endpoint)
    if (
        endpoint.retiring_secret
        and attempt.job_id is not None
        and attempt.number == 1
        and rotation.followed(endpoint) >= rotation.DELIVERIES_TO_RETIRE - 1
    ):
        return secrets[:1]
    return secrets


def send(attempt: WebhookAttempt, secrets: Sequence[str], post: Post) -> list[Sent]:
    """Send it by ``post``, and again while another secret may be the receiver's; the last of the requests counts.

    The rows of all of them are open. Only the first has a place in flight: close it last.
    """
    sent = [_sent(attempt, secrets, post)]
    while len(sent) < MOST_REQUESTS and (other := _other_secret(sent)) is not None:
        again = WebhookAttempt.objects.create(
            endpoint=attempt.endpoint,
            job_id=attempt.job_id,
            topic=attempt.topic,
            number=attempt.number,
        )
        sent.append(_sent(again, [other], post))
    return sent


def conclude(sent: Sequence[Sent]) -> None:
    """Learn from what was taken, once the rows of all requests are closed."""
    last = sent[-1]
    endpoint = last.attempt.endpoint
    if last.judgement.verdict is not Verdict.COMPLETED or endpoint is None:
        return
    changing = endpoint.staged_secret or endpoint.retiring_secret or len(sent) > 1
    if changing and len(last.secrets) == 1:
        real = last.attempt.job_id is not None
        rotation.learn(endpoint, last.secrets[0], real=real)


def _sent(attempt: WebhookAttempt, secrets: Sequence[str], post: Post) -> Sent:
    judgement, exchange = post(attempt, secrets)
    return Sent(
        attempt=attempt, secrets=secrets, judgement=judgement, exchange=exchange
    )


def _other_secret(sent: Sequence[Sent]) -> str | None:
    """What to sign the next request with; None where no other secret can help."""
    last = sent[-1]
    sent_to = last.attempt.endpoint
    status = last.exchange.status
    if (
        sent_to is None
        or status is None
        or not 400 <= status <= 499
        # One of these may be tried again later, and says all the same that the secret is not the receiver's.
        or (
            last.judgement.verdict is not Verdict.PERMANENT
            and status not in UNAUTHORISED
        )
        or last.judgement.signal is Signal.GONE
    ):
        return None
    # Read anew: that it was refused may be since a secret has come or gone meanwhile.
    endpoint = WebhookEndpoint.objects.filter(pk=sent_to.pk).first()
    if endpoint is None:
        return None
    try:
        secrets = rotation.signing_secrets(endpoint)
    except EncryptionError:
        return None
    return next((s for s in secrets if s != last.secrets[0]), None)
