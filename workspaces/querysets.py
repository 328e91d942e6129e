"""The questions that runners, handlers and people ask of this app's tables, as SQL on the database's clock."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from django.db import models
from django.db.models.functions import Now

if TYPE_CHECKING:
    from workspaces.models import Attachment, Conversation, Workspace, Worktree


class WorkspaceQuerySet(models.QuerySet["Workspace"]):
    """Workspaces by what is done with them."""

    def idle(self) -> WorkspaceQuerySet:
        """Those none of whose worktrees is held."""
        return self.exclude(worktrees__held_by__isnull=False)

    def on_host(self, host: str) -> WorkspaceQuerySet:
        return self.filter(host=host)

    def failing(self) -> WorkspaceQuerySet:
        """Those whose last fetch failed."""
        return self.filter(failing_since__isnull=False)


class WorktreeQuerySet(models.QuerySet["Worktree"]):
    """Worktrees by who holds them and how long they have been idle.

    Idle for exactly the threshold is not over it.
    """

    def held(self) -> WorktreeQuerySet:
        return self.filter(held_by__isnull=False)

    def free(self) -> WorktreeQuerySet:
        """Those that can be acquired."""
        return self.filter(held_by__isnull=True, state="ready")

    def unfinished(self) -> WorktreeQuerySet:
        """Those that are being made or pruned, or were when that was interrupted."""
        return self.exclude(state="ready")

    def idle_for(self, duration: dt.timedelta) -> WorktreeQuerySet:
        """Those that nobody holds or has used for longer than ``duration``."""
        return self.filter(held_by__isnull=True, last_used_at__lt=Now() - duration)

    def prunable(self, threshold: dt.timedelta) -> WorktreeQuerySet:
        """Those that are to be removed."""
        return self.idle_for(threshold).exclude(state="creating")

    def due_for_warning(
        self, *, threshold: dt.timedelta, lead: dt.timedelta
    ) -> WorktreeQuerySet:
        """Those that will be prunable in ``lead`` or sooner, are not yet, and were not warned of."""
        return (
            self.free()
            .idle_for(threshold - lead)
            .filter(last_used_at__gte=Now() - threshold, prune_warning_at__isnull=True)
        )


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

    def on_host(self, host: str) -> AttachmentQuerySet:
        return self.filter(host=host)

    def of_deleted(self, retention: dt.timedelta) -> AttachmentQuerySet:
        """Those whose conversation was deleted longer ago than ``retention``."""
        return self.filter(conversation__deleted_at__lt=Now() - retention)

    def orphaned(self, retention: dt.timedelta) -> AttachmentQuerySet:
        """Those that became orphans longer ago than ``retention``."""
        return self.filter(conversation__isnull=True, orphaned_at__lt=Now() - retention)
