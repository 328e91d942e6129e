"""Actions in words, as they stand in a task's history."""

from __future__ import annotations

from collections.abc import Mapping

from workspaces.tasks.job_types import ARBITRATION_OPINION
from workspaces.tasks.states import Action

DONE: Mapping[str, str] = {
    Action.PUBLISH: "published it",
    Action.TAKE: "took it",
    Action.USE_WORKTREE: "changed the worktree",
    Action.CHECKPOINT: "reported a checkpoint",
    Action.SUBMIT: "handed work in",
    Action.GIVE_BACK: "gave it back",
    Action.OFFER_TRANSFER: "offered to hand it over",
    Action.ACCEPT_TRANSFER: "took it over",
    Action.DECLINE_TRANSFER: "declined to take it over",
    Action.WITHDRAW_TRANSFER: "withdrew the offer",
    Action.ACCEPT: "accepted the work",
    Action.REJECT: "rejected the work",
    Action.PICK_WINNER: "picked the winner",
    Action.CANCEL: "cancelled it",
    Action.REOPEN: "reopened it",
    Action.OPEN_EXPIRE: "nobody took it in time",
    Action.HOLD_TIMEOUT: "the holder's time was over",
    Action.CHECKPOINT_WARN: "warned of the checkpoint",
    Action.CHECKPOINT_MISS: "a checkpoint was missed",
    Action.CONTEST_CLOSE: "the contest closed",
    Action.TRANSFER_EXPIRE: "nobody answered the offer",
    Action.REVIEW_WARN: "warned of the review's end",
    Action.REVIEW_AUTO_ACCEPT: "accepted it: the time to review was over",
    ARBITRATION_OPINION: "gave an opinion on the rejection",
}
"""What somebody did, or what was the matter when the worker did something."""
