from __future__ import annotations

import datetime as dt
import threading

import pytest
from pytest_django import Settings

from jobs.progress import (
    ObservedStop,
    Progress,
    longest_statement,
    look_every,
    stall_after,
)


def test_a_sign_says_whose_it_is() -> None:
    progress = Progress("part")
    assert (progress.count, progress.thread_id) == (0, None)
    progress.moved()
    assert (progress.count, progress.thread_id) == (1, threading.get_ident())


def test_the_deadline_is_the_setting_where_none_is_given(settings: Settings) -> None:
    settings.JOBS_STALL_AFTER = dt.timedelta(seconds=8)
    assert Progress("part").allowed == stall_after() == 8
    assert Progress("tick", 300).allowed == 300


@pytest.mark.parametrize("seconds", [1, 60, 600])
def test_several_statements_and_signs_fit_into_the_deadline(
    settings: Settings, seconds: int
) -> None:
    settings.JOBS_STALL_AFTER = dt.timedelta(seconds=seconds)
    assert 3 * longest_statement() < stall_after()
    assert 5 * look_every() < stall_after()


def test_looking_at_a_stop_is_progress_and_the_stop_is_the_workers() -> None:
    stop, progress = threading.Event(), Progress("tick")
    observed = ObservedStop(stop, progress)
    assert not observed.is_set()
    assert progress.count == 1
    assert not observed.wait(0)
    assert progress.count == 2
    stop.set()
    assert observed.is_set()
    assert observed.wait()
    observed.clear()
    assert not stop.is_set()
    observed.set()
    assert stop.is_set()
