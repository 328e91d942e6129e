"""Run as a module: prunes worktrees, each in a process of its own that kills itself on the way.

The arguments are pairs of a worktree's id and the point at which; of each process, the status is printed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import django

from tests.workspaces.mortal import after, die, in_a_child


def _prune(worktree_id: int, point: str) -> None:
    from workspaces import prune
    from workspaces.archiving import composing, snapshot, verifying
    from workspaces.pruning import clearing, prune_report, trash

    match point:
        case "claimed":
            clearing.Clearing.archive = die  # type: ignore[method-assign]
        case "moved":
            trash.put_in = after(trash.put_in)
        case "half archived":
            composing.write = after(composing.write)
        case "archived":
            snapshot.take = after(snapshot.take)
        case "verified":
            verifying.verify = after(verifying.verify)
        case "given up":
            trash.give_up = after(trash.give_up)
        case "registration moved":
            os.rename = _registration(os.rename)
        case "half deleted":
            os.unlink = _readme(os.unlink)
        case "deleted":
            prune_report.pruned = die
        case "written down":
            prune_report.pruned = after(prune_report.pruned)
        case _:
            raise ValueError(point)
    prune.prune_worktree(worktree_id)


def _registration(rename: Callable[..., None]) -> Callable[..., None]:
    def dying(source: Any, target: Any, **options: Any) -> None:
        rename(source, target, **options)
        if str(target).endswith(".registration"):
            die()

    return dying


def _readme(unlink: Callable[..., None]) -> Callable[..., None]:
    def dying(path: Any, **options: Any) -> None:
        unlink(path, **options)
        if path == "README":
            die()

    return dying


def _main() -> None:
    django.setup()
    for worktree_id, point in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        in_a_child(partial(_prune, int(worktree_id), point))


if __name__ == "__main__":
    _main()
