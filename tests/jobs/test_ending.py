from __future__ import annotations

import datetime as dt
import logging
import threading
import time

import psycopg
import pytest
from pytest_django import Settings

from jobs import ending
from jobs.connection import Outage
from jobs.ending import Guard, persist, persist_or_leave, shutdown_limit
from jobs.events import LogEvent
from jobs.testing import PATIENCE


class Step:
    """Fails as often as it is told to, as in an outage."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    def take(self) -> None:
        self.calls += 1
        if self.calls <= self.failures:
            raise psycopg.OperationalError("no route")


def soon() -> float:
    return time.monotonic() + PATIENCE


def test_a_step_is_taken_again_until_the_database_is_back() -> None:
    step = Step(failures=2)
    persist(step.take, Outage("test"), until=soon())
    assert step.calls == 3


def test_past_its_time_it_is_tried_once() -> None:
    step = Step(failures=9)
    persist(step.take, Outage("test"), until=time.monotonic())
    assert step.calls == 1


def test_a_step_that_comes_to_an_end_is_not_left() -> None:
    step = Step(failures=1)
    assert persist_or_leave(step.take, Outage("test"), until=soon())
    assert step.calls == 2


def test_a_step_without_an_answer_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ending, "ANSWER_WITHIN", 0.0)
    go, went = threading.Event(), threading.Event()

    def hang() -> None:
        go.wait(PATIENCE)
        went.set()

    assert not persist_or_leave(hang, Outage("test"), until=time.monotonic())
    assert not went.is_set()
    (record,) = caplog.records
    assert record.msg == LogEvent.MODULE_LAST_WRITE_FAILED
    assert record.what == "hang"  # type: ignore[attr-defined]
    go.set()
    assert went.wait(PATIENCE)


def test_what_breaks_a_step_breaks_no_more(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise ValueError("broken")

    with caplog.at_level(logging.ERROR):
        assert persist_or_leave(broken, Outage("test"), until=soon())
    (record,) = caplog.records
    assert record.msg == LogEvent.MODULE_LAST_WRITE_FAILED
    assert "ValueError: broken" in caplog.text


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    statuses: list[int] = []
    monkeypatch.setattr(ending, "exit_now", statuses.append)
    return statuses


def test_a_guard_ends_the_process(ended: list[int]) -> None:
    guard = Guard(0.0, status=3)
    guard.join()
    assert ended == [3]


def test_a_guard_that_was_called_off_does_not(ended: list[int]) -> None:
    guard = Guard(PATIENCE, status=3)
    guard.off()
    guard.join()
    assert ended == []


def test_a_shutdown_has_its_grace_and_a_little_more(settings: Settings) -> None:
    settings.JOBS_SHUTDOWN_GRACE = dt.timedelta(seconds=5)
    assert 5 < shutdown_limit() < 20
