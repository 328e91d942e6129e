"""Where the server's Unix socket goes: beside its data, unless a path forbids it."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from acw.embedded.errors import ClusterError
from acw.embedded.postmaster import SOCKET_NAME
from acw.embedded.server_user import ServerUser

# The system's limit for a socket's path is 104 bytes on macOS and 108 on Linux, and
# PostgreSQL puts `.lock` after it for a file of its own.
_LONGEST = 100


def for_data_dir(data_dir: Path, *, owner: ServerUser | None) -> Path:
    """Return a directory for the socket that nobody but its owner (and root) enters."""
    if _fits(data_dir):
        return data_dir
    name = f"acw-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]}"
    directory = Path(tempfile.gettempdir()).resolve() / name
    if not _fits(directory):
        directory = Path("/tmp") / name  # noqa: S108 - made private, and checked, below
    uid = owner.uid if owner else os.geteuid()
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        pass
    else:
        if owner:
            os.chown(directory, owner.uid, owner.gid)
    # The name can be guessed: another user may have put something there before.
    status = directory.lstat()
    private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    if status.st_uid != uid or not private:
        raise ClusterError(
            f"{directory} is not a private directory of user {uid}, and the database's"
            " socket cannot be there: remove it, or move the project to a shorter path"
        )
    return directory


def _fits(directory: Path) -> bool:
    # libpq takes a comma for the end of one host's name.
    path = str(directory / SOCKET_NAME)
    return len(os.fsencode(path)) <= _LONGEST and "," not in path
