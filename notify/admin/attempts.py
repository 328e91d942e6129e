"""Attempts at delivery in the admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html

from jobs.admin_permissions import OnlyRead
from notify.admin.written import Written
from notify.models import WebhookAttempt


@admin.register(WebhookAttempt)
class WebhookAttemptAdmin(OnlyRead, Written):
    """Every request that was sent, or was about to be."""

    list_display = [
        "started_at",
        "endpoint",
        "topic",
        "verdict",
        "answer",
        "milliseconds",
        "number",
        "job",
    ]
    list_filter = ["verdict", "endpoint", "started_at"]
    list_select_related = ["endpoint"]
    search_fields = ["=job_id"]
    ordering = ["-id"]
    fields = [
        "job",
        "endpoint",
        "topic",
        "number",
        "started_at",
        "finished_at",
        "verdict",
        "status",
        "cause",
        "milliseconds",
        "peer",
        "excerpt",
    ]

    class Media:
        css = {"all": ["notify/notify.css"]}

    @admin.display(description="answer")
    def answer(self, attempt: WebhookAttempt) -> str:
        return attempt.cause or (f"HTTP {attempt.status}" if attempt.status else "")

    @admin.display(description="job")
    def job(self, attempt: WebhookAttempt) -> str:
        if attempt.job_id is None:
            return "test event"
        url = reverse("admin:jobs_job_change", args=[attempt.job_id])
        # The end tells jobs apart: an id begins with its time.
        return format_html(
            '<a href="{}" title="{}">…{}</a>',
            url,
            attempt.job_id,
            str(attempt.job_id)[-12:],
        )

    @admin.display(description="milliseconds")
    def milliseconds(self, attempt: WebhookAttempt) -> int | None:
        return (
            None
            if attempt.duration is None
            else round(attempt.duration.total_seconds() * 1000)
        )
