"""A task as it should be, and what its changes have in common: deadlines, ends, and who is told."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.workspaces.tasks.modelled.world import (
    CHECKPOINT_LEAD,
    OPERATOR,
    REVIEW_LEAD,
    WORKER,
    Done,
    Entry,
    Hold,
    Offer,
    Time,
    World,
    need,
)


@dataclass(kw_only=True)
class Terms:
    """A task as it should be."""

    world: World
    template: str
    publisher: str
    open_for: dt.timedelta
    hold_for: dt.timedelta | None
    every: dt.timedelta | None
    review_for: dt.timedelta
    final_miss: int
    returns_allowed: int
    id: int = 0
    status: str = "open"
    holder: str | None = None
    misses: int = 0
    returns: int = 0
    open_until: Time = None
    hold_until: Time = None
    warn_at: Time = None
    due_at: Time = None
    review_warn_at: Time = None
    review_until: Time = None
    ended_at: Time = None
    worktree: tuple[str, int] | None = None
    entries: list[Entry] = field(default_factory=list)
    offers: list[Offer] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    lapsed: str | None = None

    # What is looked at.

    def pending(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.decision == "pending"]

    def offer(self) -> Offer | None:
        return next((offer for offer in self.offers if offer.status == "pending"), None)

    def live(self) -> list[tuple[str, dt.datetime]]:
        """The deadlines that should have a job, by the job's type."""
        direct, offer = self.template == "direct", self.offer()
        times: dict[str, dict[str, Time]] = {
            "open": {"open_expire" if direct else "contest_close": self.open_until},
            "held": {
                "hold_timeout": self.hold_until,
                "checkpoint_warn": self.warn_at,
                "checkpoint_miss": self.due_at,
                "transfer_expire": offer.until if offer else None,
            },
            "reviewing": {
                "review_warn": self.review_warn_at,
                "review_auto_accept": self.review_until,
            },
        }
        watched = times.get(self.status, {})
        return [(action, at) for action, at in watched.items() if at is not None]

    # What all actions ask first.

    def _fits(self, *statuses: str, template: str | None = None) -> None:
        need(template in (None, self.template), "wrong_template")
        need(self.status in statuses, "wrong_status")

    def _by_publisher(self, by: str) -> None:
        need(by in (self.publisher, OPERATOR), "not_yours")

    def _by_worker(self, by: str, after: Time, at: dt.datetime) -> None:
        need(by == WORKER, "not_yours")
        need(after is not None and after <= at, "not_due", after)

    def _tell(
        self,
        action: str,
        by: str,
        at: dt.datetime,
        *,
        source: str | None,
        topic: str | None = None,
        told: Iterable[str | None] = (),
    ) -> None:
        tells = [(topic, self._people(told, by))] if topic is not None else []
        if self.lapsed is not None:
            tells.append(("transfer_ended", self._people([self.lapsed], by)))
            self.lapsed = None
        name = f"{by} (operator)" if by == OPERATOR else by
        self.done.append(Done(action, source, self.status, name, at, tuple(tells)))

    def _people(self, told: Iterable[str | None], by: str) -> frozenset[str]:
        others = {name for name in told if name is not None and name != by}
        return frozenset(p for name in others for p in self.world.people(name))

    # What several have in common.

    def _opens(self, at: dt.datetime) -> None:
        self._ends("open", at)
        self.ended_at, self.open_until = None, at + self.open_for

    def _ends(self, status: str, at: dt.datetime) -> None:
        """Nobody holds it any more, and nothing is watched."""
        self._lapse()
        self._let_go()
        self.status, self.holder, self.ended_at = status, None, at
        self.open_until = self.hold_until = None
        self.warn_at = self.due_at = self.review_warn_at = self.review_until = None

    def _is_held_in_time(self, at: dt.datetime) -> bool:
        """Neither is the time over, nor was the last checkpoint missed that may not be."""
        final = self.due_at if self.misses + 1 >= self.final_miss else None
        return all(at < until for until in (self.hold_until, final) if until)

    def _lapse(self) -> None:
        """Whom it was offered to hears that it goes elsewhere."""
        offer = self.offer()
        if offer is not None:
            offer.status, self.lapsed = "expired", offer.to

    def _loses(self, action: str, by: str, at: dt.datetime) -> None:
        holder = self.holder
        self.returns += 1
        again = self.returns <= self.returns_allowed
        if again:
            self._opens(at)
        else:
            self._ends("closed", at)
        self._tell(
            action,
            by,
            at,
            source="held",
            topic="returned" if again else "closed",
            told=[self.publisher, holder],
        )

    def _next_checkpoint(self, at: dt.datetime) -> None:
        self.warn_at = self.due_at = None
        assert self.hold_until
        if self.every and at + self.every < self.hold_until:
            self.due_at = at + self.every
            self.warn_at = self.due_at - min(CHECKPOINT_LEAD, self.every / 2)

    def _into_review(self, at: dt.datetime) -> None:
        self._lapse()
        self.status, self.warn_at, self.due_at = "reviewing", None, None
        self.review_until = at + self.review_for
        self.review_warn_at = self.review_until - min(REVIEW_LEAD, self.review_for / 2)

    def _accepted(
        self,
        action: str,
        by: str,
        at: dt.datetime,
        winner: Entry,
    ) -> None:
        entrants = self._decide_all("rejected")
        winner.decision = "accepted"
        self._ends("accepted", at)
        self._tell(
            action,
            by,
            at,
            source="reviewing",
            topic="accepted",
            told=[self.publisher, *(entry.agent for entry in entrants)],
        )

    def _decide_all(self, decision: str) -> list[Entry]:
        entries = self.pending()
        for entry in entries:
            entry.decision = decision
        return entries

    def _answered(self, by: str, at: dt.datetime) -> Offer:
        self._fits("held")
        offer = self.offer()
        need(offer and offer.to == by, "not_yours")
        assert offer
        need(at < offer.until, "too_late")
        return offer

    def _no_transfer(
        self, action: str, by: str, at: dt.datetime, told: list[str | None]
    ) -> None:
        self._tell(action, by, at, source="held", topic="transfer_ended", told=told)

    def _own_hold(self) -> Hold | None:
        """The hold of the worktree that the task uses, where that is not over."""
        if self.worktree is None:
            return None
        name, number = self.worktree
        hold = self.world.worktrees[name]
        return hold if hold.by is not None and hold.number == number else None

    def _let_go(self) -> None:
        hold = self._own_hold()
        if hold is not None:
            hold.by = None
        self.worktree = None

    def _attach(self, by: str, worktree: str | None) -> None:
        if worktree is None:
            return
        hold = self.world.worktrees[worktree]
        need(hold.by == by, "worktree_refused")
        used = [
            task
            for task in self.world.tasks
            if task is not self
            and task.status in ("open", "held", "reviewing")
            and task.worktree == (worktree, hold.number)
        ]
        need(not used, "worktree_refused")
        if self.worktree is not None and self.worktree[0] != worktree:
            self._let_go()
        self.worktree = worktree, hold.number
