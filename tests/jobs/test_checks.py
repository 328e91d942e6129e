from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Protocol, TypedDict

import pytest
from django.core import checks
from django.test import override_settings
from typing_extensions import TypeAliasType

from jobs import registry
from jobs.checks import SAFE_STALL
from jobs.context import JobContext
from jobs.lease_lengths import SAFE_LEASE, SHORTEST_LEASE

if TYPE_CHECKING:
    from tests.jobs.factories import JobFactory


def ids() -> list[str | None]:
    return [
        message.id
        for message in checks.run_checks()
        if str(message.id).startswith("jobs.")
    ]


def test_the_settings_as_they_are_have_no_findings():
    assert ids() == []


@pytest.mark.parametrize(
    ("lease", "expected"),
    [
        (SHORTEST_LEASE - dt.timedelta(milliseconds=1), ["jobs.E001"]),
        (SHORTEST_LEASE, ["jobs.W001"]),
        (SAFE_LEASE - dt.timedelta(milliseconds=1), ["jobs.W001"]),
        (SAFE_LEASE, []),
    ],
)
def test_a_lease_must_outlast_its_heartbeat(lease: dt.timedelta, expected: list[str]):
    with override_settings(JOBS_JOB_REAPER_LEASE_TIMEOUT=lease):
        assert ids() == expected


@pytest.mark.parametrize(
    ("lease", "expected"),
    [
        (SHORTEST_LEASE, ["jobs.W001"]),
        (SAFE_LEASE - dt.timedelta(milliseconds=1), ["jobs.W001"]),
        (SAFE_LEASE, []),
        (None, []),
    ],
)
def test_so_must_the_lease_of_a_type(lease: dt.timedelta | None, expected: list[str]):
    registry.job_handler("test.brief", lease=lease)(lambda context, payload: None)
    assert ids() == expected
    named = [m.msg for m in checks.run_checks() if "'test.brief'" in m.msg]
    assert len(named) == len(expected)


@pytest.mark.parametrize(
    ("less", "expected"),
    [(dt.timedelta(0), []), (dt.timedelta(milliseconds=1), ["jobs.W002"])],
)
def test_a_side_threads_deadline_outlasts_a_cut_network(
    less: dt.timedelta, expected: list[str]
):
    with override_settings(JOBS_STALL_AFTER=SAFE_STALL - less):
        assert ids() == expected


def test_a_runner_needs_its_settings():
    registry.runner("test_lonely")(lambda stop: {})
    assert ids() == ["jobs.E002", "jobs.E002"]


@pytest.mark.parametrize("interval", [dt.timedelta(0), 60, None])
def test_a_runners_interval_is_a_duration_above_zero(interval: object):
    registry.runner("test_lonely")(lambda stop: {})
    with override_settings(
        JOBS_TEST_LONELY_ENABLED=True, JOBS_TEST_LONELY_INTERVAL=interval
    ):
        assert ids() == ["jobs.E002"]


def test_a_runner_with_its_settings_is_fine():
    registry.runner("test_lonely")(lambda stop: {})
    with override_settings(
        JOBS_TEST_LONELY_ENABLED=False, JOBS_TEST_LONELY_INTERVAL=dt.timedelta(hours=1)
    ):
        assert ids() == []


def test_a_payload_annotation_must_be_resolvable():
    @registry.job_handler("test.annotated")
    def handler(context: JobContext, payload: JobFactory) -> None:
        """Its payload's class is not there at run time."""

    assert ids() == ["jobs.E003"]


class Named(NamedTuple):
    """No dataclass."""

    text: str


class Typed(TypedDict):
    """A dict, to those who check types."""

    text: str


class HasKeys(Protocol):
    """What a dict has, too; not to be asked at run time."""

    def keys(self) -> Any: ...


@dataclass
class Declared:
    """What a handler may declare."""

    text: str


@pytest.mark.parametrize(
    "annotation",
    [str, list[str], Named, Declared | None, type(None)],
    ids=["text", "list", "tuple", "union", "None"],
)
def test_a_payload_annotation_is_of_a_kind_that_a_handler_is_given(annotation: object):
    def handler(context: JobContext, payload: Any) -> None: ...

    handler.__annotations__["payload"] = annotation
    registry.job_handler("test.annotated")(handler)
    assert ids() == ["jobs.E003"]


@pytest.mark.parametrize(
    "annotation",
    [
        Declared,
        dict,
        dict[str, int],
        Mapping[str, Any],
        Any,
        object,
        Typed,
        dict[str, Any] | None,
        Optional[dict],  # noqa: UP045 - as it is written in older code
        TypeAliasType("Alias", dict[str, Any]),
        HasKeys,
    ],
    ids=[
        "dataclass",
        "dict",
        "its items",
        "mapping",
        "Any",
        "object",
        "typed",
        "union",
        "optional",
        "alias",
        "protocol",
    ],
)
def test_a_dataclass_and_whatever_a_dict_is_may_be_a_payload(annotation: object):
    def handler(context: JobContext, payload: Any) -> None: ...

    handler.__annotations__["payload"] = annotation
    registry.job_handler("test.annotated")(handler)
    assert ids() == []


def test_a_payload_without_an_annotation_is_a_dict():
    registry.job_handler("test.annotated")(lambda context, payload: None)
    assert ids() == []
