"""Run as a module with the id of a worktree and points, ``<what>: <module>.<function>``: does it, in a process that kills itself there.

Each point is a process of its own; its status is printed.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import django

from tests.workspaces.mortal import in_a_child


def _do(what: str, worktree_id: int) -> None:
    from workspaces.archiving import restoring, snapshot, verifying
    from workspaces.models import Worktree, WorktreeArchive
    from workspaces.repository import Repository

    verb, _, point = what.partition(": ")
    module_name, _, function = point.rpartition(".")
    module = importlib.import_module(module_name)
    real = getattr(module, function)

    def dying(*args: Any, **options: Any) -> None:
        real(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(module, function, dying)
    if verb == "restore":
        restoring.restore(worktree_id, actor="somebody")
        return
    worktree = Worktree.objects.select_related("workspace").get(pk=worktree_id)
    repository = Repository(Path(worktree.workspace.path).parent)
    with repository.locked(wait=_patience()):
        taken = snapshot.take(
            repository,
            worktree,
            reason=WorktreeArchive.Reason.ASKED,
            actor="somebody",
        )
        verifying.verify(repository, taken)


def _patience() -> Any:
    import datetime as dt

    return dt.timedelta(seconds=30)


def _main() -> None:
    django.setup()
    worktree_id = int(sys.argv[1])
    for what in sys.argv[2:]:
        in_a_child(partial(_do, what, worktree_id))


if __name__ == "__main__":
    _main()
