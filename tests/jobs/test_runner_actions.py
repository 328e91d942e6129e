from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from jobs import registry, runner_actions
from jobs.models import RunnerState
from jobs.registry import runner
from tests.jobs.auditing import recorded_audit
from tests.jobs.factories import RunnerStateFactory, WorkerProcessFactory, ago

ACTOR = "alice"


@pytest.fixture
def audited() -> Iterator[list[dict[str, Any]]]:
    with recorded_audit() as told:
        yield told


@pytest.mark.django_db
def test_run_now_makes_the_next_tick_due(audited: list[dict[str, Any]]):
    state = RunnerStateFactory(name="job_reaper")
    result = runner_actions.run_now(["job_reaper"], actor=ACTOR)
    assert str(result) == "1 made due now"
    was = state.next_run_at
    state.refresh_from_db()
    assert state.next_run_at < was
    assert audited == [
        {
            "actor": ACTOR,
            "action": "runner.run_now",
            "target": "runner:job_reaper",
            "data": {"next_run_at": was.isoformat()},
            "in_transaction": True,
        }
    ]


@pytest.mark.django_db
def test_a_runner_that_nobody_registered_is_skipped(audited: list[dict[str, Any]]):
    RunnerStateFactory(name="gone")
    result = runner_actions.run_now(["gone"], actor=ACTOR)
    assert str(result) == "0 made due now, 1 skipped: this code has no runner gone"
    assert audited == []


@pytest.mark.django_db
@override_settings(JOBS_JOB_REAPER_ENABLED=False)
def test_a_runner_that_is_switched_off_is_skipped():
    RunnerStateFactory(name="job_reaper")
    result = runner_actions.run_now(["job_reaper"], actor=ACTOR)
    assert "JOBS_JOB_REAPER_ENABLED is false" in str(result)


@pytest.mark.django_db
def test_a_runner_that_no_worker_has_scheduled_is_skipped():
    result = runner_actions.run_now(["job_reaper"], actor=ACTOR)
    assert "no worker has started since it was added" in str(result)


@pytest.mark.django_db
def test_a_tick_that_is_under_way_is_not_begun_again():
    WorkerProcessFactory(name="w1")
    RunnerStateFactory(name="job_reaper", last_outcome="running", last_worker="w1")
    result = runner_actions.run_now(["job_reaper"], actor=ACTOR)
    assert "its tick is under way in w1" in str(result)


@pytest.mark.django_db
def test_a_tick_whose_worker_was_lost_is_not_under_way():
    WorkerProcessFactory(name="w1", lost=True)
    RunnerStateFactory(
        name="job_reaper",
        last_outcome="running",
        last_worker="w1",
        last_started_at=ago(hours=1),
    )
    assert runner_actions.run_now(["job_reaper"], actor=ACTOR).done == ["job_reaper"]


def register(tick: Any) -> registry.Runner:
    runner("job_reaper_twin")(tick)
    return registry.runners()["job_reaper_twin"]


twin_settings = override_settings(
    JOBS_JOB_REAPER_TWIN_ENABLED=False,
    JOBS_JOB_REAPER_TWIN_INTERVAL=dt.timedelta(minutes=1),
)


@pytest.mark.django_db(transaction=True)
@twin_settings
def test_run_here_runs_one_tick_and_says_what_it_did(audited: list[dict[str, Any]]):
    ticks: list[threading.Event] = []

    def tick(stop: threading.Event) -> dict[str, int]:
        ticks.append(stop)
        return {"done": 3}

    assert runner_actions.run_here(register(tick), actor=ACTOR) == {"done": 3}
    assert len(ticks) == 1
    state = RunnerState.objects.get(name="job_reaper_twin")
    assert (state.last_outcome, state.last_summary) == ("completed", {"done": 3})
    assert [told["target"] for told in audited] == ["runner:job_reaper_twin"]


@pytest.mark.django_db(transaction=True)
@twin_settings
def test_run_here_raises_what_the_runner_raises():
    def tick(stop: threading.Event) -> dict[str, int]:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        runner_actions.run_here(register(tick), actor=ACTOR)
    state = RunnerState.objects.get(name="job_reaper_twin")
    assert (state.last_outcome, state.last_error) == ("failed", "RuntimeError: broken")


@pytest.mark.django_db
def test_what_a_tick_would_do_is_told_only_by_a_runner_that_can_say():
    silent = register(lambda stop: {})
    with pytest.raises(LookupError, match="job_reaper_twin has no dry run"):
        list(runner_actions.foretell(silent))
