"""Live checks of everything that can go wrong, each saying what to do about it.

Apps register probes in modules named ``probes``, which :class:`jobs.apps.JobsConfig` imports::

    @probe("lag")
    def lag() -> Iterator[Finding]:
        yield warning("…", advice="…")
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from django.db import Error, connection

from jobs.outcomes import describe


class Level(StrEnum):
    """``ok`` needs nobody, ``warning`` wants a look, ``error`` means that work is not done."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What a probe found; ``advice`` says what to do where that is anything."""

    level: Level
    message: str
    advice: str = ""


def ok(message: str) -> Finding:
    return Finding(level=Level.OK, message=message)


def warning(message: str, *, advice: str) -> Finding:
    return Finding(level=Level.WARNING, message=message, advice=advice)


def error(message: str, *, advice: str) -> Finding:
    return Finding(level=Level.ERROR, message=message, advice=advice)


Probe = Callable[[], Iterable[Finding]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Registered:
    examine: Probe
    vital: bool


_probes: dict[str, _Registered] = {}


def probe(name: str, *, vital: bool = False) -> Callable[[Probe], Probe]:
    """Register the decorated function under ``name``, one word.

    The ``vital`` ones come first, and where one of them finds an error the others are not asked: they
    could only fail from the same cause. Raises ValueError where the name is taken.
    """

    def register(examine: Probe) -> Probe:
        if name in _probes and _probes[name].examine is not examine:
            raise ValueError(f"probe {name!r} is already registered: {_probes[name]!r}")
        _probes[name] = _Registered(examine=examine, vital=vital)
        return examine

    return register


def probe_names() -> list[str]:
    """Every registered probe, in the order in which they are asked."""
    return sorted(_probes, key=lambda name: not _probes[name].vital)


def examine() -> Iterator[tuple[str, Finding]]:
    """Ask every probe and yield each finding with the probe's name. Never raises."""
    broken = ""
    for name in probe_names():
        registered = _probes[name]
        if broken:
            message = f"not checked, because of what {broken} found"
            yield name, warning(message, advice=f"Mend {broken}, then ask again.")
            continue
        for finding in _ask(registered.examine):
            yield name, finding
            if registered.vital and finding.level is Level.ERROR:
                broken = name


def _ask(examine: Probe) -> Iterator[Finding]:
    try:
        yield from examine()
    except Error as failure:
        # The next probe gets a connection that works, where there is one.
        connection.close_if_unusable_or_obsolete()
        yield error(
            f"could not be checked: {describe(failure)}",
            advice="Look at the database's log for the statement that failed.",
        )
    except Exception as failure:  # one broken probe must not hide what the others find
        where = traceback.extract_tb(failure.__traceback__)[-1]
        yield error(
            f"the check itself failed: {describe(failure)} ({where.filename}:{where.lineno})",
            advice="This is a fault in ACW: report it with this line.",
        )
