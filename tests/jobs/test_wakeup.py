from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest

from jobs import wakeup
from jobs.connection import QueueConnection
from jobs.events import LogEvent
from jobs.identifiers import uuid7
from jobs.messages import ANY, Message, of_queues, read
from jobs.testing import PATIENCE, wait_until
from jobs.wakeup import Notifier


@pytest.fixture
def notifier(transactional_db: None) -> Iterator[Notifier]:
    notifier = Notifier()
    yield notifier
    notifier.close(PATIENCE)


@pytest.fixture
def heard(queue_connection: QueueConnection) -> QueueConnection:
    queue_connection.execute(f"LISTEN {wakeup.CHANNEL}", [])
    return queue_connection


def messages(connection: QueueConnection, count: int) -> list[str]:
    return [
        n.payload for n in connection.raw().notifies(timeout=PATIENCE, stop_after=count)
    ]


def test_the_queues_are_told_to_whoever_listens(
    notifier: Notifier, heard: QueueConnection
) -> None:
    notifier.wake(["mail", "default"])
    assert messages(heard, 1) == [of_queues(["default", "mail"])]


def test_what_comes_in_close_together_goes_out_together(
    notifier: Notifier, heard: QueueConnection
) -> None:
    for _ in range(1_000):
        notifier.wake(["default"])
    notifier.close(PATIENCE)
    heard.execute("SELECT pg_notify(%s, 'end')", [wakeup.CHANNEL])
    received: list[str] = []
    while "end" not in received:
        received += messages(heard, 1)
    assert 1 <= len(received) - 1 < 100


def test_too_many_names_become_a_message_to_all(
    notifier: Notifier, heard: QueueConnection
) -> None:
    notifier.wake([f"queue-{n:05}" for n in range(1_000)])
    assert messages(heard, 1) == [ANY]


def test_it_works_again_after_a_close(
    notifier: Notifier, heard: QueueConnection
) -> None:
    notifier.wake(["a"])
    notifier.close(PATIENCE)
    notifier.wake(["b"])
    assert messages(heard, 2) == [of_queues("a"), of_queues("b")]


def test_an_unused_connection_is_closed(
    notifier: Notifier, heard: QueueConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeup, "IDLE", 0.01)
    notifier.wake(["a"])
    wait_until(lambda: notifier._thread is None, "the thread ended")
    notifier.wake(["b"])
    assert messages(heard, 2) == [of_queues("a"), of_queues("b")]


def test_a_failure_to_notify_is_logged_and_the_next_one_tries_again(
    notifier: Notifier,
    heard: QueueConnection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        monkeypatch.context() as patched,
        caplog.at_level(logging.WARNING, logger="jobs"),
    ):
        patched.setattr(wakeup, "CHANNEL", "x" * 100)
        notifier.wake(["a"])
        wait_until(lambda: caplog.records, "the failure logged")
    assert {record.msg for record in caplog.records} == {LogEvent.NOTIFY_FAILED}
    notifier.wake(["b"])
    assert messages(heard, 1) == [of_queues("b")]


@pytest.mark.parametrize(
    ("commits", "took", "pause"),
    [
        (1, 1.0, wakeup.DEBOUNCE),
        (10, 0.0, wakeup.DEBOUNCE),
        (10, 0.005, 0.05),
        (10, 1.0, wakeup.LONGEST_PAUSE),
    ],
)
def test_a_busy_server_is_notified_less_often(
    commits: int, took: float, pause: float
) -> None:
    notifier = Notifier()
    notifier._commits = commits
    assert notifier._pause(took) == pytest.approx(pause)


def test_one_commit_in_a_while_may_bring_its_notification_itself() -> None:
    notifier = Notifier()
    assert notifier.take_along()
    assert not notifier.take_along()


def test_none_goes_before_what_waits_to_be_sent() -> None:
    notifier = Notifier()
    notifier._queues = {"mail"}
    assert not notifier.take_along()


def test_who_is_to_be_cancelled_is_told_beside_the_queues(
    notifier: Notifier, heard: QueueConnection
) -> None:
    lease = (uuid7(), 7)
    notifier._next_at = time.monotonic() + 0.1
    notifier.wake(["mail"])
    notifier.cancel([lease])
    told = [read(text) for text in messages(heard, 2)]
    assert told == [
        Message(cancelled=frozenset({lease})),
        Message(queues=("mail",)),
    ]


def test_who_is_to_be_cancelled_is_told_where_nothing_else_is(
    notifier: Notifier, heard: QueueConnection
) -> None:
    lease = (uuid7(), 7)
    notifier.cancel([lease])
    notifier.close(PATIENCE)
    notifier.cancel([lease])
    told = [read(text) for text in messages(heard, 2)]
    assert told == [Message(cancelled=frozenset({lease}))] * 2
