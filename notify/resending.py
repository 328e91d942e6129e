"""Sending a delivery again that has ended: the same event id, the same bytes, a new signature."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

from django.db.models import CharField
from django.db.models.functions import Cast

from jobs import actions
from jobs.action_result import Result
from jobs.models import Job, Status
from jobs.verbs import Chosen
from notify.models import WebhookAttempt, WebhookEndpoint
from notify.querysets import DELIVERY_TYPE

_NO_DELIVERY = "it delivers no webhook"
_SUPERSEDED = "a later event went in its place"
_DELETED = "its endpoint was deleted"


def resend(chosen: Chosen, *, actor: str, time_limit: float | None = None) -> Result:
    """Send dead and completed deliveries again, with all their attempts before them.

    What waits or is under way is refused, and so is what was cancelled, as it is when a later event goes in its place.
    Nor is there anywhere to send what was for an endpoint that is deleted. Audited as ``job.repeat``. ``time_limit`` (seconds) ends a large set after a batch, see
    :class:`~jobs.action_result.Result`.
    """
    result = actions.repeat(
        chosen,
        actor=actor,
        time_limit=time_limit,
        participle="resent",
        unless=_reasons_not_to,
    )
    superseded = _superseded([skip.target for skip in result.skipped])
    result.skipped = [
        replace(skip, reason=_SUPERSEDED) if skip.target in superseded else skip
        for skip in result.skipped
    ]
    return result


def _reasons_not_to(jobs: list[Job]) -> Mapping[uuid.UUID, str]:
    endpoints = WebhookEndpoint.objects.annotate(ref=Cast("pk", CharField()))
    named = endpoints.filter(ref__in={job.ref_id for job in jobs})
    there = set(named.values_list("ref", flat=True))
    reasons = {job.pk: _DELETED for job in jobs if job.ref_id not in there}
    reasons |= {job.pk: _NO_DELIVERY for job in jobs if job.type != DELIVERY_TYPE}
    return reasons


def _superseded(ids: list[uuid.UUID | str]) -> set[uuid.UUID | str | None]:
    cancelled = Job.objects.filter(pk__in=ids, status=Status.CANCELLED)
    rows = WebhookAttempt.objects.filter(
        job_id__in=cancelled.values("pk"),
        verdict=WebhookAttempt.Verdict.SUPERSEDED,
    )
    return set(rows.values_list("job_id", flat=True))
