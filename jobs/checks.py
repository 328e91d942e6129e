"""System checks of the queue: static facts, no queries. What lives is the doctor's.

``jobs.E001``  a lease that ends before its heartbeat can keep it
``jobs.W001``  a lease so short that a busy host loses it, of all types or of one
``jobs.E002``  a runner whose settings are missing or wrong
``jobs.W002``  a deadline for side threads that a cut network outlasts
``jobs.E003``  a handler whose payload annotation cannot be resolved, or is of no kind that it would be given
"""

from __future__ import annotations

import datetime as dt
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004 (its name)

from jobs import registry
from jobs.lease_lengths import SAFE_LEASE, SHORTEST_LEASE
from jobs.registry import JobType, Runner

WORKER = "worker"
"""The tag of the checks that ``runjobs`` makes at its start: those of what a worker uses. ``manage.py check`` makes
all, and for that loads the pages."""

SAFE_STALL = dt.timedelta(seconds=45)
"""Within this the system has noticed that a network is cut, with the connection's defaults."""


@register(WORKER)
def check_lease_timeout(**_: Any) -> Iterable[CheckMessage]:
    """jobs.E001, jobs.W001."""
    lease: dt.timedelta = settings.JOBS_JOB_REAPER_LEASE_TIMEOUT
    stated = f"JOBS_JOB_REAPER_LEASE_TIMEOUT is {lease.total_seconds():g}s"
    if lease < SHORTEST_LEASE:
        return [
            Error(
                f"{stated}: leases would end while their jobs still run or wait.",
                hint=f"Set at least {SHORTEST_LEASE.total_seconds():g}s; 5m is the default.",
                id="jobs.E001",
            )
        ]
    if lease < SAFE_LEASE:
        return [
            Warning(
                f"{stated}: a host or database that pauses for so long loses its leases, and jobs run twice.",
                hint=f"Set at least {SAFE_LEASE.total_seconds():g}s, except in tests.",
                id="jobs.W001",
            )
        ]
    return []


@register(WORKER)
def check_own_leases(**_: Any) -> Iterable[CheckMessage]:
    """jobs.W001, of the types that have a lease of their own; a shorter one than E001 allows is not registered."""
    return [
        Warning(
            f"Job type {name!r} has a lease of {lease.total_seconds():g}s: a host or database that pauses for so long "
            "loses its leases, and jobs of this type run twice.",
            hint=f"Set at least {SAFE_LEASE.total_seconds():g}s, except in tests.",
            obj=registry.job_type(name).handler,
            id="jobs.W001",
        )
        for name, lease in registry.own_leases().items()
        if lease < SAFE_LEASE
    ]


@register(WORKER)
def check_stall_deadline(**_: Any) -> Iterable[CheckMessage]:
    """jobs.W002."""
    deadline: dt.timedelta = settings.JOBS_STALL_AFTER
    if deadline >= SAFE_STALL:
        return []
    return [
        Warning(
            f"JOBS_STALL_AFTER is {deadline.total_seconds():g}s: a cut network is noticed later than that, and ends the worker.",
            hint=f"Set at least {SAFE_STALL.total_seconds():g}s, except in tests; 60s is the default.",
            id="jobs.W002",
        )
    ]


@register(WORKER)
def check_runners(**_: Any) -> Iterable[CheckMessage]:
    """jobs.E002."""
    return [
        message
        for runner in registry.runners().values()
        for message in _check_runner(runner)
    ]


def _check_runner(runner: Runner) -> Iterator[CheckMessage]:
    prefix = f"JOBS_{runner.name.upper()}_"
    interval = getattr(settings, f"{prefix}INTERVAL", None)
    if not isinstance(interval, dt.timedelta) or interval <= dt.timedelta(0):
        yield Error(
            f"The runner {runner.name} has no interval: {prefix}INTERVAL is {interval!r}.",
            hint=f"Define {prefix}INTERVAL in the settings, as a timedelta above 0.",
            obj=runner.tick,
            id="jobs.E002",
        )
    if not hasattr(settings, f"{prefix}ENABLED"):
        yield Error(
            f"The runner {runner.name} has no switch: there is no {prefix}ENABLED.",
            hint=f"Define {prefix}ENABLED in the settings, true or false.",
            obj=runner.tick,
            id="jobs.E002",
        )


@register(WORKER)
def check_job_types(**_: Any) -> Iterable[CheckMessage]:
    """jobs.E003."""
    return [
        message
        for job_type in registry.job_types().values()
        for message in _check_job_type(job_type)
    ]


def _check_job_type(job_type: JobType) -> Iterator[CheckMessage]:
    try:
        annotation = job_type.annotation
    except Exception as error:  # whatever evaluating a string annotation may raise
        yield Error(
            f"Job type {job_type.name!r}: its handler's annotations cannot be resolved: {error}.",
            hint="Import the payload's dataclass at the top of the module, not under TYPE_CHECKING.",
            obj=job_type.handler,
            id="jobs.E003",
        )
        return
    if job_type.payload_type is None and not _is_dict(annotation):
        yield Error(
            f"Job type {job_type.name!r}: its handler's payload is annotated with {annotation!r}, and would be a plain dict.",
            hint="Annotate it with a dataclass, with dict or another mapping, or with Any.",
            obj=job_type.handler,
            id="jobs.E003",
        )


def _is_dict(annotation: Any) -> bool:
    """Whether a dict is what the annotation promises, or one of what it does."""
    annotation = getattr(annotation, "__value__", annotation)  # of `type X = ...`
    bare = typing.get_origin(annotation) or annotation
    if bare in (typing.Union, types.UnionType):
        return any(map(_is_dict, typing.get_args(annotation)))
    if bare is Any or typing.is_typeddict(bare):
        return True
    try:
        return isinstance(bare, type) and issubclass(dict, bare)
    except TypeError:  # a protocol that is checked nowhere but by those who check types
        return True
