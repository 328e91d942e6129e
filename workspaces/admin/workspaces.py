"""Workspaces in the admin: how fresh they are, when they are fetched next and why then, what they take, what was planted in them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.admin_verbs import Verb
from jobs.markup import NOTHING, badge, block
from jobs.pagination import CappedPaginator
from workspaces import actions
from workspaces.admin import acting, filters, pieces, searching
from workspaces.admin.approving import ApprovedAdmin
from workspaces.fetching import explanations
from workspaces.models import Workspace, Worktree


def _count(worktrees: QuerySet[Worktree]) -> Coalesce:
    """How many of them a workspace has: counted for the rows of the page only."""
    of_one = worktrees.filter(workspace=OuterRef("pk")).order_by().values("workspace")
    return Coalesce(Subquery(of_one.annotate(n=Count("pk")).values("n")), 0)


@admin.register(Workspace)
class WorkspaceAdmin(ApprovedAdmin):
    """Only the owner can be changed; `manage.py workspace` adds and removes."""

    verbs = (
        Verb(
            name="fetch",
            label="Fetch now",
            permission="workspaces.fetch_workspace",
            act=acting.each(
                "to be fetched",
                lambda row, *, actor: actions.fetch_soon([row], actor=actor),
            ),
            applies=lambda row: row.state != Workspace.State.CLONING,
            note="Each is fetched by its host before other work.",
        ),
    )
    paginator = CappedPaginator
    list_display = [
        "name_cell",
        "status",
        "fresh",
        "next_fetch",
        "worktree_count",
        "size",
        "host",
        "owner",
        "remote",
    ]
    list_display_links = ["name_cell"]
    list_filter = [
        filters.OwnHostFilter,
        "state",
        filters.FailingFilter,
        "fetch_problem",
        filters.TamperedFilter,
    ]
    list_select_related = ["owner"]
    list_per_page = 50
    ordering = ["name"]
    search_fields = ["=id", "name", "url"]
    search_help_text = "A workspace's ID, or part of its name or remote."
    autocomplete_fields = ["owner"]
    fieldsets = [
        (
            None,
            {
                "fields": [
                    ("name_cell", "host_link"),
                    ("status", "default_branch"),
                    "remote",
                    "owner",
                    "worktree_list",
                ]
            },
        ),
        (
            "Fetching",
            {
                "fields": [
                    ("fresh", "next_fetch"),
                    "why_then",
                    ("failing", "problem"),
                    "error",
                ]
            },
        ),
        (
            "Configuration of the clone",
            {"fields": ["planted", "approved"]},
        ),
        (
            "Disk",
            {
                "fields": [
                    "path",
                    "size",
                    ("maintained", "created"),
                    "maintenance_trouble",
                ]
            },
        ),
    ]

    class Media:
        css = {"all": ["workspaces/workspaces.css"]}

    def get_readonly_fields(
        self, request: HttpRequest, obj: Workspace | None = None
    ) -> list[str]:
        named: list[str] = []
        for _, options in self.fieldsets or ():
            for line in options["fields"]:
                named += [line] if isinstance(line, str) else list(line)
        return [name for name in named if name != "owner"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workspace]:
        worktrees = Worktree.objects.all()
        return (
            super()
            .get_queryset(request)
            .select_related("owner")
            .annotate(
                read_at=Now(),
                worktree_count=_count(worktrees),
                held_count=_count(worktrees.held()),
            )
        )

    def save_model(
        self,
        request: HttpRequest,
        obj: Workspace,
        form: ModelForm[Workspace],
        change: bool,
    ) -> None:
        # Only what was edited: it may have been fetched since it was read.
        obj.save(update_fields=form.changed_data)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Workspace], search_term: str
    ) -> tuple[QuerySet[Workspace], bool]:
        found = searching.found(
            queryset,
            search_term,
            ids=("pk",),
            texts=("name__icontains", "url__icontains"),
        )
        return found, False

    @admin.display(description="name", ordering="name")
    def name_cell(self, workspace: Workspace) -> SafeString | str:
        return pieces.clamped(workspace.name)

    @admin.display(description="host")
    def host_link(self, workspace: Workspace) -> SafeString:
        return pieces.host(workspace.host)

    @admin.display(description="remote")
    def remote(self, workspace: Workspace) -> SafeString | str:
        return pieces.clamped(workspace.url)

    @admin.display(description="status")
    def status(self, workspace: Workspace) -> SafeString:
        if workspace.state == Workspace.State.CLONING:
            shown = badge("running", "being cloned")
            return format_html(
                "{} {}", shown, pieces.aside(pieces.shown(workspace.clone_progress))
            )
        if workspace.state == Workspace.State.FAILED:
            return badge("failed", "not cloned")
        if workspace.tampered_since is not None:
            return badge("failed", "configuration changed")
        if workspace.failing_since is not None:
            problem = workspace.get_fetch_problem_display() or "unknown"
            return format_html(
                "{} {}", badge("failed", "failing"), pieces.aside(problem)
            )
        if workspace.last_fetched_at is None:
            return badge("new", "not fetched yet")
        return badge("completed", "well")

    @admin.display(description="fresh since")
    def fresh(self, workspace: Any) -> SafeString | str:
        if workspace.last_fetched_at is None:
            return "never fetched"
        return pieces.since(workspace.last_fetched_at, workspace.read_at)

    @admin.display(description="next fetch")
    def next_fetch(self, workspace: Any) -> SafeString | str:
        if workspace.state != Workspace.State.READY:
            return NOTHING
        return pieces.until(workspace.next_fetch_at, workspace.read_at)

    @admin.display(description="why then")
    def why_then(self, workspace: Any) -> str:
        is_held = workspace.held_count > 0
        return pieces.shown(explanations.next_fetch_why(workspace, is_held=is_held))

    @admin.display(description="failing since")
    def failing(self, workspace: Workspace) -> SafeString | str:
        return pieces.moment(workspace.failing_since)

    @admin.display(description="kind of failure")
    def problem(self, workspace: Workspace) -> str:
        if not workspace.fetch_problem:
            return NOTHING
        times = workspace.fetch_failures
        return f"{workspace.fetch_problem}, {times:,} time{'' if times == 1 else 's'} in a row"

    @admin.display(description="last error")
    def error(self, workspace: Workspace) -> SafeString | str:
        return block(pieces.shown(workspace.last_fetch_error))

    @admin.display(description="worktrees")
    def worktree_count(self, workspace: Any) -> str:
        held = f", {workspace.held_count} held" if workspace.held_count else ""
        return f"{workspace.worktree_count:,}{held}"

    @admin.display(description="worktrees")
    def worktree_list(self, workspace: Any) -> SafeString:
        return format_html(
            "{}, {}, {}",
            pieces.listed(
                "workspaces_worktree",
                f"{workspace.worktree_count:,} worktrees, {workspace.held_count:,} held",
                workspace__id__exact=workspace.pk,
            ),
            pieces.listed(
                "workspaces_worktreearchive",
                "archives",
                workspace__id__exact=workspace.pk,
            ),
            pieces.listed(
                "workspaces_ledgerentry", "ledger", workspace__exact=workspace.name
            ),
        )

    @admin.display(description="size")
    def size(self, workspace: Any) -> SafeString | str:
        return pieces.sampled(
            workspace.size_bytes, workspace.sized_at, workspace.read_at
        )

    @admin.display(description="maintained")
    def maintained(self, workspace: Any) -> SafeString | str:
        return pieces.since(workspace.maintained_at, workspace.read_at)

    @admin.display(description="maintenance failed with")
    def maintenance_trouble(self, workspace: Workspace) -> SafeString | str:
        return block(pieces.shown(workspace.maintenance_error))

    @admin.display(description="created")
    def created(self, workspace: Workspace) -> SafeString | str:
        return pieces.moment(workspace.created_at)
