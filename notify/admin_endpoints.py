"""Webhook endpoints in the admin: receivers, their health, and the button that sends a test event."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.views.decorators.http import require_POST

from notify import audit, endpoints, sending
from notify.delivery import Verdict
from notify.forms import WebhookEndpointForm
from notify.models import WebhookAttempt, WebhookEndpoint


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(admin.ModelAdmin[WebhookEndpoint]):
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
        self._audit(
            request,
            "webhook.endpoint_changed" if change else endpoints.ADDED,
            obj,
            # The names of the fields: their values may be secrets.
            changed=form.changed_data,
        )

    def delete_model(self, request: HttpRequest, obj: WebhookEndpoint) -> None:
        self._audit(request, "webhook.endpoint_deleted", obj)
        super().delete_model(request, obj)

    def delete_queryset(
        self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]
    ) -> None:
        for endpoint in queryset:
            self._audit(request, "webhook.endpoint_deleted", endpoint)
        super().delete_queryset(request, queryset)

    def has_test_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("notify.test_webhookendpoint")

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        context = {
            "may_test": self.has_test_permission(request),
            **(extra_context or {}),
        }
        return super().change_view(request, object_id, form_url, context)

    def get_urls(self) -> list[URLPattern]:
        test = path(
            "<path:object_id>/test/",
            self.admin_site.admin_view(self.test_view),
            name="notify_webhookendpoint_test",
        )
        return [test, *super().get_urls()]

    @method_decorator(require_POST)
    def test_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Send a test event now, and show what came of it."""
        if not self.has_test_permission(request):
            raise PermissionDenied
        endpoint = self.get_object(request, unquote(object_id))
        if endpoint is None:
            raise Http404
        attempt, judgement = sending.send_test(endpoint)
        self._audit(
            request, "webhook.test_sent", endpoint, verdict=judgement.verdict.value
        )
        delivered = judgement.verdict is Verdict.COMPLETED
        self.message_user(
            request,
            sending.describe(attempt),
            messages.SUCCESS if delivered else messages.ERROR,
        )
        return HttpResponseRedirect(
            reverse("admin:notify_webhookendpoint_change", args=[endpoint.pk])
        )

    def _audit(
        self, request: HttpRequest, action: str, endpoint: WebhookEndpoint, **data: Any
    ) -> None:
        audit.record(
            request.user.get_username(),
            action,
            target=f"webhook:{endpoint.name}",
            data={"target": endpoint.target, **data},
        )
