"""Agents in the admin: service accounts are made, switched off and on, and deleted; users' rows are looked at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db import transaction
from django.db.models import (
    Count,
    IntegerField,
    OuterRef,
    ProtectedError,
    QuerySet,
    Subquery,
    Value,
)
from django.db.models.functions import Coalesce
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from notify import audit
from workspaces.tasks import agents
from workspaces.tasks.admin.forms import AgentForm
from workspaces.tasks.models import Agent, Submission, Task

_ENABLED = "enabled__exact"


class KindFilter(admin.SimpleListFilter):
    title = "kind"
    parameter_name = "kind"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return [("user", "users"), ("service", "service accounts")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Agent]
    ) -> QuerySet[Agent]:
        if self.value() not in ("user", "service"):
            return queryset
        return queryset.filter(user__isnull=self.value() == "service")


@admin.register(Agent)
class AgentAdmin(admin.ModelAdmin[Agent]):
    """Those who act on tasks, with what they hold."""

    form = AgentForm
    list_display = ["agent", "kind", "enabled", "owner", "holds", "created_at"]
    list_filter = [KindFilter, "enabled"]
    search_fields = ["name", "user__username"]
    search_help_text = "Part of a service account's name, or of a username."
    autocomplete_fields = ["owner"]
    readonly_fields = ["agent", "kind", "user_link", "holds", "published", "created_at"]
    actions = ["enable", "disable"]
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_max_show_all = 0

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        held = Task.objects.filter(holder=OuterRef("pk")).order_by().values("holder")
        count = Subquery(
            held.annotate(n=Count("*")).values("n"), output_field=IntegerField()
        )
        return (
            super()
            .get_queryset(request)
            .select_related("user", "owner")
            .annotate(held_count=Coalesce(count, Value(0)))
        )

    def lookup_allowed(
        self, lookup: str, value: str, request: HttpRequest | None = None
    ) -> bool:
        return lookup in {KindFilter.parameter_name, _ENABLED}

    def get_fields(self, request: HttpRequest, obj: Agent | None = None) -> list[Any]:
        if obj is None:
            return ["name", "owner"]
        shown = ["holds", "published", "created_at"]
        if obj.user_id is not None:
            return ["agent", "kind", "user_link", "enabled", *shown]
        return ["agent", "kind", "owner", "enabled", *shown]

    def has_change_permission(
        self, request: HttpRequest, obj: Agent | None = None
    ) -> bool:
        if obj is not None and obj.user_id is not None:
            return False  # it comes and goes with its user
        return super().has_change_permission(request, obj)

    def has_delete_permission(
        self, request: HttpRequest, obj: Agent | None = None
    ) -> bool:
        # One by one, on its own page, where a refusal can say why.
        return obj is not None and super().has_delete_permission(request, obj)

    @admin.display(description="agent")
    def agent(self, agent: Agent) -> str:
        return str(agent)

    @admin.display(description="kind")
    def kind(self, agent: Agent) -> str:
        return "service account" if agent.user_id is None else "user"

    @admin.display(description="user")
    def user_link(self, agent: Agent) -> SafeString:
        url = reverse("admin:auth_user_change", args=[agent.user_id])
        may = "" if agent.user is None or agent.user.is_active else ", not active"
        return format_html('<a href="{}">{}</a>{}', url, agent, may)

    @admin.display(description="holds")
    def holds(self, agent: Any) -> SafeString | str:
        if not agent.held_count:
            return "nothing"
        many = "1 task" if agent.held_count == 1 else f"{agent.held_count:,} tasks"
        return _tasks("holder", agent, many)

    @admin.display(description="published")
    def published(self, agent: Agent) -> SafeString:
        return _tasks("publisher", agent, "See all")

    def save_model(
        self, request: HttpRequest, obj: Agent, form: ModelForm[Agent], change: bool
    ) -> None:
        if not change:
            obj.pk = agents.add(obj.name or "", owner=obj.owner).pk
            self._audit(request, "agent.add", obj, **_owner(obj))
            return
        super().save_model(request, obj, form, change)
        if "enabled" in form.changed_data:
            self._audit(request, _switched(enabled=obj.enabled), obj)
        if "owner" in form.changed_data:
            self._audit(request, "agent.change", obj, **_owner(obj))

    def delete_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        agent = self.get_object(request, unquote(object_id))
        if agent is None or not self.has_delete_permission(request, agent):
            return super().delete_view(request, object_id, extra_context)
        part = list(_part_in_tasks(agent))
        if not part:
            try:
                return super().delete_view(request, object_id, extra_context)
            except ProtectedError:
                part = ["is named in a task since a moment ago"]
        self.message_user(
            request,
            f"{agent} cannot be deleted: it {' and '.join(part)}, and the history of those tasks keeps it. "
            "Disable it instead: then it can do nothing more.",
            messages.ERROR,
        )
        return HttpResponseRedirect(
            reverse("admin:tasks_agent_change", args=[agent.pk])
        )

    def delete_model(self, request: HttpRequest, obj: Agent) -> None:
        self._audit(request, "agent.delete", obj)
        super().delete_model(request, obj)

    @admin.action(
        description="Enable: selected service accounts", permissions=["change"]
    )
    def enable(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        self._switch(request, queryset, enabled=True)

    @admin.action(
        description="Disable: selected service accounts", permissions=["change"]
    )
    def disable(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        self._switch(request, queryset, enabled=False)

    def _switch(
        self, request: HttpRequest, queryset: QuerySet[Agent], *, enabled: bool
    ) -> None:
        word = "enabled" if enabled else "disabled"
        services = queryset.filter(user__isnull=True)
        changed = list(services.exclude(enabled=enabled))
        with transaction.atomic():
            for agent in changed:
                agents.switch(agent, enabled=enabled)
                self._audit(request, _switched(enabled=enabled), agent)
        users = queryset.filter(user__isnull=False).count()
        already = services.count() - len(changed)
        parts = [f"{len(changed):,} {word}"]
        if already:
            parts.append(f"{already:,} skipped: {word} already")
        if users:
            parts.append(f"{users:,} skipped: users are switched by `manage.py agent`")
        self.message_user(
            request,
            ", ".join(parts),
            messages.WARNING if already or users else messages.SUCCESS,
        )

    def _audit(
        self, request: HttpRequest, action: str, agent: Agent, **data: Any
    ) -> None:
        audit.record(
            request.user.get_username(), action, target=f"agent:{agent}", data=data
        )


def _switched(*, enabled: bool) -> str:
    return "agent.enable" if enabled else "agent.disable"


def _owner(agent: Agent) -> dict[str, str | None]:
    return {"owner": agent.owner.get_username() if agent.owner is not None else None}


def _tasks(parameter: str, agent: Agent, label: str) -> SafeString:
    url = reverse("admin:tasks_task_changelist", query={parameter: agent.pk})
    return format_html('<a href="{}">{}</a>', url, label)


def _part_in_tasks(agent: Agent) -> Iterable[str]:
    """What keeps it from being deleted, looked up without reading it all."""
    if Task.objects.filter(publisher=agent).exists():
        yield "has published tasks"
    if Task.objects.filter(holder=agent).exists():
        yield "holds tasks"
    if Submission.objects.filter(agent=agent).exists():
        yield "has handed in work"
    if agent.checkpoints.exists():
        yield "has reported checkpoints"
    if agent.transfers_offered.exists() or agent.transfers_received.exists():
        yield "had a part in transfers"
