"""The periodic runners and the worker processes in the admin. Imported, and so registered, by ``admin``."""

from __future__ import annotations

import dataclasses

from django.contrib import admin
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.safestring import SafeString

from jobs import registry, runner_actions
from jobs.admin_verbs import Verb, VerbAdmin
from jobs.display import duration, summary
from jobs.markup import NOTHING, badge, block, cut
from jobs.models import RunnerState, WorkerProcess
from jobs.stats import RunnerStatus, WorkerStatus


@admin.register(RunnerState)
class RunnerStateAdmin(VerbAdmin[RunnerState]):
    """The schedule: when each runner ticked, and will tick."""

    verbs = (
        Verb(
            name="run_now",
            label="Run now",
            permission="jobs.run_runnerstate",
            act=lambda rows, actor, _: runner_actions.run_now(
                rows.values_list("name", flat=True), actor=actor
            ),
            applies=lambda state: state.name in registry.runners(),
        ),
    )
    list_display = [
        "name",
        "state_badge",
        "every",
        "next_run_at",
        "last_started_at",
        "took",
        "last_outcome_badge",
        "did",
    ]
    fields = [
        "name",
        "state_badge",
        "every",
        "next_run_at",
        "last_started_at",
        "last_finished_at",
        "took",
        "last_outcome_badge",
        "last_worker",
        "tries",
        "summary_text",
        "error_text",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[RunnerState]:
        return super().get_queryset(request).annotate(late=Now() - F("next_run_at"))

    def _status(self, state: RunnerState) -> RunnerStatus | None:
        """None for a runner that this code has no more, or not yet."""
        runner = registry.runners().get(state.name)
        if runner is None:
            return None
        return RunnerStatus.of(runner, vars(state))

    @admin.display(description="state")
    def state_badge(self, state: RunnerState) -> SafeString:
        status = self._status(state)
        return badge("unknown to this code" if status is None else status.state)

    @admin.display(description="every")
    def every(self, state: RunnerState) -> str:
        return duration(state.interval)

    @admin.display(description="took")
    def took(self, state: RunnerState) -> str:
        status = self._status(state)
        return duration(status.took if status else None)

    @admin.display(description="last outcome")
    def last_outcome_badge(self, state: RunnerState) -> SafeString:
        return badge(state.last_outcome)

    @admin.display(description="summary or error")
    def did(self, state: RunnerState) -> SafeString | str:
        return cut(state.last_error or summary(state.last_summary))

    @admin.display(description="summary")
    def summary_text(self, state: RunnerState) -> str:
        return summary(state.last_summary) or NOTHING

    @admin.display(description="error")
    def error_text(self, state: RunnerState) -> SafeString | str:
        return block(state.last_error)


@admin.register(WorkerProcess)
class WorkerProcessAdmin(VerbAdmin[WorkerProcess]):
    """The worker processes that have not signed off."""

    list_display = [
        "name",
        "state_badge",
        "heartbeat",
        "threads",
        "host",
        "pid",
        "started_at",
    ]
    fields = [
        "name",
        "state_badge",
        "stalled_parts",
        "heartbeat",
        "beat_at",
        "started_at",
        "host",
        "pid",
        "threads",
        "queue_names",
        "type_names",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkerProcess]:
        return super().get_queryset(request).annotate(age=Now() - F("beat_at"))

    def _status(self, process: WorkerProcess) -> WorkerStatus:
        known = vars(process)
        return WorkerStatus(
            **{
                field.name: known[field.name]
                for field in dataclasses.fields(WorkerStatus)
            }
        )

    @admin.display(description="state")
    def state_badge(self, process: WorkerProcess) -> SafeString:
        return badge(self._status(process).state)

    @admin.display(description="last heartbeat")
    def heartbeat(self, process: WorkerProcess) -> str:
        return f"{duration(self._status(process).age)} ago"

    @admin.display(description="stalled parts")
    def stalled_parts(self, process: WorkerProcess) -> str:
        return ", ".join(process.stalled) or NOTHING

    @admin.display(description="queues")
    def queue_names(self, process: WorkerProcess) -> str:
        return ", ".join(process.queues)

    @admin.display(description="types")
    def type_names(self, process: WorkerProcess) -> str:
        return ", ".join(process.types)
