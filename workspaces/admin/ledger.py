"""The ledger in the admin: what was done to worktrees' directories, by whom, and what was verified before."""

from __future__ import annotations

import json

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from jobs.admin_verbs import VerbAdmin
from jobs.display import payload_text
from jobs.markup import NOTHING, badge, block, cut
from jobs.pagination import CappedPaginator
from workspaces.admin import filters, pieces, searching
from workspaces.models import LedgerEntry, WorktreeArchive

_BADGES = {"quarantined": "failed", "discarded": "failed", "restored": "completed"}
"""The states of jobs whose colours go with what was done."""


@admin.register(LedgerEntry)
class LedgerEntryAdmin(VerbAdmin[LedgerEntry]):
    """What happened to worktrees, newest first. Nobody changes the record."""

    paginator = CappedPaginator
    list_display = [
        "at",
        "action_badge",
        "workspace",
        "worktree_id",
        "branch_cell",
        "actor_cell",
        "verified_cell",
    ]
    list_display_links = ["at", "action_badge"]
    list_filter = ["action", filters.OwnHostFilter, "at"]
    list_per_page = 50
    ordering = ["-id"]
    # What is searched, and how, is in get_search_results().
    search_fields = ["=worktree_id", "workspace", "branch", "actor"]
    search_help_text = (
        "A worktree's ID, or a workspace, a branch or an actor by its whole name."
    )
    fieldsets = [
        (
            None,
            {
                "fields": [
                    ("action_badge", "when"),
                    ("actor_cell", "host"),
                    ("workspace", "worktree_id"),
                    "branch_cell",
                    "path_cell",
                ]
            },
        ),
        (
            "Archive",
            {
                "fields": [
                    "archive_link",
                    "commit_sha",
                    "manifest_digest",
                    "verified_text",
                ]
            },
        ),
        ("Details", {"fields": ["details"]}),
    ]

    class Media:
        css = {"all": ["workspaces/workspaces.css"]}

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[LedgerEntry], search_term: str
    ) -> tuple[QuerySet[LedgerEntry], bool]:
        found = searching.found(
            queryset,
            search_term,
            ids=("worktree_id",),
            texts=("workspace", "branch", "actor"),
        )
        return found, False

    @admin.display(description="action")
    def action_badge(self, entry: LedgerEntry) -> SafeString:
        return badge(_BADGES.get(entry.action, entry.action), entry.action)

    @admin.display(description="at")
    def when(self, entry: LedgerEntry) -> SafeString | str:
        return pieces.moment(entry.at)

    @admin.display(description="actor")
    def actor_cell(self, entry: LedgerEntry) -> str:
        return pieces.shown(entry.actor)

    @admin.display(description="branch")
    def branch_cell(self, entry: LedgerEntry) -> SafeString | str:
        return pieces.clamped(entry.branch)

    @admin.display(description="path")
    def path_cell(self, entry: LedgerEntry) -> str:
        return pieces.shown(entry.path) or NOTHING

    @admin.display(description="verified")
    def verified_cell(self, entry: LedgerEntry) -> SafeString | str:
        return cut(pieces.shown(entry.verified))

    @admin.display(description="verified")
    def verified_text(self, entry: LedgerEntry) -> SafeString | str:
        return block(pieces.shown(entry.verified))

    @admin.display(description="archive")
    def archive_link(self, entry: LedgerEntry) -> SafeString | str:
        key = entry.archive_id
        if key is None:
            return NOTHING
        if not WorktreeArchive.objects.filter(pk=key).exists():
            return f"{key}, whose row is gone"
        return pieces.link("workspaces_worktreearchive", key, key)

    @admin.display(description="data")
    def details(self, entry: LedgerEntry) -> SafeString | str:
        return block(payload_text(json.dumps(entry.data))) if entry.data else NOTHING
