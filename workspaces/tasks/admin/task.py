"""Tasks in the admin: what they are, what happens to them next and by which job, and their history as a timeline."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from jobs.display import duration
from jobs.markup import NOTHING
from jobs.pagination import CappedPaginator
from workspaces.admin import searching
from workspaces.tasks import deadlines
from workspaces.tasks.admin import pieces
from workspaces.tasks.admin.filters import FILTERS
from workspaces.tasks.admin.operating import OperatedAdmin
from workspaces.tasks.admin.sections import sections
from workspaces.tasks.admin.timeline import timeline
from workspaces.tasks.models import Task


@admin.register(Task)
class TaskAdmin(OperatedAdmin):
    """Tasks, newest first."""

    paginator = CappedPaginator
    list_display = [
        "id",
        "title_cell",
        "status_badge",
        "next_deadline",
        "holder_cell",
        "publisher_cell",
        "template",
        "workspace",
        "updated",
    ]
    list_display_links = ["id", "title_cell"]
    list_filter = [*FILTERS]
    list_per_page = 50
    ordering = ["-id"]
    # What is searched, and how, is in get_search_results().
    search_fields = ["=id", "title"]
    search_help_text = "A task's ID, or part of its title."
    fieldsets = [
        (
            None,
            {
                "fields": [
                    ("status_badge", "template"),
                    ("publisher_cell", "holder_cell"),
                    ("workspace_link", "worktree_link"),
                    "description_text",
                    "checklist_items",
                ]
            },
        ),
        (
            "Terms and times",
            {
                "classes": ["collapse"],
                "fields": [
                    ("open_time", "hold_time"),
                    ("checkpoint_time", "review_time"),
                    ("missed", "given_back"),
                    ("created", "updated"),
                    "ended",
                ],
            },
        ),
    ]

    class Media:
        css = {"all": ["tasks/tasks.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        return (
            Task.objects.with_people()
            .with_transfers()
            .select_related("workspace")
            # Long, and no column of the list.
            .defer("description", "checklist")
            .annotate(read_at=Now())
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Task], search_term: str
    ) -> tuple[QuerySet[Task], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        wanted = Q(title__icontains=term)
        if (number := searching.number_in(term)) is not None:
            wanted |= Q(pk=number)
        return queryset.filter(wanted), False

    def lookup_allowed(
        self, lookup: str, value: str, request: HttpRequest | None = None
    ) -> bool:
        # The filters' and nothing else: what others wrote is not to be guessed letter by letter.
        return lookup in {each.parameter_name for each in FILTERS}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        task = kwargs.get("obj")
        if task is not None:
            linked = request.user.has_perm("jobs.view_job")
            context |= {
                "subtitle": f"task {task.pk}: {pieces.title(task.title)}",
                "sections": sections(task, jobs_linked=linked),
                "timeline": timeline(task),
            }
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description="title")
    def title_cell(self, task: Task) -> str:
        return pieces.title(task.title)

    @admin.display(description="status")
    def status_badge(self, task: Task) -> SafeString:
        return pieces.badge(task.status)

    @admin.display(description="publisher")
    def publisher_cell(self, task: Task) -> SafeString | str:
        return pieces.agent(task.publisher)

    @admin.display(description="holder")
    def holder_cell(self, task: Task) -> SafeString | str:
        return pieces.agent(task.holder)

    @admin.display(description="next deadline")
    def next_deadline(self, task: Any) -> SafeString | str:
        live = deadlines.live(task)
        if not live:
            return NOTHING
        action, at = min(live, key=lambda each: each.at)
        return format_html(
            '<span title="{}">{} <code>{}</code></span>',
            f"{at:%Y-%m-%d %H:%M:%S %Z}",
            pieces.distance(at, task.read_at),
            action,
        )

    @admin.display(description="updated")
    def updated(self, task: Task) -> SafeString | str:
        return pieces.moment(task.updated_at)

    @admin.display(description="created")
    def created(self, task: Task) -> SafeString | str:
        return pieces.moment(task.created_at)

    @admin.display(description="ended")
    def ended(self, task: Task) -> SafeString | str:
        return pieces.moment(task.ended_at)

    @admin.display(description="workspace")
    def workspace_link(self, task: Task) -> SafeString | str:
        return _link("workspaces_workspace", task.workspace_id, task.workspace)

    @admin.display(description="worktree")
    def worktree_link(self, task: Task) -> SafeString | str:
        return _link("workspaces_worktree", task.worktree_id, task.worktree)

    @admin.display(description="description")
    def description_text(self, task: Task) -> SafeString | str:
        return pieces.words(task.description)

    @admin.display(description="checklist")
    def checklist_items(self, task: Task) -> SafeString | str:
        if not task.checklist:
            return NOTHING
        items = ((pieces.shown(str(item)),) for item in task.checklist)
        return format_html(
            '<ol class="checklist">{}</ol>',
            format_html_join("", "<li>{}</li>", items),
        )

    @admin.display(description="open for")
    def open_time(self, task: Task) -> str:
        return duration(task.open_for)

    @admin.display(description="held for")
    def hold_time(self, task: Task) -> str:
        return duration(task.hold_for)

    @admin.display(description="checkpoint every")
    def checkpoint_time(self, task: Task) -> str:
        return duration(task.checkpoint_every)

    @admin.display(description="reviewed for")
    def review_time(self, task: Task) -> str:
        return duration(task.review_for)

    @admin.display(description="missed in a row")
    def missed(self, task: Task) -> str:
        if task.checkpoint_every is None:
            return NOTHING
        return f"{task.misses}; number {task.final_miss} costs the task"

    @admin.display(description="given back")
    def given_back(self, task: Task) -> str:
        if task.hold_for is None:
            return NOTHING
        return f"{task.returns} of {task.returns_allowed} times"


def _link(name: str, key: int | None, row: object) -> SafeString | str:
    if key is None:
        return NOTHING
    url = reverse(f"admin:{name}_change", args=[key])
    return format_html('<a href="{}">{}</a>', url, pieces.shown(str(row)))
