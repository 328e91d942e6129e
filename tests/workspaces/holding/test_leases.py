from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from tests.workspaces.conftest import make_idle
from tests.workspaces.factories import WorktreeFactory
from workspaces.exceptions import (
    ForeignHold,
    InvalidLease,
    InvalidName,
    StaleHold,
    UnknownWorktree,
    WorktreeHeld,
    WorktreeNotHeld,
)
from workspaces.holding import leases
from workspaces.models import Worktree

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


def held(holder: str = "agent", *, lease: dt.timedelta | None = None) -> Worktree:
    row: Worktree = WorktreeFactory()
    return leases.hold(row.pk, holder=holder, lease=lease)


def now(worktree: Worktree) -> Worktree:
    return Worktree.objects.get(pk=worktree.pk)


def later(worktree: Worktree, by: dt.timedelta) -> None:
    """As if the hold had begun, and was heard of last, so long ago."""
    Worktree.objects.filter(pk=worktree.pk).update(
        heartbeat_at=Now() - by,
        lease_expires_at=Now() + lasts(worktree) - by,
    )


def lasts(worktree: Worktree) -> dt.timedelta:
    """For how long it was given, when it was last heard of."""
    assert worktree.lease_expires_at
    assert worktree.heartbeat_at
    return worktree.lease_expires_at - worktree.heartbeat_at


def since(worktree: Worktree) -> dt.datetime:
    assert worktree.held_since
    return worktree.held_since


def database_now() -> dt.datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        at: dt.datetime = cursor.fetchone()[0]
        return at


def warned_and_blocked(worktree: Worktree) -> None:
    make_idle(worktree, days=28)
    Worktree.objects.filter(pk=worktree.pk).update(
        prune_warning_at=timezone.now(),
        prune_blocked_at=timezone.now(),
        prune_blocked_reason="x",
    )


def test_a_hold_has_a_number_an_end_and_a_first_sign_of_life(settings: Settings):
    settings.ACW_WORKTREE_LEASE = 3 * HOUR
    first = held()
    assert (first.fencing_no, lasts(first)) == (1, 3 * HOUR)
    assert first.heartbeat_at == first.held_since
    leases.release(first.pk)
    second = leases.hold(first.pk, holder="other", lease=HOUR)
    assert (second.fencing_no, lasts(second)) == (2, HOUR)


@pytest.mark.parametrize(
    "state", [Worktree.State.READY, Worktree.State.MISSING], ids=str
)
def test_the_free_one_that_was_used_last_is_taken(state: str):
    first, second = WorktreeFactory(), WorktreeFactory()
    make_idle(first, days=1)
    Worktree.objects.update(state=state)

    def take() -> Worktree | None:
        return leases.take(Worktree.objects.all(), holder="agent", lease=None)

    taken = take()
    assert taken == second
    assert taken.state == Worktree.State.READY
    assert take() == first
    assert take() is None


@pytest.mark.parametrize(("state", "said"), [("ready", "x"), ("missing", "")])
def test_what_is_said_of_a_worktree_is_said_to_its_next_holder_only(
    state: str, said: str
):
    worktree = WorktreeFactory(state=state, state_reason="x")
    # That one was missing is no longer true.
    taken = leases.hold(worktree.pk, holder="agent", lease=None)
    assert taken.state_reason == said
    assert leases.release(worktree.pk).state_reason == ""


@pytest.mark.parametrize("state", ["creating", "pruning", "restoring", "quarantined"])
def test_what_is_being_worked_on_or_out_of_use_is_not_taken(state: str):
    WorktreeFactory(state=state)
    assert leases.take(Worktree.objects.all(), holder="agent", lease=None) is None


@pytest.mark.parametrize("holder", ["", " ", "a\nb", "x" * 201, None, 7])
def test_a_holder_must_be_a_name(holder: object):
    with pytest.raises(InvalidName, match="holder"):
        leases.check_holder(holder)


@pytest.mark.parametrize("seconds", [0, -1, 3651 * 86400])
def test_a_lease_has_bounds(seconds: int):
    lease = dt.timedelta(seconds=seconds)
    with pytest.raises(InvalidLease, match="at most 3650 days"):
        leases.check_lease(lease)
    worktree = held()
    for wrong in (lease, seconds):
        with pytest.raises(InvalidLease, match=r"^a lease of "):
            leases.heartbeat(worktree.pk, fencing_no=1, lease=wrong)  # type: ignore[arg-type] # who has no mypy
    for fine in (None, HOUR, leases.UNTIL_RELEASED):
        leases.check_lease(fine)


def test_a_heartbeat_extends_by_what_the_hold_was_given_or_as_it_says():
    worktree = held(lease=2 * HOUR)
    later(worktree, HOUR)
    before = database_now()
    after = leases.heartbeat(worktree.pk, fencing_no=1)
    assert after.heartbeat_at
    assert before <= after.heartbeat_at <= database_now()
    assert lasts(after) == 2 * HOUR
    assert lasts(leases.heartbeat(worktree.pk, fencing_no=1, lease=HOUR)) == HOUR
    assert lasts(leases.heartbeat(worktree.pk, fencing_no=1)) == HOUR


def test_a_heartbeat_is_no_use_of_its_own():
    worktree = held()
    assert leases.heartbeat(worktree.pk, fencing_no=1).last_used_at == (
        worktree.last_used_at
    )


def test_a_heartbeat_in_time_or_before_anybody_looked_saves_the_hold():
    worktree = held(lease=HOUR)
    later(worktree, 2 * HOUR)
    assert Worktree.objects.expired().exists()
    leases.heartbeat(worktree.pk, fencing_no=1)
    assert not Worktree.objects.expired().exists()


def test_a_hold_until_it_is_released_is_given_no_end_by_a_heartbeat():
    worktree = held(lease=leases.UNTIL_RELEASED)
    assert worktree.lease_expires_at is None
    for lease in (None, HOUR):
        after = leases.heartbeat(worktree.pk, fencing_no=1, lease=lease)
        assert after.lease_expires_at is None
    worktree = held(lease=HOUR)
    after = leases.heartbeat(worktree.pk, fencing_no=1, lease=leases.UNTIL_RELEASED)
    assert after.lease_expires_at is None


def test_a_heartbeat_of_a_hold_that_is_over_is_refused():
    worktree = held()
    leases.release(worktree.pk)
    with pytest.raises(StaleHold, match=r"hold 1 .* nobody holds it.*acquire it again"):
        leases.heartbeat(worktree.pk, fencing_no=1)
    leases.hold(worktree.pk, holder="other", lease=None)
    with pytest.raises(StaleHold, match="the last is 2, 'other' has held it since 20"):
        leases.heartbeat(worktree.pk, fencing_no=1)
    with pytest.raises(UnknownWorktree):
        leases.heartbeat(12345, fencing_no=1)


def test_a_release_ends_the_hold_and_counts_as_use():
    worktree = held()
    warned_and_blocked(worktree)
    before = database_now()
    after = leases.release(worktree.pk)
    assert before <= after.last_used_at <= database_now()
    assert (after.prune_warning_at, after.prune_blocked_at) == (None, None)
    assert after.prune_blocked_reason == ""
    assert (after.held_by, after.held_since) == (None, None)
    assert (after.heartbeat_at, after.lease_expires_at) == (None, None)
    assert (after.last_held_by, after.fencing_no) == ("agent", 1)


def test_only_its_holder_is_let_go():
    worktree = held()
    for fencing_no in (None, 1):
        with pytest.raises(ForeignHold, match="held by 'agent', not by 'other'"):
            leases.release(worktree.pk, holder="other", fencing_no=fencing_no)
    assert leases.release(worktree.pk, holder="agent").held_by is None


def test_what_is_not_held_cannot_be_released_without_its_number():
    worktree = WorktreeFactory()
    with pytest.raises(WorktreeNotHeld, match=f"worktree {worktree.pk} is not held"):
        leases.release(worktree.pk)
    with pytest.raises(UnknownWorktree, match="no worktree 12345"):
        leases.release(12345, fencing_no=1)


def test_a_second_release_with_the_same_number_changes_nothing_and_says_so():
    worktree = held()
    assert leases.release_once(worktree.pk, fencing_no=1)[1] is True
    make_idle(worktree, days=3)
    used = now(worktree).last_used_at
    after, was_held = leases.release_once(worktree.pk, fencing_no=1)
    assert (was_held, after.held_by, after.last_used_at) == (False, None, used)


def test_a_release_with_an_earlier_number_leaves_the_later_hold_alone():
    worktree = held()
    leases.release(worktree.pk, fencing_no=1)
    leases.hold(worktree.pk, holder="agent", lease=None)
    for holder in (None, "agent"):
        with pytest.raises(StaleHold, match="hold 1 of"):
            leases.release(worktree.pk, holder=holder, fencing_no=1)
    assert now(worktree).held_by == "agent"


def test_a_hold_is_let_go_of_by_when_it_began():
    worktree = held()
    warned_and_blocked(worktree)
    assert leases.let_go(worktree.pk, held_since=since(worktree))
    after = now(worktree)
    assert (after.held_by, after.lease_expires_at) == (None, None)
    assert after.prune_warning_at is None
    assert not leases.let_go(worktree.pk, held_since=since(worktree))


def test_a_hold_is_passed_on_and_is_the_same_hold_still():
    worktree, other = held(), held()
    assert leases.pass_on(worktree.pk, held_since=since(worktree), holder="next")
    after = now(worktree)
    assert (after.held_by, after.last_held_by) == ("next", "next")
    assert (after.held_since, after.fencing_no) == (worktree.held_since, 1)
    assert now(other).held_by == "agent"
    assert leases.let_go(worktree.pk, held_since=since(worktree))


def test_a_hold_that_a_task_has_lasts_as_long_as_the_task():
    worktree = held()
    assert leases.keep_alive(worktree.pk, held_since=since(worktree))
    assert now(worktree).lease_expires_at is None


VERBS: dict[str, Callable[..., bool]] = {
    "let go": leases.let_go,
    "pass on": lambda pk, **hold: leases.pass_on(pk, holder="next", **hold),
    "keep alive": leases.keep_alive,
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_later_hold_is_left_alone(verb: str):
    worktree = held()
    leases.release(worktree.pk)
    began = since(worktree)
    assert not VERBS[verb](worktree.pk, held_since=began)
    leases.hold(worktree.pk, holder="other", lease=None)
    before = whole(worktree)
    assert not VERBS[verb](worktree.pk, held_since=began)
    assert whole(worktree) == before
    assert not VERBS[verb](12345, held_since=began)


def whole(worktree: Worktree) -> dict[str, Any]:
    (row,) = Worktree.objects.filter(pk=worktree.pk).values()
    return dict(row)


def test_who_holds_it_and_until_when_is_said():
    worktree = held(lease=HOUR)
    with pytest.raises(
        WorktreeHeld, match=r"is held by 'agent' since 20.* UTC, until 20"
    ):
        leases.refuse_held(worktree)
    lasting = held(lease=leases.UNTIL_RELEASED)
    with pytest.raises(WorktreeHeld, match=r"UTC, until it is released$"):
        leases.refuse_held(lasting)
    leases.refuse_held(WorktreeFactory())


def test_a_hold_of_which_nothing_came_is_no_use_and_only_itself_is_ended():
    worktree = held()
    make_idle(worktree, days=3)
    used = now(worktree).last_used_at
    leases.abandon(worktree)
    assert (now(worktree).held_by, now(worktree).last_used_at) == (None, used)
    leases.hold(worktree.pk, holder="agent", lease=None)
    leases.abandon(worktree)
    assert now(worktree).held_by == "agent"
