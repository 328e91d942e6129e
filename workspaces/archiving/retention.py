"""How long archives are kept, and that they are kept so long. The caller has the repository's lock.

What has no row is left alone: the database may be an older one, brought back from a backup.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from notify import audit
from workspaces import ledger
from workspaces.archiving import bundles, lookup, snapshot, store
from workspaces.events import LogEvent
from workspaces.exceptions import ArchiveDamaged, GitStopped
from workspaces.models import LedgerEntry, Workspace, WorktreeArchive
from workspaces.repository import Repository, Stop

log = logging.getLogger(__name__)

State = WorktreeArchive.State

_NAMED_MOST = 5


def expire(
    workspace: Workspace, repository: Repository, *, stop: Stop | None = None
) -> int:
    """Let go of the archives whose time is over, and return how many; what only they had in the clone is then ``git gc``'s.

    Also clears away what calls that broke off have left. Raises :class:`~workspaces.exceptions.GitError` and OSError.
    """
    for unfinished in _of(workspace).filter(state=State.WRITING):
        snapshot.discard_unfinished(repository, unfinished.worktree_id)
    over = lookup.restorable().filter(workspace=workspace, expires_at__lte=Now())
    count = 0
    for archive in _each(over, stop):
        with transaction.atomic():
            # The row first: nothing is promised that is gone already.
            _of(workspace).filter(pk=archive.pk).update(state=State.EXPIRED)
            ledger.record(
                LedgerEntry.Action.EXPIRED, actor=audit.SYSTEM, archive=archive
            )
        log.info(
            LogEvent.WORKTREE_ARCHIVE_EXPIRED,
            extra={"archive_id": archive.pk, "worktree_id": archive.worktree_id},
        )
        count += 1
    _clear_expired(workspace, repository)
    return count


def mend_refs(
    workspace: Workspace, repository: Repository, *, stop: Stop | None = None
) -> int:
    """Make the references of archives again that an agent has deleted or moved, and return how many.

    Raises :class:`~workspaces.exceptions.ArchiveDamaged`, at the end, where that cannot be done, ``GitError`` and OSError.
    """
    refs = _refs(repository)
    count, damaged = 0, []
    for archive in _each(lookup.restorable().filter(workspace=workspace), stop):
        try:
            mended = _mend(repository, archive, refs)
        except (ArchiveDamaged, OSError) as error:
            damaged.append(str(error))
            continue
        if mended:
            count += 1
            log.warning(
                LogEvent.WORKTREE_ARCHIVE_MENDED,
                extra={"archive_id": archive.pk, "worktree_id": archive.worktree_id},
            )
    if damaged:
        more = len(damaged) - _NAMED_MOST
        raise ArchiveDamaged(
            "; ".join(damaged[:_NAMED_MOST])
            + (f"; and {more} more" if more > 0 else "")
        )
    return count


def _mend(
    repository: Repository, archive: WorktreeArchive, refs: dict[str, str]
) -> bool:
    if archive.bundle:
        # What an interruption has left; the bundle has it.
        if archive.ref in refs:
            store.drop(repository, archive.ref)
        return bundles.hold_base(repository, archive)
    if refs.get(archive.ref) == archive.commit_sha:
        return False
    with bundles.opened(repository, archive):  # or it is damaged
        store.point(repository, archive.ref, archive.commit_sha)
    return True


def _clear_expired(workspace: Workspace, repository: Repository) -> None:
    """Also what an interrupted call has marked and not cleared."""
    refs = _refs(repository)
    for archive in _of(workspace).filter(state=State.EXPIRED):
        if archive.bundle:
            bundles.discard(repository, archive)
            _of(workspace).filter(pk=archive.pk).update(bundle="")
        for ref in (archive.ref, bundles.base_ref(archive)):
            if ref in refs:
                store.drop(repository, ref)


def _refs(repository: Repository) -> dict[str, str]:
    """The clone's references to archives, with their commits."""
    listed = repository.run(
        ["for-each-ref", "--format=%(refname) %(objectname)", "refs/acw"]
    ).stdout.decode(errors="surrogateescape")
    pairs = (line.rpartition(" ")[::2] for line in listed.splitlines())
    return dict(pairs)


def _of(workspace: Workspace) -> QuerySet[WorktreeArchive]:
    return WorktreeArchive.objects.select_related("workspace").filter(
        workspace=workspace
    )


def _each(
    archives: QuerySet[WorktreeArchive], stop: Stop | None
) -> Iterator[WorktreeArchive]:
    for archive in list(archives):
        if stop is not None and stop():
            raise GitStopped("archive", "was ended because the caller stops")
        yield archive
