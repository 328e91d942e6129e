"""Run as a module: makes clones, each in a process of its own that kills itself on the way.

The arguments are pairs of a workspace's id and the point at which; of each process, the status is printed.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import django

from tests.workspaces.mortal import after, die, in_a_child


def _make(workspace_id: int, point: str) -> None:
    from workspaces import cloning
    from workspaces.models import Workspace
    from workspaces.querysets import WorkspaceQuerySet
    from workspaces.repository import Repository

    match point:
        case "nothing":
            Repository.create = die  # type: ignore[method-assign]
        case "an empty clone":
            Repository.fetch = die  # type: ignore[method-assign]
        case "a whole clone":
            Repository.fetch = after(Repository.fetch)  # type: ignore[method-assign]
        case "its default branch":
            cloning._hand_over = die
        case "its name":
            update = WorkspaceQuerySet.update

            def update_or_die(self: WorkspaceQuerySet, **changes: Any) -> int:
                return die() if "state" in changes else update(self, **changes)

            WorkspaceQuerySet.update = update_or_die  # type: ignore[assignment, method-assign]
        case "its row":
            cloning._hand_over = after(cloning._hand_over)
    cloning.make(Workspace.objects.get(pk=workspace_id))


def _main() -> None:
    django.setup()
    for workspace_id, point in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        in_a_child(partial(_make, int(workspace_id), point))


if __name__ == "__main__":
    _main()
