"""The button and the page that begin the recovery of an endpoint."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from jobs.display import duration
from notify.admin.tools import EndpointTools, Tool
from notify.exceptions import RecoveryRefused
from notify.models import WebhookEndpoint
from notify.models.delivery import MOST_PER_MINUTE
from notify.recovering import since, steering


class RecoverForm(forms.Form):
    """What to resend, and how fast."""

    since = forms.CharField(
        label="What died since",
        initial="24h",
        max_length=64,
        help_text=f"{since.ACCEPTED}.",
    )
    per_minute = forms.IntegerField(
        label="How many a minute",
        initial=steering.PER_MINUTE,
        min_value=1,
        max_value=MOST_PER_MINUTE,
    )

    def clean_since(self) -> dt.datetime | dt.timedelta:
        try:
            return since.parse_since(self.cleaned_data["since"])
        except ValueError as error:
            raise forms.ValidationError(str(error), code="invalid") from None


class RecoverTool(EndpointTools):
    """Asks since when and how fast, says how many that is, and begins only then."""

    def has_recover_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(_RESEND)

    def tools(self, request: HttpRequest, endpoint: WebhookEndpoint) -> Iterable[Tool]:
        yield from super().tools(request, endpoint)
        if self.has_recover_permission(request):
            yield Tool(
                label="Recover…", url=self.tool_url("recover", endpoint), posts=False
            )

    def get_urls(self) -> list[URLPattern]:
        recover = path(
            "<path:object_id>/recover/",
            self.admin_site.admin_view(self.recover_view),
            name="notify_webhookendpoint_recover",
        )
        return [recover, *super().get_urls()]

    def recover_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The form; with its values as a query what they come to; posted, begin."""
        endpoint = self.endpoint_for(request, object_id, permission=_RESEND)
        given = request.POST or request.GET
        form = RecoverForm(given) if "since" in given else RecoverForm()
        counted = None
        if form.is_bound and form.is_valid():
            counted = steering.scope(endpoint, form.cleaned_data["since"])
            if request.method == "POST":
                return self._begin(request, endpoint, counted, form)
        return self._ask(request, endpoint, form, counted)

    def _ask(
        self,
        request: HttpRequest,
        endpoint: WebhookEndpoint,
        form: RecoverForm,
        counted: steering.Scope | None,
    ) -> HttpResponse:
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": f"Recover {endpoint.name}",
            "opts": self.opts,
            "media": self.media,
            "endpoint": endpoint,
            "back": self.tool_url("change", endpoint),
            "form": form,
            "counted": counted,
            "live": endpoint.recoveries.filter(state__in=steering.LIVE).first(),
        }
        if counted is not None:
            pace = form.cleaned_data["per_minute"]
            context["pace"] = pace
            context["takes"] = duration(dt.timedelta(minutes=1) * counted.count / pace)
        return TemplateResponse(request, _TEMPLATE, context)

    def _begin(
        self,
        request: HttpRequest,
        endpoint: WebhookEndpoint,
        counted: steering.Scope,
        form: RecoverForm,
    ) -> HttpResponse:
        try:
            recovery = steering.begin(
                endpoint,
                counted,
                actor=request.user.get_username(),
                per_minute=form.cleaned_data["per_minute"],
            )
        except RecoveryRefused as refused:
            return self.back(request, endpoint, f"Refused: {refused}.", messages.ERROR)
        are = "is" if counted.count == 1 else "are"
        begun = f"{counted.count:,} {are} resent to {endpoint.name}."
        if not request.user.has_perm("notify.view_webhookrecovery"):
            return self.back(request, endpoint, begun)
        self.message_user(request, begun, messages.SUCCESS)
        return HttpResponseRedirect(
            reverse("admin:notify_webhookrecovery_change", args=[recovery.pk])
        )


_RESEND = "notify.resend_webhookdelivery"
_TEMPLATE = "admin/notify/webhookendpoint/recover.html"
