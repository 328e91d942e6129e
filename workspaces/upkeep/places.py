"""Where this host's workspaces lie, whether they are there, and which directories are nobody's."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass

from workspaces import paths
from workspaces.events import LogEvent
from workspaces.exceptions import OutsideDataDirectory
from workspaces.models import Workspace, Worktree
from workspaces.plumbing import presentable
from workspaces.repository import Repository

log = logging.getLogger(__name__)

_OF_THE_DISK = {"lost+found"}
"""What a file system has at its top, which ``workspaces/`` may be."""

GONE = "its clone is gone from the disk"
"""Of a workspace that was well, and will be when its directory is back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A workspace with its worktrees' rows; its clone ``is_gone``, or ``is_back`` after it was."""

    workspace: Workspace
    repository: Repository
    rows: list[Worktree]
    is_gone: bool
    is_back: bool

    @property
    def is_there(self) -> bool:
        """Whether it is usable, or will be by the end of this pass."""
        is_ready = self.workspace.state == Workspace.State.READY
        return self.is_back or (is_ready and not self.is_gone)


def places_of(
    host: str, *, name: str | None = None, refused: list[str] | None = None
) -> list[Place]:
    """Those of the host, or the one of this ``name``; not those that are still being cloned.

    Nor those whose row names another path, or leads through a link or to where nothing can be looked at: why not comes to ``refused``.
    """
    rows = Workspace.objects.on_host(host).exclude(state=Workspace.State.CLONING)
    workspaces = list(rows.select_related("owner").order_by("pk"))
    if name is not None:
        workspaces = [row for row in workspaces if row.name == name]
    worktrees = worktrees_of(workspaces)
    found = []
    for workspace in workspaces:
        try:
            repository = Repository(paths.own_directory(workspace))
            is_there = repository.path.is_dir()
        except (OutsideDataDirectory, OSError) as error:
            said = str(error)
            if isinstance(error, OSError):
                said = f"{workspace.name}: {presentable.disk_error(error)}"
            log.error(
                LogEvent.WORKSPACE_CLONE_MISSING,
                extra={"workspace": workspace.name, "error": said},
            )
            if refused is not None:
                refused.append(said)
            continue
        found.append(
            Place(
                workspace=workspace,
                repository=repository,
                rows=worktrees.get(workspace.pk, []),
                is_gone=not is_there and workspace.state == Workspace.State.READY,
                is_back=is_there and was_gone(workspace),
            )
        )
    return found


def worktrees_of(workspaces: Iterable[Workspace]) -> dict[int, list[Worktree]]:
    """The rows of their worktrees, by the workspace's id."""
    by_id = {workspace.pk: workspace for workspace in workspaces}
    found: dict[int, list[Worktree]] = {}
    for row in Worktree.objects.filter(workspace__in=list(by_id)).order_by("pk"):
        row.workspace = by_id[row.workspace_id]
        found.setdefault(row.workspace_id, []).append(row)
    return found


def unknown_directories() -> list[str]:
    """The names of directories that stand where workspaces do and are none's; nothing is done with them."""
    directory = paths.workspaces_directory()
    known = set(Workspace.objects.values_list("name", flat=True))
    try:
        there = sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [
        presentable.value(name)
        for name in there
        if name not in known
        # What is being added or removed begins with a dot, or is marked.
        and not name.startswith(".")
        and name not in _OF_THE_DISK
        and not os.path.lexists(paths.disposable_mark(directory / name))
    ]


def stray_count(repository: Repository) -> int:
    """How much was put aside."""
    try:
        return len(os.listdir(paths.stray_directory(repository.directory)))
    except (FileNotFoundError, NotADirectoryError):
        return 0


def mark_clone(place: Place) -> None:
    """Write in its row that the clone is gone, or back."""
    rows = Workspace.objects.filter(pk=place.workspace.pk)
    if place.is_gone:
        rows.filter(state=Workspace.State.READY).update(
            state=Workspace.State.FAILED, clone_progress=GONE, last_fetch_error=GONE
        )
        log.error(
            LogEvent.WORKSPACE_CLONE_MISSING,
            extra={"workspace": place.workspace.name},
        )
    elif place.is_back:
        rows.filter(state=Workspace.State.FAILED, clone_progress=GONE).update(
            state=Workspace.State.READY, clone_progress="", last_fetch_error=""
        )


def was_gone(workspace: Workspace) -> bool:
    """Whether the last pass found its clone gone, by its row."""
    return (
        workspace.state == Workspace.State.FAILED and workspace.clone_progress == GONE
    )
