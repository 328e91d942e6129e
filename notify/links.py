"""Where on this site a person finds a thing."""

from __future__ import annotations

from django.db.models import Model
from django.urls import NoReverseMatch, reverse


def admin_page(row: Model) -> str:
    """The path of the row's page in the admin; empty where the admin has none, which must not keep news back."""
    meta = row._meta
    try:
        return reverse(
            f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk]
        )
    except NoReverseMatch:
        return ""
