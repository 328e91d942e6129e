from __future__ import annotations

import datetime as dt

import pytest

from jobs.floors import LONGEST_WHEN_SLOW, MARGIN, SLOW, Floors
from tests.jobs.support import leased_job

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)


def test_the_first_claim_looks_from_the_very_beginning() -> None:
    floors = Floors()
    assert floors.full_in() == 0
    assert floors.next() == {}


def test_the_next_begins_shortly_before_the_last_job_at_its_queue_and_priority() -> (
    None
):
    floors = Floors()
    floors.claimed(
        [
            leased_job(run_at=NOW, priority=0),
            leased_job(run_at=NOW + SECOND, priority=0),
            leased_job(run_at=NOW - SECOND, priority=1),
        ]
    )
    floors.full(1000, {"default"})
    assert floors.next() == {
        ("default", 0): NOW + SECOND - MARGIN,
        ("default", 1): NOW - SECOND - MARGIN,
    }


def test_a_claim_that_finds_nothing_changes_no_floor() -> None:
    floors = Floors()
    floors.claimed([leased_job(run_at=NOW)])
    floors.claimed([])
    floors.full(1000, {"default"})
    assert floors.next() == {("default", 2): NOW - MARGIN}


def test_older_jobs_that_a_full_claim_finds_lower_it() -> None:
    floors = Floors()
    floors.claimed([leased_job(run_at=NOW)])
    floors.claimed([leased_job(run_at=NOW - 60 * SECOND)])
    floors.full(1000, {"default"})
    assert floors.next() == {("default", 2): NOW - 60 * SECOND - MARGIN}


def test_a_queue_that_is_no_longer_served_is_forgotten() -> None:
    floors = Floors()
    floors.claimed([leased_job(queue="gone"), leased_job(run_at=NOW)])
    floors.full(1000, {"default"})
    assert set(floors.next()) == {("default", 2)}


def test_a_quick_full_claim_is_never_far_off() -> None:
    floors = Floors()
    floors.claimed([leased_job()])
    floors.full(SLOW * 0.99, {"default"})
    assert 0.5 < floors.full_in() <= 1
    floors.full(0, {"default"})
    assert floors.full_in() == 0
    assert floors.next() == {}


@pytest.mark.parametrize(("seconds", "pause"), [(0.2, 5), (1000, LONGEST_WHEN_SLOW)])
def test_a_slow_one_takes_no_more_than_its_share(seconds: float, pause: float) -> None:
    floors = Floors()
    floors.full(seconds, {"default"})
    assert pause - 1 < floors.full_in() <= pause


def test_where_a_slow_full_claim_found_nothing_the_next_do_not_look() -> None:
    floors = Floors()
    floors.claimed([leased_job(run_at=NOW - 60 * SECOND)])
    floors.full(1, {"default"})
    floors.pass_over([("default", 1), ("default", 2)], NOW)
    assert floors.next() == {("default", 1): NOW - MARGIN, ("default", 2): NOW - MARGIN}


def test_what_turns_up_there_is_the_floor_again() -> None:
    floors = Floors()
    floors.full(1, {"default"})
    floors.pass_over([("default", 1), ("default", 2)], NOW)
    floors.claimed([leased_job(run_at=NOW + SECOND)])
    assert floors.next() == {
        ("default", 1): NOW - MARGIN,
        ("default", 2): NOW + SECOND - MARGIN,
    }


def test_after_a_quick_full_claim_nothing_is_passed_over() -> None:
    floors = Floors()
    floors.full(1, {"default"})
    floors.pass_over([("default", 1)], NOW)
    floors.full(SLOW / 2, {"default"})
    assert floors.next() == {}
