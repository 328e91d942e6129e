"""Webhook endpoints in the admin: receivers, and their health."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from notify import endpoints
from notify.admin.testing import TestTool
from notify.forms import WebhookEndpointForm
from notify.models import WebhookAttempt, WebhookEndpoint


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(TestTool):
    """Receivers. Their URLs show only to those who may change them, their secrets to nobody."""

    form = WebhookEndpointForm
    list_display = [
        "name",
        "target",
        "enabled",
        "topic_list",
        "delivered_at",
        "last_verdict",
    ]
    list_filter = ["enabled"]
    search_fields = ["name"]
    readonly_fields = [
        "target",
        "delivered_at",
        "last_verdict",
        "attempts",
        "created_at",
        "updated_at",
    ]

    class Media:
        css = {"all": ["notify/notify.css"]}

    def lookup_allowed(
        self, lookup: str, value: str, request: HttpRequest | None = None
    ) -> bool:
        # The filter's and nothing else: by url__startswith a URL that is not shown could be guessed.
        return lookup == "enabled__exact"

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookEndpoint]:
        return WebhookEndpoint.objects.with_health()

    def get_fields(
        self, request: HttpRequest, obj: WebhookEndpoint | None = None
    ) -> list[Any]:
        if obj is None:
            return ["name", "url", "secret", "topics", "enabled"]
        shown = list(self.readonly_fields[1:])
        if not self.has_change_permission(request, obj):
            return ["name", "target", "topics", "enabled", *shown]
        return ["name", "url", "secret", "topics", "enabled", *shown]

    @admin.display(description="topics")
    def topic_list(self, endpoint: WebhookEndpoint) -> str:
        return ", ".join(endpoint.topics) or "none: it gets nothing"

    @admin.display(description="last delivered", empty_value="never")
    def delivered_at(self, endpoint: WebhookEndpoint) -> str | None:
        if endpoint.delivered_at is None:
            return None
        return date_format(localtime(endpoint.delivered_at), "DATETIME_FORMAT")

    @admin.display(description="last attempt", empty_value="none")
    def last_verdict(self, endpoint: WebhookEndpoint) -> str | None:
        verdict = endpoint.last_verdict
        return WebhookAttempt.Verdict(verdict).label if verdict else None

    @admin.display(description="attempts")
    def attempts(self, endpoint: WebhookEndpoint) -> SafeString:
        url = reverse("admin:notify_webhookattempt_changelist")
        return format_html(
            '<a href="{}?endpoint__id__exact={}">See all</a>', url, endpoint.pk
        )

    def save_model(
        self,
        request: HttpRequest,
        obj: WebhookEndpoint,
        form: ModelForm[WebhookEndpoint],
        change: bool,
    ) -> None:
        super().save_model(request, obj, form, change)
        self.audit(
            request,
            "webhook.endpoint_changed" if change else endpoints.ADDED,
            obj,
            # The names of the fields: their values may be secrets.
            changed=form.changed_data,
        )

    def delete_model(self, request: HttpRequest, obj: WebhookEndpoint) -> None:
        self.audit(request, "webhook.endpoint_deleted", obj)
        super().delete_model(request, obj)

    def delete_queryset(
        self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]
    ) -> None:
        for endpoint in queryset:
            self.audit(request, "webhook.endpoint_deleted", endpoint)
        super().delete_queryset(request, queryset)
