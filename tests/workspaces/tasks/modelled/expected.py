"""What should become of a task, in plain Python: written from the documents' words, and from none of the product's modules.

Times are whatever the caller counts in. An action that should not apply raises :class:`No`, and then nothing has changed.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from tests.workspaces.tasks.modelled.terms import Terms
from tests.workspaces.tasks.modelled.world import (
    TRANSFER_FOR,
    WORKER,
    Entry,
    Offer,
    need,
)


class Expected(Terms):
    """What each action makes of it."""

    def act(self, action: str, by: str, at: dt.datetime, **given: Any) -> None:
        if by != WORKER:
            need(self.world.may_act(by), "agent_refused")
        getattr(self, action)(by, at, **given)

    def publish(self, by: str, at: dt.datetime) -> None:
        self._opens(at)
        self._tell("publish", by, at, source=None, topic="published")

    def take(self, by: str, at: dt.datetime, worktree: str | None = None) -> None:
        self._fits("open", template="direct")
        need(self.open_until and at < self.open_until, "too_late")
        self._attach(by, worktree)
        assert self.hold_for
        self.status, self.holder, self.open_until = "held", by, None
        self.hold_until, self.misses = at + self.hold_for, 0
        self._next_checkpoint(at)
        self._tell("take", by, at, source="open", topic="taken", told=[self.publisher])

    def use_worktree(self, by: str, at: dt.datetime, worktree: str | None) -> None:
        self._fits("held")
        need(by == self.holder, "not_yours")
        need(self._is_held_in_time(at), "too_late")
        if worktree is None:
            self._let_go()
        self._attach(by, worktree)
        self._tell("use_worktree", by, at, source="held")

    def checkpoint(self, by: str, at: dt.datetime) -> None:
        self._fits("held")
        need(by == self.holder, "not_yours")
        need(self.due_at is None or at < self.due_at, "too_late")
        need(self._is_held_in_time(at), "too_late")
        self.misses = 0
        self._next_checkpoint(at)
        self._tell("checkpoint", by, at, source="held")

    def checkpoint_warn(self, by: str, at: dt.datetime) -> None:
        self._fits("held")
        self._by_worker(by, self.warn_at, at)
        need(self.due_at and at < self.due_at, "too_late")
        self.warn_at = None
        self._tell(
            "checkpoint_warn",
            by,
            at,
            source="held",
            topic="checkpoint_warning",
            told=[self.holder],
        )

    def checkpoint_miss(self, by: str, at: dt.datetime) -> None:
        self._fits("held")
        self._by_worker(by, self.due_at, at)
        self.misses += 1
        if self.misses >= self.final_miss:
            self._loses("checkpoint_miss", by, at)
            return
        self._next_checkpoint(at)
        self._tell(
            "checkpoint_miss",
            by,
            at,
            source="held",
            topic="checkpoint_missed",
            told=[self.publisher, self.holder],
        )

    def hold_timeout(self, by: str, at: dt.datetime) -> None:
        self._fits("held")
        self._by_worker(by, self.hold_until, at)
        self._loses("hold_timeout", by, at)

    def give_back(self, by: str, at: dt.datetime) -> None:
        self._fits("held")
        need(by == self.holder, "not_yours")
        self._loses("give_back", by, at)

    def offer_transfer(self, by: str, at: dt.datetime, to: str, number: int) -> None:
        self._fits("held")
        need(by == self.holder, "not_yours")
        need(self._is_held_in_time(at), "too_late")
        need(self.offer() is None, "transfer_pending")
        need(to != by and self.world.may_act(to), "agent_refused")
        assert self.hold_until
        until = min(at + TRANSFER_FOR, self.hold_until)
        self.offers.append(Offer(number, by, to, until))
        self._tell(
            "offer_transfer",
            by,
            at,
            source="held",
            topic="transfer_offered",
            told=[to],
        )

    def accept_transfer(self, by: str, at: dt.datetime) -> None:
        offer = self._answered(by, at)
        need(self._is_held_in_time(at), "too_late")
        offer.status, self.holder, self.misses = "accepted", by, 0
        self._next_checkpoint(at)
        hold = self._own_hold()
        if hold is not None:
            hold.by = by
        self._tell(
            "accept_transfer",
            by,
            at,
            source="held",
            topic="transfer_accepted",
            told=[offer.of, self.publisher],
        )

    def decline_transfer(self, by: str, at: dt.datetime) -> None:
        offer = self._answered(by, at)
        offer.status = "declined"
        self._no_transfer("decline_transfer", by, at, [self.holder])

    def withdraw_transfer(self, by: str, at: dt.datetime) -> None:
        self._fits("held")
        need(by == self.holder, "not_yours")
        offer = self.offer()
        need(offer, "no_transfer")
        assert offer
        need(at < offer.until, "too_late")
        offer.status = "withdrawn"
        self._no_transfer("withdraw_transfer", by, at, [offer.to])

    def transfer_expire(self, by: str, at: dt.datetime) -> None:
        self._fits("held")
        offer = self.offer()
        self._by_worker(by, offer.until if offer else None, at)
        assert offer
        offer.status = "expired"
        self._no_transfer("transfer_expire", by, at, [offer.to, self.holder])

    def open_expire(self, by: str, at: dt.datetime) -> None:
        self._fits("open", template="direct")
        self._by_worker(by, self.open_until, at)
        self._ends("expired", at)
        self._tell(
            "open_expire",
            by,
            at,
            source="open",
            topic="expired",
            told=[self.publisher],
        )

    def submit(self, by: str, at: dt.datetime, number: int) -> None:
        contest = self.template == "contest"
        self._fits("open" if contest else "held")
        need(by != self.publisher if contest else by == self.holder, "not_yours")
        if contest:
            need(self.open_until and at < self.open_until, "too_late")
        else:
            need(self._is_held_in_time(at), "too_late")
        if contest:
            for entry in self.pending():
                if entry.agent == by:
                    entry.decision = "superseded"
            self.entries.append(Entry(number, by, at))
            self._tell("submit", by, at, source="open")
            return
        self.entries.append(Entry(number, by, at))
        self._into_review(at)
        self._tell(
            "submit", by, at, source="held", topic="submitted", told=[self.publisher]
        )

    def contest_close(self, by: str, at: dt.datetime) -> None:
        self._fits("open", template="contest")
        self._by_worker(by, self.open_until, at)
        if self.pending():
            self._into_review(at)
        else:
            self._ends("expired", at)
        self._tell(
            "contest_close",
            by,
            at,
            source="open",
            topic="submitted" if self.pending() else "expired",
            told=[self.publisher],
        )

    def review_warn(self, by: str, at: dt.datetime) -> None:
        self._fits("reviewing")
        self._by_worker(by, self.review_warn_at, at)
        self.review_warn_at = None
        # Too late there is nothing to warn of, and nothing left to watch either.
        in_time = self.review_until and at < self.review_until
        self._tell(
            "review_warn",
            by,
            at,
            source="reviewing",
            topic="review_warning" if in_time else None,
            told=[self.publisher] if in_time else [],
        )

    def accept(self, by: str, at: dt.datetime) -> None:
        self._fits("reviewing", template="direct")
        self._by_publisher(by)
        self._accepted("accept", by, at, self.pending()[0])

    def pick_winner(self, by: str, at: dt.datetime, submission: int) -> None:
        self._fits("reviewing", template="contest")
        self._by_publisher(by)
        winner = next((e for e in self.pending() if e.id == submission), None)
        need(winner, "no_such_submission")
        assert winner
        self._accepted("pick_winner", by, at, winner)

    def review_auto_accept(
        self, by: str, at: dt.datetime, submission: int | None = None
    ) -> None:
        self._fits("reviewing")
        self._by_worker(by, self.review_until, at)
        entries = self.pending()
        winner = next((e for e in entries if submission in (None, e.id)), None)
        assert winner, "the judge's answer was checked"
        self._accepted("review_auto_accept", by, at, winner)

    def reject(self, by: str, at: dt.datetime) -> None:
        self._fits("reviewing")
        self._by_publisher(by)
        direct = self.template == "direct"
        if direct:
            need(self.review_until and at < self.review_until, "too_late")
        entrants = self._decide_all("rejected")
        if direct and self.hold_until and at < self.hold_until:
            self.status, self.review_warn_at, self.review_until = "held", None, None
            self._next_checkpoint(at)
        else:
            self._ends("rejected", at)
        self._tell(
            "reject",
            by,
            at,
            source="reviewing",
            topic="rejected",
            told=[self.publisher, *(entry.agent for entry in entrants)],
        )

    def cancel(self, by: str, at: dt.datetime) -> None:
        self._fits("open", "held", "reviewing")
        self._by_publisher(by)
        source, holder = self.status, self.holder
        if source == "reviewing" and self.template == "direct":
            need(self.review_until and at < self.review_until, "too_late")
        entrants = self._decide_all("rejected")
        self._ends("cancelled", at)
        self._tell(
            "cancel",
            by,
            at,
            source=source,
            topic="cancelled",
            told=[self.publisher, holder, *(entry.agent for entry in entrants)],
        )

    def reopen(
        self, by: str, at: dt.datetime, open_for: dt.timedelta | None = None
    ) -> None:
        self._fits("rejected", "expired", "closed", "cancelled")
        self._by_publisher(by)
        source = self.status
        self.open_for = open_for or self.open_for
        self.returns = 0
        self._opens(at)
        self._tell(
            "reopen",
            by,
            at,
            source=source,
            topic="published",
            told=[self.publisher],
        )
