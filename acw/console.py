"""The admin site of ACW: its titles, and the order of what it shows."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib import admin
from django.core.exceptions import BadRequest, ValidationError
from django.db import DataError
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from notify.models import Notification

ViewT = TypeVar("ViewT", bound=Callable[..., HttpResponseBase])

# What operators look at most comes first; unknown apps come last, by name.
_ORDER = ("jobs", "notify", "tasks", "workspaces", "auth")


class ConsoleSite(admin.AdminSite):
    """The one admin site."""

    site_title = "ACW"
    site_header = "ACW console"
    index_title = "Overview"

    def admin_view(self, view: ViewT, cacheable: bool = False) -> ViewT:
        """Of filters, keys and selected rows Django hands on what no text in the database can have: that is no fault of the program."""
        inner = super().admin_view(view, cacheable)

        @wraps(inner)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            try:
                return inner(request, *args, **kwargs)
            except (DataError, ValidationError, ValueError) as error:
                if _has_nul(request):
                    raise BadRequest("a NUL character was sent") from error
                raise

        return cast("ViewT", answer)

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


def _has_nul(request: HttpRequest) -> bool:
    sent = [request.path]
    for query in (request.GET, request.POST):
        sent += [value for _, values in query.lists() for value in values]
    return any("\x00" in str(value) for value in sent)


def _rank(label: str) -> tuple[int, str]:
    return (_ORDER.index(label) if label in _ORDER else len(_ORDER), label)
