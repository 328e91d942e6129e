"""Acquiring and releasing worktrees.

A held worktree is its holder's alone and is never pruned. Both directions count as use: they set
``last_used_at`` and take back a warning.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from workspaces import hosts, inspection, paths, worktrees
from workspaces.events import LogEvent
from workspaces.exceptions import (
    ForeignHold,
    InvalidName,
    UnknownWorktree,
    WorktreeBusy,
    WorktreeError,
    WorktreeHeld,
    WorktreeNotHeld,
)
from workspaces.models import Workspace, Worktree
from workspaces.models.workspace import HOLDER_MAX_LENGTH
from workspaces.repository import Repository, Stop

log = logging.getLogger(__name__)

_OVER = dict.fromkeys(("held_by", "held_since", "heartbeat_at", "lease_expires_at"))


def acquire(
    workspace: Workspace,
    *,
    holder: str,
    branch: str | None = None,
    stop: Stop | None = None,
) -> Worktree:
    """Give ``holder`` a worktree of ``branch``, the one there is or a new one, and return its row.

    Without ``branch`` it is the free one that this holder used last, or else a new one on a new
    branch ``acw/…``. A new branch begins where the remote's default branch was at the last fetch.
    A worktree whose directory is gone is checked out again from its branch.

    Must not be called in a transaction that may still be rolled back: the directory would stay.
    Raises :class:`~workspaces.exceptions.WorktreeHeld` (also where ``holder`` has it already),
    ``WorktreeBusy``, ``BranchInUse``, ``EmptyRepository``, ``InvalidName``, ``WrongHost``,
    ``CloneMissing``, ``RepositoryBusy`` and ``GitError``.
    """
    hosts.check(workspace)
    _check_holder(holder)
    repository = Repository(paths.own_directory(workspace))
    if branch is not None:
        repository.check_branch(branch)
    # The usual cases, which need not wait for anybody's lock.
    worktree = _take(workspace, branch, holder=holder)
    if worktree is not None:
        return _made_usable(repository, worktree, stop=stop)
    if branch is not None:
        _refuse_held(workspace, branch)
    with repository.locked(wait=settings.ACW_GIT_TIMEOUT, stop=stop):
        for interrupted in Worktree.objects.filter(
            workspace=workspace, state=Worktree.State.CREATING
        ).select_related("workspace"):
            discard_interrupted(repository, interrupted)
        if branch is not None and (row := _row(workspace, branch)) is not None:
            # Whoever was making it has finished, and holds it.
            _refuse_held(workspace, branch)
            raise WorktreeBusy(f"{row} is being worked on; try again later")
        return _create(
            repository, workspace, branch or _new_branch(), holder=holder, stop=stop
        )


def release(worktree_id: int, *, holder: str | None = None) -> Worktree:
    """Let the worktree go and return its row; with ``holder``, only where that is who holds it.

    Raises :class:`~workspaces.exceptions.UnknownWorktree`, ``WorktreeNotHeld`` and ``ForeignHold``.
    """
    held = Worktree.objects.held().filter(pk=worktree_id)
    if holder is not None:
        held = held.filter(held_by=holder)
    if held.update(**_used(**_OVER)):
        worktree = Worktree.objects.select_related("workspace").get(pk=worktree_id)
        log.info(LogEvent.WORKTREE_RELEASED, extra=_facts(worktree))
        return worktree
    worktree_now = Worktree.objects.filter(pk=worktree_id).first()
    if worktree_now is None:
        raise UnknownWorktree(f"there is no worktree {worktree_id}")
    if worktree_now.held_by is None:
        raise WorktreeNotHeld(f"worktree {worktree_id} is not held")
    raise ForeignHold(
        f"worktree {worktree_id} is held by {worktree_now.held_by!r}, not by {holder!r}"
    )


def let_go(worktree_id: int, *, held_since: dt.datetime) -> bool:
    """Let go of this hold, where it is not over yet; a later one of the same worktree is left alone."""
    return _change_hold(worktree_id, held_since, **_OVER)


def pass_on(worktree_id: int, *, held_since: dt.datetime, holder: str) -> bool:
    """Give this hold to another holder, where it is not over yet; whether it was there to give."""
    return _change_hold(worktree_id, held_since, held_by=holder, last_held_by=holder)


def _change_hold(worktree_id: int, since: dt.datetime, **changes: str | None) -> bool:
    hold = Worktree.objects.held().filter(pk=worktree_id, held_since=since)
    return bool(hold.update(**_used(**changes)))


def discard_interrupted(repository: Repository, worktree: Worktree) -> None:
    """Remove what is left of a worktree whose making was interrupted; nobody was ever given it.

    The caller has the repository's lock, so who was making it is dead.
    """
    worktrees.discard(repository, paths.own_worktree_path(worktree))
    Worktree.objects.filter(pk=worktree.pk, state=Worktree.State.CREATING).delete()
    log.warning(LogEvent.WORKTREE_DISCARDED, extra=_facts(worktree))


def _check_holder(holder: str) -> None:
    if (
        not holder.strip()
        or not holder.isprintable()
        or len(holder) > HOLDER_MAX_LENGTH
    ):
        raise InvalidName(
            f"holder {holder!r}: it must be printable text of 1 to {HOLDER_MAX_LENGTH} characters"
        )


def _new_branch() -> str:
    return f"acw/{secrets.token_hex(4)}"


def _used(**changes: Any) -> dict[str, Any]:
    """What every use of a worktree sets, with ``changes``."""
    return {
        "last_used_at": Now(),
        "prune_warning_at": None,
        "prune_blocked_at": None,
        "prune_blocked_reason": "",
        **changes,
    }


def _take(workspace: Workspace, branch: str | None, *, holder: str) -> Worktree | None:
    """Take a worktree where it is free, so that one of many callers wins."""
    wanted = {"last_held_by": holder} if branch is None else {"branch": branch}
    rows = Worktree.objects.filter(workspace=workspace, **wanted).free()
    with transaction.atomic():
        latest = rows.order_by("-last_used_at").select_for_update().first()
        if latest is None:
            return None
        _hold(latest, holder)
        # In the transaction: what is returned is this hold, not a later one.
        return Worktree.objects.select_related("workspace").get(pk=latest.pk)


def _hold(worktree: Worktree, holder: str) -> None:
    Worktree.objects.filter(pk=worktree.pk).update(
        **_used(
            state=Worktree.State.READY,
            held_by=holder,
            held_since=Now(),
            heartbeat_at=Now(),
            lease_expires_at=Now() + settings.ACW_WORKTREE_LEASE,
            fencing_no=F("fencing_no") + 1,
            last_held_by=holder,
        )
    )


def _row(workspace: Workspace, branch: str) -> Worktree | None:
    return Worktree.objects.filter(workspace=workspace, branch=branch).first()


def _refuse_held(workspace: Workspace, branch: str) -> None:
    row = _row(workspace, branch)
    if row is not None and row.held_by is not None:
        raise WorktreeHeld(
            f"{row} is held by {row.held_by!r} since {row.held_since:%Y-%m-%d %H:%M:%S %Z}"
        )


def _create(
    repository: Repository,
    workspace: Workspace,
    branch: str,
    *,
    holder: str,
    stop: Stop | None,
) -> Worktree:
    # The row comes first: what an interruption leaves on the disk is found by it.
    with transaction.atomic(durable=True):
        worktree = Worktree.objects.create(
            workspace=workspace,
            path=str(paths.new_worktree_path(repository.directory, branch)),
            branch=branch,
            state=Worktree.State.CREATING,
        )
    path = paths.own_worktree_path(worktree)
    try:
        worktrees.add(
            repository, path, branch, default=workspace.default_branch, stop=stop
        )
    except BaseException:
        # What could not be removed is found by its row, and removed by the next acquire or prune.
        if not os.path.lexists(path):
            worktree.delete()
        raise
    _hold(worktree, holder)
    worktree.refresh_from_db()
    log.info(LogEvent.WORKTREE_CREATED, extra=_facts(worktree))
    return _acquired(worktree)


def _made_usable(
    repository: Repository, worktree: Worktree, *, stop: Stop | None
) -> Worktree:
    """See that the directory of a worktree just taken is there; let go of it where it cannot be had."""
    try:
        path = paths.own_worktree_path(worktree)
        if not path.is_dir():
            _check_out_again(repository, worktree, path, stop=stop)
    except BaseException:
        # Only this hold: it may have been released meanwhile, and be somebody else's now.
        Worktree.objects.filter(
            pk=worktree.pk, held_by=worktree.held_by, held_since=worktree.held_since
        ).update(**_OVER)
        raise
    return _acquired(worktree)


def _check_out_again(
    repository: Repository, worktree: Worktree, path: Path, *, stop: Stop | None
) -> None:
    default = worktree.workspace.default_branch
    with repository.locked(wait=settings.ACW_GIT_TIMEOUT, stop=stop):
        lost = inspection.unsaved_work(repository, path, stop=stop)
        if lost:
            raise WorktreeError(
                f"the directory of {worktree} is gone and git still keeps for it: "
                f"{'; '.join(lost)}; give these a branch first"
            )
        worktrees.forget(repository, path)
        worktrees.add(repository, path, worktree.branch, default=default, stop=stop)


def _acquired(worktree: Worktree) -> Worktree:
    log.info(
        LogEvent.WORKTREE_ACQUIRED,
        extra={**_facts(worktree), "holder": worktree.held_by},
    )
    return worktree


def _facts(worktree: Worktree) -> dict[str, Any]:
    return {
        "worktree_id": worktree.pk,
        "workspace": worktree.workspace.name,
        "branch": worktree.branch,
    }
