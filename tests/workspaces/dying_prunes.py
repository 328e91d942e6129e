"""Run as a module: prunes worktrees, each in a process of its own that kills itself on the way.

The arguments are pairs of a worktree's id and the point at which; of each process, the status is printed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import django


def _die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def _after(wrapped: Callable[..., Any]) -> Callable[..., Any]:
    def dying(*args: Any, **options: Any) -> Any:
        wrapped(*args, **options)
        _die()

    return dying


def _prune(worktree_id: int, point: str) -> None:
    from workspaces import prune
    from workspaces.archiving import composing, snapshot, verifying
    from workspaces.pruning import clearing, prune_report, trash

    match point:
        case "claimed":
            clearing.Clearing.archive = _die  # type: ignore[method-assign]
        case "moved":
            trash.put_in = _after(trash.put_in)
        case "half archived":
            composing.write = _after(composing.write)
        case "archived":
            snapshot.take = _after(snapshot.take)
        case "verified":
            verifying.verify = _after(verifying.verify)
        case "given up":
            trash.give_up = _after(trash.give_up)
        case "registration moved":
            os.rename = _registration(os.rename)
        case "half deleted":
            os.unlink = _readme(os.unlink)
        case "deleted":
            prune_report.pruned = _die
        case "written down":
            prune_report.pruned = _after(prune_report.pruned)
        case _:
            raise ValueError(point)
    prune.prune_worktree(worktree_id)


def _registration(rename: Callable[..., None]) -> Callable[..., None]:
    def dying(source: Any, target: Any, **options: Any) -> None:
        rename(source, target, **options)
        if str(target).endswith(".registration"):
            _die()

    return dying


def _readme(unlink: Callable[..., None]) -> Callable[..., None]:
    def dying(path: Any, **options: Any) -> None:
        unlink(path, **options)
        if path == "README":
            _die()

    return dying


def _main() -> None:
    django.setup()
    for worktree_id, point in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        pid = os.fork()
        if not pid:
            try:
                _prune(int(worktree_id), point)
            finally:
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")


if __name__ == "__main__":
    _main()
