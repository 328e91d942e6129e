"""Recoveries in the admin: how far each has come, and the buttons that steer it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.action_result import Result
from jobs.admin_verbs import Verb, VerbAdmin
from jobs.display import duration
from jobs.markup import NOTHING, badge
from notify.models import WebhookRecovery
from notify.recovering import steering

_PERMISSION = "notify.resend_webhookdelivery"


def _verb(
    name: str, turn: Callable[..., Result], states: Iterable[str]
) -> Verb[WebhookRecovery]:
    return Verb(
        name=name,
        label=name.capitalize(),
        permission=_PERMISSION,
        act=lambda rows, actor, seconds: turn(
            list(rows.values_list("pk", flat=True)), actor=actor
        ),
        applies=lambda recovery: recovery.state in states,
    )


@admin.register(WebhookRecovery)
class WebhookRecoveryAdmin(VerbAdmin[WebhookRecovery]):
    """Recoveries, newest first. One is begun on its endpoint's page."""

    verbs = (
        _verb("pause", steering.pause, [WebhookRecovery.State.RUNNING]),
        Verb(
            name="resume",
            label="Resume",
            permission=_PERMISSION,
            act=lambda rows, actor, seconds: steering.resume(
                list(rows.values_list("pk", flat=True)), actor=actor
            ),
            applies=lambda recovery: (
                recovery.state == WebhookRecovery.State.PAUSED
                or steering.is_stranded(recovery)
            ),
        ),
        _verb("cancel", steering.cancel, steering.LIVE),
    )
    list_display = [
        "created_at",
        "endpoint",
        "state_badge",
        "progress",
        "left",
        "reason",
        "requested_by",
    ]
    list_select_related = ["endpoint"]
    ordering = ["-id"]
    fields = [
        "endpoint_link",
        "state_badge",
        "reason",
        "progress",
        "left",
        "per_minute",
        ("since", "until"),
        ("requested_by", "created_at"),
        "updated_at",
    ]

    class Media:
        css = {"all": ["notify/notify.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookRecovery]:
        return super().get_queryset(request).select_related("endpoint")

    @admin.display(description="endpoint")
    def endpoint_link(self, recovery: WebhookRecovery) -> SafeString:
        url = reverse(
            "admin:notify_webhookendpoint_change", args=[recovery.endpoint_id]
        )
        return format_html('<a href="{}">{}</a>', url, recovery.endpoint.name)

    @admin.display(description="state")
    def state_badge(self, recovery: WebhookRecovery) -> SafeString:
        if recovery.state == WebhookRecovery.State.FINISHED:
            return badge("completed", "finished")
        if recovery.state == WebhookRecovery.State.RUNNING:
            if steering.is_stranded(recovery):
                return format_html("{} its job is gone: resume it", badge("stalled"))
            return badge("waiting" if recovery.reason else "running")
        return badge(recovery.state)

    @admin.display(description="resent")
    def progress(self, recovery: WebhookRecovery) -> SafeString:
        done = recovery.resent + recovery.skipped
        skipped = f", {recovery.skipped:,} skipped" if recovery.skipped else ""
        return format_html(
            '<span class="progress"><progress max="{}" value="{}"></progress> '
            "<span>{} of {}{}</span></span>",
            max(recovery.counted, done, 1),
            done,
            f"{recovery.resent:,}",
            f"{recovery.counted:,}",
            skipped,
        )

    @admin.display(description="left")
    def left(self, recovery: WebhookRecovery) -> str:
        rest = recovery.counted - recovery.resent - recovery.skipped
        if recovery.state not in steering.LIVE or rest <= 0:
            return NOTHING
        takes = dt.timedelta(minutes=1) * rest / recovery.per_minute
        return f"about {duration(takes)} at {recovery.per_minute:,} a minute"
