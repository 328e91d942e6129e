"""The buttons that enable and disable an endpoint, and have one tried again that is held back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from notify.admin.tools import CHANGE, EndpointTools, Tool
from notify.health import switching
from notify.models import WebhookEndpoint


@dataclass(frozen=True, kw_only=True)
class _Switch:
    name: str
    label: str
    act: Callable[..., bool]
    applies: Callable[[WebhookEndpoint], bool]
    done: str
    idle: str


_SWITCHES = (
    _Switch(
        name="enable",
        label="Enable",
        act=switching.enable,
        applies=lambda endpoint: not endpoint.enabled,
        done="Enabled: what waits for it is sent.",
        idle="It was enabled already.",
    ),
    _Switch(
        name="disable",
        label="Disable",
        act=switching.disable,
        applies=lambda endpoint: endpoint.enabled,
        done="Disabled: what waits for it waits on, and new events are not kept for it.",
        idle="It was disabled already.",
    ),
    _Switch(
        name="resume",
        label="Resume now",
        act=switching.resume,
        applies=lambda endpoint: (
            endpoint.enabled and endpoint.breaker != WebhookEndpoint.Breaker.CLOSED
        ),
        done="It is tried again now.",
        idle="Nothing to resume: it is disabled, or its breaker is closed.",
    ),
)


class SwitchTools(EndpointTools):
    """Needs the permission to change endpoints. Audited where it is done."""

    def tools(self, request: HttpRequest, endpoint: WebhookEndpoint) -> Iterable[Tool]:
        yield from super().tools(request, endpoint)
        if self.has_change_permission(request, endpoint):
            for switch in _SWITCHES:
                if switch.applies(endpoint):
                    yield Tool(
                        label=switch.label, url=self.tool_url(switch.name, endpoint)
                    )

    def get_urls(self) -> list[URLPattern]:
        switches = [
            path(
                f"<path:object_id>/{switch.name}/",
                self.admin_site.admin_view(require_POST(partial(self._switch, switch))),
                name=f"notify_webhookendpoint_{switch.name}",
            )
            for switch in _SWITCHES
        ]
        return [*switches, *super().get_urls()]

    def _switch(
        self, switch: _Switch, request: HttpRequest, object_id: str
    ) -> HttpResponse:
        endpoint = self.endpoint_for(request, object_id, permission=CHANGE)
        if switch.act(endpoint, actor=request.user.get_username()):
            return self.back(request, endpoint, switch.done)
        return self.back(request, endpoint, switch.idle, messages.WARNING)
