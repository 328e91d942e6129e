"""Notifications and the audit in the admin."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from jobs.admin_permissions import OnlyRead
from jobs.display import seen
from jobs.markup import block
from notify.admin.written import TopicFilter, Written, pretty
from notify.models import AuditEntry, Notification


@admin.register(Notification)
class NotificationAdmin(Written):
    """What was told to whom. May be deleted, or a user who was told something could not be."""

    list_display = ["created_at", "user", "topic", "title_cell", "count", "read_at"]
    list_filter = [TopicFilter, ("read_at", admin.EmptyFieldListFilter), "created_at"]
    list_select_related = ["user"]
    search_fields = ["=user__username", "=topic", "title"]
    ordering = ["-id"]
    fields = [
        "user",
        "topic",
        "title_cell",
        "body_text",
        "pretty_data",
        "count",
        "read_at",
        "created_at",
    ]

    @admin.display(description="title", ordering="title")
    def title_cell(self, notification: Notification) -> str:
        return seen(notification.title)

    @admin.display(description="body")
    def body_text(self, notification: Notification) -> SafeString | str:
        return block(notification.body)

    @admin.display(description="data")
    def pretty_data(self, notification: Notification) -> SafeString | str:
        return pretty(notification.data)


@admin.register(AuditEntry)
class AuditEntryAdmin(OnlyRead, Written):
    """Who did what. Nobody changes the record."""

    list_display = ["created_at", "actor", "action", "target"]
    list_filter = ["action", "created_at"]
    search_fields = ["=actor", "=action", "=target"]
    ordering = ["-id"]
    fields = ["created_at", "actor", "action", "target", "pretty_data"]

    @admin.display(description="data")
    def pretty_data(self, entry: AuditEntry) -> SafeString | str:
        return pretty(entry.data)
