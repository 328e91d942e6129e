"""Making the clone of a workspace whose row is there: under another name, and renamed when it is whole.

Whatever interrupts it, the next attempt finds out how far it was: what is half made is made anew, what is whole is taken.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from workspaces import hosts, paths, remotes
from workspaces.events import LogEvent
from workspaces.exceptions import (
    CloneMissing,
    GitStopped,
    NameTaken,
    RepositoryBusy,
)
from workspaces.fetching import default_branches, fetch_schedule, slots
from workspaces.models import Workspace
from workspaces.plumbing import locking
from workspaces.pruning import removal
from workspaces.querysets import WorkspaceQuerySet
from workspaces.repository import Repository, Stop

log = logging.getLogger(__name__)

Tell = Callable[[str], None]

# No workspace's name begins with a dot.
_ADDING = ".adding-"
_REMOVING = ".removing-"
_STEP = re.compile(r"(?:remote: )?([A-Z][a-z]+(?: [a-z]+)?): +(\d{1,3})%")
_PROGRESS_MOST = 200
_LOOK_EVERY = 2.0


def make(
    workspace: Workspace, *, stop: Stop | None = None, tell: Tell | None = None
) -> bool:
    """Clone the workspace's remote and make its row ``READY``; False where that was done, or the row is gone.

    How far it is goes into the row and to ``tell``. An empty remote is accepted. Takes ``ACW_CLONE_TIMEOUT`` at most.
    Must not be called in a transaction that may still be rolled back: the clone would stay.

    Raises :class:`~workspaces.exceptions.RefusedUrl`, ``GitError`` (``GitStopped`` also where the row goes or gets another URL meanwhile), ``NameTaken`` where something else is in its
    place, ``RepositoryBusy`` where it is being cloned, ``RemoteBusy``, ``WrongHost`` and OSError; then nothing is left behind.
    """
    hosts.check(workspace)
    remotes.parse(workspace.url)
    directory = paths.own_directory(workspace)
    # Where the row is gone, who wants the clone is too.
    progress = _Progress(workspace, tell)
    with _unfinished(workspace) as unfinished:
        if not _wanted(workspace).exists():
            return False
        if is_made := os.path.lexists(directory):
            made = _interrupted(directory)
            branch = default_branches.follow(made, workspace.url, before="")
        else:
            branch = _clone(
                workspace,
                unfinished,
                progress,
                stop=lambda: progress.is_unwanted() or (stop is not None and stop()),
            )
        place = None if is_made else unfinished
        if not _hand_over(workspace, place, directory, branch):
            return False
    paths.disposable_mark(directory).unlink(missing_ok=True)
    log.info(
        LogEvent.WORKSPACE_ADDED,
        extra={"workspace": workspace.name, "workspace_id": workspace.pk},
    )
    return True


class _Progress:
    """Takes git's lines of progress."""

    def __init__(self, workspace: Workspace, tell: Tell | None) -> None:
        self._rows = _wanted(workspace)
        self._tell = tell
        self._last = ""
        self._looked_at = time.monotonic()
        self._is_unwanted = False

    def __call__(self, line: str) -> None:
        step = _STEP.search(line)
        if step is None or (said := f"{step[1].lower()} {step[2]} %") == self._last:
            return
        self._last = said
        self._is_unwanted = not self._rows.update(clone_progress=said[:_PROGRESS_MOST])
        if self._tell is not None:
            self._tell(said)

    def is_unwanted(self) -> bool:
        """Whether the row is gone or has another URL; a remote that hangs says nothing, so that it is looked for."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_EVERY:
            self._looked_at = now
            self._is_unwanted = not self._rows.exists()
        return self._is_unwanted


def _wanted(workspace: Workspace) -> WorkspaceQuerySet:
    """Its row, as long as this is what is to be cloned."""
    return Workspace.objects.cloning().filter(pk=workspace.pk, url=workspace.url)


@contextlib.contextmanager
def _unfinished(workspace: Workspace) -> Iterator[Path]:
    """The workspace's directory under another name, empty and locked; removed if the block has not renamed it."""
    directory = paths.workspaces_directory() / f"{_ADDING}{workspace.pk}"
    directory.mkdir(parents=True, exist_ok=True)
    lock = paths.lock_path(directory)
    lock.touch()
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locking.locked(lock, wait=dt.timedelta(0)))
        except (CloneMissing, RepositoryBusy):
            raise RepositoryBusy(
                f"workspace {workspace.name} is being cloned already"
            ) from None
        # What was interrupted is locked by nobody.
        for left in directory.iterdir():
            if left.is_dir() and not left.is_symlink():
                removal.delete_tree(left, whole=True)
            elif left != lock:
                left.unlink()
        paths.fetch_lock_path(directory).touch()
        paths.disposable_mark(directory).touch()
        try:
            yield directory
        finally:
            removal.delete_tree(directory, whole=True)


def _clone(
    workspace: Workspace, unfinished: Path, progress: _Progress, *, stop: Stop
) -> str:
    """Clone into the directory; the default branch."""
    repository = Repository(unfinished)
    repository.create(workspace.url)
    with slots.taken(workspace.url):
        repository.fetch(
            workspace.url,
            timeout=settings.ACW_CLONE_TIMEOUT,
            stop=stop,
            progress=progress,
        )
        return default_branches.follow(repository, workspace.url, before="", stop=stop)


def _interrupted(directory: Path) -> Repository:
    """The clone that was whole when it was interrupted; it has the mark until its row says that it is ready."""
    repository = Repository(directory)
    if not paths.disposable_mark(directory).exists() or not repository.path.is_dir():
        raise taken_by_nobody(directory)
    return repository


def taken_by_nobody(directory: Path) -> NameTaken:
    """What is raised where something that is no workspace's stands in the place of one."""
    return NameTaken(
        f"{directory} is there, and no workspace has it: move it away, or choose another name"
    )


def _hand_over(
    workspace: Workspace, unfinished: Path | None, directory: Path, branch: str
) -> bool:
    """Put it in its place, unless it is there, and say so in the row, which stays locked meanwhile; False where the row is gone."""
    with transaction.atomic():
        rows = Workspace.objects.filter(pk=workspace.pk, state=Workspace.State.CLONING)
        row = rows.select_for_update().first()
        if row is None:
            return False
        if row.url != workspace.url:
            raise GitStopped("clone", "is not kept: the workspace has another URL now")
        if unfinished is not None:
            if os.path.lexists(directory):
                raise taken_by_nobody(directory)
            os.rename(unfinished, directory)
        rows.update(
            state=Workspace.State.READY,
            clone_progress="",
            default_branch=branch,
            last_fetched_at=Now(),
            next_fetch_at=Now() + fetch_schedule.after_clone(workspace.pk),
            last_fetch_error="",
            fetch_problem="",
        )
    return True


def discard(directory: Path) -> None:
    """Delete a workspace's directory, and its archives, whose rows are gone; the caller has its locks, if it is there."""
    named = not directory.name.startswith(".")
    bundles = [paths.bundle_path(directory.name, 0).parent] if named else []
    for path in (*bundles, directory):
        if os.path.lexists(path):
            # Out of the way at once: the name is free again, however long the deleting takes.
            paths.workspaces_directory().mkdir(parents=True, exist_ok=True)
            going = paths.workspaces_directory() / f"{_REMOVING}{secrets.token_hex(8)}"
            os.rename(path, going)
            removal.delete_tree(going, whole=True)


def sweep() -> None:
    """Delete what interrupted calls have left of workspaces that have no row, and of those whose cloning was given up."""
    for going in paths.workspaces_directory().glob(f"{_REMOVING}*"):
        with contextlib.suppress(FileNotFoundError):  # another sweep is at it
            removal.delete_tree(going, whole=True)
    for mark in paths.workspaces_directory().glob("*/disposable"):
        # Whoever is adding or removing it holds its lock.
        with (
            contextlib.suppress(CloneMissing, RepositoryBusy),
            locking.locked(paths.lock_path(mark.parent), wait=dt.timedelta(0)),
        ):
            if not _is_needed(mark.parent.name):
                discard(mark.parent)


def _is_needed(name: str) -> bool:
    if name.startswith(_ADDING):
        key = name.removeprefix(_ADDING)
        unmade = Workspace.objects.filter(state=Workspace.State.CLONING)
        return key.isdecimal() and unmade.filter(pk=int(key)).exists()
    return Workspace.objects.filter(name=name).exists()
