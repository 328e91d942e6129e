"""Which OS user runs the server, and what that user must be able to reach.

PostgreSQL refuses to run as root. Root therefore starts it as an unprivileged user,
and opens no more to that user than the way to the server's files.
"""

from __future__ import annotations

import logging
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from acw.embedded.errors import ClusterError
from acw.events import LogEvent

log = logging.getLogger(__name__)

_CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True)
class ServerUser:
    """An OS user that is not the one of this process."""

    uid: int
    gid: int


def for_data_dir(data_dir: Path) -> ServerUser | None:
    """Return the user to run the server as; None: as whoever runs this process."""
    if os.geteuid() != 0:
        return None
    # Root may come to a database that an ordinary user has made: it stays theirs.
    if data_dir.exists() and (owner := data_dir.stat()).st_uid != 0:
        return ServerUser(owner.st_uid, owner.st_gid)
    for name in _CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServerUser(entry.pw_uid, entry.pw_gid)
    raise ClusterError(
        f"PostgreSQL does not run as root, and none of the users {_CANDIDATES} exists:"
        " run ACW as an ordinary user, or set DATABASE_URL"
    )


def open_way(path: Path, user: ServerUser) -> None:
    """Let the user pass through (not read) each directory above `path`."""
    for directory in reversed(path.parents):
        status = directory.stat()
        if not _may_pass(status, user):
            directory.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)
            log.info(LogEvent.WAY_OPENED, extra={"directory": directory})


def _may_pass(status: os.stat_result, user: ServerUser) -> bool:
    if status.st_uid == user.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == user.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def make_readable(tree: Path) -> None:
    """Give everyone the reading of a tree that a strict umask may have closed."""
    for directory, _, files in os.walk(tree):
        for path in (Path(directory), *(Path(directory, name) for name in files)):
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                continue
            wanted = stat.S_IROTH
            if status.st_mode & stat.S_IXUSR:
                wanted |= stat.S_IXOTH
            if status.st_mode & wanted != wanted:
                path.chmod(stat.S_IMODE(status.st_mode) | wanted)
