"""What of a worktree is not archived because tools make it again: caches of known names that git ignores as a whole."""

from __future__ import annotations

import datetime as dt
import os
import stat

from workspaces.archiving.reading import Top
from workspaces.archiving.store import Store
from workspaces.exceptions import GitTimeout
from workspaces.pruning.recreatable import is_recreatable

# A .gitignore that is a pipe would be waited for; then all is archived.
_PATIENCE = dt.timedelta(seconds=20)
_LISTING_MOST = 64 * 1024 * 1024
# What git takes for a repository that has no work tree, whatever its name.
_BARE = frozenset({b"head", b"objects", b"refs"})


def left_out(store: Store, top: Top) -> frozenset[bytes]:
    """Their paths, as seen by the index that was copied to ``store``; a cache with a repository in it is none."""
    try:
        listed = store.run(
            "ls-files",
            "-z",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--directory",
            work_tree=top.path,
            timeout=_PATIENCE,
            most=_LISTING_MOST,
        ).stdout
    except GitTimeout:
        return frozenset()
    found = set()
    for path in listed.split(b"\0"):
        if path and is_recreatable(os.fsdecode(path)):
            name = path.rstrip(b"/")
            if not path.endswith(b"/") or not _has_repository(top, name):
                found.add(name)
    return frozenset(found)


def _has_repository(top: Top, directory: bytes) -> bool:
    waiting = [directory]
    while waiting:
        above = waiting.pop()
        listed = top.names(above)
        names = {name.lower() for name, _ in listed}
        if b".git" in names or names >= _BARE:
            return True
        waiting += [
            above + b"/" + name for name, entry in listed if stat.S_ISDIR(entry.st_mode)
        ]
    return False
