"""Acquiring a worktree: the one there is, one that was pruned, or a new one; and seeing that it can be worked in.

The usual case, a free worktree whose directory is there, waits for nobody's lock and runs no git.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import os
import secrets
from collections.abc import Iterator

from django.conf import settings
from django.db import transaction

from workspaces import (
    hosts,
    paths,
    prune,
    readiness,
    seal,
    transactions,
    worktrees,
)
from workspaces.archiving import lookup, restoring
from workspaces.events import LogEvent
from workspaces.exceptions import (
    ArchiveError,
    InvalidName,
    WorktreeError,
)
from workspaces.holding import checkouts, leases
from workspaces.holding.wanted import Wanted
from workspaces.models import Workspace, Worktree
from workspaces.repository import Repository, Stop
from workspaces.upkeep import quota

log = logging.getLogger(__name__)

State = Worktree.State


def acquire(
    workspace: Workspace,
    *,
    holder: str,
    branch: str | None = None,
    lease: dt.timedelta | None = None,
    stop: Stop | None = None,
) -> Worktree:
    """Give ``holder`` a worktree of ``branch`` and return its row: the one there is, restored where it was pruned, or a new one.

    Without ``branch`` it is the one that this holder used last, of those that nobody holds, or else a new one on a new
    branch ``acw/…``. A new branch begins where the remote's default branch was at the last fetch. A worktree whose
    directory is gone is checked out again, as git still knows it.

    It is held for ``lease`` (by default ``ACW_WORKTREE_LEASE``) and longer with heartbeats, or, with
    :data:`~workspaces.holding.leases.UNTIL_RELEASED`, until it is released. One whose lease ran out is taken where nothing shows
    that it is still worked in.

    Raises RuntimeError in a transaction, since what is made on the disk cannot be rolled back. Raises
    :class:`~workspaces.exceptions.WorktreeHeld` (also where ``holder`` has it already), ``WorktreeBusy``,
    ``WorktreeQuarantined``, ``BranchInUse``, ``EmptyRepository``, ``InvalidName``, ``InvalidLease``, ``WrongHost``, ``NotCloned``,
    ``CloneMissing``, ``QuotaExceeded``, ``ConfigTampered``, ``ArchiveDamaged``, ``OutsideDataDirectory``, ``RepositoryBusy`` and
    ``GitError``, and what the disk refuses as OSError; then nobody holds it.
    """
    transactions.refuse("acquire()")
    wanted = Wanted(workspace=workspace, holder=holder, lease=lease, branch=branch)
    repository = _ready(wanted)
    if branch is not None:
        check_branch(repository, branch)
    return _acquire(repository, wanted, stop=stop)


def acquire_again(
    worktree_id: int,
    *,
    holder: str,
    lease: dt.timedelta | None = None,
    stop: Stop | None = None,
) -> Worktree:
    """Give ``holder`` this very worktree and return its row; one that was pruned is restored from its archive first.

    Raises what :func:`acquire` raises, and :class:`~workspaces.exceptions.UnknownArchive` or ``ArchiveExpired`` where there is
    no such worktree and none can be restored.
    """
    transactions.refuse("acquire_again()")
    worktree = (
        Worktree.objects.select_related("workspace").filter(pk=worktree_id).first()
    )
    found = lookup.required(worktree_id) if worktree is None else worktree
    wanted = Wanted(
        workspace=found.workspace, holder=holder, lease=lease, worktree_id=worktree_id
    )
    return _acquire(_ready(wanted), wanted, stop=stop)


def _ready(wanted: Wanted) -> Repository:
    """Refuse what can be refused before anything is made."""
    workspace = wanted.workspace
    hosts.check(workspace)
    leases.check_holder(wanted.holder)
    leases.check_lease(wanted.lease)
    readiness.check_ready(workspace)
    quota.check(workspace)
    return Repository(paths.own_directory(workspace))


def check_branch(repository: Repository, branch: str) -> None:
    """Raise :class:`~workspaces.exceptions.InvalidName` where no branch can have the name, and where it names a branch there is in another way.

    Else who means ``origin/topic`` would get a new branch of that name, without what is in ``topic``.
    """
    repository.check_branch(branch)
    for prefix in ("refs/heads/", "refs/remotes/origin/", "origin/"):
        meant = branch.removeprefix(prefix)
        if meant == branch or repository.has_branch(branch):
            continue
        if repository.has_branch(meant):
            raise InvalidName(
                f"branch name {branch!r}: there is none of that name, and one {meant!r}; give that"
            )


def _acquire(repository: Repository, wanted: Wanted, *, stop: Stop | None) -> Worktree:
    worktree = wanted.take()
    if worktree is not None:
        with _abandoned_on_error(worktree):
            path = paths.own_worktree_path(worktree)
            if not checkouts.is_whole(repository, path):
                with repository.locked(wait=settings.ACW_GIT_TIMEOUT, stop=stop):
                    checkouts.make_whole(repository, worktree, stop=stop)
            return _acquired(repository, worktree)
    wanted.refuse(unfinished=False)
    with repository.locked(wait=settings.ACW_GIT_TIMEOUT, stop=stop):
        _finish_interrupted(repository, wanted, stop=stop)
        worktree = wanted.take()
        if worktree is None:
            wanted.refuse(unfinished=True)
            worktree = _restored(repository, wanted, stop=stop)
        if worktree is None:
            return _create(repository, wanted, stop=stop)
        with _abandoned_on_error(worktree):
            checkouts.make_whole(repository, worktree, stop=stop)
            return _acquired(repository, worktree)


@contextlib.contextmanager
def _abandoned_on_error(worktree: Worktree) -> Iterator[None]:
    """Let go of a worktree just taken that cannot be had."""
    try:
        yield
    except BaseException:
        # Only this hold: it may have been released meanwhile, and be somebody else's now.
        leases.abandon(worktree)
        raise


def _finish_interrupted(
    repository: Repository, wanted: Wanted, *, stop: Stop | None
) -> None:
    """Whoever began what is unfinished is dead, since its lock is ours now: finish or undo what stands in the way."""
    rows = Worktree.objects.select_related("workspace__owner")
    for worktree in rows.filter(workspace=wanted.workspace, state=State.CREATING):
        checkouts.discard_interrupted(repository, worktree)
    for worktree in rows.filter(pk__in=wanted.rows().values("pk")):
        if worktree.state == State.PRUNING:
            prune.mend(repository, worktree, paths.own_worktree_path(worktree))
        elif worktree.state == State.RESTORING:
            restoring.restore_locked(
                repository, worktree.pk, actor=wanted.holder, stop=stop
            )


def _restored(
    repository: Repository, wanted: Wanted, *, stop: Stop | None
) -> Worktree | None:
    """One that would do and was pruned, restored and held; None: there is none."""
    archive = wanted.archive()
    if archive is None:
        return None
    try:
        restored = restoring.restore_locked(
            repository, archive.worktree_id, actor=wanted.holder, stop=stop
        )
    except ArchiveError as error:
        if wanted.worktree_id is not None:
            raise
        # It stays as it is, and need not keep anybody from working.
        log.warning(
            LogEvent.WORKTREE_NOT_RESTORED,
            extra={
                "worktree_id": archive.worktree_id,
                "workspace": wanted.workspace.name,
                "branch": archive.branch,
                "reason": str(error),
            },
        )
        return None
    if wanted.branch not in (None, restored.branch):
        return None  # its branch has gone on without it
    rows = Worktree.objects.filter(pk=restored.pk)
    taken = leases.take(rows, holder=wanted.holder, lease=wanted.lease)
    if taken is None:
        wanted.refuse(unfinished=True)  # somebody was quicker
    return taken


def _create(repository: Repository, wanted: Wanted, *, stop: Stop | None) -> Worktree:
    workspace = wanted.workspace
    branch = wanted.branch or f"acw/{secrets.token_hex(4)}"
    seal.check(workspace, repository)
    is_new = wanted.branch is None or repository.local_branch(branch) is None
    # The row comes first: what an interruption leaves on the disk is found by it.
    with transaction.atomic(durable=True):
        worktree = Worktree.objects.create(
            workspace=workspace,
            path=str(paths.new_worktree_path(repository.directory, branch)),
            branch=branch,
            state=State.CREATING,
            state_reason=checkouts.NEW_BRANCH if is_new else "",
        )
    path = paths.own_worktree_path(worktree)
    try:
        worktrees.add(
            repository,
            path,
            branch,
            default=workspace.default_branch,
            reason=checkouts.lock_reason(worktree, fencing_no=1),
            stop=stop,
        )
    except BaseException:
        # What could not be removed is found by its row, and removed by the next acquire or prune.
        if not os.path.lexists(path):
            worktree.delete()
        raise
    # Whole or not at all: nobody who gets an error is left to let go of it.
    with transaction.atomic():
        held = leases.hold(worktree.pk, holder=wanted.holder, lease=wanted.lease)
    log.info(LogEvent.WORKTREE_CREATED, extra=leases.facts(held))
    return _logged(held)


def _acquired(repository: Repository, worktree: Worktree) -> Worktree:
    path = paths.own_worktree_path(worktree)
    admin = worktrees.known_as(repository, path)
    if admin is None:
        raise WorktreeError(
            f"{worktree} went from {path} while it was acquired; try again"
        )
    worktrees.lock(admin, checkouts.lock_reason(worktree))
    # What was found and done to make it whole.
    worktree.refresh_from_db(fields=["state_reason"])
    return _logged(worktree)


def _logged(worktree: Worktree) -> Worktree:
    log.info(
        LogEvent.WORKTREE_ACQUIRED,
        extra={**leases.facts(worktree), "holder": worktree.held_by},
    )
    return worktree
