"""What of a worktree would be archived now: looked at where its files are, and nowhere else."""

from __future__ import annotations

import datetime as dt
import time

from django.utils.safestring import SafeString

from workspaces import hosts, paths
from workspaces.admin import pieces
from workspaces.exceptions import (
    GitError,
    GitStopped,
    OutsideDataDirectory,
)
from workspaces.models import Worktree
from workspaces.pruning import contents
from workspaces.repository import Repository

PATIENCE = dt.timedelta(seconds=5)
"""For so long a page waits for the look."""


def of(worktree: Worktree) -> SafeString | str:
    """What it has that is nowhere else, or why that is not known here, in words. Never raises for the state of the disk."""
    workspace = worktree.workspace
    if workspace.host != hosts.this_host():
        return (
            f"Its files are on host {workspace.host}, and this page is drawn by {hosts.this_host()}: look there, "
            f"with `manage.py worktree show {worktree.pk}`."
        )
    end = time.monotonic() + PATIENCE.total_seconds()
    try:
        repository = Repository(paths.own_directory(workspace))
        path = paths.own_worktree_path(worktree)
        if not path.is_dir():
            return "Its directory is not there."
        found = contents.look(
            repository, path, measure=False, stop=lambda: time.monotonic() > end
        )
    except GitStopped:
        return (
            "There is too much in it to be looked at while a page is drawn: "
            f"`manage.py worktree show {worktree.pk}` takes its time."
        )
    except (GitError, OutsideDataDirectory) as error:
        return pieces.shown(f"It cannot be looked at: {error}")
    except OSError as error:
        return f"It cannot be looked at: {error.strerror or 'input/output error'}"
    return pieces.contents(found.as_data())
