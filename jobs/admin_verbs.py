"""Rows that are looked at in the admin and changed by verbs only.

A verb is an action on the rows selected in the list, or on all that match the filter, and a button on the page of
one row. Both are POST only and need the verb's permission.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from jobs import pagination
from jobs.action_result import Result
from jobs.admin_permissions import OnlyRead

ModelT = TypeVar("ModelT", bound=Model)

TIME_LIMIT = 20.0
"""Seconds that one request may go on; of a larger set the rest is left for the next."""

_CONFIRMED = "confirmed"


@dataclass(frozen=True, kw_only=True)
class Verb(Generic[ModelT]):
    """What may be done to a row.

    ``act`` takes the rows, who acts and how many seconds it has. ``applies`` tells whether a row's page shows the
    button; the act itself checks again. ``note`` is what to know before it is done to many rows.
    """

    name: str
    label: str
    permission: str
    act: Callable[[QuerySet[ModelT], str, float], Result]
    applies: Callable[[ModelT], bool]
    note: str = ""

    def allowed(self, request: HttpRequest) -> bool:
        return request.user.has_perm(self.permission)


class VerbAdmin(OnlyRead, admin.ModelAdmin[ModelT]):
    """Rows that the program writes: nobody adds, edits or deletes them here."""

    verbs: ClassVar[tuple[Verb[Any], ...]] = ()
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_max_show_all = 0
    # No column is worth sorting a million rows for.
    sortable_by = ()

    class Media:
        css = {"all": ["jobs/console.css"]}

    def __init__(self, model: type[ModelT], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        self.actions = [*(self.actions or ()), *map(_list_action, self.verbs)]
        for verb in self.verbs:
            # The admin asks for an action's permission by this name.
            setattr(self, f"has_{verb.name}_permission", verb.allowed)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = dict(extra_context or {})
        if issubclass(self.paginator, pagination.CappedPaginator):
            # How far a list is counted, for it to say so.
            context.setdefault("counted", pagination.COUNTED)
        return super().changelist_view(request, context)

    def get_urls(self) -> list[URLPattern]:
        buttons = [
            path(
                f"<path:object_id>/{verb.name}/",
                self.admin_site.admin_view(
                    require_POST(partial(self._act_on_one, verb))
                ),
                name=self._url_name(verb),
            )
            for verb in self.verbs
        ]
        return [*buttons, *super().get_urls()]

    def _url_name(self, verb: Verb[ModelT]) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{verb.name}"

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        row = kwargs.get("obj")
        context["verbs"] = [
            {
                "name": verb.name,
                "label": verb.label,
                "url": self._url(verb.name, row, request),
            }
            for verb in self.verbs
            if row is not None and verb.allowed(request) and verb.applies(row)
        ]
        return super().render_change_form(request, context, *args, **kwargs)

    def _url(self, what: str, row: ModelT, request: HttpRequest) -> str:
        """The address of what can be done with a row, which leads back to the list as it was filtered."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{what}"
        url = reverse(name, args=[quote(row.pk)], current_app=self.admin_site.name)
        filters = self.get_preserved_filters(request)
        return add_preserved_filters(
            {"opts": self.opts, "preserved_filters": filters}, url
        )

    def _act_on_one(
        self, verb: Verb[ModelT], request: HttpRequest, object_id: str
    ) -> HttpResponse:
        if not (verb.allowed(request) and self.has_view_permission(request)):
            raise PermissionDenied(verb.permission)
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404(f"there is no {self.opts.verbose_name} {object_id}")
        rows = self.get_queryset(request).filter(pk=row.pk)
        self.tell(request, verb.act(rows, request.user.get_username(), TIME_LIMIT))
        return HttpResponseRedirect(self._url("change", row, request))

    def tell(self, request: HttpRequest, result: Result) -> None:
        """Show what came of a verb on the next page."""
        if not result.done and not result.asked:
            level = messages.ERROR if result.skipped else messages.WARNING
        elif result.skipped or result.unfinished:
            level = messages.WARNING
        else:
            level = messages.SUCCESS
        self.message_user(request, str(result), level)


def _list_action(verb: Verb[ModelT]) -> Callable[..., HttpResponse | None]:
    """The verb as an action of the list."""

    @admin.action(
        permissions=[verb.name],
        description=f"{verb.label}: selected %(verbose_name_plural)s",
    )
    def act(
        model_admin: VerbAdmin[ModelT], request: HttpRequest, rows: QuerySet[ModelT]
    ) -> HttpResponse | None:
        return _act_on_many(verb, model_admin, request, rows)

    act.__name__ = verb.name
    return act


def _act_on_many(
    verb: Verb[Any],
    model_admin: VerbAdmin[Any],
    request: HttpRequest,
    rows: QuerySet[Any],
) -> HttpResponse | None:
    """All that match the filter may be many, and more than the page shows: that is asked first."""
    everything = request.POST.get("select_across") == "1"
    if everything and _CONFIRMED not in request.POST:
        return _confirm(verb, model_admin, request, rows)
    result = verb.act(rows, request.user.get_username(), TIME_LIMIT)
    model_admin.tell(request, result)
    return None


def _confirm(
    verb: Verb[Any],
    model_admin: VerbAdmin[Any],
    request: HttpRequest,
    rows: QuerySet[Any],
) -> HttpResponse:
    context = {
        **model_admin.admin_site.each_context(request),
        "title": f"{verb.label}: are you sure?",
        "opts": model_admin.opts,
        "media": model_admin.media,
        "verb": verb,
        "count": rows.count(),
        "fields": {
            "action": verb.name,
            "select_across": "1",
            _CONFIRMED: "1",
            # The admin takes no action without a selected row.
            ACTION_CHECKBOX_NAME: request.POST.get(ACTION_CHECKBOX_NAME, ""),
        },
    }
    return TemplateResponse(request, "admin/jobs/confirm_matching.html", context)
