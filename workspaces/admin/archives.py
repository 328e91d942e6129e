"""Archives in the admin: what of a worktree is kept, until when, and having it restored."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.admin_verbs import Verb
from jobs.display import first_line
from jobs.markup import NOTHING, badge
from jobs.models import Job
from jobs.pagination import CappedPaginator
from workspaces import actions, job_types
from workspaces.admin import acting, filters, pieces, searching
from workspaces.admin.listing import OfWorkspace
from workspaces.archiving import lookup
from workspaces.models import Worktree, WorktreeArchive

_BADGES = {"writing": "running", "verified": "completed"}
"""The states of jobs whose colours go with an archive's."""


def _can_restore(archive: WorktreeArchive) -> bool:
    """Whether its worktree is gone, and this is what it would be restored from."""
    newest = lookup.latest(archive.worktree_id)
    there = Worktree.objects.filter(
        pk=archive.worktree_id, state=Worktree.State.READY
    ).exists()
    return newest is not None and newest.pk == archive.pk and not there


@admin.register(WorktreeArchive)
class WorktreeArchiveAdmin(OfWorkspace[WorktreeArchive]):
    """What was archived, newest first."""

    verbs = (
        Verb(
            name="restore",
            label="Restore",
            permission="workspaces.restore_worktreearchive",
            act=acting.each(
                "to be restored by the host that has them", actions.restore_soon
            ),
            applies=_can_restore,
            note="Each worktree comes back as it was, from the newest archive that there is of it.",
        ),
    )
    paginator = CappedPaginator
    list_display = [
        "id",
        "workspace",
        "worktree_cell",
        "branch_cell",
        "state_badge",
        "summary",
        "size",
        "made",
        "kept_for",
    ]
    list_filter = [
        filters.HostFilter,
        "state",
        "reason",
    ]
    list_select_related = ["workspace"]
    list_per_page = 50
    ordering = ["-id"]
    # What is searched, and how, is in get_search_results().
    search_fields = ["=id", "=worktree_id", "branch", "workspace__name"]
    search_help_text = "A worktree's or an archive's ID, or part of its branch, its last holder or its workspace's name."
    fieldsets = [
        (
            None,
            {
                "fields": [
                    ("workspace_link", "host"),
                    ("worktree_cell", "branch_cell"),
                    ("state_badge", "kept_until"),
                    "restoring",
                    "why",
                ]
            },
        ),
        ("What it has", {"fields": ["what_it_has", ("size", "files")]}),
        (
            "Where and how",
            {
                "fields": [
                    "path_cell",
                    "place",
                    "commit_sha",
                    "manifest_digest",
                    ("made", "checked"),
                    ("used", "restored"),
                    ("last_holder", "conversations"),
                    "see_also",
                ]
            },
        ),
    ]

    class Media:
        css = {"all": ["workspaces/workspaces.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorktreeArchive]:
        return (
            super()
            .get_queryset(request)
            .select_related("workspace")
            .annotate(
                read_at=Now(),
                there=Exists(Worktree.objects.filter(pk=OuterRef("worktree_id"))),
            )
        )

    def get_search_results(
        self,
        request: HttpRequest,
        queryset: QuerySet[WorktreeArchive],
        search_term: str,
    ) -> tuple[QuerySet[WorktreeArchive], bool]:
        found = searching.found(
            queryset,
            search_term,
            ids=("pk", "worktree_id"),
            texts=(
                "branch__icontains",
                "last_held_by__icontains",
                "workspace__name__icontains",
            ),
        )
        return found, False

    @admin.display(description="worktree")
    def worktree_cell(self, archive: Any) -> SafeString | str:
        if not archive.there:
            return str(archive.worktree_id)
        key = archive.worktree_id
        return pieces.link("workspaces_worktree", key, key)

    @admin.display(description="branch")
    def branch_cell(self, archive: WorktreeArchive) -> SafeString | str:
        return pieces.clamped(archive.branch)

    @admin.display(description="state")
    def state_badge(self, archive: WorktreeArchive) -> SafeString:
        return badge(_BADGES.get(archive.state, archive.state), archive.state)

    @admin.display(description="what it has")
    def summary(self, archive: WorktreeArchive) -> SafeString | str:
        words = archive.contents.get("words") or []
        if not words:
            return NOTHING
        more = f" and {len(words) - 1} more" if len(words) > 1 else ""
        return first_line(pieces.shown(str(words[0]))) + more

    @admin.display(description="contents")
    def what_it_has(self, archive: WorktreeArchive) -> SafeString | str:
        return pieces.contents(archive.contents)

    @admin.display(description="size")
    def size(self, archive: WorktreeArchive) -> str:
        return pieces.size(archive.size_bytes)

    @admin.display(description="files and directories")
    def files(self, archive: WorktreeArchive) -> str:
        return f"{archive.entries:,}"

    @admin.display(description="made")
    def made(self, archive: Any) -> SafeString | str:
        return pieces.since(archive.created_at, archive.read_at)

    @admin.display(description="verified")
    def checked(self, archive: WorktreeArchive) -> SafeString | str:
        return pieces.moment(archive.verified_at)

    @admin.display(description="restored")
    def restored(self, archive: WorktreeArchive) -> SafeString | str:
        return pieces.moment(archive.restored_at)

    @admin.display(description="last used")
    def used(self, archive: WorktreeArchive) -> SafeString | str:
        return pieces.moment(archive.last_used_at)

    @admin.display(description="until")
    def kept_for(self, archive: Any) -> SafeString | str:
        if archive.state == WorktreeArchive.State.EXPIRED:
            return "gone"
        return pieces.until(archive.expires_at, archive.read_at)

    @admin.display(description="kept until")
    def kept_until(self, archive: WorktreeArchive) -> SafeString | str:
        return pieces.moment(archive.expires_at)

    @admin.display(description="archived")
    def why(self, archive: WorktreeArchive) -> str:
        return f"{archive.get_reason_display()}, by {pieces.shown(archive.actor)}"

    @admin.display(description="restoring")
    def restoring(self, archive: Any) -> SafeString | str:
        return _restoring(archive)

    @admin.display(description="worktree's path")
    def path_cell(self, archive: WorktreeArchive) -> str:
        return pieces.shown(archive.path)

    @admin.display(description="kept in")
    def place(self, archive: WorktreeArchive) -> str:
        if archive.state == WorktreeArchive.State.EXPIRED:
            return "removed after its retention"
        return archive.bundle or f"the clone, as {archive.ref}"

    @admin.display(description="last holder")
    def last_holder(self, archive: WorktreeArchive) -> str:
        return pieces.shown(archive.last_held_by) or NOTHING

    @admin.display(description="conversations")
    def conversations(self, archive: WorktreeArchive) -> str:
        return ", ".join(map(str, archive.conversation_ids)) or NOTHING

    @admin.display(description="more")
    def see_also(self, archive: WorktreeArchive) -> SafeString:
        return pieces.of_worktree(archive.worktree_id, archives="its archives")


def _restoring(archive: Any) -> SafeString | str:
    """What came of the last time that somebody wanted its worktree back."""
    jobs = Job.objects.filter(type=job_types.RESTORE, ref_id=str(archive.worktree_id))
    last = jobs.order_by("-id").first()
    if archive.there:
        key = archive.worktree_id
        there = pieces.link("workspaces_worktree", key, f"worktree {key}")
        said: SafeString | str = format_html("{} is there", there)
    else:
        said = "its worktree is not there"
    if last is None:
        return said
    job = pieces.link("jobs_job", last.pk, "the job")
    shown = format_html("{}; {}: {}", said, job, badge(last.status))
    error = first_line(pieces.shown(last.last_error))
    return format_html("{} {}", shown, pieces.aside(error)) if error else shown
