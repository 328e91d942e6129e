from __future__ import annotations

import pytest

from tests.workspaces.tasks.admin.desk import HOSTILE
from tests.workspaces.tasks.market import agent, contest, entry
from workspaces.tasks import actions
from workspaces.tasks.admin.forms import AgentForm, form_of, form_without_task
from workspaces.tasks.states import Action

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("action", [Action.ACCEPT, Action.CANCEL])
def test_most_need_no_reason(action: Action):
    assert form_without_task(action, {}).is_valid()


def test_a_rejection_does():
    assert not form_without_task(Action.REJECT, {"reason": " "}).is_valid()
    assert form_without_task(Action.REJECT, {"reason": "no"}).is_valid()


def test_reopening_asks_for_nothing():
    assert list(form_without_task(Action.REOPEN).fields) == []


def test_the_winner_is_one_of_the_undecided_entries():
    task = contest("bob", "carol")
    superseded = entry(task, "bob").pk
    actions.submit(task.pk, by=agent("bob"), reference="acw/better")
    form = form_of(Action.PICK_WINNER, task, {"submission": str(superseded)})
    assert not form.is_valid()
    chosen = entry(task, "bob").pk
    form = form_of(Action.PICK_WINNER, task, {"submission": str(chosen)})
    assert form.is_valid()
    assert form.cleaned_data["submission"] == chosen
    assert "acw/better" in form.as_p()


def test_what_an_entry_says_is_escaped_and_holds_no_credential():
    task = contest("bob")
    task.submissions.update(text=f"https://u:SECRET@git.example {HOSTILE}")
    shown = form_of(Action.PICK_WINNER, task).as_p()
    assert "git.example" in shown
    assert "SECRET" not in shown
    assert "<script>" not in shown


@pytest.mark.parametrize(("name", "valid"), [("bot.1", True), ("-bot", False)])
def test_the_name_of_a_service_account_is_checked(name: str, valid: bool):
    form = AgentForm({"name": name, "enabled": "on"})
    assert form.is_valid() is valid
    if not valid:
        assert "letters, digits and . _ + @ -" in form.errors["name"][0]
