"""Holds as rows: each is taken, kept, passed on and let go of by one statement, which one of many callers wins.

A hold is a lease with a fencing number, which grows with every hold of its worktree. Knows nothing of the disk.
"""

from __future__ import annotations

import datetime as dt
import logging
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Case, F, QuerySet, TextField, Value, When
from django.db.models.functions import Coalesce, Now

from workspaces.archiving import lookup
from workspaces.events import LogEvent
from workspaces.exceptions import (
    ForeignHold,
    InvalidLease,
    InvalidName,
    StaleHold,
    WorktreeHeld,
    WorktreeNotHeld,
)
from workspaces.models import Worktree
from workspaces.models.workspace import HOLDER_MAX_LENGTH

log = logging.getLogger(__name__)

UNTIL_RELEASED = dt.timedelta.max
"""The lease of a hold that does not run out."""

_LONGEST = dt.timedelta(days=3650)

UNWARNED = {
    "prune_warning_at": None,
    "prune_blocked_at": None,
    "prune_blocked_reason": "",
}
"""What takes back a warning sets: what was in the way of pruning is told anew, too."""

_OVER = dict.fromkeys(("held_by", "held_since", "heartbeat_at", "lease_expires_at"))


def check_holder(holder: object) -> None:
    """Raise :class:`~workspaces.exceptions.InvalidName` for what is nobody's name."""
    if (
        not isinstance(holder, str)
        or not holder.strip()
        or not holder.isprintable()
        or len(holder) > HOLDER_MAX_LENGTH
    ):
        raise InvalidName(
            f"holder {holder!r}: it must be printable text of 1 to {HOLDER_MAX_LENGTH} characters"
        )


def check_lease(lease: dt.timedelta | None) -> None:
    """Raise :class:`~workspaces.exceptions.InvalidLease` for what no hold can last."""
    if lease in (None, UNTIL_RELEASED):
        return
    check_duration("a lease of", lease)


def check_duration(words: str, duration: object) -> None:
    """Raise :class:`~workspaces.exceptions.InvalidLease`, which begins with ``words``, for what is no timedelta above 0 and up to ten years."""
    if not isinstance(duration, dt.timedelta):
        raise InvalidLease(f"{words} {duration!r}: it must be a datetime.timedelta")
    if not dt.timedelta(0) < duration <= _LONGEST:
        raise InvalidLease(
            f"{words} {duration}: it must be longer than nothing and at most {_LONGEST.days} days"
        )


def take(
    rows: QuerySet[Worktree], *, holder: str, lease: dt.timedelta | None
) -> Worktree | None:
    """Hold the one of ``rows`` that was used last and that nobody holds; None: there is none."""
    free = rows.filter(
        held_by__isnull=True,
        state__in=[Worktree.State.READY, Worktree.State.MISSING],
    )
    with transaction.atomic():
        latest = free.order_by("-last_used_at").select_for_update(of=("self",)).first()
        if latest is None:
            return None
        # In the transaction: what is returned is this hold, not a later one.
        return hold(latest.pk, holder=holder, lease=lease)


def hold(worktree_id: int, *, holder: str, lease: dt.timedelta | None) -> Worktree:
    """Write that ``holder`` holds it from now on; the caller knows that nobody else does. Return its row."""
    lease = settings.ACW_WORKTREE_LEASE if lease is None else lease
    Worktree.objects.filter(pk=worktree_id).update(
        **used(
            state=Worktree.State.READY,
            # What is said of one that is ready is its next holder's to read.
            state_reason=Case(
                When(
                    state__in=[Worktree.State.MISSING, Worktree.State.CREATING],
                    then=Value("", output_field=TextField()),
                ),
                default=F("state_reason"),
            ),
            held_by=holder,
            held_since=Now(),
            heartbeat_at=Now(),
            lease_expires_at=None if lease == UNTIL_RELEASED else Now() + lease,
            fencing_no=F("fencing_no") + 1,
            last_held_by=holder,
        )
    )
    return Worktree.objects.select_related("workspace__owner").get(pk=worktree_id)


def heartbeat(
    worktree_id: int, *, fencing_no: int, lease: dt.timedelta | None = None
) -> Worktree:
    """Say that the hold of this number is in use: it lasts ``lease`` from now on, or as long as it was given.

    One that lasts until it is released stays so. Return the row. Raises :class:`~workspaces.exceptions.StaleHold` where
    the hold is over, ``UnknownWorktree`` and ``InvalidLease``.
    """
    check_lease(lease)
    until = None if lease == UNTIL_RELEASED else extended(lease)
    held = Worktree.objects.held().filter(pk=worktree_id, fencing_no=fencing_no)
    if not held.update(heartbeat_at=Now(), lease_expires_at=until):
        raise _stale(find(worktree_id), fencing_no)
    return find(worktree_id)


def release(
    worktree_id: int, *, holder: str | None = None, fencing_no: int | None = None
) -> Worktree:
    """Let the worktree go and return its row; with ``holder`` or ``fencing_no``, only that hold.

    Once more for the last hold's ``fencing_no`` is no error and changes nothing. Raises
    :class:`~workspaces.exceptions.UnknownWorktree`, ``WorktreeNotHeld``, ``ForeignHold`` and, where the hold of that
    number was over before, ``StaleHold``.
    """
    return release_once(worktree_id, holder=holder, fencing_no=fencing_no)[0]


def release_once(
    worktree_id: int, *, holder: str | None = None, fencing_no: int | None = None
) -> tuple[Worktree, bool]:
    """:func:`release`, and whether the worktree was still held by that hold."""
    held = Worktree.objects.held().filter(pk=worktree_id)
    if holder is not None:
        held = held.filter(held_by=holder)
    if fencing_no is not None:
        held = held.filter(fencing_no=fencing_no)
    if held.update(**over()):
        worktree = find(worktree_id)
        log.info(LogEvent.WORKTREE_RELEASED, extra=facts(worktree))
        return worktree, True
    worktree = find(worktree_id)
    if fencing_no is not None and worktree.fencing_no != fencing_no:
        raise _stale(worktree, fencing_no)
    if worktree.held_by is not None:
        raise ForeignHold(
            f"worktree {worktree_id} is held by {worktree.held_by!r}, not by {holder!r}"
        )
    if fencing_no is None:
        raise WorktreeNotHeld(f"worktree {worktree_id} is not held")
    return worktree, False


def let_go(worktree_id: int, *, held_since: dt.datetime) -> bool:
    """Let go of this hold, where it is not over yet; a later one of the same worktree is left alone."""
    return _change_hold(worktree_id, held_since, **over())


def pass_on(worktree_id: int, *, held_since: dt.datetime, holder: str) -> bool:
    """Give this hold to another holder, where it is not over yet; whether it was there to give."""
    changes = used(held_by=holder, last_held_by=holder, heartbeat_at=Now())
    return _change_hold(worktree_id, held_since, **changes)


def keep_alive(worktree_id: int, *, held_since: dt.datetime) -> bool:
    """Say that this hold is in use, and that it lasts until it is released; whether it was not over yet."""
    return _change_hold(
        worktree_id, held_since, heartbeat_at=Now(), lease_expires_at=None
    )


def refuse_held(worktree: Worktree) -> None:
    """Raise :class:`~workspaces.exceptions.WorktreeHeld`, with who holds it since when and for how long, where somebody does."""
    if worktree.held_by is None:
        return
    ends = worktree.lease_expires_at
    until = "until it is released" if ends is None else f"until {_shown(ends)}"
    raise WorktreeHeld(
        f"{worktree} is held by {worktree.held_by!r} since {_shown(worktree.held_since)}, {until}"
    )


def extended(lease: dt.timedelta | None = None) -> Any:
    """When a hold ends that is in use now: after ``lease``, or as long as it was given; never, if it had no end."""
    if lease is not None:
        return Case(
            When(lease_expires_at__isnull=False, then=Now() + lease), default=None
        )
    # NULL where it has no end, as everything is that is reckoned with NULL.
    given = F("lease_expires_at") - Coalesce("heartbeat_at", "held_since")
    return Now() + given


def over() -> dict[str, Any]:
    """What the end of a hold sets: it counts as use."""
    return used(**_OVER, state_reason="")


def used(**changes: Any) -> dict[str, Any]:
    """What every use of a worktree sets, with ``changes``: no warning of before it holds."""
    return {"last_used_at": Now(), "use_seen_at": Now(), **UNWARNED, **changes}


def abandon(worktree: Worktree) -> None:
    """End this very hold, of which nothing came: it was no use."""
    # What kept it from its holder may be that the session was lost, and nobody else knows of the hold.
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()
    Worktree.objects.held().filter(
        pk=worktree.pk, fencing_no=worktree.fencing_no
    ).update(**_OVER)


def find(worktree_id: int) -> Worktree:
    """The row, with its workspace and that one's owner; raises :class:`~workspaces.exceptions.UnknownWorktree`."""
    rows = Worktree.objects.select_related("workspace__owner")
    worktree = rows.filter(pk=worktree_id).first()
    if worktree is None:
        raise lookup.unknown(worktree_id)
    return worktree


def facts(worktree: Worktree) -> dict[str, Any]:
    """What log events say of a worktree."""
    return {
        "worktree_id": worktree.pk,
        "workspace": worktree.workspace.name,
        "branch": worktree.branch,
    }


def _change_hold(worktree_id: int, since: dt.datetime, **changes: Any) -> bool:
    hold = Worktree.objects.held().filter(pk=worktree_id, held_since=since)
    return bool(hold.update(**changes))


def _stale(worktree: Worktree, fencing_no: int) -> StaleHold:
    now = (
        f"{worktree.held_by!r} has held it since {_shown(worktree.held_since)}"
        if worktree.held_by
        else "nobody holds it"
    )
    return StaleHold(
        f"hold {fencing_no} of worktree {worktree.pk} is over (the last is {worktree.fencing_no}, {now}): "
        "do not work in it any more; acquire it again"
    )


def _shown(at: dt.datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S %Z}"
