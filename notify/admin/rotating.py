"""The buttons that change an endpoint's secret step by step, and the page that shows a new one, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from notify import proving, rotation, signing
from notify.admin.tools import CHANGE, EndpointTools, Tool
from notify.exceptions import NotifyError
from notify.models import WebhookEndpoint
from notify.rotation import Phase


@dataclass(frozen=True, kw_only=True)
class _Step:
    name: str
    label: str
    act: Callable[..., None]
    phase: Phase
    done: str


_STEPS = (
    _Step(
        name="promote",
        label="Promote new secret",
        act=proving.promote,
        phase=Phase.STAGED,
        done="Promoted: the receiver has taken a test event that only the new secret signed.",
    ),
    _Step(
        name="abandon",
        label="Abandon new secret",
        act=rotation.abandon,
        phase=Phase.STAGED,
        done="Abandoned: the endpoint keeps the secret that it had.",
    ),
    _Step(
        name="retire",
        label="Retire old secret",
        act=rotation.retire,
        phase=Phase.RETIRING,
        done="Retired: only the new secret signs.",
    ),
)


class RotationTools(EndpointTools):
    """Needs the permission to change endpoints. Audited where it is done."""

    def tools(self, request: HttpRequest, endpoint: WebhookEndpoint) -> Iterable[Tool]:
        yield from super().tools(request, endpoint)
        if not self.has_change_permission(request, endpoint):
            return
        phase = rotation.of(endpoint).phase
        if phase is Phase.SETTLED:
            yield Tool(label="Rotate secret", url=self.tool_url("rotate", endpoint))
        for step in _STEPS:
            if step.phase is phase:
                yield Tool(label=step.label, url=self.tool_url(step.name, endpoint))

    def get_urls(self) -> list[URLPattern]:
        steps = [
            path(
                f"<path:object_id>/{step.name}/",
                self.admin_site.admin_view(require_POST(partial(self._step, step))),
                name=f"notify_webhookendpoint_{step.name}",
            )
            for step in _STEPS
        ]
        rotate = path(
            "<path:object_id>/rotate/",
            self.admin_site.admin_view(self.rotate_view),
            name="notify_webhookendpoint_rotate",
        )
        return [rotate, *steps, *super().get_urls()]

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if request.method != "POST" or object_id is None:
            return super().changeform_view(request, object_id, form_url, extra_context)
        # The form saves the whole row: without the lock it would put back the secrets that a step has just changed.
        with transaction.atomic():
            pk = unquote(object_id)
            if pk.isdecimal():
                list(WebhookEndpoint.objects.select_for_update().filter(pk=pk))
            return super().changeform_view(request, object_id, form_url, extra_context)

    @admin.display(description="changing the secret")
    def rotation(self, endpoint: WebhookEndpoint) -> str:
        return rotation.describe(endpoint)

    @method_decorator(require_POST)
    def rotate_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Stage a new secret. The answer shows it; it is kept nowhere else in the clear, not in the session either."""
        endpoint = self.endpoint_for(request, object_id, permission=CHANGE)
        try:
            secret = rotation.stage(endpoint, actor=request.user.get_username())
        except NotifyError as error:
            return self.back(request, endpoint, f"{error}.", messages.ERROR)
        context = {
            **self.admin_site.each_context(request),
            "title": f"New secret of {endpoint.name}",
            "opts": self.opts,
            "original": endpoint,
            "secret": secret,
            "standard_form": signing.standard_form(secret),
            "media": self.media,
        }
        template = "admin/notify/webhookendpoint/new_secret.html"
        return TemplateResponse(
            request, template, context, headers={"Cache-Control": "no-store"}
        )

    def _step(self, step: _Step, request: HttpRequest, object_id: str) -> HttpResponse:
        endpoint = self.endpoint_for(request, object_id, permission=CHANGE)
        try:
            step.act(endpoint, actor=request.user.get_username())
        except NotifyError as error:
            return self.back(request, endpoint, f"{error}.", messages.ERROR)
        return self.back(request, endpoint, step.done)
