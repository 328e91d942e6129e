"""Archives that are too large for a clone: a file of their own, with all that the remote had not.

What it builds on stays in the clone: ``refs/acw/base/<id>`` leads to those commits, whatever becomes of the remote's branches. It
costs no space as long as the remote has them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from django.conf import settings

from workspaces import paths
from workspaces.archiving import store
from workspaces.archiving.store import Store
from workspaces.exceptions import ArchiveDamaged, GitFailed, OutsideDataDirectory
from workspaces.models import WorktreeArchive
from workspaces.pruning import removal
from workspaces.repository import Repository, Stop

_PART = ".part"
_MODE = 0o600
_CHUNK = 1024 * 1024
_HEADER_MOST = 16 * 1024 * 1024
_NEEDED = re.compile(rb"-([0-9a-f]{40})(?: .*)?")
_LISTING_MOST = 256 * 1024 * 1024


def base_ref(archive: WorktreeArchive) -> str:
    """What holds on to the commits that the bundle builds on."""
    return f"refs/acw/base/{archive.pk}"


def path_of(archive: WorktreeArchive) -> Path:
    """Where the archive's bundle is, or would be.

    Raises :class:`~workspaces.exceptions.OutsideDataDirectory` where the row names another place, or a link leads there.
    """
    path = paths.bundle_path(archive.workspace.name, archive.pk)
    if archive.bundle not in {"", str(path)}:
        raise OutsideDataDirectory(
            f"{archive}: its bundle {archive.bundle} is not {path}; was ACW_DATA_DIR changed?"
        )
    for part in (path, path.parent, path.parent.parent):
        if part.is_symlink():
            raise OutsideDataDirectory(
                f"{part} is a symbolic link; nothing below it is touched"
            )
    return path


def is_large(repository: Repository, ours: Store, commit: str) -> bool:
    """Whether more is new in it than ``ACW_ARCHIVE_BUNDLE_OVER``, in bytes on the disk."""
    used = ours.run(
        "rev-list",
        "--objects",
        "--disk-usage",
        "--stdin",
        stdin=_beyond_remote(repository, commit),
    ).stdout
    return int(used) > settings.ACW_ARCHIVE_BUNDLE_OVER


def write(repository: Repository, ours: Store, archive: WorktreeArchive) -> None:
    """Write the bundle of an archive whose ref ``ours`` has, and record it; only what it builds on is in the clone then."""
    path = path_of(archive)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    listed = ours.run(
        "rev-list",
        "--boundary",
        "--stdin",
        stdin=_beyond_remote(repository, archive.commit_sha),
        most=_LISTING_MOST,
    ).stdout.decode()
    base = [line[1:] for line in listed.splitlines() if line.startswith("-")]
    if base:
        with store.opened(repository, stop=ours.stop) as clone:
            commit = _commit_above(clone, archive, base)
        store.point(repository, base_ref(archive), commit)
    part = path.with_name(path.name + _PART)
    try:
        ours.run(
            "bundle",
            "create",
            "--quiet",
            str(part),
            archive.ref,
            *(f"^{commit}" for commit in base),
        )
        part.chmod(_MODE)
        digest = _digest(part, durable=True)
        os.rename(part, path)
    finally:
        part.unlink(missing_ok=True)
    store.make_durable(path.parent)
    archive.bundle, archive.bundle_digest = str(path), digest
    archive.save(update_fields=["bundle", "bundle_digest"])


@contextlib.contextmanager
def opened(
    repository: Repository,
    archive: WorktreeArchive,
    *,
    into_clone: bool = False,
    stop: Stop | None = None,
) -> Iterator[Store]:
    """A store that has the archive's commit, from the clone or from its bundle, which is unpacked apart from or ``into_clone``.

    Raises :class:`~workspaces.exceptions.ArchiveDamaged` where it can't be had.
    """
    if archive.bundle:
        opening = store.opened if into_clone else store.opened_apart
        with opening(repository, stop=stop) as unpacked:
            _unpack(unpacked, archive)
            yield unpacked
    else:
        with store.opened(repository, stop=stop) as ours:
            if ours.kinds([archive.commit_sha]).get(archive.commit_sha) != "commit":
                raise ArchiveDamaged(
                    f"{archive}: its commit {archive.commit_sha} is not in the clone"
                )
            yield ours


def _unpack(target: Store, archive: WorktreeArchive) -> None:
    """Store what is in the archive's bundle; raises :class:`~workspaces.exceptions.ArchiveDamaged` where it is not as it was written."""
    path = path_of(archive)
    try:
        if _digest(path) != archive.bundle_digest:
            raise ArchiveDamaged(
                f"{archive}: {path} is not as it was written; bring it back from a backup"
            )
        needed = _needed(path)
    except OSError as error:
        raise _unreadable(archive, path, error) from error
    _refuse_missing(target, archive, needed)
    # git unpacks only what builds on commits that some ref leads to.
    refs = "".join(
        f"create refs/needed/{n} {commit}\n" for n, commit in enumerate(needed)
    )
    try:
        target.run("update-ref", "--stdin", stdin=refs.encode())
        target.run("bundle", "unbundle", str(path))
    except GitFailed as error:
        raise ArchiveDamaged(
            f"{archive}: {path} cannot be unpacked: {error}"
        ) from error


def discard(repository: Repository, archive: WorktreeArchive) -> None:
    """Delete the archive's bundle, whole or begun, and let go of what it builds on."""
    path = path_of(archive)
    path.unlink(missing_ok=True)
    # git writes beside it under this name first.
    for name in (_PART, f"{_PART}.lock"):
        path.with_name(path.name + name).unlink(missing_ok=True)
    store.drop(repository, base_ref(archive))


def discard_all(workspace_name: str) -> None:
    """Delete the bundles of a workspace that is gone, with its clone.

    Raises :class:`~workspaces.exceptions.OutsideDataDirectory` where their directory is a symbolic link, and OSError.
    """
    directory = paths.bundle_path(workspace_name, 0).parent
    if directory.parent.is_symlink():
        raise OutsideDataDirectory(
            f"{directory.parent} is a symbolic link; nothing below it is touched"
        )
    removal.delete_tree(directory, whole=True)


def is_base_held(repository: Repository, archive: WorktreeArchive) -> bool:
    """Whether the clone holds on to all that the bundle builds on.

    Raises :class:`~workspaces.exceptions.ArchiveDamaged` where the bundle is not there.
    """
    return _holds(repository, archive, _needed_by(archive))


def hold_base(repository: Repository, archive: WorktreeArchive) -> bool:
    """Make the ref of what the bundle builds on again where it is gone; whether it was.

    Raises :class:`~workspaces.exceptions.ArchiveDamaged` where the bundle is not there, or what it builds on.
    """
    needed = _needed_by(archive)
    if _holds(repository, archive, needed):
        return False
    with store.opened(repository) as ours:
        _refuse_missing(ours, archive, needed)
        commit = _commit_above(ours, archive, needed)
        store.point(repository, base_ref(archive), commit)
    return True


def _holds(
    repository: Repository, archive: WorktreeArchive, needed: Sequence[str]
) -> bool:
    commit = repository.commit_of(base_ref(archive)) if needed else None
    if commit is None:
        return not needed
    # Somebody may have moved it.
    asked = ["log", "--no-walk", "--format=%P", commit, "--"]
    return set(needed) <= set(repository.run(asked).stdout.decode().split())


def _needed_by(archive: WorktreeArchive) -> list[str]:
    path = path_of(archive)
    try:
        return _needed(path)
    except OSError as error:
        raise _unreadable(archive, path, error) from error


def _unreadable(archive: WorktreeArchive, path: Path, error: OSError) -> ArchiveDamaged:
    return ArchiveDamaged(
        f"{archive}: {path} cannot be read ({error.strerror}); bring it back from a backup"
    )


def _refuse_missing(
    target: Store, archive: WorktreeArchive, needed: Sequence[str]
) -> None:
    missing = set(needed) - target.kinds(needed).keys()
    if missing:
        raise ArchiveDamaged(
            f"{archive}: the clone no longer has {len(missing)} commits that its bundle builds on, such as"
            f" {min(missing)}; fetch it from a repository that has it"
        )


def _commit_above(ours: Store, archive: WorktreeArchive, commits: Sequence[str]) -> str:
    """A commit without files whose parents these are."""
    ref = base_ref(archive)
    with ours.importing() as stream:
        stream.write(f"commit {ref}\n".encode())
        stream.write(b"committer ACW <acw@localhost> 0 +0000\ndata 0\n\n")
        for n, commit in enumerate(commits):
            stream.write(f"{'merge' if n else 'from'} {commit}\n".encode())
        stream.write(b"deleteall\n")
    return ours.commit_of(ref)


def _beyond_remote(repository: Repository, commit: str) -> bytes:
    """The revisions for what the remote did not have at the last fetch."""
    excluded = "".join(f"^{known}\n" for known in store.remote_commits(repository))
    return f"{commit}\n{excluded}".encode()


def _needed(path: Path) -> list[str]:
    """The commits that the bundle builds on, as its head says."""
    needed, read = [], 0
    with path.open("rb") as file:
        for line in file:
            read += len(line)
            if line == b"\n" or read > _HEADER_MOST:
                break
            found = _NEEDED.fullmatch(line.rstrip(b"\n"))
            if found:
                needed.append(found[1].decode())
    return needed


def _digest(path: Path, *, durable: bool = False) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
        if durable:
            os.fsync(file.fileno())
    return digest.hexdigest()
