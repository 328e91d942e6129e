from __future__ import annotations

import datetime as dt
import linecache
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from jobs.connection import QueueConnection
from jobs.events import LogEvent
from jobs.models import WorkerProcess
from jobs.pool import Pool
from jobs.presence import Presence
from jobs.progress import Progress, look_every
from jobs.selection import Queues
from jobs.testing import PATIENCE, wait_until
from jobs.watchdog import LONGEST_RESPITE, Watch, Watchdog, report

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = 60.0


@pytest.fixture
def presence() -> Presence:
    lease = dt.timedelta(minutes=5)
    return Presence(Pool(worker="w1", threads=1, queues=Queues(), lease=lease))


class Watched:
    """What a watchdog watches, and how often it has ended the process."""

    def __init__(self, presence: Presence) -> None:
        self.part = Progress("acw-part")
        self.other = Progress("acw-other")
        self.all = [self.part, self.other]
        self.ended = 0
        self.dog = Watchdog(
            presence, worker="w1", watched=lambda: self.all, end=self._end
        )

    def _end(self) -> None:
        self.ended += 1

    def pass_time(self, seconds: float) -> None:
        """So much time passes, in which the process runs and the other part gets on."""
        for _ in range(round(seconds / look_every())):
            self.other.moved()
            self.dog.look(look_every())


@pytest.fixture
def watched(presence: Presence) -> Iterator[Watched]:
    watched = Watched(presence)
    yield watched
    writer = watched.dog._mark._writer
    if writer is not None:
        writer.join(PATIENCE)


def stalled_in_the_row() -> list[str] | None:
    rows: Any = WorkerProcess.objects.values_list("stalled", flat=True)
    return next(iter(rows), None)


def test_who_gets_on_is_left_alone(watched: Watched) -> None:
    for _ in range(5):
        watched.pass_time(MINUTE - 1)
        watched.part.moved()
    assert watched.ended == 0
    assert stalled_in_the_row() is None


def test_who_does_not_is_reported_with_where_it_hangs(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    began, go = threading.Event(), threading.Event()

    def hang_here() -> None:
        watched.part.moved()
        began.set()
        go.wait(PATIENCE)

    thread = threading.Thread(target=hang_here)
    thread.start()
    assert began.wait(PATIENCE)
    watched.pass_time(MINUTE + 3)
    go.set()
    thread.join()
    (record,) = caplog.records
    assert record.msg == LogEvent.MODULE_STALLED
    assert record.levelname == "CRITICAL"
    assert record.part == "acw-part"  # type: ignore[attr-defined]
    assert record.seconds > MINUTE  # type: ignore[attr-defined]
    assert "in hang_here" in record.stack  # type: ignore[attr-defined]
    assert watched.ended == 0


def test_the_row_says_so_and_is_young_even_where_the_heartbeat_is_what_hangs(
    watched: Watched,
) -> None:
    watched.pass_time(MINUTE + 3)
    wait_until(lambda: stalled_in_the_row() == ["acw-part"], "marked")


def test_who_gets_on_again_clears_its_mark(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.pass_time(MINUTE + 3)
    wait_until(lambda: stalled_in_the_row() == ["acw-part"], "marked")
    watched.part.moved()

    def cleared() -> bool:
        watched.pass_time(1)
        return stalled_in_the_row() == []

    wait_until(cleared, "cleared")
    assert [record.msg for record in caplog.records] == [
        LogEvent.MODULE_STALLED,
        LogEvent.MODULE_RESUMED,
    ]
    watched.part.moved()
    watched.pass_time(MINUTE - 1)
    assert watched.ended == 0


def test_after_the_respite_the_process_ends_once(watched: Watched) -> None:
    watched.pass_time(MINUTE + LONGEST_RESPITE - 1)
    assert watched.ended == 0
    watched.pass_time(5)
    assert watched.ended == 1


def test_the_time_in_which_the_process_was_suspended_counts_for_nobody(
    watched: Watched,
) -> None:
    watched.dog.look(1)
    watched.dog.look(24 * 3600)
    watched.pass_time(MINUTE - 5)
    assert watched.ended == 0
    assert stalled_in_the_row() is None


def test_a_tick_has_its_own_deadline_and_is_forgotten_when_it_ends(
    watched: Watched, presence: Presence
) -> None:
    tick = Progress("acw-runner-sweep", allowed=5 * MINUTE)
    watched.all = [watched.other, tick]
    watched.pass_time(5 * MINUTE - 2)
    assert list(presence.stalled) == []
    watched.pass_time(4)
    assert list(presence.stalled) == ["acw-runner-sweep"]
    watched.all = [watched.other]
    watched.pass_time(1)
    assert list(presence.stalled) == []


def test_a_mark_that_cannot_be_written_holds_nobody_up(
    watched: Watched,
    queue_connection: QueueConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jobs.watchdog.WRITTEN_WITHIN", PATIENCE)
    with queue_connection.raw().transaction():
        queue_connection.execute("LOCK TABLE job_workers IN ACCESS EXCLUSIVE MODE", [])
        watched.pass_time(MINUTE + LONGEST_RESPITE + 3)
        assert watched.ended == 1
        writer = watched.dog._mark._writer
        assert writer is not None
        assert writer.is_alive()


def test_it_looks_by_itself(
    watched: Watched, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.JOBS_STALL_AFTER = dt.timedelta(milliseconds=100)
    watched.dog.start()
    try:
        wait_until(lambda: watched.ended == 1, "ended")
        wait_until(lambda: watched.dog.progress.count > 10, "it goes on")
    finally:
        watched.dog.stop()
        watched.dog.join(PATIENCE)
    assert watched.dog.error is None


def test_what_is_in_the_stack_is_redacted(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    began, go = threading.Event(), threading.Event()
    line = "    watched.part.moved(); began.set(); go.wait(60); 'https://ann:secret@h/'"
    name = "<of-the-test>"
    code = compile(f"def f():\n{line}\nf()", name, "exec")
    linecache.cache[name] = (1, None, ["def f():\n", line + "\n", "f()\n"], name)
    names = {"watched": watched, "began": began, "go": go}
    thread = threading.Thread(target=exec, args=[code, names])
    thread.start()
    assert began.wait(PATIENCE)
    report(Watch(watched.part), worker="w1")
    go.set()
    thread.join()
    (record,) = caplog.records
    assert "ann:***@h" in record.stack  # type: ignore[attr-defined]
    assert "secret" not in record.stack  # type: ignore[attr-defined]
