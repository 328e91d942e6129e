"""Moving directories out of the way and deleting them: the one place that removes what agents have made.

Everything goes by directory descriptors: a link that is put in place of a directory meanwhile leads nowhere. What is, holds
or lies inside a clone or a control directory is refused, and so is all that is not below ``ACW_DATA_DIR`` by its real name.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from workspaces import paths
from workspaces.exceptions import (
    GitStopped,
    InvalidName,
    NotArchivable,
    OutsideDataDirectory,
)
from workspaces.repository import Stop

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Where the system has it: opens also what may not be read, for changing its mode.
_O_PATH = getattr(os, "O_PATH", 0)
_FOR_MODE = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | (_O_PATH or os.O_RDONLY)


def check(path: Path) -> None:
    """Raise :class:`~workspaces.exceptions.OutsideDataDirectory` where it cannot be a worktree that may be removed.

    It must lie directly below ``worktrees`` or ``trash`` of a workspace and be reached through no symbolic link. What is
    there and no directory is refused, and so is one whose ``.git`` is a directory: it is a repository of its own.
    """
    name, *place = _parts(path)
    try:
        paths.check_name(name)
    except InvalidName as error:
        raise OutsideDataDirectory(f"{path}: {error}") from None
    if len(place) != 2 or place[0] not in {"worktrees", "trash"}:
        raise OutsideDataDirectory(
            f"{path} is not directly below the worktrees or the trash of a workspace"
        )
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise OutsideDataDirectory(
                f"{path} is no directory any more; move away by hand what is there"
            )
        if stat.S_ISDIR(os.lstat(path / ".git").st_mode):
            raise OutsideDataDirectory(
                f"{path} is a repository of its own and no worktree, since its .git is a directory; move it away by hand"
            )


def _parts(path: Path) -> tuple[str, ...]:
    """Where below ``workspaces`` it lies; raises OutsideDataDirectory where nothing may be removed there."""
    top = paths.workspaces_directory()
    text = os.fspath(path)
    if not path.is_absolute() or os.path.normpath(text) != text or "\0" in text:
        raise OutsideDataDirectory(
            f"{text!r} is not an absolute path without '.' and '..'"
        )
    if top not in path.parents:
        raise OutsideDataDirectory(
            f"{path} is not below {top} (ACW_DATA_DIR); nothing there is touched"
        )
    name, *place = path.relative_to(top).parts
    clones = {paths.repository_path(top).name, paths.control_path(top).name}
    if not place or place[0] in clones:
        raise OutsideDataDirectory(
            f"{path} is, holds or lies inside a clone; nothing of it is removed"
        )
    for part in (path, *path.parents):
        if part == top:
            break
        if part.is_symlink():
            raise OutsideDataDirectory(
                f"{part} is a symbolic link; nothing below it is touched"
            )
    return (name, *place)


def move(path: Path, target: Path) -> None:
    """Rename the directory ``path`` to ``target``, which must not exist; both are below the same workspace.

    Not a byte is lost where something else is put in its place meanwhile: that is put back. Raises
    :class:`~workspaces.exceptions.OutsideDataDirectory` and OSError; then it is where it was.
    """
    check(path)
    check(target)
    with _opened(path.parent) as source, _opened(target.parent, make=True) as other:
        before = os.stat(path.name, dir_fd=source, follow_symlinks=False)
        if not stat.S_ISDIR(before.st_mode):
            raise OutsideDataDirectory(
                f"{path} is not a directory; nothing of it is touched"
            )
        # rename() would replace an empty directory.
        with contextlib.suppress(FileNotFoundError):
            os.stat(target.name, dir_fd=other, follow_symlinks=False)
            raise FileExistsError(f"{target} is there already")
        with _movable(path.name, source):
            os.rename(path.name, target.name, src_dir_fd=source, dst_dir_fd=other)
        after = os.stat(target.name, dir_fd=other, follow_symlinks=False)
        if (before.st_dev, before.st_ino) != (after.st_dev, after.st_ino):
            os.rename(target.name, path.name, src_dir_fd=other, dst_dir_fd=source)
            raise OutsideDataDirectory(
                f"{path} was replaced by something else meanwhile; nothing of it is touched"
            )


@contextlib.contextmanager
def _movable(name: str, parent: int) -> Iterator[None]:
    """The directory, writable during the block, as it must be to get another parent; then it has its own mode again."""
    descriptor = os.open(name, _FOR_MODE, dir_fd=parent)
    try:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode & stat.S_IWUSR:
            yield
            return
        _set_mode(descriptor, mode | stat.S_IWUSR)
        try:
            yield
        finally:
            _set_mode(descriptor, mode)
    finally:
        os.close(descriptor)


def check_deletable(path: Path, *, stop: Stop | None = None) -> None:
    """Raise :class:`~workspaces.exceptions.NotArchivable` where something below ``path`` could not be deleted.

    That is what lies in a directory that another user owns and that this one may not change, on another file system, or deeper than
    any path can name.
    """
    device = os.lstat(path).st_dev
    todo = [os.fspath(path)]
    while todo:
        if stop is not None and stop():
            raise GitStopped("status", "was not begun, since the caller stops")
        place = todo.pop()
        try:
            status = os.lstat(place)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise NotArchivable(
                f"…{place[-60:]!r} cannot be looked at ({error.strerror}); move it to where it can be, or remove it"
            ) from error
        if status.st_dev != device:
            raise NotArchivable(
                f"{place} is another file system, mounted there; unmount it"
            )
        # Whose directory it is decides; the owner may change its mode.
        if os.geteuid() not in (0, status.st_uid) and not os.access(
            place, os.R_OK | os.W_OK | os.X_OK
        ):
            raise NotArchivable(
                f"{place} belongs to another user (uid {status.st_uid}), and what is in it cannot be deleted; give it to "
                "the service account"
            )
        with contextlib.suppress(OSError), os.scandir(place) as entries:
            todo += [
                entry.path for entry in entries if entry.is_dir(follow_symlinks=False)
            ]


def delete_tree(path: Path, *, whole: bool = False) -> None:
    """Delete a directory with all that is in it, read-only directories too; never through a link.

    ``whole``: it is a workspace on its way out, or something else of ours that may hold a clone. Raises
    :class:`~workspaces.exceptions.OutsideDataDirectory` where it is a link itself or may not be removed, and OSError; what is
    left can be deleted by another call.
    """
    if not os.path.lexists(path):
        return
    if path.is_symlink():
        raise OutsideDataDirectory(
            f"{path} is a symbolic link; nothing below it is touched"
        )
    if not whole:
        _parts(path)
    with _opened(path.parent, inside=not whole) as parent:
        _delete(path.name, parent)


def _delete(name: str, parent: int) -> None:
    """Delete without recursion, with few files open: each directory within is emptied where its parent's own are.

    A mounted directory cannot be moved there, so nothing in it is deleted.
    """
    _allow(name, parent)
    top = os.open(name, _OPEN_DIRECTORY, dir_fd=parent)
    try:
        while directories := _remove_files(top):
            for directory in directories:
                _flatten(directory, top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def _remove_files(directory: int) -> list[str]:
    """Remove what is no directory; return the names of those that are."""
    left = []
    with os.scandir(directory) as entries:
        listed = [
            (entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries
        ]
    for name, is_directory in listed:
        if is_directory:
            left.append(name)
        else:
            os.unlink(name, dir_fd=directory)
    return left


def _flatten(name: str, top: int) -> None:
    """Remove the directory ``name`` of ``top``; the directories in it become ``top``'s own."""
    _allow(name, top)
    moved = secrets.token_hex(12)
    os.rename(name, moved, src_dir_fd=top, dst_dir_fd=top)
    directory = os.open(moved, _OPEN_DIRECTORY, dir_fd=top)
    try:
        for below in _remove_files(directory):
            # To change its parent, it must be writable itself.
            _allow(below, directory)
            new = secrets.token_hex(12)
            os.rename(below, new, src_dir_fd=directory, dst_dir_fd=top)
    finally:
        os.close(directory)
    os.rmdir(moved, dir_fd=top)


def _allow(name: str, parent: int) -> None:
    """Make the directory readable and writable for us, if it is one."""
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISDIR(status.st_mode) or mode & stat.S_IRWXU == stat.S_IRWXU:
        return
    descriptor = os.open(name, _FOR_MODE, dir_fd=parent)
    try:
        _set_mode(descriptor, mode | stat.S_IRWXU)
    finally:
        os.close(descriptor)


def _set_mode(descriptor: int, mode: int) -> None:
    # A descriptor of O_PATH has no fchmod; by this name it is the very same directory.
    if _O_PATH:
        os.chmod(f"/proc/self/fd/{descriptor}", mode)
    else:
        os.fchmod(descriptor, mode)


@contextlib.contextmanager
def _opened(
    directory: Path, *, make: bool = False, inside: bool = True
) -> Iterator[int]:
    """The directory, opened step by step from ``ACW_DATA_DIR`` on, so that no link is followed."""
    if not inside:
        descriptor = os.open(directory, _OPEN_DIRECTORY)
    else:
        top = paths.data_directory()
        descriptor = os.open(top, _OPEN_DIRECTORY)
        for part in directory.relative_to(top).parts:
            try:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=descriptor)
                below = os.open(part, _OPEN_DIRECTORY, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = below
    try:
        yield descriptor
    finally:
        os.close(descriptor)
