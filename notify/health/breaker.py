"""What an attempt's end means for its endpoint and for the delivery: one decision, from plain values. Pure.

An endpoint that fails over several events is left alone for a while (``open``), but for one delivery at a time that
tries. One that refuses everybody, or whose clock is off, is ``parked`` until a person has looked, with a try now and
then. When a try succeeds it is ``recovering``: deliveries go out in windows of 1, 2, 4 …, so that a receiver that has just come
back is not trampled. In every state but ``closed`` a delivery that fails waits, and uses up no attempt.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from enum import StrEnum

from jobs.backoff import plain_delay
from notify.delivery import Judgement, Signal, Verdict
from notify.models import WebhookEndpoint

State = WebhookEndpoint.Breaker

EVENTS_AT_LEAST = 3
"""Different events that must have failed: one alone is tried as often as it may be, and dies."""

REFUSALS = 5
"""Different events refused in a row that park an endpoint."""

LARGEST_WINDOW = 32
"""The last window: when all of it went well, the endpoint is well."""

_NOT_AT_ALL = dt.timedelta(0)


class Fate(StrEnum):
    """What becomes of the delivery."""

    DONE = "done"
    RETRY = "retry"
    """Again after the queue's own backoff; the attempt is used up."""
    WAIT = "wait"
    """Again when the endpoint's breaker lets it; the attempt is given back."""
    DIE = "die"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """The settings: ``failures`` in a row that open it; ``wait`` to the first try, doubled up to ``longest_wait``."""

    failures: int
    wait: dt.timedelta
    longest_wait: dt.timedelta
    disable_after: dt.timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Where the breaker stands. ``since`` and ``until`` are None where it is closed."""

    state: str
    reason: str = ""
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    tries: int = 0
    window: int = 0


WELL = Standing(state=State.CLOSED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """The endpoint's newest attempts, this one among them, as far back as they are alike.

    ``failures`` in a row that another try may help, of so many different ``events``; or ``refusals``: different events in
    a row that it refused as not from us. ``repeated``: this event has failed before, and others have arrived since.
    """

    failures: int = 0
    events: int = 0
    refusals: int = 0
    repeated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """While it recovers: how many of the window went out, how many of all are under way, and whether more wait."""

    used: int = 0
    under_way: int = 0
    more: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """``standing`` is what the breaker is from now on; ``disable`` why the endpoint is to be switched off, if it is.

    ``windowed``: a window begins, with attempts that are still to come. ``let_out`` is how many of what waits are to come
    forward for it.
    """

    fate: Fate
    standing: Standing
    disable: str = ""
    windowed: bool = False
    let_out: int = 0


def decide(
    standing: Standing,
    judgement: Judgement,
    *,
    trial: bool,
    run: Run,
    progress: Progress,
    rules: Rules,
    now: dt.datetime,
) -> Decision:
    """What follows from an attempt that ended with ``judgement``. ``now`` is the database's time."""
    if judgement.signal is Signal.GONE:
        return Decision(
            fate=Fate.DIE,
            standing=standing,
            disable=f"the receiver is gone: {judgement.cause}",
        )
    if judgement.verdict is Verdict.COMPLETED:
        return _succeeded(
            standing, trial=trial, progress=progress, rules=rules, now=now
        )
    fate = _fate(standing, judgement, run=run, rules=rules)
    if fate is Fate.WAIT:
        after = _failed(standing, judgement, trial=trial, rules=rules, now=now)
        return Decision(
            fate=fate, standing=after, disable=_too_long(after, rules=rules, now=now)
        )
    if standing.state == State.RECOVERING:
        # The event's own fault. One that is refused is an answer like any other as far as the receiver goes; after one that
        # fails the next window is no larger.
        if fate is Fate.DIE:
            step = _succeeded(
                standing, trial=trial, progress=progress, rules=rules, now=now
            )
        else:
            step = look(standing, progress=progress, rules=rules, now=now) or Decision(
                fate=fate, standing=standing
            )
        return replace(step, fate=fate)
    if trial and standing.state != State.CLOSED:
        # Or of a proxy before a receiver that is away: the next one tries, no later than it would have.
        wait = plain_delay(standing.tries + 1, base=rules.wait, cap=rules.longest_wait)
        return Decision(fate=fate, standing=replace(standing, until=now + wait))
    return Decision(fate=fate, standing=standing)


def look(
    standing: Standing, *, progress: Progress, rules: Rules, now: dt.datetime
) -> Decision | None:
    """The next step of an endpoint that recovers, where no attempt's end brings it; None where there is none yet.

    As after a crash in the middle of a window, or where what waited is not wanted any more.
    """
    if standing.state != State.RECOVERING or progress.under_way:
        return None
    if not progress.more:
        return Decision(fate=Fate.DONE, standing=WELL)
    if progress.used >= standing.window:
        return _window(standing, standing.window, rules=rules, now=now)
    return _fill_up(standing, progress)


def _fate(standing: Standing, judgement: Judgement, *, run: Run, rules: Rules) -> Fate:
    closed = standing.state == State.CLOSED
    if judgement.signal is Signal.SKEWED:
        return Fate.WAIT
    if judgement.signal is Signal.REFUSED:
        return Fate.DIE if closed and run.refusals < REFUSALS else Fate.WAIT
    if judgement.verdict is Verdict.PERMANENT:
        return Fate.DIE
    failing = run.failures >= rules.failures and run.events >= EVENTS_AT_LEAST
    # Else one event that it never takes would keep all others waiting.
    own_fault = run.repeated and judgement.retry_after is None
    return Fate.RETRY if not failing and (closed or own_fault) else Fate.WAIT


def _failed(
    standing: Standing,
    judgement: Judgement,
    *,
    trial: bool,
    rules: Rules,
    now: dt.datetime,
) -> Standing:
    """Where the breaker stands after a failure that is the endpoint's, and not the event's."""
    parked = standing.state == State.PARKED or judgement.signal is not None
    state = State.PARKED if parked else State.OPEN
    # One that was under way already when it opened says nothing new, but for how long it asks to be left alone.
    counts = trial or standing.state not in (State.OPEN, state)
    reason, tries = standing.reason, standing.tries
    if counts:
        tries = standing.tries + 1 if trial else 0
        wait = (
            rules.longest_wait
            if parked
            else plain_delay(tries + 1, base=rules.wait, cap=rules.longest_wait)
        )
        until = now + max(wait, judgement.retry_after or _NOT_AT_ALL)
        reason = judgement.cause
    else:
        until = now + (judgement.retry_after or _NOT_AT_ALL)
        until = max(until, standing.until or until)
    # One that has taken a delivery since is not one that has failed all the time.
    fails_still = standing.state in (State.OPEN, State.PARKED)
    return Standing(
        state=state,
        reason=reason,
        since=standing.since if fails_still and standing.since else now,
        until=until,
        tries=tries,
    )


def _too_long(standing: Standing, *, rules: Rules, now: dt.datetime) -> str:
    if standing.since is None or now - standing.since < rules.disable_after:
        return ""
    return f"it has not been well since {standing.since:%Y-%m-%d %H:%M} UTC: {standing.reason}"


def _succeeded(
    standing: Standing,
    *,
    trial: bool,
    progress: Progress,
    rules: Rules,
    now: dt.datetime,
) -> Decision:
    if standing.state == State.RECOVERING:
        if progress.under_way:
            return Decision(fate=Fate.DONE, standing=standing)
        if progress.more and progress.used < standing.window:
            return _fill_up(standing, progress)
        if not progress.more or standing.window >= LARGEST_WINDOW:
            return Decision(fate=Fate.DONE, standing=WELL)
        return _window(standing, standing.window * 2, rules=rules, now=now)
    if not trial or standing.state == State.CLOSED:
        return Decision(fate=Fate.DONE, standing=standing)
    if not progress.more:
        return Decision(fate=Fate.DONE, standing=WELL)
    return _window(standing, 1, rules=rules, now=now)


def _window(
    standing: Standing, size: int, *, rules: Rules, now: dt.datetime
) -> Decision:
    # What is enqueued meanwhile waits until then, behind what is older.
    after = replace(
        standing, state=State.RECOVERING, until=now + rules.wait, tries=0, window=size
    )
    return Decision(fate=Fate.DONE, standing=after, windowed=True, let_out=size)


def _fill_up(standing: Standing, progress: Progress) -> Decision:
    """Some that were let out have not come, as they were turned away for want of a place, or are not wanted any more."""
    left = standing.window - progress.used
    return Decision(fate=Fate.DONE, standing=standing, let_out=left)
