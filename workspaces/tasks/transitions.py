"""The table of the state machine, as pure data: who may do what, when, and what becomes of the task.

Of several rows that fit, the first whose ``when`` holds counts. ``manage.py task diagram`` draws them, and the deadlines that
are watched in a status are those that stand in the worker's rows (:mod:`workspaces.tasks.watches`).
"""

from __future__ import annotations

from workspaces.tasks import topics
from workspaces.tasks.states import Action, Deadline, Role, Status, Template
from workspaces.tasks.transition import (
    ENTERED,
    HOLD_LEFT,
    MISSES_LEFT,
    RETURNS_LEFT,
    REVIEW_LEFT,
    Party,
    Transition,
)

_BOTH_SIDES = (Party.PUBLISHER, Party.FORMER)
_DIRECT, _CONTEST = Template.DIRECT, Template.CONTEST
_OPEN, _HELD, _REVIEWING = Status.OPEN, Status.HELD, Status.REVIEWING


def _given_back(
    action: Action, by: Role, *, after: Deadline | None = None
) -> tuple[Transition, ...]:
    """The two ways that a task goes when its holder loses it."""
    return (
        Transition(
            action,
            _HELD,
            _OPEN,
            by,
            after=after,
            when=RETURNS_LEFT,
            topic=topics.RETURNED,
            tells=_BOTH_SIDES,
        ),
        Transition(
            action,
            _HELD,
            Status.CLOSED,
            by,
            after=after,
            topic=topics.CLOSED,
            tells=_BOTH_SIDES,
        ),
    )


TRANSITIONS: tuple[Transition, ...] = (
    Transition(Action.PUBLISH, None, _OPEN, Role.ANYONE, topic=topics.PUBLISHED),
    Transition(
        Action.TAKE,
        _OPEN,
        _HELD,
        Role.ANYONE,
        template=_DIRECT,
        before=(Deadline.OPEN_UNTIL,),
        topic=topics.TAKEN,
        tells=(Party.PUBLISHER,),
    ),
    Transition(
        Action.OPEN_EXPIRE,
        _OPEN,
        Status.EXPIRED,
        Role.WORKER,
        template=_DIRECT,
        after=Deadline.OPEN_UNTIL,
        topic=topics.EXPIRED,
        tells=(Party.PUBLISHER,),
    ),
    Transition(
        Action.USE_WORKTREE, _HELD, _HELD, Role.HOLDER, before=(Deadline.HOLD_UNTIL,)
    ),
    Transition(
        Action.CHECKPOINT_WARN,
        _HELD,
        _HELD,
        Role.WORKER,
        before=(Deadline.CHECKPOINT_DUE_AT,),
        after=Deadline.CHECKPOINT_WARN_AT,
        topic=topics.CHECKPOINT_WARNING,
        tells=(Party.FORMER,),
    ),
    Transition(
        Action.CHECKPOINT,
        _HELD,
        _HELD,
        Role.HOLDER,
        before=(Deadline.CHECKPOINT_DUE_AT, Deadline.HOLD_UNTIL),
    ),
    Transition(
        Action.CHECKPOINT_MISS,
        _HELD,
        _HELD,
        Role.WORKER,
        after=Deadline.CHECKPOINT_DUE_AT,
        when=MISSES_LEFT,
        topic=topics.CHECKPOINT_MISSED,
        tells=_BOTH_SIDES,
    ),
    *_given_back(Action.CHECKPOINT_MISS, Role.WORKER, after=Deadline.CHECKPOINT_DUE_AT),
    *_given_back(Action.HOLD_TIMEOUT, Role.WORKER, after=Deadline.HOLD_UNTIL),
    *_given_back(Action.GIVE_BACK, Role.HOLDER),
    Transition(
        Action.OFFER_TRANSFER,
        _HELD,
        _HELD,
        Role.HOLDER,
        before=(Deadline.HOLD_UNTIL,),
        topic=topics.TRANSFER_OFFERED,
        tells=(Party.OFFERED,),
    ),
    Transition(
        Action.ACCEPT_TRANSFER,
        _HELD,
        _HELD,
        Role.OFFERED,
        before=(Deadline.TRANSFER_UNTIL, Deadline.HOLD_UNTIL),
        topic=topics.TRANSFER_ACCEPTED,
        tells=_BOTH_SIDES,
    ),
    Transition(
        Action.DECLINE_TRANSFER,
        _HELD,
        _HELD,
        Role.OFFERED,
        before=(Deadline.TRANSFER_UNTIL,),
        topic=topics.TRANSFER_ENDED,
        tells=(Party.FORMER,),
    ),
    Transition(
        Action.WITHDRAW_TRANSFER,
        _HELD,
        _HELD,
        Role.HOLDER,
        before=(Deadline.TRANSFER_UNTIL,),
        topic=topics.TRANSFER_ENDED,
        tells=(Party.OFFERED,),
    ),
    Transition(
        Action.TRANSFER_EXPIRE,
        _HELD,
        _HELD,
        Role.WORKER,
        after=Deadline.TRANSFER_UNTIL,
        topic=topics.TRANSFER_ENDED,
        tells=(Party.FORMER, Party.OFFERED),
    ),
    Transition(
        Action.SUBMIT,
        _HELD,
        _REVIEWING,
        Role.HOLDER,
        before=(Deadline.HOLD_UNTIL,),
        topic=topics.SUBMITTED,
        tells=(Party.PUBLISHER,),
    ),
    Transition(
        Action.SUBMIT,
        _OPEN,
        _OPEN,
        Role.CONTESTANT,
        template=_CONTEST,
        before=(Deadline.OPEN_UNTIL,),
    ),
    Transition(
        Action.CONTEST_CLOSE,
        _OPEN,
        _REVIEWING,
        Role.WORKER,
        template=_CONTEST,
        after=Deadline.OPEN_UNTIL,
        when=ENTERED,
        topic=topics.SUBMITTED,
        tells=(Party.PUBLISHER,),
    ),
    Transition(
        Action.CONTEST_CLOSE,
        _OPEN,
        Status.EXPIRED,
        Role.WORKER,
        template=_CONTEST,
        after=Deadline.OPEN_UNTIL,
        topic=topics.EXPIRED,
        tells=(Party.PUBLISHER,),
    ),
    Transition(
        Action.REVIEW_WARN,
        _REVIEWING,
        _REVIEWING,
        Role.WORKER,
        after=Deadline.REVIEW_WARN_AT,
        when=REVIEW_LEFT,
        topic=topics.REVIEW_WARNING,
        tells=(Party.PUBLISHER,),
    ),
    # Too late to warn; a contest without a judge stays in review, and no deadline may stay with it unwatched.
    Transition(
        Action.REVIEW_WARN,
        _REVIEWING,
        _REVIEWING,
        Role.WORKER,
        after=Deadline.REVIEW_WARN_AT,
    ),
    Transition(
        Action.ACCEPT,
        _REVIEWING,
        Status.ACCEPTED,
        Role.PUBLISHER,
        template=_DIRECT,
        topic=topics.ACCEPTED,
        tells=_BOTH_SIDES,
    ),
    Transition(
        Action.REJECT,
        _REVIEWING,
        _HELD,
        Role.PUBLISHER,
        template=_DIRECT,
        before=(Deadline.REVIEW_UNTIL,),
        when=HOLD_LEFT,
        topic=topics.REJECTED,
        tells=_BOTH_SIDES,
    ),
    Transition(
        Action.REJECT,
        _REVIEWING,
        Status.REJECTED,
        Role.PUBLISHER,
        template=_DIRECT,
        before=(Deadline.REVIEW_UNTIL,),
        topic=topics.REJECTED,
        tells=_BOTH_SIDES,
    ),
    Transition(
        Action.REJECT,
        _REVIEWING,
        Status.REJECTED,
        Role.PUBLISHER,
        template=_CONTEST,
        topic=topics.REJECTED,
        tells=(Party.PUBLISHER, Party.ENTRANTS),
    ),
    Transition(
        Action.PICK_WINNER,
        _REVIEWING,
        Status.ACCEPTED,
        Role.PUBLISHER,
        template=_CONTEST,
        topic=topics.ACCEPTED,
        tells=(Party.PUBLISHER, Party.ENTRANTS),
    ),
    Transition(
        Action.REVIEW_AUTO_ACCEPT,
        _REVIEWING,
        Status.ACCEPTED,
        Role.WORKER,
        after=Deadline.REVIEW_UNTIL,
        topic=topics.ACCEPTED,
        tells=(Party.PUBLISHER, Party.ENTRANTS),
    ),
    *(
        Transition(
            Action.CANCEL,
            source,
            Status.CANCELLED,
            Role.PUBLISHER,
            template=template,
            before=before,
            topic=topics.CANCELLED,
            tells=(Party.PUBLISHER, Party.FORMER, Party.ENTRANTS),
        )
        for source, template, before in (
            (_OPEN, None, ()),
            (_HELD, None, ()),
            (_REVIEWING, _DIRECT, (Deadline.REVIEW_UNTIL,)),
            (_REVIEWING, _CONTEST, ()),
        )
    ),
    *(
        Transition(
            Action.REOPEN,
            source,
            _OPEN,
            Role.PUBLISHER,
            topic=topics.PUBLISHED,
            tells=(Party.PUBLISHER,),
        )
        for source in Status
        if source not in (_OPEN, _HELD, _REVIEWING, Status.ACCEPTED)
    ),
)
