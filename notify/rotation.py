"""Changing an endpoint's secret without one delivery refused: which secrets sign, and the steps from one to the next.

A new secret is *staged*: both sign, the current one first. It is *promoted* once the receiver is known to have it: both
sign, the new one first. The old one is *retired* when deliveries have followed. Each step is audited, and decided under
the lock of the endpoint's row.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from notify import audit, encryption, signing
from notify.events import LogEvent
from notify.exceptions import EncryptionError, InvalidSecret, RotationRefused
from notify.models import WebhookAttempt, WebhookEndpoint

DELIVERIES_TO_RETIRE = 3
"""Real deliveries that the receiver takes after a promotion, the last of them signed with the new secret alone."""

log = logging.getLogger(__name__)


class Phase(StrEnum):
    """Where a rotation stands."""

    SETTLED = "settled"
    """There is one secret."""

    STAGED = "staged"
    """A new one signs too, after the current one."""

    RETIRING = "retiring"
    """The one before signs too, after the current one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rotation:
    """How far a rotation has come, and ``since`` when; ``followed`` counts deliveries after a promotion."""

    phase: Phase
    since: dt.datetime | None = None
    followed: int = 0


def of(endpoint: WebhookEndpoint) -> Rotation:
    """Where its rotation stands, as the instance says."""
    if endpoint.staged_secret:
        return Rotation(phase=Phase.STAGED, since=endpoint.staged_at)
    if endpoint.retiring_secret:
        return Rotation(
            phase=Phase.RETIRING,
            since=endpoint.promoted_at,
            followed=followed(endpoint),
        )
    return Rotation(phase=Phase.SETTLED)


def describe(endpoint: WebhookEndpoint) -> str:
    """Where its rotation stands, and what comes next, in sentences."""
    now = of(endpoint)
    since = f"{now.since:%Y-%m-%d %H:%M} UTC" if now.since else "an unknown time"
    match now.phase:
        case Phase.STAGED:
            return (
                f"A new secret has been staged since {since}: both sign, the current one first. Promote the new one once the "
                "receiver has it."
            )
        case Phase.RETIRING:
            return (
                f"The new secret signs first, and the old one too. {now.followed} of {DELIVERIES_TO_RETIRE} deliveries "
                f"have followed since {since}; then the old one is retired."
            )
        case Phase.SETTLED:
            return "There is one secret."


def signing_secrets(endpoint: WebhookEndpoint) -> list[str]:
    """The secrets that sign what is sent to it: the current one, and then the other while it is being changed.

    Raises :class:`~notify.exceptions.EncryptionError`.
    """
    tokens = [
        endpoint.encrypted_secret,
        endpoint.staged_secret or endpoint.retiring_secret,
    ]
    return [encryption.decrypt(token) for token in tokens if token]


def followed(endpoint: WebhookEndpoint) -> int:
    """How many real deliveries the receiver has taken since the promotion, counted up to :data:`DELIVERIES_TO_RETIRE`."""
    if endpoint.promoted_at is None:
        return 0
    newest = (
        WebhookAttempt.objects.filter(
            endpoint=endpoint,
            verdict=WebhookAttempt.Verdict.COMPLETED,
            job_id__isnull=False,
        )
        .order_by("-id")
        .values_list("started_at", flat=True)[:DELIVERIES_TO_RETIRE]
    )
    return sum(started_at >= endpoint.promoted_at for started_at in newest)


def stage(endpoint: WebhookEndpoint, secret: str | None = None, *, actor: str) -> str:
    """Have a new secret sign too, one that is made unless it is given; return it.

    Raises :class:`~notify.exceptions.RotationRefused` while a rotation is under way, ``InvalidSecret``, and
    ``EncryptionError`` where the current one cannot be read: nothing is signed then that it could be added to.
    """
    secret = signing.new_secret() if secret is None else signing.checked_secret(secret)
    with _locked(endpoint) as row:
        if row.staged_secret:
            raise RotationRefused(
                "a new secret is staged already: promote it, or abandon it first"
            )
        if row.retiring_secret:
            raise RotationRefused(
                "the secret before this one still signs: retire it first"
            )
        if secret == row.signing_secret():
            raise InvalidSecret("that is the secret that it has already")
        _step(
            endpoint,
            "staged",
            actor=actor,
            staged_secret=encryption.encrypt(secret),
            staged_at=Now(),
        )
    return secret


def staged_secret(endpoint: WebhookEndpoint) -> str:
    """The staged secret in the clear, as the table has it now. Raises ``RotationRefused`` and ``EncryptionError``."""
    row = WebhookEndpoint.objects.filter(pk=endpoint.pk).first()
    if row is None or not row.staged_secret:
        raise RotationRefused("no new secret is staged: rotate first")
    return encryption.decrypt(row.staged_secret)


def make_current(
    endpoint: WebhookEndpoint, secret: str, *, actor: str, proof: str
) -> None:
    """Have the staged secret sign first, and the one before it after it.

    ``proof`` is how it is known that the receiver has it, for the audit. Raises ``RotationRefused`` where ``secret`` is
    not the one that is staged: what was proved was another.
    """
    with _locked(endpoint) as row:
        if not _is(row.staged_secret, secret):
            raise RotationRefused("the staged secret was changed meanwhile")
        _step(
            endpoint,
            "promoted",
            actor=actor,
            proof=proof,
            encrypted_secret=row.staged_secret,
            staged_secret="",
            staged_at=None,
            retiring_secret=row.encrypted_secret,
            promoted_at=Now(),
        )


def retire(endpoint: WebhookEndpoint, *, actor: str) -> None:
    """Have the current secret sign alone. Raises ``RotationRefused`` where none before it signs."""
    with _locked(endpoint) as row:
        if not row.retiring_secret:
            raise RotationRefused(
                "no secret is being retired: promote the staged one first"
                if row.staged_secret
                else "no secret is being retired: only the current one signs"
            )
        _step(endpoint, "retired", actor=actor, retiring_secret="")


def abandon(endpoint: WebhookEndpoint, *, actor: str) -> None:
    """Take the staged secret back. Raises ``RotationRefused`` where none is staged."""
    with _locked(endpoint) as row:
        if not row.staged_secret:
            raise RotationRefused(
                "no new secret is staged: the new one has been promoted, and can only be rotated again"
                if row.retiring_secret
                else "no new secret is staged"
            )
        _step(endpoint, "abandoned", actor=actor, staged_secret="", staged_at=None)


def learn(endpoint: WebhookEndpoint, secret: str, *, real: bool) -> None:
    """Draw the conclusion from what the receiver took: a request that was signed with this secret alone.

    A staged one is promoted. The current one, with enough deliveries since its promotion, lets the old one be retired.
    Where it took the old one, those that followed are counted from now on. ``real`` is false for a test event.
    """
    with contextlib.suppress(RotationRefused), _locked(endpoint) as row:
        if _is(row.staged_secret, secret):
            make_current(endpoint, secret, actor=audit.SYSTEM, proof="delivery")
        elif _is(row.retiring_secret, secret):
            WebhookEndpoint.objects.filter(pk=row.pk).update(promoted_at=Now())
        elif (
            real
            and row.retiring_secret
            and _is(row.encrypted_secret, secret)
            and followed(row) >= DELIVERIES_TO_RETIRE
        ):
            retire(endpoint, actor=audit.SYSTEM)


@contextlib.contextmanager
def _locked(endpoint: WebhookEndpoint) -> Iterator[WebhookEndpoint]:
    """The row as it is, which nobody else changes meanwhile."""
    with transaction.atomic():
        row = (
            WebhookEndpoint.objects.select_for_update(no_key=True)
            .filter(pk=endpoint.pk)
            .first()
        )
        if row is None:
            raise RotationRefused(f"{endpoint.name} was deleted meanwhile")
        yield row


def _step(
    endpoint: WebhookEndpoint,
    step: str,
    *,
    actor: str,
    proof: str | None = None,
    **columns: Any,
) -> None:
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(**columns, updated_at=Now())
    data = {"target": endpoint.target} | ({"proof": proof} if proof else {})
    audit.record(
        actor, f"webhook.secret_{step}", target=f"webhook:{endpoint.name}", data=data
    )
    endpoint.refresh_from_db(fields=[*columns, "updated_at"])
    extra = {"endpoint": endpoint.name, "step": step, "actor": actor}
    transaction.on_commit(lambda: log.info(LogEvent.SECRET_ROTATION, extra=extra))


def _is(token: str, secret: str) -> bool:
    """Whether the stored token is this secret; one that cannot be read is not."""
    try:
        return bool(token) and encryption.decrypt(token) == secret
    except EncryptionError:
        return False
