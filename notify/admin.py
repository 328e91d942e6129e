"""What the program writes, in the admin: notifications, attempts at delivery, the audit."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from notify import admin_endpoints, topics  # noqa: F401 (the first registers its own)
from notify.models import AuditEntry, Notification, WebhookAttempt


def _pretty(value: Any) -> SafeString:
    return format_html("<pre>{}</pre>", json.dumps(value, indent=2, ensure_ascii=False))


class Written(admin.ModelAdmin[Model]):
    """Rows that the program writes: to be looked at."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False


class TopicFilter(admin.SimpleListFilter):
    """The defined topics; which ones the table has is not asked, since it may be long."""

    title = "topic"
    parameter_name = "topic"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Model]
    ) -> list[tuple[str, str]]:
        return [(name, name) for name in sorted(topics.topics())]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Model]
    ) -> QuerySet[Model]:
        return queryset.filter(topic=self.value()) if self.value() else queryset


@admin.register(Notification)
class NotificationAdmin(Written):
    """What was told to whom. May be deleted, or a user who was told something could not be."""

    list_display = ["created_at", "user", "topic", "title", "read_at"]
    list_filter = [TopicFilter, ("read_at", admin.EmptyFieldListFilter), "created_at"]
    list_select_related = ["user"]
    search_fields = ["=user__username", "=topic", "title"]
    ordering = ["-id"]
    fields = ["user", "topic", "title", "body", "pretty_data", "read_at", "created_at"]

    @admin.display(description="data")
    def pretty_data(self, notification: Notification) -> SafeString:
        return _pretty(notification.data)


@admin.register(AuditEntry)
class AuditEntryAdmin(Written):
    """Who did what. Nobody changes the record."""

    list_display = ["created_at", "actor", "action", "target"]
    list_filter = ["action", "created_at"]
    search_fields = ["=actor", "=action", "=target"]
    ordering = ["-id"]
    fields = ["created_at", "actor", "action", "target", "pretty_data"]

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False

    @admin.display(description="data")
    def pretty_data(self, entry: AuditEntry) -> SafeString:
        return _pretty(entry.data)


@admin.register(WebhookAttempt)
class WebhookAttemptAdmin(Written):
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

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False

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
