"""Adding and removing workspaces: the row, and the clone on this host's disk.

A row whose clone is being made is ``CLONING``. A directory that is to go is marked before its row is deleted, so that what an
interruption leaves is known and swept by the next call.
"""

from __future__ import annotations

import contextlib
import logging
import os

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models import Q

from jobs.enqueue import enqueue_many
from notify import audit
from workspaces import cloning, hosts, job_types, ledger, paths, remotes, unsaved
from workspaces.archiving import bundles
from workspaces.cloning import Tell
from workspaces.events import LogEvent
from workspaces.exceptions import (
    CloneMissing,
    NameTaken,
    UnknownWorkspace,
    WorkspaceInUse,
)
from workspaces.models import LedgerEntry, Workspace, Worktree
from workspaces.readiness import check_ready
from workspaces.repository import Repository, Stop
from workspaces.upkeep.places import GONE

__all__ = [
    "add_workspace",
    "check_new",
    "check_ready",
    "find",
    "remove_workspace",
    "request_workspace",
]

log = logging.getLogger(__name__)


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


def request_workspace(
    name: str,
    url: str,
    *,
    owner: AbstractBaseUser | None = None,
    actor: str,
) -> Workspace:
    """Have ``url`` cloned by a worker of this host as the workspace ``name``; return its row, which is ``CLONING``.

    ``owner`` is told what concerns it, also when it cannot be cloned; with None, every admin is. It is in the caller's
    transaction, and audited as ``actor``'s. Raises :class:`~workspaces.exceptions.InvalidName`, ``RefusedUrl`` and ``NameTaken``.
    """
    check_new(name, url)
    with transaction.atomic():
        workspace = _insert(name, url, owner)
        audit.record(actor, "workspace.add", target=f"workspace:{name}")
        enqueue_many([job_types.clone(workspace)])
    return workspace


def add_workspace(
    name: str,
    url: str,
    *,
    owner: AbstractBaseUser | None = None,
    stop: Stop | None = None,
    tell: Tell | None = None,
) -> Workspace:
    """Clone ``url`` onto this host as the workspace ``name``, here and now, and return its row.

    ``owner`` is told what concerns it; with None, every admin is. An empty remote is accepted. It may
    take ``ACW_CLONE_TIMEOUT``; ``tell`` is told how far it is.

    Must not be called in a transaction that may still be rolled back: the clone would stay.
    Raises :class:`~workspaces.exceptions.InvalidName`, ``RefusedUrl``, ``NameTaken``, ``RemoteBusy`` and ``GitError``;
    then nothing is left behind.
    """
    check_new(name, url)
    with transaction.atomic(durable=True):
        workspace = _insert(name, url, owner)
    try:
        cloning.make(workspace, stop=stop, tell=tell)
    except BaseException:
        # Whoever gave it another URL meanwhile wants that cloned.
        Workspace.objects.cloning().filter(pk=workspace.pk, url=url).delete()
        raise
    workspace.refresh_from_db()
    return workspace


def check_new(name: str, url: str) -> None:
    """Raise what :func:`add_workspace` would of the name and the URL, before anything is begun."""
    directory = paths.workspace_directory(name)
    remotes.parse(url)
    cloning.sweep()
    if Workspace.objects.filter(name=name).exists():
        raise NameTaken(f"there is a workspace {name!r} already; choose another name")
    if os.path.lexists(directory):
        raise cloning.taken_by_nobody(directory)


def _insert(name: str, url: str, owner: AbstractBaseUser | None) -> Workspace:
    path = paths.repository_path(paths.workspace_directory(name))
    try:
        with transaction.atomic():
            workspace = Workspace.objects.create(
                name=name,
                url=url,
                host=hosts.this_host(),
                path=str(path),
                owner_id=None if owner is None else owner.pk,
                state=Workspace.State.CLONING,
            )
            workspace.refresh_from_db()
            return workspace
    except IntegrityError:
        raise NameTaken(
            f"a workspace {name!r} was added meanwhile; choose another name"
        ) from None


def remove_workspace(
    workspace: Workspace,
    *,
    discard_work: bool = False,
    actor: str = audit.SYSTEM,
    stop: Stop | None = None,
) -> None:
    """Remove the workspace, its worktrees, its archives and its clone; the ledger says of each worktree that ``actor`` did it.

    Refused while a worktree is held, and, unless ``discard_work``, while a worktree, a branch, an archive or what was put aside has
    work that is nowhere else: :class:`~workspaces.exceptions.WorkspaceInUse` names it. Also
    raises ``WrongHost``, ``OutsideDataDirectory``, ``RepositoryBusy`` and ``GitError``. A clone that is gone
    from the disk already is no error, and neither is one that is being made: that is ended.
    """
    hosts.check(workspace)
    directory = paths.own_directory(workspace)
    if _removed_unmade(workspace):
        log.info(LogEvent.WORKSPACE_REMOVED, extra={"workspace": workspace.name})
        return
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
        if not discard_work:
            _refuse_unsaved(workspace, repository, stop=stop)
        if directory.is_dir():
            paths.disposable_mark(directory).touch()
        try:
            _delete_rows(workspace, actor=actor)
        except BaseException:
            paths.disposable_mark(directory).unlink(missing_ok=True)
            raise
        cloning.discard(directory)
    bundles.discard_all(workspace.name)
    log.info(LogEvent.WORKSPACE_REMOVED, extra={"workspace": workspace.name})


def _removed_unmade(workspace: Workspace) -> bool:
    """Remove one that has no clone yet: who is making it sees that nobody wants it any more."""
    with transaction.atomic():
        # A clone that is only gone may come back with its disk, and has worktrees and archives.
        made = Q(state=Workspace.State.READY) | Q(clone_progress=GONE)
        unmade = Workspace.objects.exclude(made)
        row = unmade.filter(pk=workspace.pk).select_for_update().first()
        if row is None:
            return False
        row.delete()
    cloning.sweep()
    return True


def _refuse_unsaved(
    workspace: Workspace, repository: Repository, *, stop: Stop | None
) -> None:
    found = unsaved.work_of(workspace, repository, stop=stop)
    if found:
        raise WorkspaceInUse(
            f"workspace {workspace.name} has work that is nowhere else ({' | '.join(found)}): "
            "push it, or remove the workspace with --discard-work"
        )


def _delete_rows(workspace: Workspace, *, actor: str) -> None:
    with transaction.atomic(durable=True):
        # Locked, so that none can be acquired from here on.
        rows = list(Worktree.objects.filter(workspace=workspace).select_for_update())
        held = [row for row in rows if row.held_by is not None]
        if held:
            raise WorkspaceInUse(
                f"workspace {workspace.name}: {held[0]} is held by {held[0].held_by!r}; release it first"
            )
        for row in rows:
            ledger.record(
                LedgerEntry.Action.DISCARDED,
                actor=actor,
                worktree=row,
                data={"reason": "its workspace was removed"},
            )
        workspace.delete()
