"""Hosts in the admin: whether reconciliation goes on there, what it found last, and the room on the disk. All of it is only read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from jobs.admin_verbs import VerbAdmin
from jobs.markup import NOTHING, badge, block
from jobs.pagination import CappedPaginator
from workspaces.admin import filters, pieces
from workspaces.models import WorkspaceHost

_WAITING = {
    "aside": "put aside",
    "unknown": "unknown",
    "failed": "not mended",
}
"""What the last pass found that waits for somebody, in words."""


@admin.register(WorkspaceHost)
class WorkspaceHostAdmin(VerbAdmin[WorkspaceHost]):
    """What each host's passes of reconciliation have written. Nobody changes it by hand."""

    paginator = CappedPaginator
    list_display = ["host_cell", "status", "looked", "room", "waiting"]
    list_display_links = ["host_cell"]
    list_filter = [filters.StoppedFilter]
    list_per_page = 50
    ordering = ["host"]
    search_fields = ["host"]
    search_help_text = "Part of a host's name (ACW_HOST)."
    fieldsets = [
        (None, {"fields": [("host_cell", "status"), "see_also"]}),
        (
            "Reconciliation",
            {"fields": [("looked", "stopped"), "reason", "advice"]},
        ),
        ("Disk", {"fields": [("room", "mark_text")]}),
        (
            "What waits for somebody, by the last pass",
            {"fields": ["aside", "unknown", "failed"]},
        ),
    ]

    class Media:
        css = {"all": ["workspaces/workspaces.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkspaceHost]:
        return super().get_queryset(request).annotate(read_at=Now())

    @admin.display(description="host")
    def host_cell(self, row: WorkspaceHost) -> SafeString | str:
        return pieces.clamped(row.host)

    @admin.display(description="reconciliation")
    def status(self, row: WorkspaceHost) -> SafeString:
        if row.stopped_at is not None:
            return badge("failed", "stopped itself")
        if row.looked_at is None:
            return badge("new", "no pass yet")
        return badge("completed", "goes on")

    @admin.display(description="last pass")
    def looked(self, row: Any) -> SafeString | str:
        if row.looked_at is None:
            return "none came to its end"
        return pieces.since(row.looked_at, row.read_at)

    @admin.display(description="stopped since")
    def stopped(self, row: WorkspaceHost) -> SafeString | str:
        return pieces.moment(row.stopped_at)

    @admin.display(description="because")
    def reason(self, row: WorkspaceHost) -> SafeString | str:
        return block(pieces.shown(row.stopped_reason))

    @admin.display(description="what to do")
    def advice(self, row: WorkspaceHost) -> str:
        if row.stopped_at is None:
            return NOTHING
        return (
            "Mend that, and it goes on by itself: mount the disk, or connect to the right database. If it is right as it is, run on"
            f" {pieces.shown(row.host)}: manage.py workspace reconcile --force"
        )

    @admin.display(description="room, by the last pass")
    def room(self, row: WorkspaceHost) -> str:
        if row.disk_free is None or not row.disk_total:
            return NOTHING
        share = row.disk_free / row.disk_total
        total = pieces.size(row.disk_total)
        return f"{pieces.size(row.disk_free)} of {total} free ({share:.0%})"

    @admin.display(description="mark")
    def mark_text(self, row: WorkspaceHost) -> str:
        return row.mark or NOTHING

    @admin.display(description="waits for somebody")
    def waiting(self, row: WorkspaceHost) -> str:
        parts = []
        for key, words in _WAITING.items():
            found = row.found.get(key) or ()
            counts = found.values() if isinstance(found, Mapping) else [len(found)]
            if number := sum(counts):
                parts.append(f"{number:,} {words}")
        return ", ".join(parts) or NOTHING

    @admin.display(description="put aside, in .stray")
    def aside(self, row: WorkspaceHost) -> SafeString | str:
        found: Mapping[str, int] = row.found.get("aside") or {}
        return _list(f"{name}: {count:,}" for name, count in found.items())

    @admin.display(description="directories of no workspace")
    def unknown(self, row: WorkspaceHost) -> SafeString | str:
        return _list(row.found.get("unknown") or ())

    @admin.display(description="could not be looked at or mended")
    def failed(self, row: WorkspaceHost) -> SafeString | str:
        return _list(row.found.get("failed") or ())

    @admin.display(description="more")
    def see_also(self, row: WorkspaceHost) -> SafeString:
        return format_html(
            "{}, {}, {}",
            pieces.listed("workspaces_workspace", "its workspaces", host=row.host),
            pieces.listed("workspaces_worktree", "its worktrees", host=row.host),
            pieces.listed("workspaces_ledgerentry", "its ledger", host=row.host),
        )


def _list(names: Iterable[str]) -> SafeString | str:
    lines = [(pieces.shown(name),) for name in names]
    if not lines:
        return NOTHING
    return format_html(
        '<ul class="names">{}</ul>', format_html_join("", "<li>{}</li>", lines)
    )
