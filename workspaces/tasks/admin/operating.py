"""The operations on tasks in the admin: a page that asks for each, and two for those selected in the list.

All need the permission ``tasks.operate_task``. Nothing is done but by POST, and what does not apply is told as a warning.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_http_methods

from jobs.admin_verbs import TIME_LIMIT, VerbAdmin
from jobs.redaction import redact
from workspaces.tasks import operations
from workspaces.tasks.admin.forms import form_of, form_without_task
from workspaces.tasks.admin.pieces import agent, badge, title
from workspaces.tasks.exceptions import InvalidTask, UnknownTask
from workspaces.tasks.models import Task
from workspaces.tasks.operations import OPERATIONS, applicable
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Action, Template

_CONFIRMED = "confirmed"
_OPERATE = "tasks.operate_task"

LABELS = {
    Action.ACCEPT: "Accept",
    Action.PICK_WINNER: "Pick a winner",
    Action.REJECT: "Reject",
    Action.CANCEL: "Cancel",
    Action.REOPEN: "Reopen",
}

_CANCELS = "It ends for good unless it is reopened: its holder loses it, and what was handed in is rejected."
_REOPENS = "It is offered again, for as long as it was before."


class OperatedAdmin(VerbAdmin[Task]):
    """Tasks that operators act on in their publishers' place."""

    actions = ["cancel_selected", "reopen_selected"]

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(_OPERATE)

    def get_urls(self) -> list[URLPattern]:
        pages = [
            path(
                f"<path:object_id>/{action.value}/",
                self.admin_site.admin_view(
                    require_http_methods(["GET", "HEAD", "POST"])(
                        partial(self._operate_view, action)
                    )
                ),
                name=f"tasks_task_{action.value}",
            )
            for action in OPERATIONS
        ]
        return [*pages, *super().get_urls()]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        task: Task | None = kwargs.get("obj")
        if task is not None and self.has_operate_permission(request):
            context["operations"] = [
                {
                    "name": action.value,
                    "label": LABELS[action],
                    "url": self._url(action.value, task, request),
                }
                for action in applicable(task)
            ]
        return super().render_change_form(request, context, *args, **kwargs)

    def _operate_view(
        self, action: Action, request: HttpRequest, object_id: str
    ) -> HttpResponse:
        if not (
            self.has_operate_permission(request) and self.has_view_permission(request)
        ):
            raise PermissionDenied(_OPERATE)
        task = self.get_object(request, unquote(object_id))
        if task is None:
            raise Http404(f"there is no task {object_id}")
        if action not in applicable(task):
            self.message_user(
                request,
                f"{LABELS[action]} does not apply: the {task.template} task is {task.status}.",
                messages.WARNING,
            )
            return HttpResponseRedirect(self._url("change", task, request))
        form = form_of(action, task, request.POST if request.method == "POST" else None)
        if form.is_valid():
            outcome = _done(form, action, task, request)
            if outcome is not None:
                self._tell_outcome(request, outcome)
                return HttpResponseRedirect(self._url("change", task, request))
        return self._ask(
            request,
            form,
            what=f"{LABELS[action]}: {title(task.title)}",
            label=LABELS[action],
            action=action.value,
            note=_note(action, task),
            task=task,
            holder=agent(task.holder),
            publisher=agent(task.publisher),
            status=badge(task.status),
            task_title=title(task.title),
            back=self._url("change", task, request),
        )

    def _tell_outcome(self, request: HttpRequest, outcome: Outcome) -> None:
        if outcome.ok:
            text = f"Task {outcome.task_id} is {outcome.status} now."
            self.message_user(request, text, messages.SUCCESS)
            return
        text = f"Nothing was done: {redact(outcome.reason)}."
        self.message_user(request, text, messages.WARNING)

    def _ask(
        self, request: HttpRequest, form: forms.Form, *, what: str, **context: Any
    ) -> HttpResponse:
        return TemplateResponse(
            request,
            "admin/tasks/task/operate.html",
            {
                **self.admin_site.each_context(request),
                "title": what,
                "opts": self.opts,
                "media": self.media,
                "form": form,
                **context,
            },
        )

    @admin.action(description="Cancel: selected tasks", permissions=["operate"])
    def cancel_selected(
        self, request: HttpRequest, rows: QuerySet[Task]
    ) -> HttpResponse | None:
        return self._operate_selected(Action.CANCEL, request, rows, note=_CANCELS)

    @admin.action(description="Reopen: selected tasks", permissions=["operate"])
    def reopen_selected(
        self, request: HttpRequest, rows: QuerySet[Task]
    ) -> HttpResponse | None:
        return self._operate_selected(Action.REOPEN, request, rows, note=_REOPENS)

    def _operate_selected(
        self, action: Action, request: HttpRequest, rows: QuerySet[Task], *, note: str
    ) -> HttpResponse | None:
        chosen = Task.objects.filter(pk__in=rows.values("pk"))
        confirmed = _CONFIRMED in request.POST
        form = form_without_task(action, request.POST if confirmed else None)
        if form.is_valid():
            try:
                result = operations.operate_all(
                    chosen,
                    action,
                    user=request.user,  # type: ignore[arg-type] # the admin lets nobody else in
                    reason=form.cleaned_data.get("reason", ""),
                    time_limit=TIME_LIMIT,
                )
            except InvalidTask as refused:
                form.add_error(None, str(refused))
            else:
                self.tell(request, result)
                return None
        count = chosen.count()
        return self._ask(
            request,
            form,
            what=f"{LABELS[action]}: {count:,} {'task' if count == 1 else 'tasks'}",
            label=f"{LABELS[action]}: {'this task' if count == 1 else f'all {count:,}'}",
            action=action.value,
            note=f"{note} Those to which this does not apply are skipped, and you are told why.",
            back=request.get_full_path(),
            hidden=[
                ("action", request.POST.get("action", "")),
                ("select_across", request.POST.get("select_across", "0")),
                (_CONFIRMED, "1"),
                *(
                    (ACTION_CHECKBOX_NAME, key)
                    for key in request.POST.getlist(ACTION_CHECKBOX_NAME)
                ),
            ],
        )


def _done(
    form: forms.Form, action: Action, task: Task, request: HttpRequest
) -> Outcome | None:
    """None where what was written is refused; the form says why."""
    try:
        return operations.operate(
            task.pk,
            action,
            user=request.user,  # type: ignore[arg-type] # the admin lets nobody else in
            reason=form.cleaned_data.get("reason", ""),
            submission=form.cleaned_data.get("submission"),
        )
    except InvalidTask as refused:
        form.add_error(None, str(refused))
        return None
    except UnknownTask as gone:
        raise Http404(str(gone)) from None


def _note(action: Action, task: Task) -> str:
    contest = task.template == Template.CONTEST
    match action:
        case Action.ACCEPT:
            return "What its holder handed in is accepted, and the task ends."
        case Action.PICK_WINNER:
            return "The entry that you choose is accepted, the others are rejected, and the contest ends."
        case Action.REJECT if contest:
            return "Every entry is rejected, and the contest ends."
        case Action.REJECT:
            return "What was handed in is rejected. Its holder goes on where time is left; otherwise the task ends."
        case Action.CANCEL:
            return _CANCELS
    return _REOPENS
