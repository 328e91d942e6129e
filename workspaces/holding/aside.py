"""Putting aside what stands where a worktree has to be: never deleted, found below ``.stray`` of its workspace."""

from __future__ import annotations

import os
import time
from pathlib import Path

from workspaces import paths
from workspaces.exceptions import OutsideDataDirectory
from workspaces.holding import nested
from workspaces.repository import Repository

_MODE = 0o700
_LONGEST = 200


def put_aside(repository: Repository, path: Path) -> Path:
    """Move ``path``, a worktree's place or its registration, to ``.stray``; return where it is now.

    The caller has the repository's lock. Raises :class:`~workspaces.exceptions.OutsideDataDirectory` for what lies elsewhere,
    or where ``.stray`` is a symbolic link, and OSError.
    """
    places = [
        repository.directory / "worktrees",
        paths.trash_path(repository.directory, 0).parent,
        repository.path / "worktrees",
    ]
    if path.parent not in places or path.parent.resolve() != path.parent:
        raise OutsideDataDirectory(
            f"{path} is no worktree of {repository.directory}, and is not put aside"
        )
    stray = paths.stray_directory(repository.directory)
    if stray.is_symlink():
        raise OutsideDataDirectory(
            f"{stray} is a symbolic link; nothing is put aside there"
        )
    stray.mkdir(mode=_MODE, exist_ok=True)
    # For people: when it was. No two are put aside in one nanosecond under one lock.
    seconds, rest = divmod(time.time_ns(), 10**9)
    when = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))
    # As long as a name may be, there is no room for more.
    name = os.fsencode(path.name)[:_LONGEST].decode(errors="ignore")
    target = stray / f"{name}-{when}.{rest:09}Z"
    within = nested.within(repository, path)
    os.rename(path, target)
    nested.follow(within, path, target)
    return target
