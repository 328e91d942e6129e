"""What is asked before an operator acts on tasks, and when a service account is made."""

from __future__ import annotations

from typing import Any

from django import forms

from jobs.display import first_line
from workspaces.tasks import agents, entries
from workspaces.tasks.admin.pieces import shown
from workspaces.tasks.exceptions import InvalidTask
from workspaces.tasks.models import Agent, Task
from workspaces.tasks.states import Action
from workspaces.tasks.texts import REASON_LIMIT


class ReasonForm(forms.Form):
    """Why; told to those concerned, and kept in the history."""

    reason = forms.CharField(
        max_length=REASON_LIMIT,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "class": "vLargeTextField"}),
        help_text="Told to those concerned, and kept in the history and the audit.",
    )


class RejectForm(ReasonForm):
    """A rejection without a reason helps nobody."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].required = True


class WinnerForm(ReasonForm):
    """Which of the undecided entries wins."""

    submission = forms.TypedChoiceField(coerce=int, label="Winner")
    field_order = ["submission", "reason"]

    def __init__(self, *args: Any, task: Task, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["submission"]
        assert isinstance(field, forms.TypedChoiceField)  # noqa: S101 (for the type checker)
        field.choices = [
            ("", "Choose an entry"),
            *((row.pk, _entry(row)) for row in entries.pending(task)),
        ]


def _entry(row: Any) -> str:
    work = first_line(shown(row.reference or row.text), 60)
    return f"{row.pk}: {row.agent}, {row.created_at:%Y-%m-%d %H:%M:%S %Z}: {work}"


def form_of(action: Action, task: Task, data: Any = None) -> forms.Form:
    """What is asked before ``action`` is done to the task."""
    if action is Action.PICK_WINNER:
        return WinnerForm(data, task=task)
    return form_without_task(action, data)


def form_without_task(action: Action, data: Any = None) -> forms.Form:
    """What is asked before ``action`` is done to whichever task."""
    match action:
        case Action.REJECT:
            return RejectForm(data)
        case Action.REOPEN:
            return forms.Form(data)
    return ReasonForm(data)


class AgentForm(forms.ModelForm[Agent]):
    """Makes a service account, or changes one."""

    class Meta:
        model = Agent
        fields = ["name", "owner", "enabled"]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"] or ""
        try:
            return agents.checked_name(name)
        except InvalidTask as refused:
            raise forms.ValidationError(str(refused)) from None
