"""The queue in the admin: jobs with their attempts, runners, worker processes.

Presentation only; what is done to them is in ``actions`` and ``runner_actions``.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any

from django.contrib import admin
from django.db.models import Model, Q, QuerySet, TextField
from django.db.models.functions import Cast, Left, Now
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs import actions, admin_runners  # noqa: F401 (the latter registers its own)
from jobs.admin_permissions import OnlyRead
from jobs.admin_verbs import Verb, VerbAdmin
from jobs.display import ASKED_TO_STOP, payload_text
from jobs.filters import QueueFilter, StatusFilter, StopFilter, TypeFilter
from jobs.markup import NOTHING, badge, block, cut, folded
from jobs.models import Attempt, Job, Priority, Status
from jobs.pagination import CappedPaginator

ATTEMPTS_SHOWN = 50
_ERROR_IN_LIST = 500


class AttemptInline(OnlyRead, admin.TabularInline[Attempt, Job]):
    """The failed attempts of a job, the newest ``ATTEMPTS_SHOWN`` of them."""

    model = Attempt
    verbose_name_plural = "failed attempts, newest first"
    ordering = ["-pk"]
    fields = ("number", "started_at", "finished_at", "worker", "error_cell")
    readonly_fields = fields
    extra = 0
    can_delete = False

    def has_view_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return True  # whoever may see the job may see how it failed

    @admin.display(description="error")
    def error_cell(self, attempt: Attempt) -> SafeString:
        return format_html(
            "{}{}", block(attempt.error), folded("Traceback", attempt.traceback)
        )


@admin.register(Job)
class JobAdmin(VerbAdmin[Job]):
    """Jobs, newest first."""

    verbs = (
        Verb(
            name="retry",
            label="Retry",
            permission="jobs.retry_job",
            act=lambda rows, actor, seconds: actions.retry(
                rows, actor=actor, time_limit=seconds
            ),
            applies=lambda job: job.status in (Status.DEAD, Status.CANCELLED),
        ),
        Verb(
            name="run_now",
            label="Run now",
            permission="jobs.run_now_job",
            act=lambda rows, actor, seconds: actions.run_now(
                rows, actor=actor, time_limit=seconds
            ),
            applies=lambda job: job.status == Status.PENDING and job.waits,
        ),
        Verb(
            name="cancel",
            label="Cancel",
            permission="jobs.cancel_job",
            act=lambda rows, actor, seconds: actions.cancel(
                rows, actor=actor, time_limit=seconds
            ),
            applies=lambda job: (
                job.status == Status.PENDING
                or (job.status == Status.RUNNING and not job.cancel_requested_at)
            ),
            note="Running ones are asked to stop; each ends as soon as its handler does.",
        ),
    )
    inlines = [AttemptInline]
    paginator = CappedPaginator
    list_display = [
        "type",
        "ref_id",
        "status_badge",
        "error_cell",
        "attempts_of",
        "run_at",
        "queue",
    ]
    list_filter = [StatusFilter, StopFilter, TypeFilter, QueueFilter]
    list_per_page = 50
    ordering = ["-id"]
    # Searched by exact value only, see get_search_results().
    search_fields = ["=id", "=ref_id"]
    search_help_text = "A job's ID, or the ref ID of what it is about, in full."
    fieldsets = [
        (
            None,
            {
                "fields": [
                    ("type", "about"),
                    ("status_badge", "attempts_of"),
                    ("queue", "priority_name"),
                    "error_text",
                    "payload_text",
                ]
            },
        ),
        (
            "Times",
            {
                "fields": [
                    ("created_at", "run_at"),
                    ("started_at", "completed_at"),
                    ("updated_at", "cancel_requested_at"),
                ]
            },
        ),
        (
            "Lease and key",
            {
                "fields": [
                    ("leased_by", "lease_until"),
                    ("lease_seq", "unique_key"),
                    "id",
                ]
            },
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        # Payloads and errors are large, and a list has no use for more than an error's beginning.
        return (
            super()
            .get_queryset(request)
            .defer("payload", "last_error")
            .annotate(
                error_start=Left("last_error", _ERROR_IN_LIST),
                waits=Q(run_at__gt=Now()),
            )
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Job], search_term: str
    ) -> tuple[QuerySet[Job], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        wanted = Q(ref_id=term)
        with suppress(ValueError):  # no ID, so it can only be a ref ID
            wanted |= Q(pk=uuid.UUID(term))
        return queryset.filter(wanted), False

    def lookup_allowed(
        self, lookup: str, value: str, request: HttpRequest | None = None
    ) -> bool:
        # The filters' and nothing else: a regular expression over a million errors is no way to filter.
        return lookup in {
            StatusFilter.parameter_name,
            StopFilter.parameter_name,
            TypeFilter.parameter_name,
            QueueFilter.parameter_name,
        }

    def get_formset_kwargs(
        self, request: HttpRequest, obj: Job, inline: Any, prefix: str
    ) -> dict[str, Any]:
        kwargs = super().get_formset_kwargs(request, obj, inline, prefix)
        newest = Attempt.objects.filter(job=obj.pk).order_by("-pk").values("pk")
        kwargs["queryset"] = inline.get_queryset(request).filter(
            pk__in=newest[:ATTEMPTS_SHOWN]
        )
        return kwargs

    @admin.display(description="status")
    def status_badge(self, job: Job) -> SafeString:
        state = badge(job.status)
        if job.status == Status.RUNNING and job.cancel_requested_at:
            return format_html("{} {}", state, badge(ASKED_TO_STOP))
        return state

    @admin.display(description="attempts")
    def attempts_of(self, job: Job) -> str:
        return f"{job.attempts}/{job.max_attempts}"

    @admin.display(description="priority")
    def priority_name(self, job: Job) -> str:
        return Priority(job.priority).label

    @admin.display(description="last error")
    def error_cell(self, job: Job) -> SafeString | str:
        return cut(getattr(job, "error_start", ""))

    @admin.display(description="ref id")
    def about(self, job: Job) -> SafeString | str:
        if job.ref_id is None:
            return NOTHING
        url = reverse("admin:jobs_job_changelist", query={"q": job.ref_id})
        return format_html('{} (<a href="{}">all about it</a>)', job.ref_id, url)

    @admin.display(description="last error")
    def error_text(self, job: Job) -> SafeString | str:
        return block(job.last_error)

    @admin.display(description="payload")
    def payload_text(self, job: Job) -> SafeString | str:
        # As text: some JSONB cannot be read by Python, and shows all the same.
        stored = Job.objects.filter(pk=job.pk).values_list(Cast("payload", TextField()))
        return block(payload_text(stored.get()[0]))
