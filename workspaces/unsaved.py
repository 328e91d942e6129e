"""What of a workspace is nowhere else: what its removal is refused for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from workspaces import paths, prune
from workspaces.archiving import lookup
from workspaces.models import Workspace, Worktree
from workspaces.plumbing import presentable
from workspaces.pruning import contents
from workspaces.querysets import in_batches
from workspaces.repository import Repository, Stop
from workspaces.upkeep import registrations
from workspaces.upkeep.survey import Action, survey


def work_of(
    workspace: Workspace, repository: Repository, *, stop: Stop | None = None
) -> list[str]:
    """Its archives, worktrees and branches with such work, and what was put aside, in words; [] where there is none.

    What an interruption has left of worktrees is finished or undone first, so that all of it is seen; the caller has the
    repository's lock, if the clone is there. Raises :class:`~workspaces.exceptions.WorkspacesError` and OSError.
    """
    found: list[str] = []
    if repository.path.is_dir():
        _finish_interrupted(workspace, repository)
        found += _of_worktrees(workspace, repository, stop)
        found += contents.unpushed_branches(repository, stop=stop)
        found += _without_row(workspace, repository)
        found += _elsewhere(workspace, repository, stop)
    else:
        found += _without_clone(repository)
    archives = lookup.restorable().filter(workspace=workspace)
    return [f"archive {one.pk} of worktree {one.branch}" for one in archives] + found


def _finish_interrupted(workspace: Workspace, repository: Repository) -> None:
    for worktree in _rows(workspace):
        prune.mend(repository, worktree, paths.own_worktree_path(worktree))


def _of_worktrees(
    workspace: Workspace, repository: Repository, stop: Stop | None
) -> Iterator[str]:
    for worktree in _rows(workspace):
        path = paths.own_worktree_path(worktree)
        looked = contents.look(repository, path, measure=False, stop=stop)
        if left := looked.in_words():
            yield f"worktree {worktree.branch}: {'; '.join(left)}"


def _elsewhere(
    workspace: Workspace, repository: Repository, stop: Stop | None
) -> Iterator[str]:
    """Worktrees that agents have made by themselves, wherever: without the clone their commits and what is staged are lost."""
    known = {Path(row.path) for row in _rows(workspace)}
    known |= {found.path for found in survey(repository, list(_rows(workspace)))}
    for registration in registrations.all_of(repository):
        path = registration.path
        if path in known or path.parent == paths.stray_directory(repository.directory):
            continue
        looked = contents.look(repository, path, measure=False, stop=stop)
        if left := looked.in_words():
            yield f"{presentable.value(str(path), longest=200)}: {'; '.join(left)}"


def _without_clone(repository: Repository) -> Iterator[str]:
    """What lies beside a clone that is gone: without it nobody can say what the remote has of that."""
    for directory in (
        paths.new_worktree_path(repository.directory, "any").parent,
        paths.trash_path(repository.directory, 0).parent,
        paths.stray_directory(repository.directory),
    ):
        if directory.is_dir() and not directory.is_symlink():
            for name in sorted(os.listdir(directory)):
                yield f"{directory.name}/{presentable.value(name)}: is there, and its clone is gone"


def _without_row(workspace: Workspace, repository: Repository) -> Iterator[str]:
    rows = list(_rows(workspace))
    for found in survey(repository, rows):
        if found.action in {Action.PUT_ASIDE, Action.UNREGISTER}:
            yield f"{found.name}: {found.why}"
    stray = paths.stray_directory(repository.directory)
    if stray.is_dir() and not stray.is_symlink():
        for name in sorted(os.listdir(stray)):
            yield f"{presentable.value(name)}: put aside, in {stray.name}"


def _rows(workspace: Workspace) -> Iterator[Worktree]:
    rows = Worktree.objects.select_related("workspace__owner")
    return in_batches(rows.filter(workspace=workspace))
