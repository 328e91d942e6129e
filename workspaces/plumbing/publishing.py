"""Telling a clone what its control directory has fetched: its ``refs/remotes/origin/*`` are made the same.

Whatever agents did to those is put right thereby. Their branches, and what a reference of theirs stands for, are not touched.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from workspaces import git
from workspaces.exceptions import GitFailed
from workspaces.plumbing import clone_files, loose_references
from workspaces.plumbing.control import (
    PACK_OVER,
    REMOTE,
    Control,
    listed,
    refuse_diversions,
)


def publish(
    control: Control, clone: Path, *, stop: Callable[[], bool] | None = None
) -> int:
    """Bring the clone's references in line with the control directory's; return how many changed.

    Raises :class:`~workspaces.exceptions.GitError` and ``ConfigTampered``.
    """
    fetched = control.references()
    known = clone_files.references(clone, REMOTE)
    if known is None:
        refuse_diversions(clone)
        clone_files.remove_unreadable(clone, REMOTE)
    had = listed(clone) if known is None else known
    # What an agent has put there under a name that git takes for none is not git's to remove.
    gone = [name for name in had if name not in fetched and clone_files.is_name(name)]
    moved = {name: at for name, at in fetched.items() if had.get(name) != at}
    if not gone and not moved:
        return 0
    refuse_diversions(clone)
    plainly = (
        known is not None
        and had.keys() <= fetched.keys()
        and loose_references.move(clone, moved, had)
    )
    if not plainly:
        _move(clone, gone, moved, stop=stop)
    if len(moved) > PACK_OVER:
        for repository in (control.path, clone):
            git.run(["pack-refs", "--all"], git_dir=repository, stop=stop)
    return len(gone) + len(moved)


def _commands(gone: Sequence[bytes], moved: Mapping[bytes, bytes]) -> bytes:
    """For ``git update-ref --stdin -z``. What goes makes room first, in a transaction of its own: "foo" for "foo/bar"."""
    parts = []
    if gone:
        parts += [b"start\0", *(b"delete %b\0\0" % name for name in gone), b"commit\0"]
    if moved:
        parts += [
            b"start\0",
            *(b"update %b\0%b\0\0" % item for item in moved.items()),
            b"commit\0",
        ]
    return b"".join(parts)


def _move(
    clone: Path,
    gone: Sequence[bytes],
    moved: Mapping[bytes, bytes],
    *,
    stop: Callable[[], bool] | None,
    again: bool = True,
) -> None:
    try:
        git.run(
            # --no-deref: one that an agent made stand for another is replaced, and the other stays as it is.
            ["update-ref", "--no-deref", "--stdin", "-z"],
            git_dir=clone,
            stdin=_commands(gone, moved),
            stop=stop,
        )
    except GitFailed:
        if not again:
            raise
        cleared = [name for name in moved if _clear_log(clone, b"logs/" + name)]
        if not clone_files.remove_unreadable(clone, REMOTE) and not cleared:
            raise
        _move(clone, gone, moved, stop=stop, again=False)


def _clear_log(clone: Path, log: bytes) -> bool:
    """Remove the log of a branch that is gone from where another's is to be; whether there was one.

    Git removes a branch's log with it, not where the branch went without git. No link is followed, whoever puts one there meanwhile.
    """
    *above, last = log.split(b"/")
    with contextlib.ExitStack() as opened:

        def open_in(directory: int | None, name: bytes) -> int:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            descriptor = os.open(name, flags, dir_fd=directory)
            opened.callback(os.close, descriptor)
            return descriptor

        try:
            directory = open_in(None, os.fsencode(clone))
            for name in above:
                try:
                    directory = open_in(directory, name)
                except NotADirectoryError:
                    os.unlink(name, dir_fd=directory)
                    return True
            found = os.stat(last, dir_fd=directory, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                return False
            shutil.rmtree(last, dir_fd=directory)
        except OSError:
            return False
    return True
