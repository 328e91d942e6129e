"""Where on this site a person finds a thing."""

from __future__ import annotations

import uuid
from urllib.parse import urlencode

from django.db.models import Model
from django.urls import NoReverseMatch, reverse


def admin_page(row: Model) -> str:
    """The path of the row's page in the admin; empty where the admin has none, which must not keep news back."""
    meta = row._meta
    return _path(f"{meta.app_label}_{meta.model_name}_change", row.pk)


def delivery_page(job_id: uuid.UUID) -> str:
    """The path of the page of the delivery that this job makes."""
    return _path("notify_webhookdelivery_change", job_id)


def dead_deliveries(ref_id: str | None) -> str:
    """The path of the list of the dead deliveries to one endpoint, newest first."""
    path = _path("notify_webhookdelivery_changelist")
    query = {"status": "dead", **({"endpoint": ref_id} if ref_id else {})}
    return f"{path}?{urlencode(query)}" if path else ""


def _path(name: str, *args: object) -> str:
    try:
        return reverse(f"admin:{name}", args=args)
    except NoReverseMatch:
        return ""
