"""The words of the state machine: templates, statuses, actions, roles, deadlines. Public, so they stay as written."""

from __future__ import annotations

from enum import StrEnum

from django.db.models import TextChoices


class Template(TextChoices):
    """``direct``: one agent holds the task; ``contest``: several submit, one wins."""

    DIRECT = "direct"
    CONTEST = "contest"


class Status(TextChoices):
    """Where a task is. The last five are ends, from all but the first of which its publisher may reopen it."""

    OPEN = "open"
    HELD = "held"
    REVIEWING = "reviewing"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    CLOSED = "closed"
    CANCELLED = "cancelled"


LIVE = (Status.OPEN, Status.HELD, Status.REVIEWING)
"""The statuses in which a deadline is watched."""

ENDED = tuple(status for status in Status if status not in LIVE)


class Action(StrEnum):
    """What is done to a task: by people and agents, and (from ``OPEN_EXPIRE``) by the worker, whose job types these are."""

    PUBLISH = "publish"
    TAKE = "take"
    USE_WORKTREE = "use_worktree"
    CHECKPOINT = "checkpoint"
    SUBMIT = "submit"
    GIVE_BACK = "give_back"
    OFFER_TRANSFER = "offer_transfer"
    ACCEPT_TRANSFER = "accept_transfer"
    DECLINE_TRANSFER = "decline_transfer"
    WITHDRAW_TRANSFER = "withdraw_transfer"
    ACCEPT = "accept"
    REJECT = "reject"
    PICK_WINNER = "pick_winner"
    CANCEL = "cancel"
    REOPEN = "reopen"
    OPEN_EXPIRE = "open_expire"
    HOLD_TIMEOUT = "hold_timeout"
    CHECKPOINT_WARN = "checkpoint_warn"
    CHECKPOINT_MISS = "checkpoint_miss"
    CONTEST_CLOSE = "contest_close"
    TRANSFER_EXPIRE = "transfer_expire"
    REVIEW_WARN = "review_warn"
    REVIEW_AUTO_ACCEPT = "review_auto_accept"


class Role(StrEnum):
    """What somebody is to a task. ``ANYONE`` is every agent, ``CONTESTANT`` everyone but the publisher."""

    PUBLISHER = "publisher"
    HOLDER = "holder"
    OFFERED = "offered"
    ANYONE = "anyone"
    CONTESTANT = "contestant"
    WORKER = "worker"


class Deadline(StrEnum):
    """The times that decide about a task, by the name of the column (``transfer_until``: of its pending transfer)."""

    OPEN_UNTIL = "open_until"
    HOLD_UNTIL = "hold_until"
    CHECKPOINT_WARN_AT = "checkpoint_warn_at"
    CHECKPOINT_DUE_AT = "checkpoint_due_at"
    TRANSFER_UNTIL = "transfer_until"
    REVIEW_WARN_AT = "review_warn_at"
    REVIEW_UNTIL = "review_until"


class Reason(StrEnum):
    """Why an action does not apply, for programs; the words beside it are for people."""

    WRONG_TEMPLATE = "wrong_template"
    WRONG_STATUS = "wrong_status"
    NOT_YOURS = "not_yours"
    TOO_LATE = "too_late"
    NOT_DUE = "not_due"
    NO_TRANSFER = "no_transfer"
    NO_SUCH_SUBMISSION = "no_such_submission"
    TRANSFER_PENDING = "transfer_pending"
    WORKTREE_REFUSED = "worktree_refused"
    AGENT_REFUSED = "agent_refused"
