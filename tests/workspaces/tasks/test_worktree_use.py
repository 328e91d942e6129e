from __future__ import annotations

from typing import Any

import pytest

from tests.workspaces.factories import WorkspaceFactory, WorktreeFactory
from tests.workspaces.tasks.market import (
    HOUR,
    agent,
    contest,
    held,
    history,
    last_event,
    now,
    offer,
    pass_and_work,
    publish,
    worktree,
)
from workspaces import holds
from workspaces.holding import leases
from workspaces.models import Worktree
from workspaces.tasks import actions, clock
from workspaces.tasks.models import Task
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Reason, Status

pytestmark = pytest.mark.django_db


def using(row: Worktree, by: str = "bob", **values: Any) -> Task:
    """A task whose holder works in the worktree."""
    task = publish(**values)
    assert actions.take(task.pk, by=agent(by), worktree=row).ok
    return now(task)


def hold(row: Worktree) -> tuple[str | None, str | None]:
    row.refresh_from_db()
    return row.held_by, row.last_held_by


def hand_over(row: Worktree, to: str) -> None:
    """Somebody released it, and another agent holds it now."""
    holds.release(row.pk)
    holder = str(agent(to))
    Worktree.objects.filter(pk=row.pk).update(
        held_by=holder, last_held_by=holder, held_since=clock.now()
    )


def refused(outcome: Outcome) -> str:
    assert (outcome.ok, outcome.code) == (False, Reason.WORKTREE_REFUSED)
    return outcome.reason


def test_a_worktree_comes_with_the_task_that_is_taken():
    row = worktree("bob")
    task = using(row)
    assert task.worktree == row
    assert task.worktree_held_since == row.held_since
    assert last_event(task).data == {"worktree_id": row.pk}


def test_its_hold_lasts_as_long_as_the_tasks_and_a_checkpoint_is_heard_of():
    row = leases.hold(WorktreeFactory().pk, holder=str(agent("bob")), lease=HOUR)
    task = using(row)
    row.refresh_from_db()
    assert row.lease_expires_at is None
    long_ago = clock.now() - 9 * HOUR
    Worktree.objects.update(heartbeat_at=long_ago)
    assert actions.checkpoint(task.pk, by=agent("bob"), note="half done").ok
    row.refresh_from_db()
    assert row.heartbeat_at
    assert row.heartbeat_at > long_ago + 8 * HOUR
    assert row.held_by == "bob"


def test_a_worktree_can_be_named_later_and_let_go_of():
    row, task = worktree("bob"), held()
    assert actions.use_worktree(task.pk, by=agent("bob"), worktree=row).ok
    assert now(task).worktree == row
    assert actions.use_worktree(task.pk, by=agent("bob"), worktree=None).ok
    assert now(task).worktree is None
    assert hold(row) == (None, "bob")
    assert last_event(task).data == {"worktree_released": row.pk}
    assert actions.use_worktree(task.pk, by=agent("bob"), worktree=None).ok
    assert last_event(task).data == {}


def test_another_one_takes_the_place_of_the_first():
    first, second = worktree("bob"), worktree("bob")
    task = using(first)
    assert actions.use_worktree(task.pk, by=agent("bob"), worktree=second).ok
    assert now(task).worktree == second
    assert hold(first) == (None, "bob")
    assert hold(second) == ("bob", "bob")
    assert last_event(task).data == {
        "worktree_id": second.pk,
        "worktree_released": first.pk,
    }
    assert actions.use_worktree(task.pk, by=agent("bob"), worktree=second).ok
    assert hold(second) == ("bob", "bob")


@pytest.mark.parametrize(
    ("holder", "said"), [("carol", "by 'carol'"), (None, "by nobody")]
)
def test_only_what_its_holder_holds_can_be_used(holder: str | None, said: str):
    row = worktree(holder) if holder else WorktreeFactory()
    task = publish()
    outcome = actions.take(task.pk, by=agent("bob"), worktree=row)
    assert refused(outcome) == (
        f"{row} is held {said}; `manage.py worktree acquire … --holder bob` holds one"
    )
    # Nothing half taken.
    assert (now(task).status, now(task).holder) == (Status.OPEN, None)
    assert history(task) == ["publish"]


def test_it_must_be_of_the_tasks_workspace():
    row = worktree("bob")
    task = publish(workspace=WorkspaceFactory())
    outcome = actions.take(task.pk, by=agent("bob"), worktree=row)
    assert refused(outcome) == f"{row} is of another workspace than the task's"
    task = publish(workspace=row.workspace)
    assert actions.take(task.pk, by=agent("bob"), worktree=row).ok


def test_it_is_in_use_for_one_task_only():
    row = worktree("bob")
    first, second = using(row), publish()
    outcome = actions.take(second.pk, by=agent("bob"), worktree=row)
    assert refused(outcome) == f"{row} is in use for {first}"
    assert actions.cancel(first.pk, by=agent("alice")).ok
    hand_over_again = clock.now()
    Worktree.objects.filter(pk=row.pk).update(held_by="bob", held_since=hand_over_again)
    assert actions.take(second.pk, by=agent("bob"), worktree=row).ok


def test_one_that_was_lost_is_not_in_use_for_the_former_task():
    row = worktree("bob")
    first = using(row)
    hand_over(row, "carol")
    second = using(row, by="carol")
    assert second.worktree == row
    # The first task's end is none of it.
    assert actions.give_back(first.pk, by=agent("bob")).ok
    assert hold(row) == ("carol", "carol")
    assert last_event(first).data == {"returns": 1}


def test_one_that_is_gone_is_refused():
    row = worktree("bob")
    gone = Worktree.objects.get(pk=row.pk)
    row.delete()
    outcome = actions.take(publish().pk, by=agent("bob"), worktree=gone)
    assert refused(outcome) == f"there is no worktree {gone.pk} any more"


@pytest.mark.parametrize(
    "end",
    [
        lambda pk: actions.give_back(pk, by=agent("bob")),
        lambda pk: actions.cancel(pk, by=agent("alice")),
        lambda pk: pass_and_work(8 * HOUR),
    ],
    ids=["given back", "cancelled", "timed out"],
)
def test_it_is_let_go_of_when_the_task_leaves_its_holder(end: Any):
    row = worktree("bob")
    task = using(row, returns_allowed=1)
    end(task.pk)
    assert hold(row) == (None, "bob")
    assert now(task).worktree is None
    assert now(task).worktree_held_since is None
    assert last_event(task).data["worktree_released"] == row.pk


def test_it_is_kept_through_a_review_and_a_rejection():
    row = worktree("bob")
    task = using(row)
    actions.submit(task.pk, by=agent("bob"), text="x")
    assert hold(row) == ("bob", "bob")
    actions.reject(task.pk, by=agent("alice"), reason="no tests")
    assert now(task).worktree == row
    actions.submit(task.pk, by=agent("bob"), text="with tests")
    actions.accept(task.pk, by=agent("alice"))
    assert hold(row) == (None, "bob")


def transferred(task: Task) -> Task:
    assert offer(task, "carol").ok
    assert actions.accept_transfer(task.pk, by=agent("carol")).ok
    return now(task)


def test_it_goes_with_the_task_to_its_next_holder():
    row = worktree("bob")
    task = transferred(using(row))
    assert hold(row) == ("carol", "carol")
    assert (task.worktree, task.worktree_held_since) == (row, row.held_since)
    assert actions.give_back(task.pk, by=agent("carol")).ok
    assert hold(row) == (None, "carol")


def test_one_that_was_lost_is_not_passed_on():
    row = worktree("bob")
    task = using(row)
    hand_over(row, "dave")
    task = transferred(task)
    assert hold(row) == ("dave", "dave")
    assert (task.worktree, task.worktree_held_since) == (None, None)


def test_a_task_without_one_is_passed_on_without():
    assert transferred(held()).worktree is None


def test_a_worktree_that_is_pruned_leaves_the_task():
    row = worktree("bob")
    task = using(row)
    row.delete()
    assert now(task).worktree is None
    assert actions.give_back(task.pk, by=agent("bob")).ok
    assert last_event(task).data == {"returns": 1}


def test_a_contest_has_none():
    task = contest("bob")
    outcome = actions.use_worktree(task.pk, by=agent("bob"), worktree=worktree("bob"))
    assert outcome.code == Reason.WRONG_STATUS


def test_only_the_holder_says_where_it_is_worked_on():
    task = held()
    for name in ("alice", "carol"):
        outcome = actions.use_worktree(task.pk, by=agent(name), worktree=worktree(name))
        assert outcome.code == Reason.NOT_YOURS
