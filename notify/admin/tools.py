"""The buttons on an endpoint's page: each mixin adds its own, and the pages behind them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from notify import audit
from notify.models import WebhookEndpoint

CHANGE, TEST = "notify.change_webhookendpoint", "notify.test_webhookendpoint"
"""Permissions for buttons."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A button. ``posts`` is false for one that leads to a page."""

    label: str
    url: str
    posts: bool = True


class EndpointTools(admin.ModelAdmin[WebhookEndpoint]):
    """What the mixins share. One that adds buttons extends ``tools`` and ``get_urls``."""

    def tools(self, request: HttpRequest, endpoint: WebhookEndpoint) -> Iterable[Tool]:
        """The buttons that this user sees on this endpoint's page."""
        return ()

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        endpoint = self.get_object(request, unquote(object_id))
        tools = () if endpoint is None else self.tools(request, endpoint)
        context = {"tools": list(tools), **(extra_context or {})}
        return super().change_view(request, object_id, form_url, context)

    def tool_url(self, name: str, endpoint: WebhookEndpoint) -> str:
        """The address of the page or action ``notify_webhookendpoint_<name>``."""
        return reverse(f"admin:notify_webhookendpoint_{name}", args=[endpoint.pk])

    def endpoint_for(
        self, request: HttpRequest, object_id: str, *, permission: str
    ) -> WebhookEndpoint:
        """The endpoint that a button was pressed for. Raises PermissionDenied and Http404.

        Whoever may not see the endpoint's page may not press its buttons, either.
        """
        may_see = self.has_view_permission(request)
        if not (may_see and request.user.has_perm(permission)):
            raise PermissionDenied(permission)
        endpoint = self.get_object(request, unquote(object_id))
        if endpoint is None:
            raise Http404
        return endpoint

    def back(
        self,
        request: HttpRequest,
        endpoint: WebhookEndpoint,
        message: str,
        level: int = messages.SUCCESS,
    ) -> HttpResponse:
        """To the endpoint's page, with a message."""
        self.message_user(request, message, level)
        return HttpResponseRedirect(self.tool_url("change", endpoint))

    def audit(
        self, request: HttpRequest, action: str, endpoint: WebhookEndpoint, **data: Any
    ) -> None:
        """Record what this user did."""
        audit.record(
            request.user.get_username(),
            action,
            target=f"webhook:{endpoint.name}",
            data={"target": endpoint.target, **data},
        )
