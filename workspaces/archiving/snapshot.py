"""Taking an archive: everything of a worktree, as a commit that the clone holds on to.

Nothing of the worktree is changed by it, no lock of its index is needed, and none of the repository's filters, hooks or
configuration counts. What goes wrong leaves no archive.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from workspaces.archiving import (
    bundles,
    caches,
    composing,
    manifest,
    numbers,
    registration,
    roots,
    store,
    tags,
)
from workspaces.archiving.composing import Parts
from workspaces.archiving.manifest import Manifest
from workspaces.archiving.reading import Top
from workspaces.archiving.registration import Head
from workspaces.archiving.store import Store
from workspaces.exceptions import (
    ArchiveTooLarge,
    GitError,
    GitStopped,
    NotArchivable,
)
from workspaces.models import Conversation, Worktree, WorktreeArchive
from workspaces.pruning import contents
from workspaces.repository import Repository, Stop

LINK = b".git"
"""What a worktree's directory has for git: made anew with its registration."""

_EXCLUDE_MOST = 16 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class _Seen:
    """What was read of a worktree before anything is written.

    ``back``: the branch that it comes back to. ``kept`` are the names of objects to hold on to.
    """

    files: Manifest
    admin: Manifest
    head: Head
    back: Head
    kept: set[str]
    has_index: bool
    is_gone: bool


def take(
    repository: Repository,
    worktree: Worktree,
    *,
    at: Path | None = None,
    reason: WorktreeArchive.Reason,
    actor: str,
    stop: Stop | None = None,
) -> WorktreeArchive:
    """Archive the worktree and return the archive's row, which is still to be verified.

    Its files are read in ``at`` where they were moved there; where there are none, its registration is all there is, and
    where git does not know it, its files are. The caller has the repository's lock. What an interrupted call has left of the same
    worktree goes; an archive that is already there and has all the same is returned again.

    Raises :class:`~workspaces.exceptions.NotArchivable`, ``ArchiveTooLarge``, ``GitError`` and OSError.
    """
    discard_unfinished(repository, worktree.pk)
    store.sweep(repository)
    path = Path(worktree.path)
    with contextlib.ExitStack() as opened:
        ours = opened.enter_context(store.opened_apart(repository, stop=stop))
        directory, admin = _opened(opened, repository, path, at or path)
        if directory is None and admin is None:
            raise NotArchivable(f"there is nothing of {worktree} on the disk")
        within = registration.objects_within(repository, path, ours)
        seen = _look(repository, ours, directory, admin, stop=stop)
        seen.kept.update(within)
        missing = _missing(ours, seen)
        kept = roots.of(
            ours, seen.kept, head=seen.head.commit, has_index=seen.has_index
        )
        archive = numbers.create(
            repository,
            WorktreeArchive(
                workspace=worktree.workspace,
                worktree_id=worktree.pk,
                path=worktree.path,
                branch=worktree.branch,
                reason=reason,
                actor=actor,
                last_held_by=worktree.last_held_by,
                last_used_at=worktree.last_used_at,
                entries=len(seen.files.entries),
                size_bytes=seen.files.size,
                contents=_contents(repository, path, at, stop),
                conversation_ids=_conversations(worktree),
            ),
        )
        try:
            parts = Parts(seen.files, seen.admin, _facts(worktree, admin, seen))
            tag_texts = tags.read(ours, kept.tags)
            with ours.importing() as stream:
                for top, listed in ((directory, seen.files), (admin, seen.admin)):
                    if top is not None:
                        composing.write_blobs(stream, top, listed, missing, stop=stop)
                composing.write(stream, archive, parts, kept, tag_texts)
            commit = ours.commit_of(archive.ref)
            same = _same(ours, archive, commit)
            if same is not None:
                archive.delete()
                return same
            archive.commit_sha = commit
            archive.manifest_digest = seen.files.digest
            archive.save(update_fields=["commit_sha", "manifest_digest"])
            if bundles.is_large(repository, ours, commit):
                bundles.write(repository, ours, archive)
            else:
                store.publish(repository, ours)
                store.point(repository, archive.ref, commit)
        except BaseException:
            discard_unfinished(repository, worktree.pk)
            raise
    return archive


def discard_unfinished(repository: Repository, worktree_id: int) -> None:
    """Delete what calls that broke off have left of archives of this worktree; the caller has the repository's lock."""
    unfinished = WorktreeArchive.objects.select_related("workspace").filter(
        worktree_id=worktree_id, state=WorktreeArchive.State.WRITING
    )
    for archive in unfinished:
        bundles.discard(repository, archive)
        store.drop(repository, archive.ref)
        archive.delete()


def _opened(
    opened: contextlib.ExitStack, repository: Repository, path: Path, directory: Path
) -> tuple[Top | None, Top | None]:
    """The worktree's directory and its registration, as far as they are there."""
    files = opened.enter_context(Top(directory)) if os.path.lexists(directory) else None
    admin = registration.find(repository, path)
    return files, None if admin is None else opened.enter_context(Top(admin))


def _look(
    repository: Repository,
    ours: Store,
    directory: Top | None,
    admin: Top | None,
    *,
    stop: Stop | None,
) -> _Seen:
    listed, head, back = Manifest(()), Head("", ""), Head("", "")
    kept: set[str] = set()
    has_index = False
    if admin is not None:
        listed = registration.read(admin, stop=stop)
        head = registration.head(repository, admin, listed)
        has_index = registration.copy_index(admin, listed, ours.path)
        kept = registration.named_objects(admin, listed)
        back = registration.comes_back_to(repository, admin, listed)
        kept |= registration.led_to(repository, head)
        if back.branch:
            kept |= registration.led_to(repository, back)
    files = (
        Manifest(())
        if directory is None
        else read_files(
            directory,
            leave_out=_caches(repository, ours, directory, has_index),
            stop=stop,
        )
    )
    return _Seen(
        files=files,
        admin=listed,
        head=head,
        back=back,
        kept=kept,
        has_index=has_index,
        is_gone=directory is None or _is_empty(directory),
    )


def _is_empty(directory: Top) -> bool:
    """Not even git's own file is in it: it stands for one that was deleted."""
    return not directory.names(b"")


def read_files(
    directory: Top, *, leave_out: frozenset[bytes] = frozenset(), stop: Stop | None
) -> Manifest:
    """What is in a worktree's directory, without the file by which git knows it."""
    with directory.directory(b"") as descriptor, contextlib.suppress(FileNotFoundError):
        link = os.stat(LINK, dir_fd=descriptor, follow_symlinks=False)
        if not 0o100000 <= link.st_mode < 0o120000:
            raise NotArchivable(
                f"{directory.path}/.git is no file: the directory is no worktree any more, but a repository of its own"
            )
    return manifest.of(
        directory, leave_out=leave_out, but=lambda path: path == LINK, stop=stop
    )


def _caches(
    repository: Repository, ours: Store, directory: Top, has_index: bool
) -> frozenset[bytes]:
    # Without an index, nobody knows what is no cache but committed.
    if not has_index:
        return frozenset()
    with Top(repository.path) as clone:
        exclude = clone.read(b"info/exclude", most=_EXCLUDE_MOST) or b""
    (ours.path / "info" / "exclude").write_bytes(exclude)
    return caches.left_out(ours, directory)


def _missing(ours: Store, seen: _Seen) -> set[str]:
    """The blobs that are not in the clone yet; raises ArchiveTooLarge where they are too many bytes."""
    sizes = {
        entry.blob: entry.size
        for listed in (seen.files, seen.admin)
        for entry in listed.entries
        if entry.has_bytes
    }
    missing = sizes.keys() - ours.kinds(sorted(sizes)).keys()
    size = sum(sizes[blob] for blob in missing)
    if size > settings.ACW_ARCHIVE_MAX_SIZE:
        raise ArchiveTooLarge(
            f"it has {size} bytes that are nowhere else, and at most {settings.ACW_ARCHIVE_MAX_SIZE} are archived"
            " (ACW_ARCHIVE_MAX_SIZE); remove what is not needed"
        )
    return missing


def _contents(
    repository: Repository, path: Path, at: Path | None, stop: Stop | None
) -> dict[str, Any]:
    """What people are shown of it; all of it is archived, whether or not git can list it."""
    try:
        return contents.look(repository, path, at=at, stop=stop).as_data()
    except GitStopped:
        raise
    except GitError as error:
        return {"words": [str(error)], "unchecked": [str(error)]}


def _conversations(worktree: Worktree) -> list[int]:
    return list(
        Conversation.objects.filter(worktree=worktree)
        .order_by("pk")
        .values_list("pk", flat=True)
    )


def _facts(worktree: Worktree, admin: Top | None, seen: _Seen) -> dict[str, Any]:
    """What is needed to make the worktree again, and is neither file nor row of the archive."""
    return {
        "registration": None if admin is None else admin.path.name,
        "branch": seen.head.branch,
        "commit": seen.head.commit,
        "comes_back_to": {"branch": seen.back.branch, "commit": seen.back.commit},
        "fencing_no": worktree.fencing_no,
        "is_gone": seen.is_gone,
        "left_out": [
            path.decode("utf-8", "surrogateescape") for path in seen.files.left_out
        ],
    }


def _same(ours: Store, archive: WorktreeArchive, commit: str) -> WorktreeArchive | None:
    """An archive of the worktree that is whole and has exactly what the new commit has."""
    earlier = list(
        WorktreeArchive.objects.select_related("workspace")
        .filter(worktree_id=archive.worktree_id, state=WorktreeArchive.State.VERIFIED)
        .exclude(pk=archive.pk)[:1]
    )
    if not earlier or not ours.kinds([earlier[0].commit_sha]):
        return None
    said = ours.run(
        "log", "--no-walk", "--format=%T %P", earlier[0].commit_sha, commit, "--"
    ).stdout.splitlines()
    return earlier[0] if len(set(said)) == 1 else None
