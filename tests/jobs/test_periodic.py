from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from jobs import registry
from jobs.connection import QueueConnection
from jobs.events import LogEvent
from jobs.models import RunnerState, WorkerProcess
from jobs.periodic import Periodic, claim_tick, register, run_now, run_tick
from jobs.registry import Runner, runner
from jobs.testing import PATIENCE, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = dt.timedelta(hours=1)
MINUTE = dt.timedelta(minutes=1)
Outcome = RunnerState.Outcome


class Sweep:
    """A runner that counts its ticks and can be made to fail."""

    def __init__(self) -> None:
        self.ticks = 0
        self.error: Exception | None = None

    def __call__(self, stop: threading.Event) -> dict[str, int]:
        self.ticks += 1
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
    register(queue_connection)
    return registry.runners()["test_sweep"]


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

        def process() -> None:
            with QueueConnection() as connection:
                connection.raw()
                start.wait()
                got.append(claim_tick(connection, registered, worker="w"))

        threads = [threading.Thread(target=process) for _ in range(8)]
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
        assert claim_tick(queue_connection, registered, worker="w")
        assert not claim_tick(queue_connection, registered, worker="w")
        assert left - MINUTE / 2 < until_next() <= left

    @pytest.mark.parametrize(
        ("silent_for", "claimed"),
        [(dt.timedelta(0), False), (HOUR, True)],
        ids=["it lives", "it is lost"],
    )
    def test_a_tick_that_another_process_is_at_is_waited_for_while_that_one_lives(
        self,
        registered: Runner,
        queue_connection: QueueConnection,
        silent_for: dt.timedelta,
        claimed: bool,
    ) -> None:
        WorkerProcess.objects.create(name="w1", host="h", pid=1, threads=1)
        WorkerProcess.objects.update(beat_at=Now() - silent_for)
        assert claim_tick(queue_connection, registered, worker="w1")
        due(MINUTE)
        assert claim_tick(queue_connection, registered, worker="w2") is claimed

    def test_a_tick_that_has_ended_is_nobodys(
        self, registered: Runner, queue_connection: QueueConnection
    ) -> None:
        WorkerProcess.objects.create(name="w1", host="h", pid=1, threads=1)
        claim_tick(queue_connection, registered, worker="w1")
        run_tick(registered, worker="w1", stop=threading.Event())
        due(MINUTE)
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

    def test_a_later_success_clears_the_error(
        self, registered: Runner, sweep: Sweep
    ) -> None:
        sweep.error = ValueError("down")
        with pytest.raises(ValueError, match="down"):
            run_now(registered, worker="w1")
        sweep.error = None
        run_now(registered, worker="w1")
        assert (state().last_outcome, state().last_error) == (Outcome.COMPLETED, "")

    def test_one_that_was_overtaken_records_nothing(
        self, registered: Runner, queue_connection: QueueConnection
    ) -> None:
        claim_tick(queue_connection, registered, worker="w1")
        due(MINUTE)
        claim_tick(queue_connection, registered, worker="w2")
        run_tick(registered, worker="w1", stop=threading.Event())
        assert state().last_outcome == Outcome.RUNNING


class TestPeriodic:
    @pytest.fixture
    def periodic(self, sweep: Sweep) -> Iterator[Periodic]:
        periodic = Periodic("w1")
        yield periodic
        periodic.stop()
        if periodic.ident is not None:
            periodic.join(PATIENCE)
        periodic._connection.close()

    def test_it_runs_what_is_due(self, periodic: Periodic, sweep: Sweep) -> None:
        periodic.start()
        wait_until(
            lambda: RunnerState.objects.filter(last_outcome=Outcome.COMPLETED).exists(),
            "a tick",
        )
        assert sweep.ticks == 1

    def test_a_runner_that_is_switched_off_never_ticks(
        self, periodic: Periodic, sweep: Sweep, settings: Settings, registered: Runner
    ) -> None:
        settings.JOBS_TEST_SWEEP_ENABLED = False
        periodic.start_due_ticks()
        assert sweep.ticks == 0
        assert state().last_outcome == Outcome.NEVER

    def test_a_failing_runner_does_not_touch_another(
        self,
        periodic: Periodic,
        sweep: Sweep,
        settings: Settings,
        queue_connection: QueueConnection,
    ) -> None:
        def broken(stop: threading.Event) -> dict[str, int]:
            raise ValueError("broken")

        runner("test_broken")(broken)
        settings.JOBS_TEST_BROKEN_INTERVAL = HOUR
        settings.JOBS_TEST_BROKEN_ENABLED = True
        periodic.start()
        wait_until(
            lambda: (
                dict(RunnerState.objects.values_list("name", "last_outcome"))
                == {"test_broken": Outcome.FAILED, "test_sweep": Outcome.COMPLETED}
            ),
            "both recorded",
        )
        assert periodic.is_alive()

    def test_a_slow_runner_does_not_hold_up_another_nor_start_twice(
        self,
        periodic: Periodic,
        sweep: Sweep,
        settings: Settings,
        queue_connection: QueueConnection,
    ) -> None:
        begun, go = threading.Semaphore(0), threading.Event()

        def slow(stop: threading.Event) -> dict[str, int]:
            begun.release()
            go.wait(PATIENCE)
            return {}

        runner("test_slow")(slow)
        settings.JOBS_TEST_SLOW_INTERVAL = dt.timedelta(milliseconds=1)
        settings.JOBS_TEST_SLOW_ENABLED = True
        register(queue_connection)
        periodic.start_due_ticks()
        assert begun.acquire(timeout=PATIENCE)
        wait_until(
            lambda: (
                sweep.ticks == 1 and periodic.join_ticks(deadline=0) == ["test_slow"]
            ),
            "the other one's tick",
        )
        periodic.start_due_ticks()
        assert not begun.acquire(blocking=False)
        go.set()
        wait_until(lambda: periodic.join_ticks(deadline=0) == [], "the slow one ended")

    def test_it_knows_when_to_look_again(
        self, periodic: Periodic, registered: Runner, sweep: Sweep
    ) -> None:
        periodic.start_due_ticks()
        assert periodic.start_due_ticks() == 5.0
        RunnerState.objects.update(next_run_at=Now() + dt.timedelta(seconds=2))
        assert 0.5 < periodic.start_due_ticks() <= 2.0
        assert periodic.join_ticks(deadline=time.monotonic() + PATIENCE) == []

    def test_a_tick_that_was_about_to_start_at_a_stop_is_waited_for(
        self,
        periodic: Periodic,
        registered: Runner,
        sweep: Sweep,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        looking, go = threading.Event(), threading.Event()

        def claim(*args: Any, **options: Any) -> bool:
            looking.set()
            go.wait(PATIENCE)
            return claim_tick(*args, **options)

        monkeypatch.setattr("jobs.periodic.claim_tick", claim)
        periodic.start()
        assert looking.wait(PATIENCE)
        periodic.stop()
        releasing = threading.Timer(0.05, go.set)
        releasing.start()
        assert periodic.join_ticks(deadline=time.monotonic() + PATIENCE) == []
        assert not periodic.is_alive()
        assert sweep.ticks == 1

    def test_none_is_started_after_a_stop(
        self, periodic: Periodic, registered: Runner, sweep: Sweep
    ) -> None:
        periodic.stop()
        periodic.start_due_ticks()
        assert periodic.join_ticks(deadline=time.monotonic() + PATIENCE) == []
        assert sweep.ticks == 0
