"""Does the receiver have the new secret? A test event that only the new one signs, and the promotion that follows."""

from __future__ import annotations

from notify import audit, rotation, sending
from notify.delivery import Verdict
from notify.exceptions import RotationRefused
from notify.models import WebhookAttempt, WebhookEndpoint


def promote(
    endpoint: WebhookEndpoint, *, actor: str, without_proof: bool = False
) -> None:
    """Prove that the receiver has the staged secret, and have it sign first.

    Raises :class:`~notify.exceptions.RotationRefused` where the receiver does not take the probe; the secret stays
    staged then. ``without_proof`` sends none, for a receiver that cannot take a test event.
    """
    secret = rotation.staged_secret(endpoint)
    if without_proof:
        rotation.make_current(endpoint, secret, actor=actor, proof="none")
        return
    attempt, proved = _probe(endpoint, secret, actor=actor)
    if not proved:
        raise RotationRefused(
            f"the receiver did not take a test event that was signed with the new secret alone ({attempt.cause}): "
            "see that it has the secret, and promote again. Until then both sign, and nothing is lost"
        )
    rotation.make_current(endpoint, secret, actor=actor, proof="probe")


def _probe(
    endpoint: WebhookEndpoint, secret: str, *, actor: str
) -> tuple[WebhookAttempt, bool]:
    attempt, judgement = sending.send_test(endpoint, secret=secret)
    audit.record(
        actor,
        "webhook.secret_probed",
        target=f"webhook:{endpoint.name}",
        data={"target": endpoint.target, "verdict": judgement.verdict.value},
    )
    return attempt, judgement.verdict is Verdict.COMPLETED
