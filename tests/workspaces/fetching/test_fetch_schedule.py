from __future__ import annotations

import datetime as dt

import pytest
from pytest_django import Settings

from workspaces.failures import Failure
from workspaces.fetching import fetch_schedule

INTERVAL = dt.timedelta(minutes=5)
LONGEST = dt.timedelta(hours=6)


@pytest.fixture(autouse=True)
def interval(settings: Settings) -> None:
    settings.JOBS_WORKSPACE_FETCH_INTERVAL = INTERVAL
    settings.ACW_FETCH_BACKOFF_MAX = LONGEST


def around(given: dt.timedelta, expected: dt.timedelta) -> bool:
    return 0.9 * expected <= given <= 1.1 * expected


def test_the_first_fetches_are_spread_over_the_interval():
    delays = [fetch_schedule.after_clone(number) for number in range(300)]
    assert delays == [fetch_schedule.after_clone(number) for number in range(300)]
    tenths = {int(delay / INTERVAL * 10) for delay in delays}
    assert tenths == set(range(10))


def test_after_a_success_it_is_an_interval_more_or_less():
    delays = {fetch_schedule.after_success() for _ in range(50)}
    assert len(delays) > 40
    assert all(around(delay, INTERVAL) for delay in delays)


def test_what_cannot_be_reached_is_tried_less_and_less_often_up_to_a_limit():
    for failure in (Failure.NETWORK, Failure.TIMEOUT, Failure.DISK_FULL):
        for failures in (1, 2, 3, 7, 8, 1000):
            expected = min(INTERVAL * 2 ** min(failures - 1, 20), LONGEST)
            given = fetch_schedule.after_failure(failure, failures)
            assert around(given, expected), (failure, failures, given)


def test_an_interval_beyond_the_limit_is_the_limit(settings: Settings):
    settings.ACW_FETCH_BACKOFF_MAX = dt.timedelta(minutes=1)
    given = fetch_schedule.after_failure(Failure.NETWORK, 5)
    assert around(given, INTERVAL)


def test_what_is_refused_is_asked_once_a_day():
    for failure in fetch_schedule.REFUSALS:
        assert around(fetch_schedule.after_failure(failure, 1), dt.timedelta(days=1))


def test_a_lock_is_waited_for_a_moment_then_for_an_interval():
    delays = [fetch_schedule.after_failure(Failure.LOCK, n) for n in (1, 2, 3, 9)]
    assert delays[:2] == [dt.timedelta(seconds=30)] * 2
    assert all(around(delay, INTERVAL) for delay in delays[2:])
    soon = [fetch_schedule.is_retried_soon(Failure.LOCK, n) for n in (1, 2, 3, 9)]
    assert soon == [True, True, False, False]


def test_each_kind_is_told_once_in_a_row():
    told = {
        failure: [n for n in range(1, 10) if fetch_schedule.is_told(failure, n)]
        for failure in Failure
    }
    assert told == {
        Failure.AUTH: [1],
        Failure.NOT_FOUND: [1],
        Failure.HOST_KEY: [1],
        Failure.REFUSED: [1],
        Failure.CORRUPT: [1],
        Failure.DISK_FULL: [1],
        Failure.NETWORK: [2],
        Failure.TIMEOUT: [2],
        Failure.LOCK: [3],
        # The seal tells of it.
        Failure.CONFIG_TAMPERED: [],
    }


def test_a_remote_that_cannot_be_reached_is_the_same_trouble_however_it_shows():
    assert fetch_schedule.are_alike("network", "timeout")
    assert fetch_schedule.are_alike("auth", "auth")
    assert not fetch_schedule.are_alike("network", "auth")
    assert not fetch_schedule.are_alike("", "network")
