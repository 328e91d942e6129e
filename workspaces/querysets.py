"""The questions that runners, handlers and people ask of this app's tables, as SQL on the database's clock."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from workspaces import remotes
from workspaces.fetching.fetch_schedule import REFUSALS

if TYPE_CHECKING:
    from workspaces.models import Attachment, Conversation, Workspace, Worktree

PRUNABLE_STATES = ("ready", "pruning", "missing")
"""A worktree in another state is archived and removed by nobody; ``pruning`` is finished."""


_Row = TypeVar("_Row", bound=models.Model)

_BATCH = 500


def in_batches(rows: models.QuerySet[_Row]) -> Iterator[_Row]:
    """The rows in the order of their keys, some at a time, as they are then.

    No cursor of the server is left open between: behind a pooler, the next transaction may be in another session.
    """
    last = 0
    while True:
        batch = list(rows.filter(pk__gt=last).order_by("pk")[:_BATCH])
        yield from batch
        if len(batch) < _BATCH:
            return
        last = batch[-1].pk


class WorkspaceQuerySet(models.QuerySet["Workspace"]):
    """Workspaces by what is done with them."""

    def idle(self) -> WorkspaceQuerySet:
        """Those none of whose worktrees is held."""
        return self.exclude(worktrees__held_by__isnull=False)

    def with_holds(self) -> WorkspaceQuerySet:
        """Each says whether a worktree of it is held: ``is_held``."""
        held = self.model._default_manager.filter(
            pk=models.OuterRef("pk"), worktrees__held_by__isnull=False
        )
        return self.annotate(is_held=models.Exists(held))

    def on_host(self, host: str) -> WorkspaceQuerySet:
        return self.filter(host=host)

    def cloning(self) -> WorkspaceQuerySet:
        """Those whose clone was asked for and is not there yet."""
        return self.filter(state="cloning").order_by("pk")

    def failed(self) -> WorkspaceQuerySet:
        """Those that could not be cloned."""
        return self.filter(state="failed")

    def to_fetch(self) -> WorkspaceQuerySet:
        """Of each remote and host the idle one that is to be fetched first before the next tick; where the remote is a path, each.

        Those that the remote refuses are among them at any time.
        """
        soon = models.Q(
            next_fetch_at__lt=Now() + settings.JOBS_WORKSPACE_FETCH_INTERVAL
        )
        refused = models.Q(fetch_problem__in=REFUSALS)
        remote = ("host", "url", "alone")
        is_path = models.When(url__regex=remotes.PATHS, then="pk")
        return (
            self.idle()
            .filter(soon | refused, state="ready")
            .annotate(alone=models.Case(is_path, default=None))
            .order_by(*remote, "next_fetch_at", "pk")
            .distinct(*remote)
            .only("pk", "host", "url", "next_fetch_at", "fetch_problem")
        )

    def failing(self) -> WorkspaceQuerySet:
        """Those whose last fetch failed."""
        return self.filter(failing_since__isnull=False)


class WorktreeQuerySet(models.QuerySet["Worktree"]):
    """Worktrees by who holds them and how long they have been idle.

    Idle for exactly the threshold is not over it.
    """

    def held(self) -> WorktreeQuerySet:
        return self.filter(held_by__isnull=False)

    def expired(self) -> WorktreeQuerySet:
        """Those whose holder's lease ran out."""
        return self.held().filter(lease_expires_at__lte=Now())

    def free(self) -> WorktreeQuerySet:
        """Those that can be acquired."""
        return self.filter(held_by__isnull=True, state="ready")

    def unfinished(self) -> WorktreeQuerySet:
        """Those that are being made, pruned or restored, or were when that was interrupted."""
        return self.filter(state__in=("creating", "pruning", "restoring"))

    def idle_for(self, duration: dt.timedelta) -> WorktreeQuerySet:
        """Those that nobody holds or has used for longer than ``duration``."""
        return self.filter(held_by__isnull=True, last_used_at__lt=Now() - duration)

    def archivable(self) -> WorktreeQuerySet:
        """Those that can be archived and removed when somebody asks for it."""
        return self.filter(
            held_by__isnull=True,
            pinned=False,
            state__in=PRUNABLE_STATES,
        )

    def prunable(
        self, threshold: dt.timedelta, *, warned_for: dt.timedelta | None = None
    ) -> WorktreeQuerySet:
        """Those that are to be removed; with ``warned_for``, only where their people have known for so long."""
        due = self.archivable().idle_for(threshold).exclude(kept_until__gt=Now())
        if warned_for is None:
            return due
        return due.filter(prune_warning_at__lte=Now() - warned_for)

    def due_for_warning(
        self,
        *,
        threshold: dt.timedelta,
        lead: dt.timedelta,
        also_late: bool = False,
    ) -> WorktreeQuerySet:
        """Those that will be prunable in ``lead`` or sooner, are not yet, and were not warned of.

        ``also_late``: also those that are prunable but for the warning.
        """
        soon = (
            self.idle_for(threshold - lead)
            .filter(
                state__in=("ready", "missing"),
                pinned=False,
                prune_warning_at__isnull=True,
            )
            .exclude(kept_until__gte=Now() + lead)
        )
        if also_late:
            return soon
        kept = models.Q(kept_until__gt=Now())
        return soon.filter(models.Q(last_used_at__gte=Now() - threshold) | kept)


class ConversationQuerySet(models.QuerySet["Conversation"]):
    """Conversations by whether they are deleted."""

    def kept(self) -> ConversationQuerySet:
        return self.filter(deleted_at__isnull=True)

    def deleted(self) -> ConversationQuerySet:
        return self.filter(deleted_at__isnull=False)

    def delete_softly(self) -> int:
        """Delete them as users see it; their attachments go after the retention."""
        return self.kept().update(deleted_at=Now())

    def undelete(self) -> int:
        """Bring them back, with what attachments they still have."""
        return self.deleted().update(deleted_at=None)


class AttachmentQuerySet(models.QuerySet["Attachment"]):
    """Attachments by what has become of their conversation."""

    def reached_from(self, home: str) -> AttachmentQuerySet:
        """Those on this host's disk; all, where it is ``""``: every host reaches their storage."""
        return self.filter(host=home) if home else self.all()

    def of_deleted(self, retention: dt.timedelta) -> AttachmentQuerySet:
        """Those whose conversation was deleted longer ago than ``retention``."""
        return self.filter(conversation__deleted_at__lt=Now() - retention)

    def orphaned(self, retention: dt.timedelta) -> AttachmentQuerySet:
        """Those that became orphans longer ago than ``retention``."""
        return self.filter(conversation__isnull=True, orphaned_at__lt=Now() - retention)
