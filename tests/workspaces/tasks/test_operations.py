from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from notify.models import AuditEntry
from tests.workspaces.tasks.market import (
    agent,
    contest,
    entry,
    held,
    now,
    publish,
    reviewing,
)
from workspaces.tasks import actions, operations
from workspaces.tasks.exceptions import InvalidTask, UnknownTask
from workspaces.tasks.models import Task
from workspaces.tasks.operations import OPERATIONS, applicable, operate, operate_all
from workspaces.tasks.states import Action, Status

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga() -> User:
    return User.objects.create_user("olga")


def test_an_operation_is_audited_with_what_it_did(olga: User):
    task = reviewing()
    outcome = operate(task.pk, Action.REJECT, user=olga, reason="no tests")
    assert outcome.ok
    kept = AuditEntry.objects.get()
    assert (kept.actor, kept.action) == ("olga", "task.reject")
    assert kept.data == {"status": "held", "reason": "no tests"}


def test_the_audit_holds_no_credential(olga: User):
    reason = "see https://u:SECRET@git.example/x"
    operate(reviewing().pk, Action.REJECT, user=olga, reason=reason)
    assert "SECRET" not in str(AuditEntry.objects.get().data)


def test_what_does_not_apply_is_not_audited(olga: User):
    outcome = operate(publish().pk, Action.ACCEPT, user=olga)
    assert not outcome.ok
    assert "applies to a task that is reviewing" in outcome.reason
    assert not AuditEntry.objects.exists()


def test_without_its_audit_nothing_is_done(olga: User, monkeypatch: pytest.MonkeyPatch):
    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("no audit")

    monkeypatch.setattr("notify.audit.record", fail)
    task = held()
    with pytest.raises(RuntimeError):
        operate(task.pk, Action.CANCEL, user=olga)
    assert now(task).status == Status.HELD


@pytest.mark.parametrize("action", [Action.TAKE, Action.PICK_WINNER])
def test_other_actions_are_not_for_operators(olga: User, action: Action):
    with pytest.raises(ValueError, match="not for operators"):
        operate(publish().pk, action, user=olga)


def test_the_errors_are_those_of_the_actions(olga: User):
    with pytest.raises(UnknownTask):
        operate(4711, Action.CANCEL, user=olga)
    with pytest.raises(InvalidTask):
        operate(reviewing().pk, Action.REJECT, user=olga, reason=" ")


def test_every_operation_applies_somewhere():
    task = contest("bob")
    found = set(applicable(task))
    Task.objects.update(status="reviewing", review_until=task.open_until)
    found |= {*applicable(now(task)), *applicable(reviewing())}
    ended = publish()
    actions.cancel(ended.pk, by=agent("alice"))
    found |= set(applicable(now(ended)))
    assert found == set(OPERATIONS)
    assert entry(task, "bob").decision == "pending"


class TestAll:
    def test_each_is_done_and_audited_and_what_does_not_apply_is_skipped(
        self, olga: User
    ):
        wanted = [publish(), held()]
        ended = reviewing()
        actions.accept(ended.pk, by=agent("alice"))
        result = operate_all(
            Task.objects.all(), Action.CANCEL, user=olga, reason="r", time_limit=60
        )
        assert str(result) == (
            "2 cancelled, 1 skipped: cancel applies to a task that is open or held or reviewing"
        )
        assert {now(task).status for task in wanted} == {Status.CANCELLED}
        targets = AuditEntry.objects.values_list("target", flat=True)
        assert set(targets) == {f"task:{task.pk}" for task in wanted}

    def test_what_comes_in_between_is_told(
        self, olga: User, monkeypatch: pytest.MonkeyPatch
    ):
        first, second = publish(), publish()
        apply = operations._apply

        def meanwhile(task_id: int, *args: object, **kwargs: object) -> object:
            if task_id == first.pk:
                actions.cancel(task_id, by=agent("alice"))
            elif task_id == second.pk:
                Task.objects.filter(pk=task_id).delete()
            return apply(task_id, *args, **kwargs)  # type: ignore[arg-type]

        monkeypatch.setattr(operations, "_apply", meanwhile)
        result = operate_all(
            Task.objects.all(), Action.CANCEL, user=olga, time_limit=60
        )
        assert result.done == []
        assert {skip.reason for skip in result.skipped} == {
            "cancel applies to a task that is open or held or reviewing, and this one is cancelled",
            f"there is no task {second.pk}",
        }

    def test_the_rest_is_left_when_the_time_is_over(self, olga: User):
        publish()
        result = operate_all(Task.objects.all(), Action.CANCEL, user=olga, time_limit=0)
        assert result.unfinished
        assert str(result) == "0 cancelled; there are more, do it again"

    def test_only_what_can_be_done_to_many(self, olga: User):
        with pytest.raises(KeyError):
            operate_all(Task.objects.all(), Action.ACCEPT, user=olga, time_limit=60)
