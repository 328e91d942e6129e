"""Filters of the list of tasks. What can be chosen is known beforehand: none of them reads the table of tasks for that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from workspaces.admin import searching
from workspaces.models import Workspace
from workspaces.tasks.models import Agent, Task
from workspaces.tasks.overdue import overdue
from workspaces.tasks.states import Status, Template


class ChoiceFilter(admin.SimpleListFilter):
    """Tasks in whose column ``parameter_name`` one of the ``values`` stands; anything else finds nothing."""

    values: Iterable[str] = ()

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return [(value, value) for value in self.values]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Task]
    ) -> QuerySet[Task]:
        chosen = self.value()
        if not chosen:
            return queryset
        if chosen not in self.values:
            return queryset.none()
        return queryset.filter(**{str(self.parameter_name): chosen})


class StatusFilter(ChoiceFilter):
    title = "status"
    parameter_name = "status"
    values = Status.values


class TemplateFilter(ChoiceFilter):
    title = "template"
    parameter_name = "template"
    values = Template.values


class OverdueFilter(admin.SimpleListFilter):
    """A deadline is over, and its job has not done what it is there for."""

    title = "deadlines"
    parameter_name = "overdue"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return [("yes", "overdue")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Task]
    ) -> QuerySet[Task]:
        return queryset.filter(overdue()) if self.value() == "yes" else queryset


class RowFilter(admin.SimpleListFilter):
    """Tasks whose ``parameter_name`` is the row with the chosen id; one that is not among ``choosable`` is said to be gone."""

    def choosable(self) -> Iterable[tuple[int, str]]:
        raise NotImplementedError

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        chosen = self.value()
        found = [(str(key), name) for key, name in self.choosable()]
        if chosen and chosen not in dict(found):
            found.append((chosen, f"no such {self.title}"))
        return found

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Task]
    ) -> QuerySet[Task]:
        if not self.value():
            return queryset
        chosen = self.chosen_id()
        if chosen is None:
            return queryset.none()
        return queryset.filter(**{f"{self.parameter_name}_id": chosen})

    def chosen_id(self) -> int | None:
        """None where nothing is chosen that can be an id."""
        return searching.number_in(self.value() or "")


class WorkspaceFilter(RowFilter):
    title = "workspace"
    parameter_name = "workspace"

    def choosable(self) -> Iterable[tuple[int, str]]:
        return Workspace.objects.order_by("name").values_list("pk", "name")


class AgentFilter(RowFilter):
    """Of an agent, which a link has chosen: there are too many to list."""

    def choosable(self) -> Iterable[tuple[int, str]]:
        chosen = self.chosen_id()
        if chosen is None:
            return []
        found = Agent.objects.select_related("user").filter(pk=chosen)
        return [(agent.pk, str(agent)) for agent in found]


class PublisherFilter(AgentFilter):
    title = "publisher"
    parameter_name = "publisher"


class HolderFilter(AgentFilter):
    title = "holder"
    parameter_name = "holder"


FILTERS = [
    StatusFilter,
    TemplateFilter,
    OverdueFilter,
    WorkspaceFilter,
    PublisherFilter,
    HolderFilter,
]
