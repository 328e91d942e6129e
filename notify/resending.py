"""Sending a delivery again that has ended: the same event id, the same bytes, a new signature."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

from jobs import actions
from jobs.action_result import Result
from jobs.models import Job, Status
from jobs.verbs import Chosen
from notify.models import WebhookAttempt
from notify.querysets import DELIVERY_TYPE

_NO_DELIVERY = "it delivers no webhook"
_SUPERSEDED = "a later event went in its place"


def resend(chosen: Chosen, *, actor: str, time_limit: float | None = None) -> Result:
    """Send dead and completed deliveries again, with all their attempts before them.

    What waits or is under way is refused, and so is what was cancelled, as it is when a later event goes in its place.
    Audited as ``job.repeat``. ``time_limit`` (seconds) ends a large set after a batch, see
    :class:`~jobs.action_result.Result`.
    """
    result = actions.repeat(
        chosen,
        actor=actor,
        time_limit=time_limit,
        participle="resent",
        unless=_other_jobs,
    )
    superseded = _superseded([skip.target for skip in result.skipped])
    result.skipped = [
        replace(skip, reason=_SUPERSEDED) if skip.target in superseded else skip
        for skip in result.skipped
    ]
    return result


def _other_jobs(jobs: list[Job]) -> Mapping[uuid.UUID, str]:
    return {job.pk: _NO_DELIVERY for job in jobs if job.type != DELIVERY_TYPE}


def _superseded(ids: list[uuid.UUID | str]) -> set[uuid.UUID | str | None]:
    cancelled = Job.objects.filter(pk__in=ids, status=Status.CANCELLED)
    rows = WebhookAttempt.objects.filter(
        job_id__in=cancelled.values("pk"),
        verdict=WebhookAttempt.Verdict.SUPERSEDED,
    )
    return set(rows.values_list("job_id", flat=True))
