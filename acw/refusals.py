"""What is shown in place of a page that a user may not see, or that is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import Error
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views import defaults

_READ = frozenset({"changelist", "history"})
_NAMED_OTHERWISE = {"password_change": "change"}

_Handler = Callable[[HttpRequest, Exception], HttpResponseBase]


def _or_plain(plain: _Handler) -> Callable[[_Handler], _Handler]:
    """While the database is away nobody knows who asks: the status is the same all the same, and no server error."""

    def decorate(handler: _Handler) -> _Handler:
        @wraps(handler)
        def answer(request: HttpRequest, exception: Exception) -> HttpResponseBase:
            try:
                return handler(request, exception)
            except Error:
                return plain(request, exception)

        return answer

    return decorate


@_or_plain(defaults.permission_denied)
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Names the permissions that are missing, for whoever gives them.

    A page that needs one which neither its address nor Django's rules tell raises
    ``PermissionDenied("app.codename")``.
    """
    needed = dict.fromkeys([*_needed(request), *map(str, exception.args)])
    missing = [
        permission
        for permission in map(_permission, needed)
        if permission and not request.user.has_perm(_full_name(permission))
    ]
    context = {
        "title": "You may not do this",
        "missing": [(one.name, _full_name(one)) for one in missing],
    }
    return _page(request, context, status=403)


@_or_plain(defaults.page_not_found)
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Says what is not there, where that is known."""
    said = exception.args[0] if exception.args else ""
    context = {
        "title": "There is no such page",
        "said": said if isinstance(said, str) else "",
    }
    return _page(request, context, status=404)


def _needed(request: HttpRequest) -> Iterator[str]:
    """What the address of an admin page tells of the permissions that it needs."""
    match = request.resolver_match
    name = (match.url_name or "") if match and match.app_name == "admin" else ""
    for model in admin.site._registry:
        app, table = model._meta.app_label, model._meta.model_name
        prefix = f"{app}_{table}_"
        if name.startswith(prefix):
            # Whoever may change rows may see them.
            if not request.user.has_perm(f"{app}.change_{table}"):
                yield f"{app}.view_{table}"
            verb = name.removeprefix(prefix)
            if verb not in _READ and (verb != "change" or request.method == "POST"):
                yield f"{app}.{_NAMED_OTHERWISE.get(verb, verb)}_{table}"


def _permission(name: str) -> Permission | None:
    app, _, codename = name.partition(".")
    found = Permission.objects.select_related("content_type")
    return found.filter(content_type__app_label=app, codename=codename).first()


def _full_name(permission: Permission) -> str:
    return f"{permission.content_type.app_label}.{permission.codename}"


def _page(
    request: HttpRequest, context: dict[str, Any], *, status: int
) -> HttpResponse:
    shared = {**admin.site.each_context(request), "is_nav_sidebar_enabled": False}
    return render(request, "refused.html", {**shared, **context}, status=status)
