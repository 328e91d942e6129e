"""Worktrees in the admin: who has them, for how long nobody has, when they will be pruned and what of them would be archived."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.display import duration
from jobs.markup import NOTHING, badge, block, cut
from jobs.pagination import CappedPaginator
from workspaces.admin import filters, pieces, preview, searching
from workspaces.admin.listing import OfWorkspace
from workspaces.admin.worktree_verbs import VERBS
from workspaces.models import Worktree, WorktreeArchive
from workspaces.pruning import prune_time

_BADGES = {
    "held": "running",
    "warned": "running",
    "blocked": "failed",
    "missing": "failed",
    "quarantined": "failed",
    "creating": "running",
    "pruning": "running",
    "restoring": "running",
}
"""The states of jobs whose colours go with a worktree's."""


def _free_word(worktree: Worktree) -> str:
    """How one that can be acquired stands with pruning."""
    if worktree.prune_blocked_at is not None:
        return "blocked"
    return "free" if worktree.prune_warning_at is None else "warned"


@admin.register(Worktree)
class WorktreeAdmin(OfWorkspace[Worktree]):
    """Each row stands for a directory and a registration in git: verbs change it, and nobody by hand."""

    verbs = VERBS
    paginator = CappedPaginator
    list_display = [
        "id",
        "workspace",
        "branch_cell",
        "status",
        "idle",
        "prune_cell",
        "size",
        "kept_because",
    ]
    list_display_links = ["id", "branch_cell"]
    list_filter = [
        filters.HostFilter,
        "state",
        filters.HeldFilter,
        filters.WarnedFilter,
        filters.BlockedFilter,
        "pinned",
    ]
    list_select_related = ["workspace"]
    list_per_page = 50
    # What is searched, and how, is in get_search_results().
    search_fields = ["=id", "branch", "held_by", "workspace__name"]
    search_help_text = (
        "A worktree's ID, or part of its branch, its holder or its workspace's name."
    )
    fieldsets = [
        (
            None,
            {
                "fields": [
                    ("workspace_link", "host"),
                    ("branch_cell", "status"),
                    "path_cell",
                    "upstream_gone",
                    "trouble",
                ]
            },
        ),
        (
            "Holder",
            {
                "fields": [
                    ("holder", "held_for"),
                    ("lease", "heartbeat"),
                    ("last_holder", "fencing_no"),
                ]
            },
        ),
        (
            "Pruning",
            {
                "fields": [
                    ("idle", "prune_cell"),
                    ("keep_until", "warned"),
                    "blocked",
                ]
            },
        ),
        ("What would be archived", {"fields": ["contents", "size"]}),
        ("See also", {"fields": [("created", "see_also")]}),
    ]

    class Media:
        css = {"all": ["workspaces/workspaces.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Worktree]:
        return (
            super()
            .get_queryset(request)
            .select_related("workspace")
            .annotate(read_at=Now())
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Worktree], search_term: str
    ) -> tuple[QuerySet[Worktree], bool]:
        found = searching.found(
            queryset,
            search_term,
            ids=("pk",),
            texts=(
                "branch__icontains",
                "held_by__icontains",
                "workspace__name__icontains",
            ),
        )
        return found, False

    @admin.display(description="branch", ordering="branch")
    def branch_cell(self, worktree: Worktree) -> SafeString | str:
        return pieces.clamped(worktree.branch)

    @admin.display(description="path")
    def path_cell(self, worktree: Worktree) -> str:
        return pieces.shown(worktree.path)

    @admin.display(description="status")
    def status(self, worktree: Worktree) -> SafeString:
        if worktree.held_by is None:
            word = _free_word(worktree) if worktree.state == "ready" else worktree.state
            return badge(_BADGES.get(word, word), word)
        return format_html(
            '{} <span class="aside">by</span> {}',
            badge(_BADGES["held"], "held"),
            pieces.clamped(worktree.held_by),
        )

    @admin.display(description="branch removed from the remote")
    def upstream_gone(self, worktree: Worktree) -> SafeString | str:
        return pieces.moment(worktree.upstream_gone_at)

    @admin.display(description="trouble")
    def trouble(self, worktree: Worktree) -> SafeString | str:
        return block(pieces.shown(worktree.state_reason))

    @admin.display(description="held by")
    def holder(self, worktree: Worktree) -> str:
        return pieces.shown(worktree.held_by) if worktree.held_by else "nobody"

    @admin.display(description="since")
    def held_for(self, worktree: Any) -> SafeString | str:
        return pieces.since(worktree.held_since, worktree.read_at)

    @admin.display(description="lease")
    def lease(self, worktree: Any) -> SafeString | str:
        if worktree.held_by is None:
            return NOTHING
        if worktree.lease_expires_at is None:
            return "until it is released"
        return pieces.until(worktree.lease_expires_at, worktree.read_at)

    @admin.display(description="last heartbeat")
    def heartbeat(self, worktree: Any) -> SafeString | str:
        return pieces.since(worktree.heartbeat_at, worktree.read_at)

    @admin.display(description="last holder")
    def last_holder(self, worktree: Worktree) -> str:
        return pieces.shown(worktree.last_held_by) or NOTHING

    @admin.display(description="idle for", ordering="last_used_at")
    def idle(self, worktree: Any) -> str:
        idle: dt.timedelta | None = prune_time.idle_for(worktree, now=worktree.read_at)
        return "in use" if idle is None else duration(idle)

    @admin.display(description="pruned")
    def prune_cell(self, worktree: Any) -> SafeString | str:
        if worktree.held_by is not None:
            return "not while held"
        if worktree.pinned:
            return "never: pinned"
        if worktree.state == Worktree.State.PRUNING:
            return "at this moment"
        at = prune_time.pruned_after(worktree, now=worktree.read_at)
        if at is None:
            return f"not while {worktree.state}"
        return pieces.until(at, worktree.read_at)

    @admin.display(description="keep until")
    def keep_until(self, worktree: Worktree) -> SafeString | str:
        return "pinned" if worktree.pinned else pieces.moment(worktree.kept_until)

    @admin.display(description="warned")
    def warned(self, worktree: Worktree) -> SafeString | str:
        return pieces.moment(worktree.prune_warning_at)

    @admin.display(description="kept because of")
    def kept_because(self, worktree: Worktree) -> SafeString | str:
        return cut(pieces.shown(worktree.prune_blocked_reason))

    @admin.display(description="not pruned because of")
    def blocked(self, worktree: Worktree) -> SafeString | str:
        return block(pieces.shown(worktree.prune_blocked_reason))

    @admin.display(description="now")
    def contents(self, worktree: Worktree) -> SafeString | str:
        return preview.of(worktree)

    @admin.display(description="size", ordering="size_bytes")
    def size(self, worktree: Any) -> SafeString | str:
        return pieces.sampled(worktree.size_bytes, worktree.sized_at, worktree.read_at)

    @admin.display(description="created")
    def created(self, worktree: Worktree) -> SafeString | str:
        return pieces.moment(worktree.created_at)

    @admin.display(description="more")
    def see_also(self, worktree: Worktree) -> SafeString:
        kept = WorktreeArchive.objects.filter(worktree_id=worktree.pk).count()
        archives = f"{kept} archive{'' if kept == 1 else 's'}"
        return pieces.of_worktree(worktree.pk, archives=archives)
