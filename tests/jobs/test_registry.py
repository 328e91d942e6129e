from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pytest_django import Settings

from jobs import registry
from jobs.context import JobContext
from jobs.exceptions import UnknownJobType
from jobs.lease_lengths import LONGEST_LEASE, SHORTEST_LEASE
from jobs.models import Priority
from jobs.registry import job_handler, runner


@dataclass
class Note:
    text: str


def annotated(context: JobContext, payload: Note) -> None: ...


def plain(context: JobContext, payload: dict[str, Any]) -> None: ...


def test_a_handler_is_found_under_its_name_with_its_options() -> None:
    job_handler(
        "test.note",
        queue="notes",
        max_attempts=6,
        priority=Priority.HIGH,
        timeout=dt.timedelta(seconds=9),
    )(annotated)
    job_type = registry.job_type("test.note")
    assert job_type.handler is annotated
    assert (job_type.queue, job_type.max_attempts, job_type.priority) == (
        "notes",
        6,
        Priority.HIGH,
    )
    assert job_type.payload_type is Note


def test_the_decorated_function_stays_itself() -> None:
    assert job_handler("test.plain")(plain) is plain


def test_a_plain_payload_has_no_type() -> None:
    job_handler("test.plain")(plain)
    assert registry.job_type("test.plain").payload_type is None


def test_a_name_is_taken_once_and_registering_the_same_again_is_harmless() -> None:
    job_handler("test.plain")(plain)
    job_handler("test.plain")(plain)
    with pytest.raises(ValueError, match=r"'test.plain' already has a handler"):
        job_handler("test.plain")(annotated)


def test_what_cannot_work_is_refused_at_registration() -> None:
    with pytest.raises(
        ValueError, match=r"job type 'test.none': max_attempts: must be from 1"
    ):
        job_handler("test.none", max_attempts=0)(plain)
    with pytest.raises(ValueError, match="name: 101 characters, at most 100"):
        job_handler("n" * 101)(plain)
    with pytest.raises(ValueError, match="queue: must not be empty"):
        job_handler("test.none", queue="")(plain)
    with pytest.raises(ValueError, match="priority: must be one of"):
        job_handler("test.none", priority=7)(plain)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"takes \(context, payload\)"):
        job_handler("test.one")(lambda payload: None)  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    "handler",
    [
        lambda *, context, payload: None,
        lambda context, *, payload: None,
        lambda context, *payload: None,
        lambda context, **payload: None,
        lambda context, payload, more: None,
    ],
    ids=["by name", "payload by name", "rest", "rest by name", "three"],
)
def test_a_handler_that_could_not_be_called_is_refused(handler: Any) -> None:
    with pytest.raises(ValueError, match=r"takes \(context, payload\)"):
        job_handler("test.uncallable")(handler)


def test_what_a_decorator_has_made_without_wraps_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"with \(\*args.*needs functools.wraps"):
        job_handler("test.decorated")(lambda *args, **kwargs: None)


def test_an_unknown_type_names_the_closest() -> None:
    job_handler("test.plain")(plain)
    with pytest.raises(UnknownJobType, match=r"did you mean 'test.plain'"):
        registry.job_type("test.plane")
    with pytest.raises(UnknownJobType, match="is its app installed"):
        registry.job_type("zzz")
    assert registry.find_job_type("zzz") is None


def test_a_runner_reads_the_settings_that_its_name_spells(settings: Settings) -> None:
    @runner("test_sweep")
    def sweep(stop: threading.Event) -> dict[str, int]:
        return {}

    settings.JOBS_TEST_SWEEP_INTERVAL = dt.timedelta(minutes=3)
    settings.JOBS_TEST_SWEEP_ENABLED = False
    registered = registry.runners()["test_sweep"]
    assert registered.tick is sweep
    assert registered.interval == dt.timedelta(minutes=3)
    assert registered.enabled is False


def test_a_runners_name_is_taken_once() -> None:
    runner("test_sweep")(lambda stop: {})
    with pytest.raises(ValueError, match=r"'test_sweep' is already registered"):
        runner("test_sweep")(lambda stop: {})


def test_the_queues_own_runners_are_found() -> None:
    assert {"job_reaper", "job_purge"} <= set(registry.runners())


def test_a_coroutine_function_is_refused() -> None:
    async def handler(context: JobContext, payload: dict[str, int]) -> None: ...

    with pytest.raises(ValueError, match="async_to_sync"):
        job_handler("test.coroutine")(handler)  # type: ignore[arg-type]


def test_a_generator_function_is_refused_since_calling_it_runs_nothing() -> None:
    def handler(context: JobContext, payload: dict[str, int]) -> Iterator[int]:
        yield 1

    with pytest.raises(ValueError, match="generator function"):
        job_handler("test.generator")(handler)  # type: ignore[arg-type]


def test_atomic_takes_no_name_of_another_database() -> None:
    with pytest.raises(ValueError, match="atomic must be True or False, got 'other'"):
        job_handler("test.plain", atomic="other")(plain)  # type: ignore[arg-type]
    job_handler("test.plain", atomic=True)(plain)
    assert registry.job_type("test.plain").atomic


def test_a_type_may_have_a_lease_of_its_own() -> None:
    job_handler("test.plain")(plain)
    job_handler("test.brief", lease=dt.timedelta(seconds=60))(plain)
    assert registry.job_type("test.plain").lease is None
    own = registry.own_leases()
    assert own["test.brief"] == dt.timedelta(seconds=60)
    assert "test.plain" not in own


@pytest.mark.parametrize("lease", [SHORTEST_LEASE, LONGEST_LEASE], ids=str)
def test_a_lease_may_be_as_short_and_as_long_as_this(lease: dt.timedelta) -> None:
    job_handler("test.plain", lease=lease)(plain)
    assert registry.job_type("test.plain").lease == lease


@pytest.mark.parametrize(
    "lease",
    [
        dt.timedelta(0),
        SHORTEST_LEASE - dt.timedelta(microseconds=1),
        LONGEST_LEASE + dt.timedelta(microseconds=1),
        dt.timedelta.max,
        60,
        "60s",
        False,
    ],
    ids=str,
)
def test_what_is_no_lease_is_refused_by_the_types_name(lease: Any) -> None:
    with pytest.raises(
        ValueError,
        match=r"job type 'test.plain': lease must be a timedelta from 2 s to 3,650 days",
    ):
        job_handler("test.plain", lease=lease)(plain)
    assert registry.find_job_type("test.plain") is None


@pytest.mark.parametrize(
    "timeout", [dt.timedelta(0), dt.timedelta(seconds=-1), 30], ids=str
)
def test_a_timeout_is_a_time(timeout: Any) -> None:
    with pytest.raises(ValueError, match="timeout must be a timedelta longer than 0"):
        registry.job_handler("test.timed", timeout=timeout)(lambda c, p: None)
    assert registry.find_job_type("test.timed") is None
