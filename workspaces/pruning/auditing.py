"""Deriving the ledger again: of everything that was removed, whether the archive that it names is there and is what it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings

from workspaces import hosts, paths
from workspaces.archiving import bundles, verifying
from workspaces.exceptions import ArchiveDamaged, GitStopped, WorkspacesError
from workspaces.models import LedgerEntry, Workspace, WorktreeArchive
from workspaces.querysets import in_batches
from workspaces.repository import Repository, Stop


class Finding(StrEnum):
    """What has become of an archive. Only ``WRONG`` is not as it should be."""

    WHOLE = "whole"
    EXPIRED = "expired"
    NOTHING = "nothing was archived"
    GONE = "gone with its workspace"
    ELSEWHERE = "on another host"
    WRONG = "wrong"


@dataclass(frozen=True, kw_only=True, slots=True)
class Audited:
    """An entry of the ledger, and what was found of it, in words where it is wrong."""

    entry: LedgerEntry
    finding: Finding
    why: str = ""


def audit(
    worktree_id: int | None = None, *, stop: Stop | None = None
) -> Iterator[Audited]:
    """Look at what every entry of a pruning says, oldest first; with ``worktree_id``, at those of this worktree.

    Every byte of each archive is read again. Raises :class:`~workspaces.exceptions.GitStopped`.
    """
    entries = LedgerEntry.objects.filter(action=LedgerEntry.Action.PRUNED)
    if worktree_id is not None:
        entries = entries.filter(worktree_id=worktree_id)
    for entry in in_batches(entries):
        yield _audited(entry, stop)


def _audited(entry: LedgerEntry, stop: Stop | None) -> Audited:
    if entry.archive_id is None:
        return Audited(entry=entry, finding=Finding.NOTHING)
    archive = (
        WorktreeArchive.objects.select_related("workspace")
        .filter(pk=entry.archive_id)
        .first()
    )
    if archive is None:
        # Another may have been added under its name since.
        same = Workspace.objects.filter(name=entry.workspace, created_at__lte=entry.at)
        if not same.exists():
            return Audited(entry=entry, finding=Finding.GONE)
        return _wrong(entry, f"there is no archive {entry.archive_id}")
    said, says = (
        (one.worktree_id, one.path, one.commit_sha, one.manifest_digest)
        for one in (entry, archive)
    )
    if said != says:
        return _wrong(
            entry,
            f"archive {archive.pk} names another worktree, path, commit or manifest",
        )
    if archive.state == WorktreeArchive.State.EXPIRED:
        return _expired(entry)
    if archive.state == WorktreeArchive.State.WRITING:
        return _wrong(entry, f"archive {archive.pk} was never verified")
    if archive.workspace.host != hosts.this_host():
        why = f"look there: {archive.workspace.host}"
        return Audited(entry=entry, finding=Finding.ELSEWHERE, why=why)
    try:
        _read(archive, stop)
    except GitStopped:
        raise
    except (WorkspacesError, OSError) as error:
        return _wrong(entry, str(error))
    return Audited(entry=entry, finding=Finding.WHOLE)


def _expired(entry: LedgerEntry) -> Audited:
    written = LedgerEntry.objects.filter(
        action=LedgerEntry.Action.EXPIRED, archive_id=entry.archive_id
    )
    if not written.exists():
        return _wrong(entry, "it says that it expired, and the ledger does not")
    return Audited(entry=entry, finding=Finding.EXPIRED)


def _read(archive: WorktreeArchive, stop: Stop | None) -> None:
    """Read all of it, object by object, against its manifest."""
    repository = Repository(paths.own_directory(archive.workspace))
    with (
        repository.locked(wait=settings.ACW_GIT_TIMEOUT, stop=stop),
        bundles.opened(repository, archive, stop=stop) as ours,
    ):
        verifying.check(repository, ours, archive)
        if archive.bundle:
            ref = bundles.base_ref(archive)
            is_held = bundles.is_base_held(repository, archive)
        else:
            ref = archive.ref
            is_held = repository.commit_of(ref) == archive.commit_sha
        if not is_held:
            raise ArchiveDamaged(
                f"{ref} does not lead to it, so that git may drop it; the next workspace_maintenance mends that"
            )


def _wrong(entry: LedgerEntry, why: str) -> Audited:
    return Audited(entry=entry, finding=Finding.WRONG, why=why)
