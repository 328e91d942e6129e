"""Pruning: one worktree that has been idle for too long, archived and removed, or reported.

What goes is its directory and its row; its archive can be restored, and its branch stays in the clone. Each step can be
interrupted, and the next attempt goes on from there or undoes it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from enum import StrEnum
from pathlib import Path

from django.conf import settings
from django.db.models import Q

from notify import audit
from workspaces import hosts, job_types, paths, transactions
from workspaces.archiving import lookup, restoring
from workspaces.exceptions import (
    ArchiveError,
    ConfigTampered,
    NotArchivable,
    OutsideDataDirectory,
    WorktreeBusy,
    WorktreeError,
    WorktreeQuarantined,
)
from workspaces.holding import activity, checkouts
from workspaces.models import Worktree, WorktreeArchive
from workspaces.pruning import prune_report, trash
from workspaces.pruning.clearing import Cleared, Clearing
from workspaces.querysets import WorktreeQuerySet
from workspaces.repository import Repository, Stop

LOCK_WAIT = dt.timedelta(seconds=10)

_ARCHIVED = ("fencing_no", "last_held_by", "last_used_at", "branch", "path")

# What keeps a worktree where it is until somebody does something about it; what else may happen is tried again.
KEPT_BECAUSE = (ArchiveError, ConfigTampered, OutsideDataDirectory, WorktreeBusy)


class Outcome(StrEnum):
    """What became of a worktree that was to be pruned."""

    PRUNED = "pruned"
    BLOCKED = "blocked"
    NOT_DUE = "not_due"


def due() -> WorktreeQuerySet:
    """The worktrees that are to be pruned now."""
    lead = settings.JOBS_WORKTREE_PRUNE_WARNING_LEAD
    return Worktree.objects.prunable(
        settings.JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD,
        warned_for=lead if settings.JOBS_WORKTREE_PRUNE_REQUIRE_WARNING else None,
    )


def prune_worktree(worktree_id: int, *, stop: Stop | None = None) -> Outcome:
    """Archive and remove the worktree where it is still due, or report what keeps it.

    Also puts right what an interrupted creation or removal has left. Raises
    :class:`~workspaces.exceptions.RepositoryBusy`, ``WrongHost``, ``CloneMissing``, ``GitError``
    and OSError; then it stays as it was, or is finished by the next attempt. Raises RuntimeError in a transaction.
    """
    transactions.refuse("prune_worktree()")
    worktree = _find(worktree_id)
    if worktree is None:
        return Outcome.NOT_DUE
    hosts.check(worktree.workspace)
    try:
        directory = paths.own_directory(worktree.workspace)
        path = paths.own_worktree_path(worktree)
    except OutsideDataDirectory as error:
        if not _claim(due(), worktree):
            return Outcome.NOT_DUE
        prune_report.blocked(worktree, str(error))
        return Outcome.BLOCKED
    repository = Repository(directory)
    with repository.locked(wait=LOCK_WAIT, stop=stop):
        sweep(repository, worktree.workspace_id)
        clearing = Clearing(
            repository=repository,
            worktree=worktree,
            path=path,
            reason=WorktreeArchive.Reason.PRUNED,
            actor=audit.SYSTEM,
            stop=stop,
        )
        activity.note(repository, worktree, path)
        if not _claim(due(), worktree):
            mend(repository, worktree, path)
            return Outcome.NOT_DUE
        removed = _remove(clearing)
        return Outcome.PRUNED if isinstance(removed, Cleared) else Outcome.BLOCKED


def archive_worktree(
    worktree_id: int, *, actor: str, as_of: str = "", stop: Stop | None = None
) -> WorktreeArchive | None:
    """Archive and remove a worktree that nobody holds now, however short a time it has been idle; return its archive.

    With ``as_of``, only where :func:`workspaces.job_types.as_of` still says the same of it.
    None: nothing was left of it to archive; archives of its life before a restoration stay. Raises :class:`~workspaces.exceptions.UnknownWorktree`, ``WorktreeError`` where it is
    held, pinned, being worked on or not as it was, what :func:`prune_worktree` raises, and what keeps it: ``ArchiveError``,
    ``ConfigTampered`` and ``OutsideDataDirectory``.
    """
    transactions.refuse("archive_worktree()")
    worktree = _find(worktree_id)
    if worktree is None:
        raise lookup.unknown(worktree_id)
    hosts.check(worktree.workspace)
    path = paths.own_worktree_path(worktree)
    repository = Repository(paths.own_directory(worktree.workspace))
    with repository.locked(wait=settings.ACW_GIT_TIMEOUT, stop=stop):
        while not _claim(_as_asked(worktree_id, as_of), worktree):
            # What kept it may be over by now, and then nothing is refused: it is to be claimed all the same.
            refuse(_find(worktree_id), worktree_id)
        clearing = Clearing(
            repository=repository,
            worktree=worktree,
            path=path,
            reason=WorktreeArchive.Reason.ASKED,
            actor=actor,
            stop=stop,
        )
        removed = _remove(clearing)
    if isinstance(removed, Cleared):
        return removed.archive
    raise removed


def _as_asked(worktree_id: int, as_of: str) -> WorktreeQuerySet:
    """Those that may be archived; raises WorktreeError where this one was used, kept or restored since somebody asked for it."""
    rows = Worktree.objects.archivable()
    now = _find(worktree_id) if as_of else None
    if now is None:
        return rows
    if job_types.as_of(now) != as_of:
        raise WorktreeError(
            f"{now} was used, kept or restored since that was asked for; ask again"
        )
    return rows.filter(fencing_no=now.fencing_no, kept_until=now.kept_until)


def refuse(worktree: Worktree | None, worktree_id: int) -> None:
    """Raise what keeps a worktree from being archived and removed when somebody asks for it, where something does."""
    if worktree is None:
        raise lookup.unknown(worktree_id)
    if worktree.held_by is not None:
        raise WorktreeError(
            f"{worktree} is held by {worktree.held_by!r}; release it first"
        )
    if worktree.pinned:
        raise WorktreeError(f"{worktree} is pinned; unpin it first")
    if worktree.state == Worktree.State.QUARANTINED:
        raise WorktreeQuarantined(
            f"{worktree} was taken out of use: {worktree.state_reason or 'no reason was given'}"
        )
    if not Worktree.objects.archivable().filter(pk=worktree.pk).exists():
        raise WorktreeBusy(f"{worktree} is {worktree.state}; try again later")


def mend(repository: Repository, worktree: Worktree, path: Path) -> None:
    """Put right what an interruption has left of a worktree, or finish it; the caller has the repository's lock.

    Afterwards its row is ready, or gone with its archive being there; or missing, where its archive is not as it was. Raises
    OSError, and :class:`~workspaces.exceptions.ConfigTampered`, whereupon the next attempt finds it as it was.
    """
    now = _find(worktree.pk)
    if now is None:
        return
    if now.state == Worktree.State.CREATING:
        checkouts.discard_interrupted(repository, now)
    elif now.state == Worktree.State.PRUNING:
        _finish_or_undo(repository, now, path)
    elif now.state == Worktree.State.RESTORING:
        try:
            restoring.restore_locked(repository, now.pk, actor=audit.SYSTEM)
        except ArchiveError as error:
            # It would fail each time. Who acquires it gets its branch, and maintenance tells of the archive.
            Worktree.objects.filter(pk=now.pk, state=Worktree.State.RESTORING).update(
                state=Worktree.State.MISSING,
                state_reason=f"its restoration was interrupted, and cannot be finished: {error}",
            )


def _finish_or_undo(repository: Repository, worktree: Worktree, path: Path) -> None:
    clearing = Clearing(
        repository=repository,
        worktree=worktree,
        path=path,
        reason=WorktreeArchive.Reason.PRUNED,
        actor=audit.SYSTEM,
    )
    archive, cleared = None, None
    with contextlib.suppress(NotArchivable):
        cleared = clearing.already_archived()
        archive = None if cleared is None else cleared.archive
    if cleared is not None and archive is not None:
        try:
            clearing.delete(cleared)
        except OSError as error:
            # Who waits for it can have it from its archive; what is left is deleted later.
            prune_report.left_over(worktree, error)
        prune_report.pruned(worktree, cleared, actor=archive.actor)
        return
    clearing.put_back()
    _give_back(worktree)


def _find(worktree_id: int) -> Worktree | None:
    rows = Worktree.objects.select_related("workspace__owner")
    return rows.filter(pk=worktree_id).first()


def _claim(rows: WorktreeQuerySet, worktree: Worktree) -> bool:
    """Take it from everybody, where it is one of these rows: an acquire since then wins.

    One that is claimed already was given up by a pruner that is dead, since this one has the lock.
    """
    claimed = rows.filter(pk=worktree.pk).update(state=Worktree.State.PRUNING) == 1
    if claimed:
        # It may have been held, and let go of, since it was read.
        worktree.refresh_from_db(fields=_ARCHIVED)
    return claimed


def _give_back(worktree: Worktree) -> None:
    Worktree.objects.filter(pk=worktree.pk, state=Worktree.State.PRUNING).update(
        state=Worktree.State.READY, state_reason=""
    )


def _remove(clearing: Clearing) -> Cleared | Exception:
    """Archive and remove what was claimed; or leave it in its place, report why, and return that."""
    worktree = clearing.worktree
    try:
        cleared = clearing.archive()
    except KEPT_BECAUSE as error:
        clearing.put_back()
        prune_report.blocked(worktree, str(error))
        return error
    except BaseException:
        clearing.put_back()
        # Else who acquires it would get what git has of it, and not what is in the trash: the next attempt finishes it.
        if not clearing.is_given_up():
            _give_back(worktree)
        raise
    try:
        clearing.delete(cleared)
    except OSError as error:
        prune_report.not_deleted(worktree, cleared, error)
        return error
    prune_report.pruned(worktree, cleared, actor=clearing.actor)
    return cleared


def sweep(repository: Repository, workspace_id: int) -> None:
    """Delete what could not be deleted before of archived worktrees whose rows are gone; the caller has the repository's lock."""
    if not trash.archive_ids(repository):
        return
    rows = Worktree.objects.filter(workspace=workspace_id).values("pk")
    archives = WorktreeArchive.objects.filter(workspace=workspace_id).exclude(
        state=WorktreeArchive.State.WRITING
    )
    # One that was restored has its place again, and what is in the trash is of its life before.
    over = archives.filter(Q(restored_at__isnull=False) | ~Q(worktree_id__in=rows))
    trash.sweep(repository, archive_ids=set(over.values_list("pk", flat=True)))
