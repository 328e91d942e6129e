"""Restoring a worktree from its archive: the same id, the same path, the same bytes, and ``git status`` says the same."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from notify import audit
from notify.dispatch import Event, dispatch
from notify.recipients import owner_or_admins
from workspaces import hosts, ledger, paths, seal, topics, transactions, worktrees
from workspaces.archiving import branches, bundles, lookup, rebuilding, store, verifying
from workspaces.archiving.branches import Placed
from workspaces.archiving.composing import Parts
from workspaces.archiving.store import Store
from workspaces.events import LogEvent
from workspaces.exceptions import (
    WorktreeBusy,
    WorktreeError,
    WorktreeQuarantined,
)
from workspaces.holding import checkouts, leases, nested
from workspaces.models import (
    Conversation,
    LedgerEntry,
    Worktree,
    WorktreeArchive,
)
from workspaces.repository import Repository, Stop

log = logging.getLogger(__name__)

State = Worktree.State


def restore(worktree_id: int, *, actor: str, stop: Stop | None = None) -> Worktree:
    """Restore the worktree that had this id, and return its row, which nobody holds; one that is there already is returned as it is.

    Raises RuntimeError in a transaction. Raises :class:`~workspaces.exceptions.UnknownArchive`,
    ``ArchiveExpired``, ``ArchiveDamaged``, ``WorktreeBusy``, ``WorktreeQuarantined``, ``WorktreeError`` where something else has its
    place by now, ``ConfigTampered``, ``OutsideDataDirectory``, ``WrongHost``, ``CloneMissing``, ``RepositoryBusy`` and
    ``GitError``; then nothing of it is there but the archive.
    """
    transactions.refuse("restore()")
    worktree = _row(worktree_id)
    workspace = (worktree or lookup.required(worktree_id)).workspace
    hosts.check(workspace)
    repository = Repository(paths.own_directory(workspace))
    with repository.locked(wait=settings.ACW_GIT_TIMEOUT, stop=stop):
        return restore_locked(repository, worktree_id, actor=actor, stop=stop)


def restore_locked(
    repository: Repository, worktree_id: int, *, actor: str, stop: Stop | None = None
) -> Worktree:
    """Like :func:`restore`, for who has the repository's lock. Finishes or undoes what an interrupted call has left."""
    before = _row(worktree_id)
    if before is not None and _is_there(repository, before, stop=stop):
        return before
    archive = lookup.required(worktree_id)
    own = Worktree(pk=worktree_id, workspace=archive.workspace, path=archive.path)
    path = paths.own_worktree_path(own)
    seal.check(archive.workspace, repository)
    store.sweep(repository)
    with bundles.opened(repository, archive, into_clone=True, stop=stop) as ours:
        parts = verifying.check(repository, ours, archive)
        interrupted = before is not None and before.state == State.RESTORING
        if before is None or not (
            interrupted and rebuilding.is_whole(repository, before, parts, stop=stop)
        ):
            moved = rebuilding.clear(repository, path, is_ours=interrupted, stop=stop)
            for one in moved:
                _record_moved(archive, one, actor=actor)
            _rebuild(repository, ours, archive, parts, before=before)
    return _restored(repository, archive, parts, actor=actor)


def _row(worktree_id: int) -> Worktree | None:
    rows = Worktree.objects.select_related("workspace__owner")
    return rows.filter(pk=worktree_id).first()


def _is_there(repository: Repository, worktree: Worktree, *, stop: Stop | None) -> bool:
    if worktree.state == State.QUARANTINED:
        raise WorktreeQuarantined(
            f"{worktree} was taken out of use: {worktree.state_reason}"
        )
    if worktree.state in {State.CREATING, State.PRUNING}:
        # Whoever was at it is dead, since the lock is ours.
        raise WorktreeBusy(
            f"{worktree} is {worktree.state}, and that was interrupted: acquire it, or run worktree_prune, which finishes or undoes it"
        )
    if worktree.state != State.READY:
        return False
    path = paths.own_worktree_path(worktree)
    if worktrees.known_as(repository, path) is not None:
        return True
    # What is there is newer than any archive.
    seal.check(worktree.workspace, repository)
    return checkouts.register_again(repository, worktree, stop=stop)


def _rebuild(
    repository: Repository,
    ours: Store,
    archive: WorktreeArchive,
    parts: Parts,
    *,
    before: Worktree | None,
) -> None:
    """From here on, what an interruption leaves is found by the row."""
    rebuilding.hold_objects(repository, ours, archive)
    head = branches.of_facts(parts.facts)
    back = branches.back_of_facts(parts.facts)
    placed = branches.place(repository, archive, head, back=back)
    worktree = _claimed(archive, parts, placed, before=before)
    try:
        with rebuilding.made_beside(repository, ours, archive, parts) as made:
            rebuilding.put_in_place(
                repository,
                worktree,
                made,
                placed,
                name=parts.facts["registration"] or Path(archive.path).name,
                stop=ours.stop,
            )
    except BaseException:
        _undo(repository, worktree, before=before)
        raise


def _claimed(
    archive: WorktreeArchive,
    parts: Parts,
    placed: Placed,
    *,
    before: Worktree | None,
) -> Worktree:
    """The row, in the state ``RESTORING``; one that somebody holds stays theirs."""
    values = {"branch": placed.branch, "state_reason": placed.note}
    if before is not None:
        rows = Worktree.objects.filter(pk=before.pk)
        rows.update(**values)
        rows.filter(held_by__isnull=True).update(state=State.RESTORING)
        return rows.select_related("workspace").get()
    try:
        with transaction.atomic():
            Worktree(
                pk=archive.worktree_id,
                workspace=archive.workspace,
                path=archive.path,
                state=State.RESTORING,
                last_held_by=archive.last_held_by,
                fencing_no=_last_fencing_no(archive, parts),
                last_used_at=archive.last_used_at or archive.created_at,
                created_at=Now(),
                **values,
            ).save(force_insert=True)
    except IntegrityError:
        raise WorktreeError(
            f"worktree {archive.worktree_id} cannot be restored to {archive.path}: another worktree has that path,"
            f" or the branch {placed.branch!r}"
        ) from None
    return Worktree.objects.select_related("workspace").get(pk=archive.worktree_id)


def _last_fencing_no(archive: WorktreeArchive, parts: Parts) -> int:
    """No number is given twice: the worktree may have been held after this archive was made, and have left no other."""
    entries = LedgerEntry.objects.filter(
        worktree_id=archive.worktree_id, action=LedgerEntry.Action.PRUNED
    )
    numbers = [int(entry.data.get("fencing_no", 0)) for entry in entries[:1]]
    return max([int(parts.facts["fencing_no"]), *numbers])


def _undo(
    repository: Repository, worktree: Worktree, *, before: Worktree | None
) -> None:
    """Leave nothing half there; what is whole already is finished by the next call."""
    path = Path(worktree.path)
    if os.path.lexists(path):
        return
    admin = worktrees.registration(repository, path)
    if admin is not None:
        rebuilding.unregister(repository, admin)
    rows = Worktree.objects.filter(pk=worktree.pk)
    if before is None:
        rows.filter(state=State.RESTORING).delete()
    elif before.state == State.RESTORING:
        # It had begun before: whose row it was then, nobody knows.
        rows.filter(state=State.RESTORING).update(
            state=State.MISSING, state_reason="its restoration was interrupted"
        )
    else:
        rows.update(branch=before.branch, state_reason=before.state_reason)
        # Not of one that somebody has taken meanwhile.
        rows.filter(held_by__isnull=True).update(state=before.state)


def _restored(
    repository: Repository, archive: WorktreeArchive, parts: Parts, *, actor: str
) -> Worktree:
    nested.unlock(repository, Path(archive.path))
    with transaction.atomic():
        rows = Worktree.objects.filter(pk=archive.worktree_id)
        rows.filter(state=State.RESTORING).update(
            **leases.used(state=State.READY, kept_until=None)
        )
        worktree = rows.select_related("workspace__owner").get()
        Conversation.objects.filter(
            pk__in=archive.conversation_ids, worktree__isnull=True
        ).update(worktree=worktree)
        WorktreeArchive.objects.filter(pk=archive.pk).update(
            state=WorktreeArchive.State.RESTORED, restored_at=Now()
        )
        verified = f"{len(parts.files.entries)} entries came out as archived"
        ledger.record(
            LedgerEntry.Action.RESTORED,
            actor=actor,
            worktree=worktree,
            archive=archive,
            verified=verified,
            data={"note": worktree.state_reason} if worktree.state_reason else {},
        )
        facts = _facts(worktree, archive)
        audit.record(
            actor,
            LogEvent.WORKTREE_RESTORED,
            target=f"worktree:{worktree.pk}",
            data=facts,
        )
        dispatch(_event(worktree, archive, actor=actor))
    if archive.bundle:
        store.drop(repository, archive.ref)
    log.info(LogEvent.WORKTREE_RESTORED, extra={"worktree_id": worktree.pk, **facts})
    return worktree


def _facts(worktree: Worktree, archive: WorktreeArchive) -> dict[str, Any]:
    return {
        "workspace": worktree.workspace.name,
        "branch": worktree.branch,
        "path": worktree.path,
        "archive_id": archive.pk,
    }


def _event(worktree: Worktree, archive: WorktreeArchive, *, actor: str) -> Event:
    workspace = worktree.workspace
    changed = (
        f"\n\nNot as before: {worktree.state_reason}." if worktree.state_reason else ""
    )
    return Event(
        topic=topics.RESTORED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Worktree {worktree.branch} of {workspace.name} was restored",
        body=(
            f"{actor} had it restored from archive {archive.pk}, made at"
            f" {archive.created_at:%Y-%m-%d %H:%M %Z}. It is in {worktree.path} on {workspace.host}.{changed}"
        ),
        data={
            **topics.about(worktree),
            "archive_id": archive.pk,
            "note": worktree.state_reason,
        },
    )


def _record_moved(archive: WorktreeArchive, moved: Path, *, actor: str) -> None:
    ledger.record(
        LedgerEntry.Action.QUARANTINED,
        actor=actor,
        archive=archive,
        data={
            "reason": "it stood where a worktree was restored",
            "moved_to": str(moved),
        },
    )
