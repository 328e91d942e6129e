"""What worktrees and clones take on the disk, sampled: blocks, each inode once, never through a link.

What takes long to count goes on record as at least what was counted; a sample is for limits and for people, and no reason to wait.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db.models import F, Q, Sum
from django.db.models.functions import Now
from django.template.defaultfilters import filesizeformat

from workspaces import paths
from workspaces.exceptions import OutsideDataDirectory
from workspaces.models import Workspace, Worktree
from workspaces.pruning.recreatable import is_named
from workspaces.repository import Stop

LONGEST = dt.timedelta(seconds=30)
"""For one worktree or one clone."""

EVERY = dt.timedelta(days=1)
"""What nobody has used since is sampled so often."""

_STATES = [
    Worktree.State.READY,
    # Takes nothing any more.
    Worktree.State.MISSING,
    Worktree.State.QUARANTINED,
]
"""In which nobody works on the directory as a whole."""

_BLOCK = 512  # of st_blocks, whatever the file system's own is


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """``recreatable``: the part below names that tools make again; not ``is_whole``: it was not counted to its end.

    What cannot be read is no part of it, however often it is counted.
    """

    size_bytes: int
    recreatable_bytes: int
    is_whole: bool


def measure(
    path: Path,
    *,
    without: Iterable[Path] = (),
    limit: dt.timedelta = LONGEST,
    stop: Stop | None = None,
) -> Size:
    """What ``path`` takes with all that is in it, but for what is ``without``; 0 where it is not there."""
    walk = _Walk(
        skipped=frozenset(map(str, without)),
        deadline=time.monotonic() + limit.total_seconds(),
        stop=stop,
    )
    walk.through(str(path))
    return Size(
        size_bytes=walk.size, recreatable_bytes=walk.recreatable, is_whole=walk.is_whole
    )


class _Walk:
    def __init__(
        self, *, skipped: frozenset[str], deadline: float, stop: Stop | None
    ) -> None:
        self.size = self.recreatable = 0
        self.is_whole = True
        self._skipped = skipped
        self._deadline = deadline
        self._stop = stop
        self._linked: set[tuple[int, int]] = set()

    def through(self, top: str) -> None:
        try:
            self._count(os.lstat(top), is_recreatable=False)
        except OSError:
            return
        waiting = [(top, False)]
        while waiting:
            if self._stop is not None and self._stop():
                self.is_whole = False
                return
            directory, is_recreatable = waiting.pop()
            try:
                waiting += self._in(directory, is_recreatable=is_recreatable)
            except OSError:
                continue  # removed meanwhile, or not to be read
            except _OutOfTime:
                self.is_whole = False
                return

    def _in(self, directory: str, *, is_recreatable: bool) -> list[tuple[str, bool]]:
        below = []
        # An agent may put a link in its place meanwhile.
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    if time.monotonic() > self._deadline:
                        raise _OutOfTime
                    path = f"{directory}/{entry.name}"
                    if path in self._skipped:
                        continue
                    is_directory = entry.is_dir(follow_symlinks=False)
                    again = is_recreatable or is_named(
                        entry.name, is_directory=is_directory
                    )
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    self._count(found, is_recreatable=again)
                    if is_directory:
                        below.append((path, again))
        finally:
            os.close(descriptor)
        return below

    def _count(self, found: os.stat_result, *, is_recreatable: bool) -> None:
        if found.st_nlink > 1:
            inode = (found.st_dev, found.st_ino)
            if inode in self._linked:
                return
            self._linked.add(inode)
        taken = found.st_blocks * _BLOCK
        self.size += taken
        if is_recreatable:
            self.recreatable += taken


class _OutOfTime(Exception):
    pass


def sample_due(
    workspace_ids: Collection[int], *, limit: dt.timedelta, stop: Stop | None = None
) -> set[int]:
    """Sample what was used since the last time, or not sampled for a day; those sampled longest ago come first.

    Where acquires are refused for their workspace's size, all of it, since somebody may have made room by hand. What ``limit`` leaves no time for is the next call's. Returns the ids of workspaces whose sum is new.
    """
    deadline = time.monotonic() + limit.total_seconds()
    long_ago = Now() - EVERY
    wanted = Q(sized_at__isnull=True) | Q(sized_at__lt=long_ago)
    oldest_first = F("sized_at").asc(nulls_first=True)
    over = Workspace.objects.none()
    if limit_bytes := settings.ACW_WORKSPACE_HARD_LIMIT:
        over = Workspace.objects.filter(size_bytes__gt=limit_bytes)
    clones = Workspace.objects.filter(
        wanted | Q(pk__in=over.values("pk")),
        pk__in=workspace_ids,
        state=Workspace.State.READY,
    ).order_by(oldest_first, "pk")
    worktrees = (
        Worktree.objects.filter(
            wanted
            | Q(last_used_at__gt=F("sized_at"))
            | Q(held_by__isnull=False, sized_at__lt=Now() - EVERY / 24)
            | Q(state=Worktree.State.MISSING, size_bytes__gt=0)
            | Q(workspace__in=over.values("pk")),
            workspace__in=workspace_ids,
            state__in=_STATES,
        )
        .select_related("workspace")
        .order_by(oldest_first, "pk")
    )
    changed = set()

    def is_over() -> bool:
        return time.monotonic() > deadline or (stop is not None and stop())

    for worktree in worktrees:
        if is_over():
            break
        sample_worktree(worktree, stop=stop)
        changed.add(worktree.workspace_id)
    for workspace in clones:
        if is_over():
            break
        sample_clone(workspace, stop=stop)
        changed.add(workspace.pk)
    for workspace_id in changed:
        add_up(workspace_id)
    return changed


def sample_worktree(worktree: Worktree, *, stop: Stop | None = None) -> None:
    """Record what the worktree takes now."""
    try:
        path = paths.own_worktree_path(worktree)
    except OutsideDataDirectory:
        return
    size = measure(path, stop=stop)
    if stop is not None and stop():
        return  # the next call's, and not fresh
    Worktree.objects.filter(pk=worktree.pk).update(
        size_bytes=_at_least(size, worktree.size_bytes), sized_at=Now()
    )


def sample_clone(workspace: Workspace, *, stop: Stop | None = None) -> None:
    """Record what the workspace takes now, with its archives and all but its worktrees."""
    try:
        directory = paths.own_directory(workspace)
    except OutsideDataDirectory:
        return
    size = measure(directory, without=[directory / "worktrees"], stop=stop)
    bundles = measure(paths.bundle_path(workspace.name, 0).parent, stop=stop)
    if stop is not None and stop():
        return
    size = Size(
        size_bytes=size.size_bytes + bundles.size_bytes,
        recreatable_bytes=size.recreatable_bytes,
        is_whole=size.is_whole and bundles.is_whole,
    )
    Workspace.objects.filter(pk=workspace.pk).update(
        clone_bytes=_at_least(size, workspace.clone_bytes), sized_at=Now()
    )


def _at_least(size: Size, before: int | None) -> int:
    return size.size_bytes if size.is_whole else max(size.size_bytes, before or 0)


def add_up(workspace_id: int) -> None:
    """Record what the workspace takes as a whole, as it was last sampled."""
    rows = Worktree.objects.filter(workspace=workspace_id)
    worktrees: int = rows.aggregate(sum=Sum("size_bytes", default=0))["sum"]
    workspaces = Workspace.objects.filter(pk=workspace_id)
    workspaces.exclude(clone_bytes=None).update(size_bytes=F("clone_bytes") + worktrees)
    workspaces.filter(clone_bytes=None).update(size_bytes=worktrees)


def in_words(size: int) -> str:
    """A number of bytes for people, such as ``1.4 GB``."""
    return filesizeformat(size).replace("\N{NO-BREAK SPACE}", " ")
