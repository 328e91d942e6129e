"""What an operator does with a recovery: begin it, pause it, resume it, cancel it.

Each is audited. The sending itself is in :mod:`notify.recovering.slices`.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from jobs.action_result import Result, Skip
from jobs.display import first_line
from jobs.enqueue import enqueue
from jobs.models import Job
from notify import audit
from notify.exceptions import RecoveryRefused
from notify.models import WebhookDelivery, WebhookEndpoint, WebhookRecovery
from notify.models.endpoint import REASON_MAX_LENGTH
from notify.recovering import RECOVERY_TYPE

PER_MINUTE = 60
"""How many are resent in a minute where nobody says otherwise."""

State = WebhookRecovery.State
LIVE = (State.RUNNING, State.PAUSED)


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What a recovery would resend: ``count`` deliveries that died from ``since`` until now, ``until``."""

    since: dt.datetime
    until: dt.datetime
    count: int


def scope(endpoint: WebhookEndpoint, since: dt.datetime | dt.timedelta) -> Scope:
    """Count what died for this endpoint since that time, or within that long; by the database's clock."""
    until = WebhookEndpoint.objects.values_list(Now()).get(pk=endpoint.pk)[0]
    begin = until - since if isinstance(since, dt.timedelta) else since
    died = WebhookDelivery.objects.of(endpoint).died(since=begin, until=until)
    return Scope(since=begin, until=until, count=died.order_by().count())


def begin(
    endpoint: WebhookEndpoint, counted: Scope, *, actor: str, per_minute: int
) -> WebhookRecovery:
    """Make the recovery of what was counted, and the job that begins with it.

    Raises :class:`~notify.exceptions.RecoveryRefused` where there is nothing, or one is there already.
    """
    if not counted.count:
        raise RecoveryRefused(
            f"nothing that was to go to {endpoint.name} has died since {counted.since:%Y-%m-%d %H:%M:%S %Z}"
        )
    try:
        with transaction.atomic():
            recovery = WebhookRecovery.objects.create(
                endpoint=endpoint,
                since=counted.since,
                until=counted.until,
                per_minute=per_minute,
                counted=counted.count,
                requested_by=actor,
            )
            enqueue_slice(recovery)
            _audit(
                actor,
                "begun",
                recovery,
                since=counted.since.isoformat(),
                count=counted.count,
                per_minute=per_minute,
            )
    except IntegrityError:
        live = endpoint.recoveries.filter(state__in=LIVE).first()
        if live is None:
            raise
        raise RecoveryRefused(
            f"a recovery of {endpoint.name} is {live.state} already; let it end, or cancel it"
        ) from None
    return recovery


def pause(ids: Iterable[int], *, actor: str) -> Result:
    """Have no further slice sent until somebody resumes it."""
    return _turn(
        ids, actor=actor, participle="paused", state=State.PAUSED, of=(State.RUNNING,)
    )


def resume(ids: Iterable[int], *, actor: str) -> Result:
    """Go on behind the last that was resent; also where its job was lost, cancelled or deleted."""
    return _turn(
        ids, actor=actor, participle="resumed", state=State.RUNNING, of=(State.PAUSED,)
    )


def cancel(ids: Iterable[int], *, actor: str) -> Result:
    """End it. What was resent stays resent."""
    return _turn(
        ids, actor=actor, participle="cancelled", state=State.CANCELLED, of=LIVE
    )


def stop(job_id: uuid.UUID, error: str) -> None:
    """Pause the recovery whose job has died, and say why; called in the transaction of that death.

    One that a worker, which has lost that job, still has locked is left: it shows as stranded.
    """
    running = _locked(skip=True).filter(state=State.RUNNING)
    recovery = running.filter(job_id=job_id).first()
    if recovery is not None:
        reason = f"its job was given up: {first_line(error)}"
        _write(recovery, State.PAUSED, reason)
        _audit(audit.SYSTEM, "paused", recovery, reason=recovery.reason)


def enqueue_slice(
    recovery: WebhookRecovery, *, run_at: dt.datetime | None = None
) -> None:
    """Enqueue the job of the next slice in the open transaction; no other job may do it from then on."""
    job = enqueue(
        RECOVERY_TYPE,
        {"recovery_id": recovery.pk},
        ref_id=recovery.endpoint_id,
        run_at=run_at,
    )
    WebhookRecovery.objects.filter(pk=recovery.pk).update(job_id=job.pk)


def is_stranded(recovery: WebhookRecovery) -> bool:
    """Whether it is running and no job is there to do it: somebody has cancelled or deleted that."""
    if recovery.state != State.RUNNING:
        return False
    job_id = recovery.job_id
    return job_id is None or not Job.objects.live().filter(pk=job_id).exists()


def _turn(
    ids: Iterable[int],
    *,
    actor: str,
    participle: str,
    state: WebhookRecovery.State,
    of: tuple[WebhookRecovery.State, ...],
) -> Result:
    """Each in a transaction of its own, its row locked, so that a slice is wholly before or wholly after it."""
    result = Result(participle=participle)
    for pk in ids:
        with transaction.atomic():
            recovery = _locked().filter(pk=pk).first()
            reason = _refusal(recovery, state, of)
            if recovery is None or reason:
                result.skipped.append(Skip(target=str(pk), reason=reason))
                continue
            _write(recovery, state, "")
            if state == State.RUNNING:
                enqueue_slice(recovery)
            _audit(actor, participle, recovery, resent=recovery.resent)
        result.done.append(str(pk))
    return result


def _refusal(
    recovery: WebhookRecovery | None,
    state: WebhookRecovery.State,
    of: tuple[WebhookRecovery.State, ...],
) -> str:
    if recovery is None:
        return "no such recovery"
    stranded = state == State.RUNNING and is_stranded(recovery)
    return "" if recovery.state in of or stranded else f"it is {recovery.state}"


def _locked(*, skip: bool = False) -> Any:
    recoveries = WebhookRecovery.objects.select_related("endpoint")
    return recoveries.select_for_update(of=("self",), skip_locked=skip)


def _write(
    recovery: WebhookRecovery, state: WebhookRecovery.State, reason: str
) -> None:
    recovery.state, recovery.reason = state, reason[:REASON_MAX_LENGTH]
    WebhookRecovery.objects.filter(pk=recovery.pk).update(
        state=recovery.state, reason=recovery.reason, updated_at=Now()
    )


def _audit(actor: str, done: str, recovery: WebhookRecovery, **data: Any) -> None:
    audit.record(
        actor,
        f"webhook.recovery_{done}",
        target=f"webhook:{recovery.endpoint.name}",
        data={"recovery": recovery.pk, **data},
    )
