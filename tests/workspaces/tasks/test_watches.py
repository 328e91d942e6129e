from __future__ import annotations

from workspaces.tasks.states import Action, Deadline
from workspaces.tasks.watches import WATCHES, WORKER_ACTIONS


def test_the_workers_actions_are_the_eight_of_the_source():
    assert set(WORKER_ACTIONS) == {
        "open_expire",
        "hold_timeout",
        "checkpoint_miss",
        "contest_close",
        "checkpoint_warn",
        "review_warn",
        "transfer_expire",
        "review_auto_accept",
    }


def test_each_deadline_is_watched_in_the_status_that_it_belongs_to():
    assert {(w.deadline, w.status, w.template): w.action for w in WATCHES} == {
        (Deadline.OPEN_UNTIL, "open", "direct"): Action.OPEN_EXPIRE,
        (Deadline.OPEN_UNTIL, "open", "contest"): Action.CONTEST_CLOSE,
        (Deadline.HOLD_UNTIL, "held", None): Action.HOLD_TIMEOUT,
        (Deadline.CHECKPOINT_WARN_AT, "held", None): Action.CHECKPOINT_WARN,
        (Deadline.CHECKPOINT_DUE_AT, "held", None): Action.CHECKPOINT_MISS,
        (Deadline.TRANSFER_UNTIL, "held", None): Action.TRANSFER_EXPIRE,
        (Deadline.REVIEW_WARN_AT, "reviewing", None): Action.REVIEW_WARN,
        (Deadline.REVIEW_UNTIL, "reviewing", None): Action.REVIEW_AUTO_ACCEPT,
    }
    assert len(WATCHES) == len(Deadline) + 1
