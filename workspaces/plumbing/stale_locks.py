"""Lock files and half-written packs that a git left which was killed: which of them may be removed, and when.

Only what lies in the clone or its control directory, by a name that is known, and is older than any git that could still need
it; never an ``index.lock``, which is an agent's. The caller has the lock for fetches.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from workspaces.events import LogEvent
from workspaces.holding import processes
from workspaces.repository import Repository

log = logging.getLogger(__name__)

_CONFIG_AGE = dt.timedelta(minutes=1)
_SHALLOW_AGE = dt.timedelta(seconds=120)
_AGE = dt.timedelta(hours=1)
_LOCKS = {
    "config.lock": _CONFIG_AGE,
    "shallow.lock": _SHALLOW_AGE,
    "packed-refs.lock": _AGE,
    "HEAD.lock": _AGE,
    # Git does nothing at all, and says nothing, while it is there.
    "objects/maintenance.lock": _AGE,
    "objects/info/commit-graphs/commit-graph-chain.lock": _AGE,
    "objects/info/commit-graph.lock": _AGE,
    "objects/pack/multi-pack-index.lock": _AGE,
}
_HALF_WRITTEN = ("tmp_pack_", "tmp_idx_", "tmp_rev_", "tmp_obj_")
_NAMED = re.compile(r"'(/[^'\n]{1,4000}\.lock)'|lock config file (/[^\n:]{1,4000})")


def remove_named(repository: Repository, stderr: str) -> list[Path]:
    """Remove those that git named when it gave up, where they are stale; return which."""
    named = {Path(match[1] or f"{match[2]}.lock") for match in _NAMED.finditer(stderr)}
    known = dict(_all(repository))
    return _remove(repository, {path: known[path] for path in named & known.keys()})


def sweep(repository: Repository) -> list[Path]:
    """Remove all that are stale, and what was half written; return which."""
    return _remove(repository, dict(_all(repository)))


def _all(repository: Repository) -> Iterator[tuple[Path, dt.timedelta]]:
    """What is there that may be removed, with the age from which it may."""
    for directory in (repository.path, repository.control):
        for name, age in _LOCKS.items():
            yield directory / name, age
        for entry in _entries(directory / "refs"):
            if entry.name.endswith(".lock"):
                yield Path(entry.path), _AGE
        # A pack is written to as long as it comes, and that may take this long.
        longest = max(_AGE, 2 * settings.ACW_CLONE_TIMEOUT)
        for entry in _entries(directory / "objects"):
            if entry.name.startswith(_HALF_WRITTEN):
                yield Path(entry.path), longest


def _entries(top: Path) -> Iterator[os.DirEntry[str]]:
    """The files in it, and in its directories, however deep an agent has made them; nothing behind a link."""
    if top.is_symlink():
        return
    waiting = [os.fspath(top)]
    while waiting:
        try:
            listed = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in listed:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            else:
                yield entry


def _remove(repository: Repository, found: dict[Path, dt.timedelta]) -> list[Path]:
    stale = {path: seen for path, age in found.items() if (seen := _stale(path, age))}
    if not stale:
        return []
    # A git that is only held up still means to go on.
    in_use = processes.in_use(repository.path) | processes.in_use(repository.control)
    if in_use:
        return []
    removed = []
    for path, seen in stale.items():
        # Not one that took its place meanwhile.
        if _identity(path) == seen:
            path.unlink(missing_ok=True)
            removed.append(path)
            log.warning(LogEvent.WORKSPACE_LOCK_REMOVED, extra={"path": str(path)})
    return removed


def _stale(path: Path, age: dt.timedelta) -> tuple[int, int, int] | None:
    """What it is, where it is a regular file of that age."""
    seen = _identity(path)
    # By the clock of the disk's own host, which is this one's.
    if seen is None or time.time() - seen[2] / 1e9 < age.total_seconds():
        return None
    return seen


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode) or path.parent.resolve() != path.parent:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns
