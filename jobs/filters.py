"""Filters of the list of jobs that read no table of jobs: what can be chosen is known beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from jobs import registry
from jobs.display import ASKED_TO_STOP
from jobs.models import TERMINAL, Job, Status, WorkerProcess


class NameFilter(admin.SimpleListFilter):
    """Jobs in whose column ``parameter_name`` the chosen name stands.

    A name that is not among the choices, from a link, filters all the same and shows as chosen.
    """

    def names(self) -> Iterable[str]:
        raise NotImplementedError

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        chosen = self.value()
        names = list(self.names())
        if chosen and chosen not in names:
            names.append(chosen)
        return [(name, name) for name in names]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        chosen = self.value()
        if not chosen:
            return queryset
        if "\x00" in chosen:  # no text in the database has it, nor may a query
            return queryset.none()
        return queryset.filter(**{str(self.parameter_name): chosen})


class StatusFilter(NameFilter):
    title = "status"
    parameter_name = "status"

    def names(self) -> Iterable[str]:
        return Status.values

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        jobs = super().queryset(request, queryset)
        if self.value() not in TERMINAL:
            return jobs
        # Which is so for all of them, and lets the index of finished jobs be used.
        return jobs.filter(completed_at__isnull=False)


class StopFilter(admin.SimpleListFilter):
    """Those that were asked to stop are among the running ones, which are few and have an index."""

    title = "cancellation"
    parameter_name = "stop"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return [("asked", ASKED_TO_STOP)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        if self.value() != "asked":
            return queryset
        return queryset.filter(status=Status.RUNNING, cancel_requested_at__isnull=False)


class TypeFilter(NameFilter):
    """The types that this code has handlers for."""

    title = "type"
    parameter_name = "type"

    def names(self) -> Iterable[str]:
        return sorted(registry.job_types())


class QueueFilter(NameFilter):
    """The queues of the registered types, and those that workers serve."""

    title = "queue"
    parameter_name = "queue"

    def names(self) -> Iterable[str]:
        served = WorkerProcess.objects.values_list("queues", flat=True)
        registered = {job_type.queue for job_type in registry.job_types().values()}
        return sorted(registered.union({registry.DEFAULT_QUEUE}, *served))
