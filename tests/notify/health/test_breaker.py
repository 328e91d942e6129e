from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from notify.delivery import Judgement, Signal, Verdict
from notify.health.breaker import (
    LARGEST_WINDOW,
    WELL,
    Decision,
    Fate,
    Progress,
    Rules,
    Run,
    Standing,
    decide,
    look,
)

NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
RULES = Rules(
    failures=5,
    wait=dt.timedelta(seconds=30),
    longest_wait=dt.timedelta(minutes=15),
    disable_after=dt.timedelta(days=5),
)
SINCE = NOW - dt.timedelta(hours=1)
OPEN = Standing(state="open", reason="HTTP 503", since=SINCE, until=NOW, tries=2)
PARKED = replace(OPEN, state="parked", reason="HTTP 401")
RECOVERING = replace(OPEN, state="recovering", tries=0, window=4)
STANDINGS = {standing.state: standing for standing in (WELL, OPEN, PARKED, RECOVERING)}

OK = Judgement(verdict=Verdict.COMPLETED)
FAILED = Judgement(verdict=Verdict.RETRY, cause="HTTP 500")
NOT_FOUND = Judgement(verdict=Verdict.PERMANENT, cause="HTTP 404")
GONE = replace(NOT_FOUND, cause="HTTP 410", signal=Signal.GONE)
REFUSED = replace(NOT_FOUND, cause="HTTP 401", signal=Signal.REFUSED)
SKEWED = replace(REFUSED, cause="HTTP 401; its clock", signal=Signal.SKEWED)
JUDGEMENTS = {
    "ok": OK,
    "failed": FAILED,
    "not found": NOT_FOUND,
    "gone": GONE,
    "refused": REFUSED,
    "skewed": SKEWED,
}

BURST = Run(failures=5, events=3, refusals=5)


def end(standing: Standing, judgement: Judgement, **more: Any) -> Decision:
    given: dict[str, Any] = {
        "trial": standing.state in ("open", "parked"),
        "run": Run(failures=1, events=1, refusals=1),
        "progress": Progress(used=1, more=True),
        **more,
    }
    return decide(standing, judgement, rules=RULES, now=NOW, **given)


def test_each_state_and_each_end_give_this_fate_and_that_state():
    table = {
        # state, end: fate and state after one of its kind; and after a burst of them
        ("closed", "ok"): ("done closed", "done closed"),
        ("closed", "failed"): ("retry closed", "wait open"),
        ("closed", "not found"): ("die closed", "die closed"),
        ("closed", "gone"): ("die closed", "die closed"),
        ("closed", "refused"): ("die closed", "wait parked"),
        ("closed", "skewed"): ("wait parked", "wait parked"),
        ("open", "ok"): ("done recovering", "done recovering"),
        ("open", "failed"): ("wait open", "wait open"),
        ("open", "not found"): ("die open", "die open"),
        ("open", "gone"): ("die open", "die open"),
        ("open", "refused"): ("wait parked", "wait parked"),
        ("open", "skewed"): ("wait parked", "wait parked"),
        ("parked", "ok"): ("done recovering", "done recovering"),
        ("parked", "failed"): ("wait parked", "wait parked"),
        ("parked", "not found"): ("die parked", "die parked"),
        ("parked", "gone"): ("die parked", "die parked"),
        ("parked", "refused"): ("wait parked", "wait parked"),
        ("parked", "skewed"): ("wait parked", "wait parked"),
        ("recovering", "ok"): ("done recovering", "done recovering"),
        ("recovering", "failed"): ("wait open", "wait open"),
        ("recovering", "not found"): ("die recovering", "die recovering"),
        ("recovering", "gone"): ("die recovering", "die recovering"),
        ("recovering", "refused"): ("wait parked", "wait parked"),
        ("recovering", "skewed"): ("wait parked", "wait parked"),
    }
    found = {}
    for state, standing in STANDINGS.items():
        for name, judgement in JUDGEMENTS.items():
            pair = [end(standing, judgement), end(standing, judgement, run=BURST)]
            found[state, name] = tuple(
                f"{decision.fate} {decision.standing.state}" for decision in pair
            )
            assert [bool(d.disable) for d in pair] == [name == "gone"] * 2
    assert found == table


@pytest.mark.parametrize(
    ("run", "fate"),
    [
        pytest.param(Run(failures=99, events=2), Fate.RETRY, id="two-events"),
        pytest.param(Run(failures=4, events=4), Fate.RETRY, id="four-failures"),
        pytest.param(Run(failures=5, events=3), Fate.WAIT, id="five-over-three"),
    ],
)
def test_it_takes_failures_over_several_events_to_open_it(run: Run, fate: Fate):
    assert end(WELL, FAILED, run=run).fate is fate


def test_four_events_refused_in_a_row_park_nothing():
    assert end(WELL, REFUSED, run=Run(refusals=4)).fate is Fate.DIE


def waits(standing: Standing) -> float:
    assert standing.until is not None
    return (standing.until - NOW).total_seconds()


def test_each_try_that_fails_doubles_the_wait_up_to_the_longest():
    standing = end(WELL, FAILED, run=BURST).standing
    found = [waits(standing)]
    for _ in range(7):
        standing = end(standing, FAILED).standing
        found.append(waits(standing))
    assert found == [30, 60, 120, 240, 480, 900, 900, 900]
    assert standing.since == NOW


def test_what_the_receiver_asks_for_is_waited_for():
    asks = replace(FAILED, retry_after=dt.timedelta(hours=1))

    assert waits(end(OPEN, asks).standing) == 3600
    assert waits(end(OPEN, asks, trial=False).standing) == 3600


def test_one_that_was_under_way_before_it_opened_changes_nothing_when_it_ends():
    later = replace(OPEN, until=NOW + dt.timedelta(seconds=40))

    assert end(later, FAILED, trial=False).standing == later
    assert end(later, OK, trial=False).standing == later
    assert end(later, NOT_FOUND, trial=False).standing == later


def test_one_that_is_parked_tries_no_oftener_than_the_longest_wait():
    assert waits(end(WELL, SKEWED).standing) == 900
    assert waits(end(PARKED, REFUSED).standing) == 900


def test_a_try_that_is_refused_for_the_events_own_sake_leaves_the_next_one_its_turn():
    after = end(OPEN, NOT_FOUND).standing

    assert (after.tries, waits(after)) == (OPEN.tries, 120)


@pytest.mark.parametrize(
    ("progress", "window"),
    [
        pytest.param(Progress(used=3, more=True), 4, id="not-all-out"),
        pytest.param(Progress(used=4, under_way=1, more=True), 4, id="one-under-way"),
        pytest.param(Progress(used=4, more=True), 8, id="all-arrived"),
        pytest.param(Progress(used=2, under_way=1), 4, id="the-last-under-way"),
        pytest.param(Progress(used=2), 0, id="nothing-waits"),
    ],
)
def test_a_window_grows_when_all_of_it_has_arrived(progress: Progress, window: int):
    decision = end(RECOVERING, OK, progress=progress)

    assert decision.standing.window == window
    assert decision.windowed == (window == 8)
    assert (decision.standing == WELL) == (window == 0)


def test_what_was_let_out_and_has_not_come_is_made_up_for():
    assert end(RECOVERING, OK, progress=Progress(used=4, more=True)).let_out == 8
    assert end(RECOVERING, OK, progress=Progress(used=3, more=True)).let_out == 1
    under_way = Progress(used=3, under_way=1, more=True)
    assert end(RECOVERING, OK, progress=under_way).let_out == 0


def test_an_event_that_fails_again_after_others_have_arrived_keeps_none_of_them_waiting():
    again = Run(failures=1, events=1, repeated=True)
    asks = replace(FAILED, retry_after=dt.timedelta(minutes=1))

    tried = end(OPEN, FAILED, run=again)
    assert (tried.fate, tried.standing.tries) == (Fate.RETRY, OPEN.tries)
    assert waits(tried.standing) == 120
    out = Progress(used=4, more=True)
    in_window = end(RECOVERING, FAILED, run=again, progress=out)
    assert in_window.fate is Fate.RETRY
    assert (in_window.standing.window, in_window.let_out) == (4, 4)
    under_way = Progress(used=4, under_way=1, more=True)
    kept = end(RECOVERING, FAILED, run=again, progress=under_way)
    assert (kept.fate, kept.standing) == (Fate.RETRY, RECOVERING)

    assert end(RECOVERING, asks, run=again).fate is Fate.WAIT
    assert end(RECOVERING, FAILED, run=replace(BURST, repeated=True)).fate is Fate.WAIT


@pytest.mark.parametrize("judgement", [FAILED, NOT_FOUND], ids=["failed", "refused"])
def test_a_try_that_ends_after_a_person_has_closed_it_holds_nothing_back(
    judgement: Judgement,
):
    assert end(WELL, judgement, trial=True).standing == WELL


def test_after_the_largest_window_all_is_well():
    last = replace(RECOVERING, window=LARGEST_WINDOW)

    decision = end(last, OK, progress=Progress(used=LARGEST_WINDOW, more=True))

    assert decision.standing == WELL


def test_a_try_that_succeeds_where_nothing_else_waits_ends_it():
    assert end(OPEN, OK, progress=Progress()).standing == WELL


@pytest.mark.parametrize("state", ["open", "parked", "recovering"])
def test_only_what_has_failed_all_the_time_is_disabled_after_a_while(state: str):
    long_ago = NOW - RULES.disable_after
    standing = replace(STANDINGS[state], since=long_ago)

    decision = end(standing, FAILED)

    assert bool(decision.disable) == (state != "recovering")
    assert not end(replace(standing, since=long_ago + RULES.wait), FAILED).disable


def test_where_no_end_brings_the_next_step_a_look_does():
    def step(standing: Standing, **progress: Any) -> Decision | None:
        return look(standing, progress=Progress(**progress), rules=RULES, now=NOW)

    next_window = replace(RECOVERING, until=NOW + RULES.wait)
    assert step(RECOVERING, used=4, more=True) == Decision(
        fate=Fate.DONE, standing=next_window, windowed=True, let_out=4
    )
    assert step(RECOVERING, used=0) == Decision(fate=Fate.DONE, standing=WELL)
    assert step(RECOVERING, used=3, more=True) == Decision(
        fate=Fate.DONE, standing=RECOVERING, let_out=1
    )
    assert step(RECOVERING, used=3, under_way=1, more=True) is None
    assert step(RECOVERING, used=4, under_way=1, more=True) is None
    assert step(OPEN) is None
    assert step(WELL) is None
