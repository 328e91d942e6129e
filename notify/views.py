"""The inbox: what a user was told. Each sees their own, whether they may enter the admin or not."""

from __future__ import annotations

import re
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser
from django.core.paginator import Paginator
from django.db.models import Count, Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from jobs.display import seen
from notify.models import Notification
from notify.querysets import NotificationQuerySet

PER_PAGE = 25

_NUMBER = re.compile(r"[0-9]{1,18}")


@require_safe
@login_required
def inbox(request: HttpRequest) -> HttpResponse:
    """The user's notifications, unread first, then the newest."""
    notifications = _own(request)
    page = Paginator(notifications.inbox(), PER_PAGE).get_page(request.GET.get("page"))
    for shown in page:
        shown.title, shown.body = seen(shown.title), seen(shown.body)
    unread = (
        notifications.order_by().unread().aggregate(count=Count("pk"), newest=Max("pk"))
    )
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "is_nav_sidebar_enabled": False,
        "title": "Inbox",
        "page": page,
        "page_range": page.paginator.get_elided_page_range(page.number),
        "unread": unread,
    }
    return render(request, "notify/inbox.html", context)


@require_POST
@login_required
def mark_read(request: HttpRequest, pk: int) -> HttpResponse:
    """Mark one of the user's notifications as read; one of another user's does not exist here."""
    get_object_or_404(_own(request), pk=pk)
    _own(request).filter(pk=pk).mark_read()
    return _back(request)


@require_POST
@login_required
def mark_all_read(request: HttpRequest) -> HttpResponse:
    """Mark all of the user's notifications as read, but for what came after the page was drawn."""
    unread = _own(request)
    newest = _number(request, "newest")
    if newest is not None:
        unread = unread.filter(pk__lte=newest)
    count = unread.mark_read()
    messages.success(request, f"Marked as read: {count}.")
    return _back(request)


def _own(request: HttpRequest) -> NotificationQuerySet:
    # login_required has let nobody else in.
    return Notification.objects.of(cast("AbstractBaseUser", request.user))


def _back(request: HttpRequest) -> HttpResponse:
    page = _number(request, "page")
    query = "" if page is None else f"?page={page}"
    return redirect(reverse("notify:inbox") + query)


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.POST.get(name, "")
    return int(text) if _NUMBER.fullmatch(text) else None
