"""Adding and removing workspaces: the row, and the clone on this host's disk.

A clone is made under another name and renamed when it is whole. A directory that is to go is marked
before its row is deleted, so that what an interruption leaves is known and swept by the next call.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from workspaces import hosts, inspection, locking, paths, remotes, worktrees
from workspaces.events import LogEvent
from workspaces.exceptions import (
    CloneMissing,
    NameTaken,
    RepositoryBusy,
    UnknownWorkspace,
    WorkspaceInUse,
)
from workspaces.models import Workspace, Worktree
from workspaces.repository import Repository, Stop

log = logging.getLogger(__name__)

# No workspace's name begins with a dot.
_ADDING = ".adding-"
_REMOVING = ".removing-"


def find(name: str) -> Workspace:
    """The workspace of this name; raises :class:`~workspaces.exceptions.UnknownWorkspace`."""
    found = Workspace.objects.select_related("owner").filter(name=name)
    # What is not printable is nobody's name, and not all of it could be asked for.
    workspace = found.first() if name.isprintable() else None
    if workspace is None:
        raise UnknownWorkspace(
            f"there is no workspace {name!r}; `workspace list` shows those there are"
        )
    return workspace


def add_workspace(
    name: str,
    url: str,
    *,
    owner: AbstractBaseUser | None = None,
    stop: Stop | None = None,
) -> Workspace:
    """Clone ``url`` onto this host as the workspace ``name`` and return its row.

    ``owner`` is told what concerns it; with None, every admin is. An empty remote is accepted. Each
    git command may take ``ACW_GIT_TIMEOUT``.

    Must not be called in a transaction that may still be rolled back: the clone would stay.
    Raises :class:`~workspaces.exceptions.InvalidName`, ``RefusedUrl``, ``NameTaken`` and ``GitError``;
    then nothing is left behind.
    """
    directory = paths.workspace_directory(name)
    remotes.parse(url)
    _sweep()
    if Workspace.objects.filter(name=name).exists():
        raise NameTaken(f"there is a workspace {name!r} already; choose another name")
    if os.path.lexists(directory):
        raise NameTaken(
            f"{directory} is there, and no workspace has it: move it away, or choose another name"
        )
    with _prepared(directory) as unfinished:
        repository = Repository(unfinished)
        repository.create(url)
        repository.fetch(url, timeout=None, stop=stop)
        default_branch = repository.find_default_branch(url, stop=stop)
        with transaction.atomic(durable=True):
            workspace = _insert(
                name=name,
                url=url,
                host=hosts.this_host(),
                path=str(paths.repository_path(directory)),
                owner=owner,
                default_branch=default_branch,
            )
            os.rename(unfinished, directory)
    paths.disposable_mark(directory).unlink(missing_ok=True)
    workspace.refresh_from_db()
    log.info(
        LogEvent.WORKSPACE_ADDED,
        extra={"workspace": name, "workspace_id": workspace.pk},
    )
    return workspace


def remove_workspace(
    workspace: Workspace, *, discard_work: bool = False, stop: Stop | None = None
) -> None:
    """Remove the workspace, its worktrees and its clone.

    Refused while a worktree is held, and, unless ``discard_work``, while a worktree or a branch has
    work that is nowhere else: :class:`~workspaces.exceptions.WorkspaceInUse` names it. Also
    raises ``WrongHost``, ``OutsideDataDirectory``, ``RepositoryBusy`` and ``GitError``. A clone that is gone
    from the disk already is no error.
    """
    hosts.check(workspace)
    directory = paths.own_directory(workspace)
    repository = Repository(directory)
    with contextlib.ExitStack() as locks:
        # Where the clone is gone there is no lock, and nothing to keep others from.
        with contextlib.suppress(CloneMissing):
            locks.enter_context(
                repository.locked(wait=settings.ACW_GIT_TIMEOUT, stop=stop)
            )
            locks.enter_context(
                repository.locked_for_fetch(wait=settings.ACW_GIT_TIMEOUT, stop=stop)
            )
        if not discard_work and repository.path.is_dir():
            _refuse_unsaved(workspace, repository, stop=stop)
        if directory.is_dir():
            paths.disposable_mark(directory).touch()
        try:
            _delete_rows(workspace)
        except BaseException:
            paths.disposable_mark(directory).unlink(missing_ok=True)
            raise
        _delete_directory(directory)
    log.info(LogEvent.WORKSPACE_REMOVED, extra={"workspace": workspace.name})


@contextlib.contextmanager
def _prepared(directory: Path) -> Iterator[Path]:
    """A directory under another name, locked, for the block to fill and rename; removed if it does not."""
    unfinished = directory.with_name(f"{_ADDING}{secrets.token_hex(8)}")
    unfinished.mkdir(parents=True)
    try:
        paths.fetch_lock_path(unfinished).touch()
        paths.lock_path(unfinished).touch()
        paths.disposable_mark(unfinished).touch()
        with locking.locked(paths.lock_path(unfinished), wait=settings.ACW_GIT_TIMEOUT):
            yield unfinished
    finally:
        worktrees.delete_tree(unfinished)


def _insert(**values: object) -> Workspace:
    try:
        with transaction.atomic():
            return Workspace.objects.create(**values, last_fetched_at=Now())
    except IntegrityError:
        raise NameTaken(
            f"a workspace {values['name']!r} was added meanwhile; choose another name"
        ) from None


def _refuse_unsaved(
    workspace: Workspace, repository: Repository, *, stop: Stop | None
) -> None:
    work = {
        worktree.branch: inspection.unsaved_work(
            repository, paths.own_worktree_path(worktree), stop=stop
        )
        for worktree in Worktree.objects.filter(workspace=workspace)
        .exclude(state=Worktree.State.CREATING)
        .select_related("workspace")
    }
    found = [
        f"worktree {branch}: {'; '.join(left)}" for branch, left in work.items() if left
    ]
    found += inspection.unpushed_branches(repository, stop=stop)
    if found:
        raise WorkspaceInUse(
            f"workspace {workspace.name} has work that is nowhere else ({' | '.join(found)}): "
            "push it, or remove the workspace with --discard-work"
        )


def _delete_rows(workspace: Workspace) -> None:
    with transaction.atomic(durable=True):
        # Locked, so that none can be acquired from here on.
        rows = list(Worktree.objects.filter(workspace=workspace).select_for_update())
        held = [row for row in rows if row.held_by is not None]
        if held:
            raise WorkspaceInUse(
                f"workspace {workspace.name}: {held[0]} is held by {held[0].held_by!r}; release it first"
            )
        workspace.delete()


def _delete_directory(directory: Path) -> None:
    if os.path.lexists(directory):
        # Out of the way at once: the name is free again, however long the deleting takes.
        going = directory.with_name(f"{_REMOVING}{secrets.token_hex(8)}")
        os.rename(directory, going)
        worktrees.delete_tree(going)


def _sweep() -> None:
    """Delete what interrupted calls have left."""
    for going in paths.workspaces_directory().glob(f"{_REMOVING}*"):
        with contextlib.suppress(FileNotFoundError):  # another sweep is at it
            worktrees.delete_tree(going)
    for mark in paths.workspaces_directory().glob("*/disposable"):
        # Whoever is adding or removing it holds its lock.
        with (
            contextlib.suppress(CloneMissing, RepositoryBusy),
            locking.locked(paths.lock_path(mark.parent), wait=dt.timedelta(0)),
        ):
            if not Workspace.objects.filter(name=mark.parent.name).exists():
                _delete_directory(mark.parent)
