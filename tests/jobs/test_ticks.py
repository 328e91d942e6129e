from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import transaction
from django.db.models.functions import Now
from pytest_django import Settings

from jobs import registry
from jobs.bounded import BoundedConnection
from jobs.connection import QueueConnection
from jobs.events import LogEvent
from jobs.exceptions import TransactionMisused
from jobs.models import RunnerState, WorkerProcess
from jobs.registry import Runner, runner
from jobs.ticks import (
    Tick,
    claim_tick,
    deadline,
    give_up_ticks,
    register,
    run_now,
    run_tick,
)
from tests.jobs.factories import WorkerProcessFactory

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = dt.timedelta(hours=1)
MINUTE = dt.timedelta(minutes=1)
Outcome = RunnerState.Outcome


class Sweep:
    """A runner that counts its ticks and can be made to fail."""

    def __init__(self) -> None:
        self.ticks = 0
        self.error: Exception | None = None
        self.meanwhile: Callable[[], None] = lambda: None

    def __call__(self, stop: threading.Event) -> dict[str, int]:
        self.ticks += 1
        self.meanwhile()
        if self.error is not None:
            raise self.error
        return {"swept": self.ticks}


@pytest.fixture
def sweep(settings: Settings) -> Sweep:
    sweep = Sweep()
    registry._runners.clear()
    runner("test_sweep")(lambda stop: sweep(stop))
    settings.JOBS_TEST_SWEEP_INTERVAL = HOUR
    settings.JOBS_TEST_SWEEP_ENABLED = True
    return sweep


@pytest.fixture
def registered(sweep: Sweep, queue_connection: QueueConnection) -> Runner:
    """A runner that is due, and two live workers."""
    register(queue_connection)
    WorkerProcessFactory(name="w1")
    WorkerProcessFactory(name="w2")
    return registry.runners()["test_sweep"]


def claimed(connection: QueueConnection, runner: Runner, *, worker: str = "w1") -> Tick:
    tick = claim_tick(connection, runner, worker=worker)
    assert tick is not None
    return tick


def lose(worker: str) -> None:
    """The worker was killed, and its heartbeats have been missed."""
    WorkerProcess.objects.filter(name=worker).update(beat_at=Now() - HOUR)


def gone(worker: str) -> None:
    """The worker has signed off."""
    WorkerProcess.objects.filter(name=worker).delete()


def state() -> RunnerState:
    return RunnerState.objects.get(pk="test_sweep")


def due(ago: dt.timedelta) -> None:
    RunnerState.objects.update(next_run_at=Now() - ago)


def until_next() -> dt.timedelta:
    annotated = RunnerState.objects.annotate(now=Now()).get()
    now: dt.datetime = annotated.now
    return annotated.next_run_at - now


class TestSchedule:
    def test_a_new_runner_is_due_at_once(
        self, registered: Runner, queue_connection: QueueConnection
    ) -> None:
        assert claim_tick(queue_connection, registered, worker="w1")

    def test_a_tick_is_claimed_once(
        self, registered: Runner, queue_connection: QueueConnection
    ) -> None:
        assert claim_tick(queue_connection, registered, worker="w1")
        assert not claim_tick(queue_connection, registered, worker="w2")
        assert state().last_worker == "w1"

    def test_of_many_processes_one_gets_it(self, registered: Runner) -> None:
        got: list[bool] = []
        start = threading.Barrier(8)

        def process(worker: str) -> None:
            with QueueConnection() as connection:
                connection.raw()
                start.wait()
                tick = claim_tick(connection, registered, worker=worker)
                got.append(tick is not None)

        names = [WorkerProcessFactory().name for _ in range(8)]
        threads = [threading.Thread(target=process, args=[name]) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got) == [False] * 7 + [True]

    @pytest.mark.parametrize(
        ("late", "left"),
        [
            (dt.timedelta(seconds=5), HOUR - dt.timedelta(seconds=5)),
            (59 * MINUTE, MINUTE),
            (61 * MINUTE, 59 * MINUTE),
            (100 * HOUR + 10 * MINUTE, 50 * MINUTE),
        ],
    )
    def test_missed_ticks_run_once_and_the_next_keeps_to_the_grid(
        self,
        registered: Runner,
        queue_connection: QueueConnection,
        late: dt.timedelta,
        left: dt.timedelta,
    ) -> None:
        due(late)
        assert claim_tick(queue_connection, registered, worker="w1")
        assert not claim_tick(queue_connection, registered, worker="w2")
        assert left - MINUTE / 2 < until_next() <= left

    @pytest.mark.parametrize("lost", [False, True], ids=["it lives", "it is lost"])
    def test_a_tick_that_another_process_is_at_is_waited_for_while_that_one_lives(
        self, registered: Runner, queue_connection: QueueConnection, lost: bool
    ) -> None:
        claimed(queue_connection, registered)
        due(MINUTE)
        if lost:
            lose("w1")
        tick = claim_tick(queue_connection, registered, worker="w2")
        assert (tick is not None) is lost

    def test_a_tick_that_has_ended_is_nobodys(
        self, registered: Runner, queue_connection: QueueConnection
    ) -> None:
        run_tick(claimed(queue_connection, registered), stop=threading.Event())
        due(MINUTE)
        assert claim_tick(queue_connection, registered, worker="w2")

    @pytest.mark.parametrize("end", [lose, gone, None], ids=["lost", "gone", "never"])
    def test_who_is_not_known_to_be_alive_gets_no_tick(
        self,
        registered: Runner,
        queue_connection: QueueConnection,
        end: Callable[[str], None] | None,
    ) -> None:
        if end is not None:
            end("w1")
        worker = "w1" if end is not None else "w-new"
        assert claim_tick(queue_connection, registered, worker=worker) is None
        assert claim_tick(queue_connection, registered, worker="w2")

    def test_a_restart_does_not_push_a_tick_back(
        self, registered: Runner, queue_connection: QueueConnection
    ) -> None:
        RunnerState.objects.update(next_run_at=Now() + MINUTE)
        register(queue_connection)
        assert until_next() <= MINUTE

    def test_a_shorter_interval_brings_the_next_tick_forward(
        self, registered: Runner, queue_connection: QueueConnection, settings: Settings
    ) -> None:
        RunnerState.objects.update(next_run_at=Now() + HOUR)
        settings.JOBS_TEST_SWEEP_INTERVAL = MINUTE
        register(queue_connection)
        assert until_next() <= MINUTE
        assert state().interval == MINUTE

    def test_a_longer_interval_leaves_the_next_tick_where_it_is(
        self, registered: Runner, queue_connection: QueueConnection, settings: Settings
    ) -> None:
        RunnerState.objects.update(next_run_at=Now() + HOUR)
        settings.JOBS_TEST_SWEEP_INTERVAL = 24 * HOUR
        register(queue_connection)
        assert until_next() <= HOUR


class TestCutOff:
    """A tick whose process ended in the middle of it."""

    @pytest.mark.parametrize("end", [lose, gone])
    def test_it_is_taken_again_at_once_and_the_schedule_stays(
        self,
        registered: Runner,
        queue_connection: QueueConnection,
        end: Callable[[str], None],
    ) -> None:
        first = claimed(queue_connection, registered)
        due_next = state().next_run_at
        assert claim_tick(queue_connection, registered, worker="w2") is None
        end("w1")
        again = claimed(queue_connection, registered, worker="w2")
        assert (first.tries, again.tries) == (1, 2)
        assert state().next_run_at == due_next
        run_tick(again, stop=threading.Event())
        assert (state().last_outcome, state().last_worker) == (Outcome.COMPLETED, "w2")
        assert claim_tick(queue_connection, registered, worker="w2") is None

    def test_one_whose_claim_had_no_answer_is_taken_by_the_same_worker(
        self, registered: Runner, queue_connection: QueueConnection
    ) -> None:
        claimed(queue_connection, registered)
        assert claimed(queue_connection, registered).tries == 2

    def test_after_three_it_has_failed_and_waits_for_its_next_time(
        self,
        registered: Runner,
        queue_connection: QueueConnection,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        names = [WorkerProcessFactory().name for _ in range(4)]
        for name in names[:3]:
            give_up_ticks(queue_connection, ["test_sweep"])
            claimed(queue_connection, registered, worker=name)
            lose(name)
        assert claim_tick(queue_connection, registered, worker=names[3]) is None
        assert state().last_outcome == Outcome.RUNNING
        give_up_ticks(queue_connection, ["another"])
        assert state().last_outcome == Outcome.RUNNING
        give_up_ticks(queue_connection, ["test_sweep"])
        assert state().last_outcome == Outcome.FAILED
        assert "cut off 3 times" in state().last_error
        events = [record.msg for record in caplog.records]
        assert events == [*[LogEvent.RUNNER_RETAKEN] * 2, LogEvent.RUNNER_FAILED]
        assert claim_tick(queue_connection, registered, worker=names[3]) is None
        due(MINUTE)
        assert claimed(queue_connection, registered, worker=names[3]).tries == 1

    def test_the_third_try_is_not_given_up_while_it_runs(
        self, registered: Runner, queue_connection: QueueConnection
    ) -> None:
        claimed(queue_connection, registered)
        RunnerState.objects.update(tries=3)
        give_up_ticks(queue_connection, ["test_sweep"])
        assert state().last_outcome == Outcome.RUNNING

    def test_one_by_hand_is_never_taken_again(
        self, registered: Runner, queue_connection: QueueConnection, sweep: Sweep
    ) -> None:
        run_tick(claimed(queue_connection, registered), stop=threading.Event())
        seen: list[Tick | None] = []
        sweep.meanwhile = lambda: seen.append(
            claim_tick(queue_connection, registered, worker="w2")
        )
        run_now(registered, worker="by-hand")
        assert seen == [None]
        assert state().last_outcome == Outcome.COMPLETED


class TestTick:
    def test_what_it_did_is_recorded(self, registered: Runner, sweep: Sweep) -> None:
        assert run_now(registered, worker="w1") == {"swept": 1}
        recorded = state()
        assert recorded.last_outcome == Outcome.COMPLETED
        assert recorded.last_summary == {"swept": 1}
        assert recorded.last_error == ""
        assert recorded.last_started_at is not None
        assert recorded.last_finished_at is not None
        assert recorded.last_started_at <= recorded.last_finished_at

    def test_one_by_hand_leaves_the_schedule_as_it_was(
        self, registered: Runner
    ) -> None:
        before = state().next_run_at
        run_now(registered, worker="w1")
        assert state().next_run_at == before

    def test_a_failure_is_logged_and_recorded(
        self, registered: Runner, sweep: Sweep, caplog: pytest.LogCaptureFixture
    ) -> None:
        sweep.error = ValueError("https://u:secret@h/x is down")
        with pytest.raises(ValueError, match="is down"):
            run_now(registered, worker="w1")
        assert state().last_outcome == Outcome.FAILED
        assert state().last_error == "ValueError: https://u:***@h/x is down"
        assert [record.msg for record in caplog.records] == [LogEvent.RUNNER_FAILED]

    def test_one_that_leaves_its_transaction_open_has_failed(
        self, registered: Runner, sweep: Sweep
    ) -> None:
        """Its writes are lost, whatever it says that it did."""

        def leave_open() -> None:
            transaction.atomic().__enter__()
            WorkerProcess.objects.all().delete()

        sweep.meanwhile = leave_open
        with pytest.raises(TransactionMisused):
            run_now(registered, worker="w1")
        assert state().last_outcome == Outcome.FAILED
        assert "a transaction was left open" in state().last_error
        assert WorkerProcess.objects.count() == 2

    def test_a_later_success_clears_the_error(
        self, registered: Runner, sweep: Sweep
    ) -> None:
        sweep.error = ValueError("down")
        with pytest.raises(ValueError, match="down"):
            run_now(registered, worker="w1")
        sweep.error = None
        run_now(registered, worker="w1")
        assert (state().last_outcome, state().last_error) == (Outcome.COMPLETED, "")

    @pytest.mark.parametrize("worker", ["w1", "w2"], ids=["by itself", "by another"])
    def test_one_that_was_overtaken_records_nothing(
        self, registered: Runner, queue_connection: QueueConnection, worker: str
    ) -> None:
        overtaken = claimed(queue_connection, registered)
        if worker != "w1":
            lose("w1")
        newer = claimed(queue_connection, registered, worker=worker)
        run_tick(overtaken, stop=threading.Event())
        assert state().last_outcome == Outcome.RUNNING
        run_tick(newer, stop=threading.Event())
        assert state().last_outcome == Outcome.COMPLETED

    def test_the_end_is_recorded_once_the_database_is_back(
        self,
        registered: Runner,
        queue_connection: QueueConnection,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        tick = claimed(queue_connection, registered)
        away = iter([True, True, False])
        execute = BoundedConnection.execute

        def refuse(self: BoundedConnection, *args: Any) -> list[Any]:
            if next(away):
                raise psycopg.OperationalError("no route")
            return execute(self, *args)

        monkeypatch.setattr(BoundedConnection, "execute", refuse)
        run_tick(tick, stop=threading.Event())
        assert state().last_outcome == Outcome.COMPLETED

    def test_at_a_shutdown_the_end_is_tried_once(
        self,
        registered: Runner,
        queue_connection: QueueConnection,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        tick = claimed(queue_connection, registered)
        stop = threading.Event()
        stop.set()

        def refuse(self: BoundedConnection, *args: Any) -> list[Any]:
            raise psycopg.OperationalError("no route")

        monkeypatch.setattr(BoundedConnection, "execute", refuse)
        run_tick(tick, stop=stop)
        assert state().last_outcome == Outcome.RUNNING
        assert caplog.records[-1].error == "not recorded"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("interval", "allowed"),
    [(MINUTE, 5 * MINUTE), (20 * MINUTE, 20 * MINUTE), (24 * HOUR, HOUR)],
)
def test_a_tick_has_its_interval_within_limits(
    sweep: Sweep, settings: Settings, interval: dt.timedelta, allowed: dt.timedelta
) -> None:
    settings.JOBS_TEST_SWEEP_INTERVAL = interval
    assert deadline(registry.runners()["test_sweep"]) == allowed


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_that_comes_back_from_a_tick_records_nothing(
    registered: Runner, sweep: Sweep
) -> None:
    statuses: list[int] = []

    def fork() -> None:
        child = os.fork()
        if not child:
            raise SystemExit(7)
        _, status = os.waitpid(child, 0)
        statuses.append(os.waitstatus_to_exitcode(status))

    sweep.meanwhile = fork
    assert run_now(registered, worker="w1") == {"swept": 1}
    assert statuses == [7]
    assert state().last_outcome == Outcome.COMPLETED
