"""One pass over this host: rows, disk and git's registrations are compared, and what differs is mended or put aside.

Twice, the first time without any lock: most often all is as it should be, and nobody waits. A workspace that is being worked on is
passed by; the next pass finds it.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db import transaction

from jobs.connection import is_away
from jobs.outcomes import describe
from workspaces import hosts
from workspaces.events import LogEvent
from workspaces.exceptions import GitStopped, RepositoryBusy, WorkspacesError
from workspaces.holding import expiry
from workspaces.models import Worktree
from workspaces.plumbing import presentable
from workspaces.repository import Stop
from workspaces.upkeep import breaker, mending, quota, sizes
from workspaces.upkeep.places import (
    Place,
    mark_clone,
    places_of,
    stray_count,
    unknown_directories,
    worktrees_of,
)
from workspaces.upkeep.survey import Action, Found, survey
from workspaces.upkeep.telling import Line, tell

log = logging.getLogger(__name__)

_SIZING = dt.timedelta(minutes=5)
_NO_WAIT = dt.timedelta(0)
_NAMED = 50


@dataclass(kw_only=True, slots=True)
class Report:
    """A pass; ``stopped``: "" or why nothing was done, and ``busy`` names the workspaces that were passed by.

    ``failed`` says which could not be looked at, and why. ``clones_missing`` names those that are gone, and ``clones_back`` those that were and are there again; ``unknown`` are
    directories that no workspace has, of which nothing is done.
    """

    workspaces: int = 0
    stopped: str = ""
    lines: list[Line] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    clones_missing: list[str] = field(default_factory=list)
    clones_back: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    expired: int = 0
    sized: int = 0


def reconcile(
    *,
    name: str | None = None,
    dry_run: bool = False,
    force: bool = False,
    stop: Stop | None = None,
) -> Report:
    """Compare this host's workspaces, or the one of this ``name``, with its disk, and mend what differs.

    ``dry_run``: only say so. ``force``: also where so much differs that the disk or the database may be another. Also ends
    leases that ran out and samples sizes. Raises :class:`~workspaces.exceptions.GitStopped` when ``stop`` says so.
    """
    host = hosts.this_host()
    report = Report()
    places = places_of(host, name=name, refused=report.failed)
    report.workspaces = len(places)
    report.unknown = unknown_directories() if name is None else []
    report.clones_missing = [p.workspace.name for p in places if p.is_gone]
    report.clones_back = [p.workspace.name for p in places if p.is_back]
    reason = ""
    if places:
        reason = breaker.wrong_disk(host, force=force, dry_run=dry_run)
    elif name is None and report.failed:
        reason = f"no workspace lies where it has to: {report.failed[0]}"
    lines = _look(places, report, stop=stop)
    if not force:
        reason = reason or breaker.too_many(_count(host, places, lines))
    if reason or dry_run:
        report.stopped, report.lines = reason, lines
        if reason and not dry_run:
            breaker.stop(host, reason)
        return report
    if name is None:
        # Not before: on another disk nobody would be seen to work in them.
        report.expired = expiry.end_expired(host)
    for place in places:
        if place.is_gone or place.is_back:
            with transaction.atomic():
                mark_clone(place)
                tell(place, [])
    report.lines = []
    for place in places:
        before = [line for line in lines if line.workspace == place.workspace.name]
        if before:
            report.lines += _mend(place, before, report, stop=stop)
    if name is None and (places or breaker.has_stopped(host)):
        breaker.passed(host, _summary(places, report))
    report.sized = _sample(places, stop=stop)
    log.info(
        LogEvent.RECONCILE_PASSED,
        extra={"host": host, "workspaces": len(places), "found": len(report.lines)},
    )
    return report


def _sample(places: Iterable[Place], *, stop: Stop | None) -> int:
    sampled = sizes.sample_due(
        [place.workspace.pk for place in places], limit=_SIZING, stop=stop
    )
    for workspace_id in sampled:
        if quota.tell(workspace_id, stop=stop):
            log.warning(
                LogEvent.WORKSPACE_OVER_QUOTA, extra={"workspace_id": workspace_id}
            )
    return len(sampled)


def _look(places: Iterable[Place], report: Report, *, stop: Stop | None) -> list[Line]:
    lines = []
    for place in places:
        if stop is not None and stop():
            raise GitStopped("reconcile", "was ended because the caller stops")
        if not place.is_there:
            continue
        try:
            found = _to_do(survey(place.repository, place.rows))
            if any(each.is_alarming for each in found):
                # What is moving at this moment looks like that as well.
                with place.repository.locked(wait=_NO_WAIT, stop=stop):
                    found = _to_do(survey(place.repository, _fresh(place)))
        except RepositoryBusy:
            report.busy.append(place.workspace.name)
        except GitStopped:
            raise
        except Exception as error:
            report.failed.append(f"{place.workspace.name}: {_failed(place, error)}")
        else:
            lines += [_line(place, each) for each in found]
    return lines


def _summary(places: Iterable[Place], report: Report) -> dict[str, object]:
    """What the doctor is to know of it."""
    aside = {
        place.workspace.name: count
        for place in places
        if (count := stray_count(place.repository))
    }
    failed = [f"{line.workspace}: {line.error}" for line in report.lines if line.error]
    failed += report.failed
    return {
        "aside": dict(list(aside.items())[:_NAMED]),
        "unknown": report.unknown[:_NAMED],
        "failed": failed[:_NAMED],
    }


def _to_do(found: Iterable[Found]) -> list[Found]:
    return [each for each in found if each.action is not Action.NOTHING]


def _fresh(place: Place) -> list[Worktree]:
    return worktrees_of([place.workspace]).get(place.workspace.pk, [])


def _count(host: str, places: list[Place], lines: list[Line]) -> breaker.Count:
    gone = [len(place.rows) + 1 for place in places if place.is_gone]
    alarming = [line.found for line in lines if line.found.is_alarming]
    known = sum(found.worktree is not None for found in alarming)
    # All of the host's, also where only one workspace is looked at.
    worktrees = Worktree.objects.filter(workspace__host=host).count()
    return breaker.Count(
        worktrees=worktrees + len(gone),
        missing=sum(gone) + known,
        unknown=len(alarming) - known,
    )


def _mend(
    place: Place, before: list[Line], report: Report, *, stop: Stop | None
) -> list[Line]:
    mended: list[Line] = []
    try:
        with place.repository.locked(wait=_NO_WAIT, stop=stop):
            found = _to_do(survey(place.repository, _fresh(place)))
            if _alarming(found) > _alarming(line.found for line in before):
                # More is gone than was counted a moment ago: the next pass counts anew.
                report.busy.append(place.workspace.name)
                return []
            mended.extend(_mend_one(place, each, stop=stop) for each in found)
    except RepositoryBusy:
        report.busy.append(place.workspace.name)
    except GitStopped:
        raise
    except Exception as error:
        report.failed.append(f"{place.workspace.name}: {_failed(place, error)}")
    finally:
        # Also what was done before a worker stops.
        tell(place, mended)
    return mended


def _alarming(found: Iterable[Found]) -> int:
    return sum(each.is_alarming for each in found)


def _mend_one(place: Place, found: Found, *, stop: Stop | None) -> Line:
    try:
        said = mending.mend(place.repository, place.workspace, found, stop=stop)
    except GitStopped:
        raise
    except Exception as error:
        reason = _failed(place, error, directory=found.name, cell=found.cell)
        return _line(place, found, error=reason)
    return _line(place, found, said=said)


def _line(place: Place, found: Found, *, said: str = "", error: str = "") -> Line:
    return Line(workspace=place.workspace.name, found=found, said=said, error=error)


def _failed(place: Place, error: Exception, **facts: str) -> str:
    """Log what kept one from being looked at or mended, and return it in words: no other is to wait for it, whatever it is.

    Raised again where the database is away, which keeps all.
    """
    if is_away(error):
        raise error
    if isinstance(error, OSError):
        reason = presentable.disk_error(error)
    elif isinstance(error, WorkspacesError):
        reason = str(error)
    else:
        reason = describe(error)
    log.warning(
        LogEvent.WORKTREE_MEND_FAILED,
        extra={"workspace": place.workspace.name, **facts, "error": reason},
        exc_info=None if isinstance(error, WorkspacesError | OSError) else error,
    )
    return reason
