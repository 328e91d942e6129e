from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
from pytest_django import Settings

from jobs.models import Job, Status
from jobs.testing import PATIENCE, wait_until
from notify.health import lanes
from notify.health.lanes import Lanes
from notify.models import WebhookAttempt
from tests.notify import sinks
from tests.notify.factories import AttemptFactory, EndpointFactory
from tests.notify.flow import running_pool, tell
from tests.notify.sinks import Sink

QUICK, SLOW, NEW = 0.01, 9.0, None


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a single thread nobody would give way."""
    monkeypatch.setattr(lanes, "MOMENT", 0.0)


def lanes_of(threads: int, took: Mapping[int, float | None]) -> Lanes:
    return Lanes(threads=lambda: threads, last_took=took.__getitem__)


def admitted(found: Lanes, *endpoint_ids: int) -> list[bool]:
    """Who gets in, when all come one after the other and stay."""
    with ExitStack() as stack:
        return [stack.enter_context(found.lane(pk)).admitted for pk in endpoint_ids]


@pytest.mark.parametrize(
    ("threads", "expected"),
    [
        pytest.param(8, [True] * 7 + [False], id="eight-threads"),
        pytest.param(2, [True] + [False] * 7, id="two-threads"),
        pytest.param(1, [True] + [False] * 7, id="one-thread"),
        pytest.param(0, [True] * 8, id="no-pool"),
    ],
)
def test_a_quick_one_leaves_a_thread_to_others(threads: int, expected: list[bool]):
    assert admitted(lanes_of(threads, {1: QUICK}), *[1] * 8) == expected


def test_those_that_are_slow_have_one_thread_each_and_half_of_them_together():
    found = lanes_of(8, dict.fromkeys(range(9), SLOW) | {9: QUICK})

    assert admitted(found, 0, 0, 1, 2, 3, 4, 9, 9) == [
        *(True, False, True, True, True, False),
        *(True, True),
    ]


def test_of_those_of_which_nothing_is_known_one_goes_beyond_that_half():
    """Or behind one that hangs a new one would stay unknown, and wait with all that it has."""
    found = lanes_of(8, dict.fromkeys(range(9), NEW))

    assert admitted(found, 0, 0, 1, 2, 3, 4, 4, 5) == [
        *(True, False, True, True, True),
        *(True, False, False),
    ]
    assert admitted(lanes_of(2, {1: SLOW, 2: NEW, 3: NEW}), 1, 2, 3) == [
        *(True, True, False)
    ]


def test_a_scout_that_takes_long_lets_another_go(monkeypatch: pytest.MonkeyPatch):
    found = lanes_of(4, dict.fromkeys(range(9), NEW))
    with ExitStack() as stack:
        first = [stack.enter_context(found.lane(pk)).admitted for pk in (0, 1, 2, 3)]
        assert first == [True, True, True, False]
        monkeypatch.setattr(lanes, "QUICK", -1.0)
        assert admitted(found, 3) == [False]  # which would have the last thread
    found = lanes_of(5, dict.fromkeys(range(9), NEW))
    assert admitted(found, 0, 1, 2, 3) == [True, True, True, True]


def test_room_is_free_again_when_a_delivery_has_ended_however_it_did():
    found = lanes_of(2, {1: SLOW, 2: SLOW})
    with suppress(ZeroDivisionError), found.lane(1):
        assert admitted(found, 2) == [False]
        raise ZeroDivisionError

    assert admitted(found, 2) == [True]


def test_one_that_is_quick_is_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lanes, "MOMENT", PATIENCE)
    found = lanes_of(2, {1: QUICK})
    with ThreadPoolExecutor(1) as pool:
        with found.lane(1):
            behind = pool.submit(admitted, found, 1)
            wait_until(lambda: found._room._waiters, "it waits")  # type: ignore[attr-defined]
        assert behind.result(PATIENCE) == [True]


def test_one_that_is_slow_is_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lanes, "MOMENT", PATIENCE)
    found = lanes_of(2, {1: SLOW})
    with ThreadPoolExecutor(1) as pool, found.lane(1):
        assert pool.submit(admitted, found, 1).result(PATIENCE / 2) == [False]


def test_what_was_learnt_last_counts():
    found = lanes_of(8, {1: NEW})
    assert admitted(found, 1, 1) == [True, False]
    assert found.learn(1, QUICK)  # and one was turned away meanwhile
    assert not found.learn(1, QUICK)
    assert admitted(found, 1, 1) == [True, True]
    found.turned_away(1)
    assert not found.learn(1, SLOW)
    assert admitted(found, 1, 1) == [True, False]


def test_one_that_has_been_under_way_for_long_makes_its_endpoint_slow(
    monkeypatch: pytest.MonkeyPatch,
):
    found = lanes_of(8, {1: QUICK})
    with found.lane(1):
        monkeypatch.setattr(lanes, "QUICK", -1.0)
        assert admitted(found, 1) == [False]


def test_it_does_not_remember_without_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lanes, "MOST_REMEMBERED", 2)
    found = lanes_of(8, {1: QUICK, 2: QUICK, 3: QUICK})

    assert admitted(found, 1, 2, 3, 1) == [True] * 4
    assert len(found._took) <= 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("webhooks_on")
def test_an_endpoint_that_hangs_does_not_hold_up_another_in_the_same_process(
    settings: Settings,
):
    settings.JOBS_POLL_INTERVAL = dt.timedelta(milliseconds=20)
    with (
        running_pool(threads=3),
        Sink(sinks.say_nothing) as hanging,
        Sink(sinks.answer(204)) as quick,
    ):
        slow = EndpointFactory(url=hanging.url)
        well = EndpointFactory(url=quick.url)
        AttemptFactory(
            endpoint=well, verdict="completed", duration=dt.timedelta(milliseconds=9)
        )
        tell(12)
        of_well = Job.objects.filter(ref_id=str(well.pk), status=Status.COMPLETED)
        wait_until(lambda: of_well.count() == 12, "the quick one has all")
        wait_until(lambda: hanging.requests, "the slow one has been asked")

        under_way = WebhookAttempt.objects.open().filter(endpoint=slow)
        assert under_way.count() == len(hanging.requests) == 1
        waiting = Job.objects.pending().filter(ref_id=str(slow.pk))
        assert set(waiting.values_list("attempts", flat=True)) == {0}
