"""Webhook endpoints in the admin: receivers, and their health."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from jobs.display import duration
from jobs.markup import NOTHING, badge
from notify import endpoints, links, standing
from notify.admin.checking import CheckupTool
from notify.admin.recovering import RecoverTool
from notify.admin.rotating import RotationTools
from notify.admin.switching import SwitchTools
from notify.admin.testing import TestTool
from notify.forms import WebhookEndpointForm
from notify.models import WebhookAttempt, WebhookEndpoint, WebhookRecovery

_OPTIONS = ("timeout", "max_in_flight", "checkup_allowed")
_HEALTH = (
    "state",
    ("delivered_at", "last_verdict"),
    ("failing_since", "in_flight"),
    "waiting",
    "see_also",
)
_BADGES = {
    "well": "completed",
    "failing": "failed",
    "disabled": "failed",
    "open": "failed",
}
"""The states of jobs whose colours go with an endpoint's."""

_OF_ROTATION = (
    "encrypted_secret",
    "staged_secret",
    "staged_at",
    "retiring_secret",
    "promoted_at",
)
_OF_WORKERS = {"enabled", "disabled_reason", "window", "window_after"}
_OF_THE_FORM = [
    field.name
    for field in WebhookEndpoint._meta.concrete_fields
    if not (
        field.primary_key
        or field.name in _OF_WORKERS
        or field.name.startswith("breaker")
    )
]
"""What the form writes. What became of deliveries meanwhile stays, and a secret that was changed by its buttons."""


def _time(time: dt.datetime | None) -> str | None:
    return None if time is None else date_format(localtime(time), "DATETIME_FORMAT")


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(
    SwitchTools, TestTool, RotationTools, RecoverTool, CheckupTool
):
    """Receivers. Their URLs show only to those who may change them, their secrets to nobody."""

    form = WebhookEndpointForm
    list_display = [
        "name",
        "state",
        "waiting",
        "in_flight",
        "failing_since",
        "delivered_at",
        "target",
        "topic_list",
    ]
    show_facets = admin.ShowFacets.NEVER
    list_filter = ["enabled", "breaker"]
    search_fields = ["name"]
    # What is counted for each of them is worth no sorting.
    sortable_by = ("name",)
    readonly_fields = [
        "target",
        "state",
        "delivered_at",
        "last_verdict",
        "failing_since",
        "in_flight",
        "waiting",
        "see_also",
        "rotation",
        "created_at",
        "updated_at",
    ]

    class Media:
        css = {"all": ["jobs/console.css", "notify/notify.css"]}

    def lookup_allowed(
        self, lookup: str, value: str, request: HttpRequest | None = None
    ) -> bool:
        # The filters' and nothing else: by url__startswith a URL that is not shown could be guessed.
        return lookup in {"enabled__exact", "breaker__exact"}

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookEndpoint]:
        return WebhookEndpoint.objects.with_health()

    def get_fieldsets(
        self, request: HttpRequest, obj: WebhookEndpoint | None = None
    ) -> Any:
        may_change = obj is None or self.has_change_permission(request, obj)
        # Whoever may only look sees no name of a header, either.
        what = ("name", "url", "secret") if may_change else ("name", "target")
        how = ("headers", *_OPTIONS) if may_change else _OPTIONS
        # Afterwards there are buttons for that: to enable it is more than to set a flag.
        enabled = ["enabled"] if obj is None else []
        receiver = (None, {"fields": [*what, "topics", *enabled]})
        sending = ("How it is sent", {"fields": how})
        if obj is None:
            return [receiver, sending]
        health = ("Health", {"fields": _HEALTH})
        times = ("Times", {"fields": [("created_at", "updated_at")]})
        secret = ("Secret", {"fields": ["rotation"]})
        return [health, receiver, secret, sending, times]

    @admin.display(description="topics")
    def topic_list(self, endpoint: WebhookEndpoint) -> str:
        return ", ".join(endpoint.topics) or "none: it gets nothing"

    @admin.display(description="state")
    def state(self, endpoint: WebhookEndpoint) -> SafeString:
        word, reason = standing.word(endpoint), standing.reason(endpoint)
        shown = badge(_BADGES.get(word, word), word)
        if not reason:
            return shown
        return format_html('{} <span class="why">{}</span>', shown, reason)

    @admin.display(description="last delivered")
    def delivered_at(self, endpoint: WebhookEndpoint) -> str:
        return _time(endpoint.delivered_at) or "never"

    @admin.display(description="failing since")
    def failing_since(self, endpoint: WebhookEndpoint) -> str:
        return _time(endpoint.failing_since) or NOTHING

    @admin.display(description="in flight")
    def in_flight(self, endpoint: WebhookEndpoint) -> str:
        return f"{endpoint.in_flight} of {endpoint.max_in_flight}"

    @admin.display(description="waiting")
    def waiting(self, endpoint: WebhookEndpoint) -> SafeString | str:
        if endpoint.waiting_since is None:
            return "none"
        return format_html(
            '<a href="{}?endpoint={}&amp;status=pending">{}</a>, the oldest for {}',
            reverse("admin:notify_webhookdelivery_changelist"),
            endpoint.pk,
            f"{endpoint.waiting:,}",
            duration(timezone.now() - endpoint.waiting_since),
        )

    @admin.display(description="last attempt")
    def last_verdict(self, endpoint: WebhookEndpoint) -> str:
        verdict = endpoint.last_verdict
        return WebhookAttempt.Verdict(verdict).label if verdict else "none"

    @admin.display(description="see also")
    def see_also(self, endpoint: WebhookEndpoint) -> SafeString:
        return format_html(
            '<a href="{0}?endpoint={3}">deliveries</a>, <a href="{4}">dead ones</a>, '
            '<a href="{1}?endpoint__id__exact={3}">attempts</a>, <a href="{2}">recoveries</a>',
            reverse("admin:notify_webhookdelivery_changelist"),
            reverse("admin:notify_webhookattempt_changelist"),
            reverse("admin:notify_webhookrecovery_changelist"),
            endpoint.pk,
            links.dead_deliveries(str(endpoint.pk)),
        )

    def save_model(
        self,
        request: HttpRequest,
        obj: WebhookEndpoint,
        form: ModelForm[WebhookEndpoint],
        change: bool,
    ) -> None:
        if change:
            locked = WebhookEndpoint.objects.select_for_update(no_key=True)
            now = locked.get(pk=obj.pk)
            for name in () if "secret" in form.changed_data else _OF_ROTATION:
                setattr(obj, name, getattr(now, name))
            obj.save(update_fields=_OF_THE_FORM)
        else:
            super().save_model(request, obj, form, change)
        self.audit(
            request,
            "webhook.endpoint_changed" if change else endpoints.ADDED,
            obj,
            # The names of the fields: their values may be secrets.
            changed=form.changed_data,
        )

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        # Nobody deletes a recovery by itself; with its endpoint it goes.
        objects, counts, needed, protected = super().get_deleted_objects(objs, request)
        needed.discard(WebhookRecovery._meta.verbose_name)
        return objects, counts, needed, protected

    def delete_model(self, request: HttpRequest, obj: WebhookEndpoint) -> None:
        self.audit(request, "webhook.endpoint_deleted", obj)
        super().delete_model(request, obj)

    def delete_queryset(
        self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]
    ) -> None:
        for endpoint in queryset:
            self.audit(request, "webhook.endpoint_deleted", endpoint)
        super().delete_queryset(request, queryset)
