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
from jobs.models import RunnerState, WorkerProcess
from jobs.periodic import Periodic
from jobs.registry import Runner, runner
from jobs.testing import PATIENCE, wait_until
from jobs.ticks import Tick, claim_tick, register
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


class TestPeriodic:
    @pytest.fixture
    def periodic(self, sweep: Sweep) -> Iterator[Periodic]:
        WorkerProcessFactory(name="w1")
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

        def claim(*args: Any, **options: Any) -> Tick | None:
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

    def test_it_waits_for_its_own_first_heartbeat(
        self, periodic: Periodic, sweep: Sweep
    ) -> None:
        WorkerProcess.objects.all().delete()
        periodic.start()
        wait_until(RunnerState.objects.exists, "registered")
        count = periodic.progress.count
        wait_until(lambda: periodic.progress.count > count + 20, "it has looked")
        assert sweep.ticks == 0
        WorkerProcessFactory(name="w1")
        wait_until(lambda: sweep.ticks == 1, "the tick")

    def test_a_tick_that_cannot_be_tried_again_is_given_up(
        self, periodic: Periodic, sweep: Sweep, registered: Runner
    ) -> None:
        RunnerState.objects.update(
            next_run_at=Now() + HOUR,
            last_outcome=Outcome.RUNNING,
            last_worker="gone",
            tries=3,
        )
        periodic.start_due_ticks()
        assert (state().last_outcome, sweep.ticks) == (Outcome.FAILED, 0)

    def test_the_signs_of_a_tick_are_those_of_looking_at_its_stop(
        self, periodic: Periodic, sweep: Sweep, registered: Runner, settings: Settings
    ) -> None:
        look, looked, go = threading.Event(), threading.Event(), threading.Event()

        def slow(stop: threading.Event) -> dict[str, int]:
            look.wait(PATIENCE)
            assert not stop.is_set()
            looked.set()
            go.wait(PATIENCE)
            return {}

        runner("test_slow")(slow)
        settings.JOBS_TEST_SLOW_INTERVAL = dt.timedelta(minutes=30)
        settings.JOBS_TEST_SLOW_ENABLED = True
        register(periodic._connection)
        periodic.start_due_ticks()
        wait_until(lambda: len(periodic.ticks_under_way()) == 1, "the slow one is left")
        (progress,) = periodic.ticks_under_way()
        assert (progress.name, progress.allowed) == ("acw-runner-test_slow", 1800)
        before = progress.count
        look.set()
        assert looked.wait(PATIENCE)
        assert progress.count > before
        go.set()
        wait_until(lambda: not periodic.ticks_under_way(), "ended")
