"""Filters of the admin's lists that ask no long table for its different values."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from workspaces.models import Workspace


class HostFilter(admin.SimpleListFilter):
    """The hosts that have workspaces."""

    title = "host"
    parameter_name = "host"
    lookup = "workspace__host"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        hosts = Workspace.objects.order_by("host").values_list("host", flat=True)
        return [(host, host) for host in hosts.distinct()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        # What cannot be printed is no host's name, and not all of it could be asked for.
        return (
            queryset.filter(**{self.lookup: value})
            if value.isprintable()
            else queryset.none()
        )


class OwnHostFilter(HostFilter):
    """The same of a table that has the host itself."""

    lookup = "host"


class SetFilter(admin.SimpleListFilter):
    """Whether a nullable column has a value, in words."""

    field: str
    words: tuple[str, str]
    """What is said where it has one, and where it has none."""

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return list(zip(("yes", "no"), self.words, strict=True))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in {"yes", "no"}:
            return queryset
        return queryset.filter(**{f"{self.field}__isnull": self.value() == "no"})


class HeldFilter(SetFilter):
    title, parameter_name = "use", "held"
    field, words = "held_by", ("held", "free")


class WarnedFilter(SetFilter):
    title, parameter_name = "warning", "warned"
    field, words = "prune_warning_at", ("warned", "not warned")


class BlockedFilter(SetFilter):
    title, parameter_name = "pruning", "blocked"
    field, words = "prune_blocked_at", ("could not be pruned", "nothing in its way")


class FailingFilter(SetFilter):
    title, parameter_name = "fetches", "failing"
    field, words = "failing_since", ("failing", "well")


class TamperedFilter(SetFilter):
    title, parameter_name = "configuration", "tampered"
    field, words = "tampered_since", ("changed by somebody", "as it should be")


class StoppedFilter(SetFilter):
    title, parameter_name = "reconciliation", "stopped"
    field, words = "stopped_at", ("stopped itself", "goes on")


class MissingFilter(SetFilter):
    title, parameter_name = "bytes", "missing"
    field, words = "missing_at", ("missing", "there")


class OrphanedFilter(SetFilter):
    title, parameter_name = "conversation", "orphaned"
    field, words = "orphaned_at", ("none", "in one")


class DeletedFilter(SetFilter):
    title, parameter_name = "conversation's state", "deleted"
    field, words = "conversation__deleted_at", ("deleted", "kept")
