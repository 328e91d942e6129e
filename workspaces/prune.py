"""Pruning: one worktree that has been idle for too long, removed or reported.

A worktree with work that is nowhere else is never removed. What goes is its directory and its row; its
branch stays in the clone. Each step can be interrupted, and the next attempt goes on from there.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
from enum import StrEnum
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from notify import audit
from notify.dispatch import Event, dispatch
from notify.recipients import owner_or_admins
from workspaces import holds, hosts, inspection, paths, topics, worktrees
from workspaces.events import LogEvent
from workspaces.exceptions import OutsideDataDirectory
from workspaces.models import Worktree
from workspaces.repository import Repository, Stop

log = logging.getLogger(__name__)

LOCK_WAIT = dt.timedelta(seconds=10)


class Outcome(StrEnum):
    """What became of a worktree that was to be pruned."""

    PRUNED = "pruned"
    BLOCKED = "blocked"
    NOT_DUE = "not_due"


def prune_worktree(worktree_id: int, *, stop: Stop | None = None) -> Outcome:
    """Remove the worktree where it is still due, or report what keeps it.

    Also puts right what an interrupted creation or removal has left. Raises
    :class:`~workspaces.exceptions.RepositoryBusy`, ``WrongHost``, ``CloneMissing``, ``GitError``
    and OSError; then it stays as it was, or is finished by the next attempt.
    """
    worktree = (
        Worktree.objects.select_related("workspace__owner")
        .filter(pk=worktree_id)
        .first()
    )
    if worktree is None:
        return Outcome.NOT_DUE
    hosts.check(worktree.workspace)
    try:
        directory = paths.own_directory(worktree.workspace)
        path = paths.own_worktree_path(worktree)
    except OutsideDataDirectory as error:
        return _report(worktree, str(error)) if _claim(worktree) else Outcome.NOT_DUE
    repository = Repository(directory)
    with repository.locked(wait=LOCK_WAIT, stop=stop):
        if not _claim(worktree):
            _mend(repository, worktree, path)
            return Outcome.NOT_DUE
        trash = paths.trash_path(directory, worktree.pk)
        try:
            reasons = _remove(repository, path, trash, stop=stop)
        except BaseException:
            if not os.path.lexists(trash):
                _give_back(worktree)
            raise
        return _report(worktree, "; ".join(reasons)) if reasons else _pruned(worktree)


def _claim(worktree: Worktree) -> bool:
    """Take it from everybody, where it is still due: an acquire since then wins.

    One that is claimed already was given up by a pruner that is dead, since this one has the lock.
    """
    due = Worktree.objects.prunable(settings.JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD)
    return due.filter(pk=worktree.pk).update(state=Worktree.State.PRUNING) == 1


def _give_back(worktree: Worktree) -> None:
    Worktree.objects.filter(pk=worktree.pk, state=Worktree.State.PRUNING).update(
        state=Worktree.State.READY
    )


def _mend(repository: Repository, worktree: Worktree, path: Path) -> None:
    """Put right what an interruption has left of a worktree that is not due."""
    state = (
        Worktree.objects.filter(pk=worktree.pk).values_list("state", flat=True).first()
    )
    if state == Worktree.State.CREATING:
        holds.discard_interrupted(repository, worktree)
    elif state == Worktree.State.PRUNING:
        trash = paths.trash_path(repository.directory, worktree.pk)
        if os.path.lexists(trash) and not os.path.lexists(path):
            os.rename(trash, path)
        _give_back(worktree)


def _remove(
    repository: Repository, path: Path, trash: Path, *, stop: Stop | None
) -> list[str]:
    """Remove the worktree and return [], or leave it in its place and return what keeps it."""
    if os.path.lexists(path) and os.path.lexists(trash):
        return [f"{path} is there again, while what it was before waits in {trash}"]
    if not os.path.lexists(trash):
        reasons = inspection.unsaved_work(repository, path, stop=stop)
        if reasons:
            return reasons
        if os.path.lexists(path):
            # From here on nobody reaches it by its path, and what is begun can be finished.
            trash.parent.mkdir(exist_ok=True)
            os.rename(path, trash)
    if worktrees.registration(repository, path) is not None:
        reasons = inspection.unsaved_work(repository, path, at=trash, stop=stop)
        if reasons:
            if os.path.lexists(trash):
                os.rename(trash, path)
            return reasons
        worktrees.forget(repository, path)
    worktrees.delete_tree(trash)
    return []


def _pruned(worktree: Worktree) -> Outcome:
    facts = {
        "workspace": worktree.workspace.name,
        "branch": worktree.branch,
        "path": worktree.path,
    }
    with transaction.atomic():
        Worktree.objects.filter(pk=worktree.pk, state=Worktree.State.PRUNING).delete()
        audit.record(
            audit.SYSTEM,
            LogEvent.WORKTREE_PRUNED,
            target=f"worktree:{worktree.pk}",
            data={**facts, "last_used_at": worktree.last_used_at.isoformat()},
        )
    log.info(LogEvent.WORKTREE_PRUNED, extra={"worktree_id": worktree.pk, **facts})
    return Outcome.PRUNED


def _report(worktree: Worktree, reason: str) -> Outcome:
    """Keep it and say why, once for each reason."""
    rows = Worktree.objects.filter(pk=worktree.pk, state=Worktree.State.PRUNING)
    with transaction.atomic():
        new = rows.exclude(prune_blocked_reason=reason).update(
            state=Worktree.State.READY,
            prune_blocked_at=Now(),
            prune_blocked_reason=reason,
        )
        if new:
            dispatch(_blocked_event(worktree, reason))
        else:
            _give_back(worktree)
    if new:
        log.warning(
            LogEvent.WORKTREE_PRUNE_BLOCKED,
            extra={
                "worktree_id": worktree.pk,
                "workspace": worktree.workspace.name,
                "branch": worktree.branch,
                "reason": reason,
            },
        )
    return Outcome.BLOCKED


def _blocked_event(worktree: Worktree, reason: str) -> Event:
    workspace = worktree.workspace
    return Event(
        topic=topics.PRUNE_BLOCKED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Worktree {worktree.branch} of {workspace.name} is past its time and was kept",
        body=(
            f"It has been idle since {worktree.last_used_at:%Y-%m-%d %H:%M %Z}, and would have been "
            f"removed. What keeps it: {reason}.\n\nIt is in {worktree.path} on {workspace.host}. Push "
            "or delete this, and it is removed by the next run; acquire and release it to keep it in use."
        ),
        data={
            **topics.about(worktree),
            "reason": reason,
        },
    )
