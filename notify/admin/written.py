"""Rows that the program writes: to be looked at in the admin."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from jobs.markup import block
from notify import topics


def pretty(value: Any) -> SafeString | str:
    """JSON, as people read it."""
    return block(json.dumps(value, indent=2, ensure_ascii=False))


class Written(admin.ModelAdmin[Model]):
    """Neither added nor changed by hand."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False


class TopicFilter(admin.SimpleListFilter):
    """The defined topics; which ones the table has is not asked, since it may be long."""

    title = "topic"
    parameter_name = "topic"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Model]
    ) -> list[tuple[str, str]]:
        return [(name, name) for name in sorted(topics.topics())]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Model]
    ) -> QuerySet[Model]:
        return queryset.filter(topic=self.value()) if self.value() else queryset
