"""Deliveries in the admin: the queue's jobs of this type, and what each attempt came to."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any

from django.contrib import admin
from django.db.models import CharField, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Left
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs import actions
from jobs.admin_verbs import Verb, VerbAdmin
from jobs.markup import NOTHING, badge, cut
from jobs.models import LIVE, Status
from jobs.pagination import CappedPaginator
from notify.admin.delivery_filters import (
    EndpointFilter,
    StatusFilter,
    TimeFilter,
    TopicFilter,
)
from notify.admin.delivery_page import sections
from notify.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint
from notify.resending import resend

_CAUSE_IN_LIST = 300


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(VerbAdmin[WebhookDelivery]):
    """Deliveries, newest first."""

    verbs = (
        Verb(
            name="resend",
            label="Resend",
            permission="notify.resend_webhookdelivery",
            act=lambda rows, actor, seconds: resend(
                rows, actor=actor, time_limit=seconds
            ),
            applies=lambda delivery: delivery.status in (Status.DEAD, Status.COMPLETED),
            note="Each is sent with the event id that it had, by which its receiver knows it again.",
        ),
        Verb(
            name="cancel",
            label="Cancel",
            permission="jobs.cancel_job",
            act=lambda rows, actor, seconds: actions.cancel(
                rows, actor=actor, time_limit=seconds
            ),
            applies=lambda delivery: (
                delivery.status in LIVE and not delivery.cancel_requested_at
            ),
            note="One that is under way may still arrive.",
        ),
    )
    paginator = CappedPaginator
    list_display = [
        "created_at",
        "endpoint_name",
        "topic",
        "status_badge",
        "attempts_of",
        "cause_cell",
    ]
    list_filter = [StatusFilter, EndpointFilter, TimeFilter, TopicFilter]
    list_per_page = 50
    ordering = ["-id"]
    # Searched by the exact id only, see get_search_results().
    search_fields = ["=id"]
    search_help_text = "An event's ID, in full."
    fieldsets = [
        (
            None,
            {
                "fields": [
                    ("endpoint_link", "topic"),
                    ("status_badge", "attempts_of"),
                    ("created_at", "completed_at"),
                    "event_id",
                ]
            },
        )
    ]

    class Media:
        css = {"all": ["notify/notify.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookDelivery]:
        last = WebhookAttempt.objects.filter(job_id=OuterRef("pk")).order_by("-id")
        endpoint = WebhookEndpoint.objects.annotate(ref=Cast("pk", CharField()))
        endpoint = endpoint.order_by().filter(ref=OuterRef("ref_id"))
        return (
            WebhookDelivery.objects.all()
            .defer("payload", "last_error")
            .annotate(
                topic=KeyTextTransform("topic", "payload"),
                endpoint_name=Subquery(endpoint.values("name")),
                cause=Subquery(last.values("cause")[:1]),
                answer=Subquery(last.values("status")[:1]),
                superseded_by=Subquery(last.values("superseded_by")[:1]),
                error_start=Left(F("last_error"), _CAUSE_IN_LIST),
            )
        )

    def get_search_results(
        self,
        request: HttpRequest,
        queryset: QuerySet[WebhookDelivery],
        search_term: str,
    ) -> tuple[QuerySet[WebhookDelivery], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        wanted = Q(pk__in=[])
        with suppress(ValueError):
            wanted = Q(pk=uuid.UUID(term))
        return queryset.filter(wanted), False

    def lookup_allowed(
        self, lookup: str, value: str, request: HttpRequest | None = None
    ) -> bool:
        # The filters' and nothing else: what is in bodies is no way to filter.
        return lookup in {
            filter_.parameter_name
            for filter_ in (StatusFilter, EndpointFilter, TimeFilter, TopicFilter)
        }

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        delivery = kwargs.get("obj")
        if delivery is not None:
            may_see_url = request.user.has_perm("notify.change_webhookendpoint")
            may_resend = request.user.has_perm("notify.resend_webhookdelivery")
            context["sections"] = sections(
                delivery, may_resend=may_resend, may_see_url=may_see_url
            )
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description="endpoint")
    def endpoint_name(self, delivery: WebhookDelivery) -> str:
        return getattr(delivery, "endpoint_name", None) or "deleted"

    @admin.display(description="endpoint")
    def endpoint_link(self, delivery: WebhookDelivery) -> SafeString | str:
        name = getattr(delivery, "endpoint_name", None)
        if not name:
            return "deleted"
        url = reverse("admin:notify_webhookendpoint_change", args=[delivery.ref_id])
        return format_html('<a href="{}">{}</a>', url, name)

    @admin.display(description="topic")
    def topic(self, delivery: WebhookDelivery) -> str:
        return getattr(delivery, "topic", None) or NOTHING

    @admin.display(description="status")
    def status_badge(self, delivery: WebhookDelivery) -> SafeString:
        superseded = getattr(delivery, "superseded_by", None)
        if superseded and delivery.status == Status.CANCELLED:
            return badge(delivery.status, "superseded")
        return badge(delivery.status)

    @admin.display(description="attempts")
    def attempts_of(self, delivery: WebhookDelivery) -> str:
        return f"{delivery.attempts}/{delivery.max_attempts}"

    @admin.display(description="event id")
    def event_id(self, delivery: WebhookDelivery) -> SafeString:
        url = reverse("admin:jobs_job_change", args=[delivery.pk])
        return format_html('{} (<a href="{}">its job</a>)', delivery.pk, url)

    @admin.display(description="last answer")
    def cause_cell(self, delivery: WebhookDelivery) -> SafeString | str:
        answer = getattr(delivery, "answer", None)
        cause = getattr(delivery, "cause", None) or (answer and f"HTTP {answer}")
        return cut(str(cause or getattr(delivery, "error_start", "")))
