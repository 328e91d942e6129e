"""Whether somebody uses a worktree without holding it: who works in it now, and what was done in it since its use was last seen.

The row cannot know that: an agent or a person may go on in a directory that was let go of. What git writes for all worktrees at
once, the logs, which any ``git gc`` in the clone writes anew, is no sign of use; nor is a fetch, which writes nothing here.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import time
from pathlib import Path

from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Greatest, Now

from workspaces import worktrees
from workspaces.events import LogEvent
from workspaces.holding import leases, processes
from workspaces.models import Worktree
from workspaces.repository import Repository

log = logging.getLogger(__name__)

CLOCKS_DIFFER = dt.timedelta(hours=1)
"""By how much times of files may be ahead: of a file server's clock, or of this host's before it was put back."""

_TOUCHED = ("index", "HEAD", "ORIG_HEAD", "COMMIT_EDITMSG")
"""What git changes in the registration of the worktree that it works in."""


def workers(path: Path) -> str:
    """Who works in the directory now, in words; "" where nobody does that this process can see."""
    found = processes.in_use(path)
    if not found:
        return ""
    names = sorted({_name(process) for process in found})
    return f"{', '.join(names[:3])}{', …' if len(names) > 3 else ''} works in it"


def since(
    repository: Repository, worktree: Worktree, path: Path
) -> dt.timedelta | None:
    """How long ago something was done in the worktree that nobody holds, after its use was last seen; None: nothing was.

    ``last_used_at`` says nothing of what has been seen, since operators set it to see what happens; ``use_seen_at`` does. Both
    ages are told by one clock each: that of the database and that of this host need not agree.
    """
    seen = ExpressionWrapper(Now() - F("use_seen_at"), output_field=DurationField())
    rows = Worktree.objects.free().filter(pk=worktree.pk).annotate(quiet=seen)
    quiet = rows.values_list("quiet", flat=True).first()
    # After the other, so that the time between adds to the age.
    age = last_change(repository, path)
    return None if age is None or quiet is None or age >= quiet else age


def note(repository: Repository, worktree: Worktree, path: Path) -> bool:
    """Count what :func:`since` finds as use, which takes back a warning; whether there was anything."""
    age = since(repository, worktree, path)
    if age is None:
        return False
    noted = (
        Worktree.objects.free()
        .filter(pk=worktree.pk)
        .update(**leases.used(last_used_at=Greatest("last_used_at", Now() - age)))
    )
    if noted:
        log.info(LogEvent.WORKTREE_USED, extra=leases.facts(worktree))
    return bool(noted)


def last_change(repository: Repository, path: Path) -> dt.timedelta | None:
    """How long ago the directory or its registration was changed; None where nothing says so.

    What is from the future by no more than :data:`CLOCKS_DIFFER` was changed just now; what is from later was made so, and says nothing.
    """
    admin = worktrees.registration(repository, path)
    touched = [path] + ([] if admin is None else [admin / name for name in _TOUCHED])
    now = time.time()
    ages = []
    for file in touched:
        try:
            ages.append(now - os.lstat(file).st_mtime)
        except OSError:
            continue
    ahead = -CLOCKS_DIFFER.total_seconds()
    believed = [max(age, 0) for age in ages if age >= ahead]
    return dt.timedelta(seconds=min(believed)) if believed else None


def _name(process: int) -> str:
    """What the process calls itself; any process may call itself anything."""
    try:
        said = Path(f"/proc/{process}/comm").read_bytes()[:32]
    except OSError:
        return "a process"
    text = said.decode(errors="replace").strip()
    return (
        "".join(
            char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text
        )
        or "a process"
    )
