"""Run as a module: makes clones, each in a process of its own that kills itself on the way.

The arguments are pairs of a workspace's id and the point at which; of each process, the status is printed.
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


def _make(workspace_id: int, point: str) -> None:
    from workspaces import cloning
    from workspaces.models import Workspace
    from workspaces.querysets import WorkspaceQuerySet
    from workspaces.repository import Repository

    match point:
        case "nothing":
            Repository.create = _die  # type: ignore[method-assign]
        case "an empty clone":
            Repository.fetch = _die  # type: ignore[method-assign]
        case "a whole clone":
            Repository.fetch = _after(Repository.fetch)  # type: ignore[method-assign]
        case "its default branch":
            cloning._hand_over = _die
        case "its name":
            update = WorkspaceQuerySet.update

            def update_or_die(self: WorkspaceQuerySet, **changes: Any) -> int:
                return _die() if "state" in changes else update(self, **changes)

            WorkspaceQuerySet.update = update_or_die  # type: ignore[assignment, method-assign]
        case "its row":
            cloning._hand_over = _after(cloning._hand_over)
    cloning.make(Workspace.objects.get(pk=workspace_id))


def _main() -> None:
    django.setup()
    for workspace_id, point in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        pid = os.fork()
        if not pid:
            try:
                _make(int(workspace_id), point)
            finally:
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")


if __name__ == "__main__":
    _main()
