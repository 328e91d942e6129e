"""What ``worktree_prune`` would do now: the lines of ``runners run worktree_prune --dry-run``. Changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from jobs.durations import written
from workspaces import hosts, paths, prune, seal, worktrees
from workspaces.exceptions import (
    ArchiveTooLarge,
    ConfigTampered,
    WorkspacesError,
    WorktreeBusy,
)
from workspaces.holding import activity
from workspaces.models import Worktree
from workspaces.pruning import clearing, contents, removal, warn
from workspaces.pruning.contents import Contents
from workspaces.querysets import WorktreeQuerySet
from workspaces.repository import Repository


def lines() -> Iterator[str]:
    """One line for each worktree that would be warned of, pruned, finished or kept; the contents of this host's are looked at."""
    count = 0
    unfinished = Worktree.objects.unfinished()
    for rows, told in (
        (warn.due(), _would_warn),
        (prune.due().exclude(pk__in=unfinished.values("pk")), _would_prune),
        (unfinished, _would_finish),
        (_kept(), _would_keep),
    ):
        for worktree in _listed(rows):
            count += 1
            try:
                said = told(worktree)
            except (WorkspacesError, OSError) as error:
                said = f"what would happen cannot be said: {error}"
            yield f"{_name(worktree)}: {said}"
    if not count:
        yield "nothing would be warned of, pruned or kept: no worktree has been idle for so long"


def _listed(rows: WorktreeQuerySet) -> Iterator[Worktree]:
    return rows.select_related("workspace__owner").order_by("pk").iterator(500)


def _kept() -> WorktreeQuerySet:
    """Those that are past their time, and that nothing would be done about."""
    over = Worktree.objects.filter(
        last_used_at__lt=Now() - settings.JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD
    )
    due = prune.due().values("pk")
    warned_now = warn.due().values("pk")
    unfinished = Worktree.objects.unfinished().values("pk")
    return (
        over.exclude(pk__in=due)
        .exclude(pk__in=warned_now)
        .exclude(pk__in=unfinished)
        .annotate(is_kept=Q(kept_until__gt=Now()))
    )


def _name(worktree: Worktree) -> str:
    workspace = worktree.workspace
    return f"worktree {worktree.pk} ({worktree.branch}) of {workspace.name} on {workspace.host}"


def _would_warn(worktree: Worktree) -> str:
    found = look(worktree)
    if isinstance(found, str):
        return f"would be warned of; {found}"
    try:
        _refuse_used(worktree)
    except WorktreeBusy as error:
        return f"would be kept: {error}"
    if not paths.own_worktree_path(worktree).is_dir():
        return "would be warned of; its directory is not on the disk"
    return f"would be warned of; {in_words(found)}"


def _would_prune(worktree: Worktree) -> str:
    found = look(worktree)
    if worktree.workspace.host != hosts.this_host():
        return f"would be pruned there; {found}"
    if isinstance(found, str):
        return f"would be kept: {found}"
    try:
        _refuse(worktree, found)
    except WorkspacesError as error:
        return f"would be kept: {error}"
    if _is_gone(worktree):
        return "would be written down as gone: nothing of it is left on the disk"
    left_out = (
        f"; left out: {', '.join(found.recreatable.names)}{', …' if found.recreatable.count > len(found.recreatable.names) else ''}"
        if found.recreatable.count
        else ""
    )
    return f"would be archived and removed; {in_words(found)}{left_out}"


def _would_finish(worktree: Worktree) -> str:
    return f"is {worktree.state}: would be finished or undone where nobody is at it"


def _would_keep(worktree: Worktree) -> str:
    if worktree.held_by is not None:
        return f"would be kept: held by {worktree.held_by!r}"
    if worktree.pinned:
        return "would be kept: pinned"
    if worktree.state != Worktree.State.READY:
        return f"would be kept: {worktree.state}"
    if worktree.is_kept:  # type: ignore[attr-defined] # annotated
        return f"would be kept: until {worktree.kept_until:%Y-%m-%d %H:%M %Z}"
    lead = settings.JOBS_WORKTREE_PRUNE_WARNING_LEAD
    return f"would be kept: it was not warned of {written(lead)} ago (JOBS_WORKTREE_PRUNE_REQUIRE_WARNING)"


def look(worktree: Worktree) -> Contents | str:
    """What is in it, or why that cannot be said."""
    if worktree.workspace.host != hosts.this_host():
        return f"what is in it can be seen on {worktree.workspace.host} only"
    try:
        repository = Repository(paths.own_directory(worktree.workspace))
        return contents.look(repository, paths.own_worktree_path(worktree))
    except (WorkspacesError, OSError) as error:
        return f"what is in it could not be looked at: {error}"


def _refuse(worktree: Worktree, found: Contents) -> None:
    """Raise what would keep it, as far as that can be seen without archiving it."""
    _refuse_used(worktree)
    path = paths.own_worktree_path(worktree)
    repository = Repository(paths.own_directory(worktree.workspace))
    clearing.refuse_moved(repository, worktree)
    if os.path.lexists(path):
        removal.check(path)
        if used := activity.workers(path):
            raise WorktreeBusy(used)
        clearing.refuse_foreign(repository, path)
        removal.check_deletable(path)
    if planted := seal.planted(worktree.workspace, repository):
        raise ConfigTampered(
            f"the clone's configuration has {len(planted)} keys that nobody approved"
        )
    size = (found.size_bytes or 0) - (found.recreatable_bytes or 0)
    # What is in the clone already takes no room, so this may be more than is needed.
    if size > settings.ACW_ARCHIVE_MAX_SIZE and not found.is_saved:
        raise ArchiveTooLarge(
            f"it has {size} bytes, and at most {settings.ACW_ARCHIVE_MAX_SIZE} that are nowhere else are archived"
            " (ACW_ARCHIVE_MAX_SIZE)"
        )


def _refuse_used(worktree: Worktree) -> None:
    """Raise where its use would be noted instead."""
    repository = Repository(paths.own_directory(worktree.workspace))
    path = paths.own_worktree_path(worktree)
    if activity.since(repository, worktree, path) is not None:
        raise WorktreeBusy("something was done in it since it was let go of")


def _is_gone(worktree: Worktree) -> bool:
    """Whether neither its files nor what git keeps of it are there."""
    repository = Repository(paths.own_directory(worktree.workspace))
    path = paths.own_worktree_path(worktree)
    return (
        not os.path.lexists(path) and worktrees.registration(repository, path) is None
    )


def in_words(found: Contents) -> str:
    """What it has that is nowhere else, and how much it takes."""
    words = found.in_words()
    said = (
        f"it has {'; '.join(words)}"
        if words
        else "it has nothing that is not somewhere else too"
    )
    size = found.size_in_words()
    return f"{said}; it takes {size}" if size else said
