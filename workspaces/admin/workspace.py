"""Workspaces and worktrees: what rows and disk must agree on is shown, and changed by commands alone."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.redaction import redact
from workspaces import actions
from workspaces.models import Workspace, Worktree


@admin.register(Workspace)
class WorkspaceAdmin(admin.ModelAdmin[Workspace]):
    """Only the owner can be changed; `manage.py workspace` adds and removes."""

    list_display = [
        "name",
        "host",
        "remote",
        "owner",
        "status",
        "last_fetched_at",
        "worktree_count",
        "held_count",
    ]
    list_filter = ["host", ("failing_since", admin.EmptyFieldListFilter)]
    list_select_related = ["owner"]
    search_fields = ["name", "url"]
    autocomplete_fields = ["owner"]
    fields = [
        "name",
        "host",
        "remote",
        "path",
        "default_branch",
        "owner",
        "status",
        "last_fetched_at",
        "failing_since",
        "last_fetch_error",
        "worktree_list",
        "created_at",
    ]
    readonly_fields = [
        "name",
        "host",
        "remote",
        "path",
        "default_branch",
        "status",
        "last_fetched_at",
        "failing_since",
        "last_fetch_error",
        "worktree_list",
        "created_at",
    ]
    actions = ["fetch_soon"]
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workspace]:
        held = Q(worktrees__held_by__isnull=False)
        return (
            super()
            .get_queryset(request)
            .annotate(
                worktree_count=Count("worktrees"),
                held_count=Count("worktrees", filter=held),
            )
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Workspace | None = None
    ) -> bool:
        return False

    def has_fetch_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("workspaces.fetch_workspace")

    @admin.display(description="remote", ordering="url")
    def remote(self, workspace: Workspace) -> str:
        return redact(workspace.url)

    @admin.display(description="status", ordering="failing_since")
    def status(self, workspace: Workspace) -> str:
        if workspace.failing_since is not None:
            return f"failing since {workspace.failing_since:%Y-%m-%d %H:%M}"
        return "well" if workspace.last_fetched_at else "not fetched yet"

    @admin.display(description="worktrees", ordering="worktree_count")
    def worktree_count(self, workspace: Any) -> int:
        count: int = workspace.worktree_count
        return count

    @admin.display(description="held", ordering="held_count")
    def held_count(self, workspace: Any) -> int:
        count: int = workspace.held_count
        return count

    @admin.display(description="worktrees")
    def worktree_list(self, workspace: Any) -> SafeString:
        url = reverse("admin:workspaces_worktree_changelist")
        return format_html(
            '<a href="{}?workspace__id__exact={}">{} worktrees, {} held</a>',
            url,
            workspace.pk,
            workspace.worktree_count,
            workspace.held_count,
        )

    @admin.action(description="Fetch now, where idle", permissions=["fetch"])
    def fetch_soon(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        count = actions.fetch_soon(queryset, actor=request.user.get_username())
        self.message_user(
            request,
            f"{count} fetches are queued; a workspace with a held worktree is left alone.",
            messages.SUCCESS,
        )


@admin.register(Worktree)
class WorktreeAdmin(admin.ModelAdmin[Worktree]):
    """Read-only: each row stands for a directory and a registration in git."""

    list_display = [
        "id",
        "workspace",
        "branch",
        "status",
        "last_used_at",
        "prune_after",
        "prune_warning_at",
        "prune_blocked_reason",
    ]
    list_display_links = ["id", "branch"]
    list_filter = [
        "workspace__host",
        "state",
        ("held_by", admin.EmptyFieldListFilter),
        ("prune_warning_at", admin.EmptyFieldListFilter),
        ("prune_blocked_at", admin.EmptyFieldListFilter),
        ("workspace", admin.RelatedOnlyFieldListFilter),
    ]
    list_select_related = ["workspace"]
    search_fields = ["=id", "branch", "path", "held_by", "workspace__name"]
    fields = [
        "workspace",
        "branch",
        "path",
        "status",
        "held_by",
        "held_since",
        "last_held_by",
        "last_used_at",
        "prune_after",
        "prune_warning_at",
        "prune_blocked_at",
        "prune_blocked_reason",
        "created_at",
    ]
    readonly_fields = ["status", "prune_after"]
    actions = ["release"]
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Worktree | None = None
    ) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Worktree | None = None
    ) -> bool:
        return False

    def has_release_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("workspaces.release_worktree")

    @admin.display(description="status", ordering="held_by")
    def status(self, worktree: Worktree) -> str:
        if worktree.state != Worktree.State.READY:
            return worktree.state
        return f"held by {worktree.held_by}" if worktree.held_by else "free"

    @admin.display(description="pruned after", empty_value="not while held")
    def prune_after(self, worktree: Worktree) -> dt.datetime | None:
        if worktree.held_by is not None:
            return None
        threshold: dt.timedelta = settings.JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD
        return worktree.last_used_at + threshold

    @admin.action(description="Release, whoever holds it", permissions=["release"])
    def release(self, request: HttpRequest, queryset: QuerySet[Worktree]) -> None:
        done, refused = actions.release_all(queryset, actor=request.user.get_username())
        if done:
            self.message_user(request, f"{done} released.", messages.SUCCESS)
        for reason in refused:
            self.message_user(request, f"Skipped: {reason}.", messages.WARNING)
