"""The button that sends a test event."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from notify import sending
from notify.admin.tools import TEST, EndpointTools, Tool
from notify.delivery import Verdict
from notify.models import WebhookEndpoint


class TestTool(EndpointTools):
    """Sends a test event through the real path, and shows what came of it."""

    def has_test_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(TEST)

    def tools(self, request: HttpRequest, endpoint: WebhookEndpoint) -> Iterable[Tool]:
        yield from super().tools(request, endpoint)
        if self.has_test_permission(request):
            yield Tool(label="Send test event", url=self.tool_url("test", endpoint))

    def get_urls(self) -> list[URLPattern]:
        test = path(
            "<path:object_id>/test/",
            self.admin_site.admin_view(self.test_view),
            name="notify_webhookendpoint_test",
        )
        return [test, *super().get_urls()]

    @method_decorator(require_POST)
    def test_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Send it now."""
        endpoint = self.endpoint_for(request, object_id, permission=TEST)
        attempt, judgement = sending.send_test(endpoint)
        self.audit(
            request, "webhook.test_sent", endpoint, verdict=judgement.verdict.value
        )
        delivered = judgement.verdict is Verdict.COMPLETED
        level = messages.SUCCESS if delivered else messages.ERROR
        return self.back(request, endpoint, sending.describe(attempt), level)
