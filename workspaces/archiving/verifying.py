"""Verifying an archive: that all of it is there, and that it is what is on the disk, before that goes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from django.db.models.functions import Now

from workspaces.archiving import bundles, composing, manifest, registration, store
from workspaces.archiving.composing import ADMIN, FILES, Parts
from workspaces.archiving.manifest import Manifest
from workspaces.archiving.reading import Top, shown
from workspaces.archiving.snapshot import read_files
from workspaces.archiving.store import Store
from workspaces.exceptions import ArchiveDamaged, GitFailed
from workspaces.models import WorktreeArchive
from workspaces.repository import Repository, Stop


def verify(
    repository: Repository,
    archive: WorktreeArchive,
    *,
    at: Path | None = None,
    stop: Stop | None = None,
) -> str:
    """Read the archive again, and every byte of the worktree, and return in words what was found: all is equal.

    The worktree is looked for in ``at`` where it was moved there; one that is gone is not compared. The archive is then marked as
    verified, to be kept for ``ACW_ARCHIVE_RETENTION`` from now on. The caller has the repository's lock.

    Raises :class:`~workspaces.exceptions.ArchiveDamaged` where something is missing or differs, ``NotArchivable``, ``GitError``.
    """
    with bundles.opened(repository, archive, stop=stop) as ours:
        parts = check(repository, ours, archive)
        compared = _compare(repository, archive, parts, at=at, stop=stop)
    if not archive.bundle and repository.commit_of(archive.ref) != archive.commit_sha:
        store.point(repository, archive.ref, archive.commit_sha)
    # What git found in the clone already may not have reached the disk yet.
    os.sync()
    state = WorktreeArchive.State
    WorktreeArchive.objects.filter(
        pk=archive.pk, state__in=[state.WRITING, state.VERIFIED]
    ).update(
        state=state.VERIFIED,
        verified_at=Now(),
        # Also of one from an earlier attempt, which may be old: what goes today can be restored for as long as any other.
        expires_at=Now() + settings.ACW_ARCHIVE_RETENTION,
    )
    archive.refresh_from_db()
    where = "its bundle" if archive.bundle else "the clone"
    return (
        f"commit {archive.commit_sha[:12]} is whole in {where}: {len(parts.files.entries)} entries with"
        f" {parts.files.size} bytes; {compared}"
    )


def check(repository: Repository, ours: Store, archive: WorktreeArchive) -> Parts:
    """Read all that the archive is of in ``ours``, every object by its digest; return its parts.

    Raises :class:`~workspaces.exceptions.ArchiveDamaged` and ``GitError``.
    """
    commit = archive.commit_sha
    try:
        # The files, also those that the remote has as well; then the commits that it has not, with theirs.
        _read_all(ours, [f"{commit}^{{tree}}"])
        known = store.remote_commits(repository)
        known = sorted(ours.kinds(known))
        _read_all(ours, [commit, *(f"^{name}" for name in known)])
        parts = composing.read(ours, commit, digest=archive.manifest_digest)
        blobs = composing.blobs_of(ours, commit)
    except GitFailed as error:
        raise ArchiveDamaged(f"{archive} is not whole: {error}") from error
    for listed, part in ((parts.files, FILES), (parts.admin, ADMIN)):
        for entry, path in composing.places(listed, part):
            if blobs.get(path) != entry.blob:
                raise ArchiveDamaged(
                    f"{archive} has other bytes for {shown(entry.path)} than its manifest says"
                )
    return parts


def _read_all(ours: Store, revisions: Sequence[str]) -> None:
    asked = "".join(f"{revision}\n" for revision in revisions).encode()
    ours.run("rev-list", "--quiet", "--verify-objects", "--stdin", stdin=asked)


def _compare(
    repository: Repository,
    archive: WorktreeArchive,
    parts: Parts,
    *,
    at: Path | None,
    stop: Stop | None,
) -> str:
    """Read the worktree again; raises ArchiveDamaged where it has anything else than the archive."""
    compared = []
    directory = at or Path(archive.path)
    if os.path.lexists(directory):
        left_out = frozenset(
            path.encode("utf-8", "surrogateescape") for path in parts.facts["left_out"]
        )
        with Top(directory) as top:
            found = read_files(top, leave_out=left_out, stop=stop)
        _refuse_differing(archive, parts.files, found)
        compared.append("every byte on the disk is equal")
    admin = registration.find(repository, Path(archive.path))
    if admin is not None:
        with Top(admin) as top:
            _refuse_differing(archive, parts.admin, registration.read(top, stop=stop))
        compared.append("so is its registration")
    return ", ".join(compared) or "nothing of it is on the disk to compare with"


def _refuse_differing(
    archive: WorktreeArchive, archived: Manifest, found: Manifest
) -> None:
    differing = set(archived.entries) ^ set(found.entries)
    if differing:
        raise ArchiveDamaged(
            f"{archive} is not what is on the disk: {manifest.named(differing)} changed meanwhile"
        )
