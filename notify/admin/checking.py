"""The button that checks a receiver up, and the page that shows what was found."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from notify.admin.tools import TEST, EndpointTools, Tool
from notify.checkup.run import check_up
from notify.exceptions import NotifyError
from notify.models import WebhookEndpoint


class CheckupTool(EndpointTools):
    """Needs the permission to send test events. Audited where it is done."""

    def tools(self, request: HttpRequest, endpoint: WebhookEndpoint) -> Iterable[Tool]:
        yield from super().tools(request, endpoint)
        if self._may_check_up(request):
            yield Tool(label="Check up", url=self.tool_url("checkup", endpoint))

    def get_urls(self) -> list[URLPattern]:
        checkup = path(
            "<path:object_id>/checkup/",
            self.admin_site.admin_view(self.checkup_view),
            name="notify_webhookendpoint_checkup",
        )
        return [checkup, *super().get_urls()]

    @method_decorator(require_POST)
    def checkup_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Do it now. The report is the answer and is kept nowhere: another look is another check-up."""
        endpoint = self.endpoint_for(request, object_id, permission=TEST)
        try:
            report = check_up(endpoint, actor=request.user.get_username())
        except NotifyError as error:
            return self.back(request, endpoint, str(error), messages.ERROR)
        context = {
            **self.admin_site.each_context(request),
            "title": f"Check-up of {endpoint.name}",
            "opts": self.opts,
            "original": endpoint,
            "report": report,
            "media": self.media,
        }
        template = "admin/notify/webhookendpoint/checkup.html"
        return TemplateResponse(request, template, context)

    def _may_check_up(self, request: HttpRequest) -> bool:
        return request.user.has_perm(TEST)
