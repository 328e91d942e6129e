"""Worktrees of the same clone that an agent has made within a worktree: they go where its directory goes, and their registrations stay.

While the directory is away, git would take them for gone, and ``git worktree prune`` would forget them with an index and commits on
no branch.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from workspaces import worktrees
from workspaces.exceptions import OutsideDataDirectory
from workspaces.repository import Repository
from workspaces.upkeep import registrations
from workspaces.upkeep.registrations import Registration

REASON = "acw: within a worktree that is archived"
"""Why git may not forget them meanwhile; who locked one for another reason keeps it locked."""


def within(repository: Repository, path: Path) -> list[Registration]:
    """Those whose directories are below ``path``, by what their registrations say."""
    with contextlib.suppress(OutsideDataDirectory):
        listed = registrations.all_of(repository)
        return [found for found in listed if path in found.path.parents]
    return []


def lock(repository: Repository, path: Path) -> None:
    """Have git keep them while ``path`` is away; raises OSError."""
    for found in within(repository, path):
        if not found.lock_reason:
            worktrees.lock(found.admin, REASON)


def unlock(repository: Repository, path: Path) -> None:
    """Undo :func:`lock`; raises OSError."""
    for found in within(repository, path):
        if found.lock_reason == REASON:
            (found.admin / "locked").unlink(missing_ok=True)


def follow(found: list[Registration], path: Path, target: Path) -> None:
    """Tell git of those that went with ``path`` to ``target`` where they are now; raises OSError."""
    for one in found:
        moved = target / one.path.relative_to(path)
        if worktrees.points_back(moved, one.admin):
            registrations.repoint(one, moved)
