"""The admin site of ACW: its titles, and the order of what it shows."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from notify.models import Notification

# What operators look at most comes first; unknown apps come last, by name.
_ORDER = ("jobs", "notify", "tasks", "workspaces", "auth")


class ConsoleSite(admin.AdminSite):
    """The one admin site."""

    site_title = "ACW"
    site_header = "ACW console"
    index_title = "Overview"

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context = super().each_context(request)
        if request.user.is_authenticated:
            unread = Notification.objects.of(request.user).unread()
            context["unread_notifications"] = unread.count()
        return context

    def get_app_list(
        self, request: HttpRequest, app_label: str | None = None
    ) -> list[Any]:
        apps = super().get_app_list(request, app_label)
        return sorted(apps, key=lambda app: _rank(app["app_label"]))


def _rank(label: str) -> tuple[int, str]:
    return (_ORDER.index(label) if label in _ORDER else len(_ORDER), label)
