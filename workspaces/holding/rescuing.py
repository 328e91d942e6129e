"""The commits that only a registration leads to, kept as branches where it is put aside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from workspaces import worktrees
from workspaces.archiving import registration
from workspaces.repository import Repository, Stop

_FILE_MOST = 16 * 1024 * 1024
_VISITED_MOST = 500
"""Commits asked of git in one command."""
_RESCUED_MOST = 1000
# Submodules' repositories, with objects of their own.
_NOT_OURS = "modules"
_FETCHED = "FETCH_HEAD"


def rescue(
    repository: Repository, admin: Path, *, prefix: str, stop: Stop | None = None
) -> list[str]:
    """Give each commit that a registration's files name, and no branch or tag leads to, a branch; return their names.

    Where HEAD is or was at, what is being merged or picked, what an operation in progress has stashed, references of its own.
    """
    named = list(dict.fromkeys(_named(admin)))
    made: list[str] = []
    for start in range(0, len(named), _VISITED_MOST):
        some = named[start : start + _VISITED_MOST]
        while len(made) < _RESCUED_MOST:
            lost = repository.run(
                [
                    "rev-list",
                    "--ignore-missing",
                    "--topo-order",
                    "--max-count=1",
                    *some,
                    "--not",
                    "--branches",
                    "--tags",
                    "--remotes",
                    "--",
                ],
                stop=stop,
            ).stdout.decode()
            if not (commit := lost.strip()):
                break
            branch = f"{prefix}-{commit[:12]}"
            repository.run(["update-ref", f"refs/heads/{branch}", commit, ""])
            made.append(branch)
    return made


def _named(admin: Path) -> Iterator[str]:
    """The names of objects in its files, of each file the last first."""
    for above, directories, files in os.walk(admin):
        if Path(above) == admin and _NOT_OURS in directories:
            directories.remove(_NOT_OURS)
        directories.sort()
        for file in sorted(files):
            is_top = Path(above) == admin
            if not (is_top and file.startswith(("index", "sharedindex", _FETCHED))):
                yield from _named_in(Path(above, file))
    # Others' work, and there may be more of it than is rescued.
    yield from _named_in(admin / _FETCHED)


def _named_in(file: Path) -> Iterator[str]:
    text = worktrees.read_regular(file, most=_FILE_MOST) or b""
    return reversed(registration.objects_in(text))
