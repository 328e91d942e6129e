"""Which handler runs which type of job, and which runners tick.

Apps fill both from modules named ``handlers`` and ``runners``, which :class:`jobs.apps.JobsConfig` imports.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import inspect
import threading
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

import msgspec
from django.conf import settings

from jobs import arguments
from jobs.context import JobContext
from jobs.exceptions import InvalidJob, UnknownJobType
from jobs.lease_lengths import LONGEST_LEASE, SHORTEST_LEASE
from jobs.models import NAME_MAX_LENGTH, QUEUE_MAX_LENGTH, Priority
from jobs.suggestions import did_you_mean

Handler = Callable[[JobContext, typing.Any], None]
Backoff = Callable[[int], dt.timedelta]
Summary = Mapping[str, int]
Tick = Callable[[threading.Event], Summary]
DryRun = Callable[[], Iterable[str]]

DEFAULT_QUEUE = "default"
DEFAULT_MAX_ATTEMPTS = 5

_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobType:
    """A registered type of job: its handler and the defaults of its jobs.

    ``backoff`` maps the number of the attempt that failed (from 1) to the delay before the next;
    None is the queue's own (``JOBS_BACKOFF_BASE``, ``JOBS_BACKOFF_MAX``). ``timeout`` is how long the handler may
    run: past it its context says so, and a while later the job is failed without it. Without ``keep_completed`` a completed job's row is deleted at once: it leaves no
    history, and nothing to purge. ``atomic`` has the handler run in a transaction that its job's completion is part of.
    ``lease`` is how long a lease lasts that no heartbeat extends; None is ``JOBS_JOB_REAPER_LEASE_TIMEOUT``.
    """

    name: str
    handler: Handler
    queue: str = DEFAULT_QUEUE
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    priority: Priority = Priority.NORMAL
    backoff: Backoff | None = None
    timeout: dt.timedelta | None = None
    keep_completed: bool = True
    atomic: bool = False
    lease: dt.timedelta | None = None

    @cached_property
    def payload_type(self) -> type | None:
        """The dataclass that the handler's second parameter is annotated with, or None for a plain dict."""
        annotation = self.annotation
        return annotation if dataclasses.is_dataclass(annotation) else None  # type: ignore[return-value]

    @cached_property
    def annotation(self) -> object:
        """What the handler's second parameter is annotated with; Any where it is not."""
        parameter = list(inspect.signature(self.handler).parameters)[1]
        return typing.get_type_hints(self.handler).get(parameter, typing.Any)

    @cached_property
    def decoder(self) -> msgspec.json.Decoder[typing.Any]:
        """Turns the JSON text of a payload into what the handler takes."""
        return msgspec.json.Decoder(self.payload_type or dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Runner:
    """A periodic runner; its interval and switch are the settings that its name spells.

    ``dry_run`` says, line by line, what a tick would do now, and changes nothing; None: it cannot say.
    """

    name: str
    tick: Tick
    dry_run: DryRun | None = None

    @property
    def interval(self) -> dt.timedelta:
        value: dt.timedelta = getattr(settings, f"JOBS_{self.name.upper()}_INTERVAL")
        return value

    @property
    def enabled(self) -> bool:
        return bool(getattr(settings, f"JOBS_{self.name.upper()}_ENABLED"))


_job_types: dict[str, JobType] = {}
_runners: dict[str, Runner] = {}


def job_handler(
    name: str,
    *,
    queue: str = DEFAULT_QUEUE,
    max_attempts: int = DEFAULT_MAX_ATTEMPTS,
    priority: Priority = Priority.NORMAL,
    backoff: Backoff | None = None,
    timeout: dt.timedelta | None = None,
    keep_completed: bool = True,
    atomic: bool = False,
    lease: dt.timedelta | None = None,
) -> Callable[[Handler], Handler]:
    """Register the decorated ``handler(context, payload)`` under the job type ``name``.

    Raises ValueError where the name is taken, an option could not be stored, or the
    handler is a coroutine or generator function or does not take two positional arguments.
    """

    def register(handler: Handler) -> Handler:
        if name in _job_types and _job_types[name].handler is not handler:
            raise ValueError(
                f"job type {name!r} already has a handler: {_job_types[name].handler!r}"
            )
        if not isinstance(atomic, bool):
            raise ValueError(
                f"job type {name!r}: atomic must be True or False, got {atomic!r}: the transaction is always one on "
                "the queue's own database"
            )
        if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
            raise ValueError(
                f"job type {name!r}: a handler is called and done when it returns, got the generator function "
                f"{handler!r}, of which nothing would run"
            )
        if inspect.iscoroutinefunction(handler):
            raise ValueError(
                f"job type {name!r}: a handler is an ordinary function, got the coroutine function {handler!r}; "
                "asgiref.sync.async_to_sync makes one of it"
            )
        try:
            arguments.required_text("name", name, NAME_MAX_LENGTH)
            arguments.required_text("queue", queue, QUEUE_MAX_LENGTH)
            arguments.priority(priority)
            arguments.max_attempts(max_attempts)
        except InvalidJob as refused:
            raise ValueError(f"job type {name!r}: {refused}") from None
        given: object = timeout
        if given is not None and not (
            isinstance(given, dt.timedelta) and given > dt.timedelta(0)
        ):
            raise ValueError(
                f"job type {name!r}: timeout must be a timedelta longer than 0, or None for no timeout, got {timeout!r}"
            )
        own: object = lease
        if own is not None and not (
            isinstance(own, dt.timedelta) and SHORTEST_LEASE <= own <= LONGEST_LEASE
        ):
            raise ValueError(
                f"job type {name!r}: lease must be a timedelta from {SHORTEST_LEASE.total_seconds():g} s to "
                f"{LONGEST_LEASE.days:,} days, or None for JOBS_JOB_REAPER_LEASE_TIMEOUT, got {lease!r}"
            )
        signature = inspect.signature(handler)
        kinds = [parameter.kind for parameter in signature.parameters.values()]
        if [kind in _POSITIONAL for kind in kinds] != [True, True]:
            raise ValueError(
                f"job type {name!r}: a handler takes (context, payload), got {handler!r} with {signature}; "
                "what a decorator makes of a handler needs functools.wraps"
            )
        _job_types[name] = JobType(
            name=name,
            handler=handler,
            queue=queue,
            max_attempts=max_attempts,
            priority=priority,
            backoff=backoff,
            timeout=timeout,
            keep_completed=keep_completed,
            atomic=atomic,
            lease=lease,
        )
        return handler

    return register


def runner(name: str, *, dry_run: DryRun | None = None) -> Callable[[Tick], Tick]:
    """Register the decorated ``tick(stop) -> summary`` as the periodic runner ``name``.

    It ticks every ``JOBS_<NAME>_INTERVAL`` while ``JOBS_<NAME>_ENABLED``. ``stop`` is set when the worker
    shuts down; the summary is what the tick did, as counts. ``dry_run()`` gives the lines that
    ``runners run NAME --dry-run`` prints: what a tick would do now. It is called in a transaction in which nothing can be written.
    """

    def register(tick: Tick) -> Tick:
        if name in _runners and _runners[name].tick is not tick:
            raise ValueError(
                f"runner {name!r} is already registered: {_runners[name].tick!r}"
            )
        _runners[name] = Runner(name=name, tick=tick, dry_run=dry_run)
        return tick

    return register


def job_type(name: str) -> JobType:
    """The registered type; raises :class:`UnknownJobType`, which names the closest ones."""
    try:
        return _job_types[name]
    except KeyError:
        hint = did_you_mean(name, _job_types, otherwise="is its app installed?")
        raise UnknownJobType(
            f"no handler is registered for job type {name!r}; {hint}"
        ) from None


def find_job_type(name: str) -> JobType | None:
    """The registered type, or None."""
    return _job_types.get(name)


def job_types() -> Mapping[str, JobType]:
    """Every registered type by name."""
    return _job_types


def own_leases() -> Mapping[str, dt.timedelta]:
    """How long the leases last of those types that have a length of their own."""
    return {
        name: job_type.lease
        for name, job_type in _job_types.items()
        if job_type.lease is not None
    }


def runners() -> Mapping[str, Runner]:
    """Every registered runner by name."""
    return _runners
