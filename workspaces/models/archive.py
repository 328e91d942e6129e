"""What was archived of worktrees, and the ledger of everything that was done to them: fields and indexes."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from jobs.display import seen
from workspaces import paths
from workspaces.models.workspace import (
    BRANCH_MAX_LENGTH,
    HOLDER_MAX_LENGTH,
    HOST_MAX_LENGTH,
    Workspace,
)

DIGEST_LENGTH = 64
COMMIT_LENGTH = 64
ACTOR_MAX_LENGTH = 200


class WorktreeArchive(models.Model):
    """All that a worktree was, as a commit under ``refs/acw/archive/<id>`` of its clone; restorable until ``expires_at``.

    ``worktree_id`` is that of the worktree's row, which may be gone; a restored worktree gets the same id again.
    """

    class State(models.TextChoices):
        """``WRITING`` without its repository's lock being held means that who wrote it is dead."""

        WRITING = "writing"
        VERIFIED = "verified"
        RESTORED = "restored"
        EXPIRED = "expired"

    class Reason(models.TextChoices):
        """Why it was made."""

        PRUNED = "pruned"
        ASKED = "asked"
        RECONCILED = "reconciled"

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="archives"
    )
    worktree_id = models.BigIntegerField()
    path = models.CharField(max_length=paths.PATH_MAX_LENGTH)
    branch = models.CharField(max_length=BRANCH_MAX_LENGTH)
    state = models.CharField(max_length=8, choices=State, db_default=State.WRITING)
    reason = models.CharField(max_length=10, choices=Reason)
    actor = models.CharField(max_length=ACTOR_MAX_LENGTH)
    last_held_by = models.CharField(
        max_length=HOLDER_MAX_LENGTH, blank=True, db_default=""
    )
    last_used_at = models.DateTimeField(null=True, blank=True)
    # The archive's commit, and the SHA-256 of its manifest, in hexadecimal.
    commit_sha = models.CharField(max_length=COMMIT_LENGTH, blank=True, db_default="")
    manifest_digest = models.CharField(
        max_length=DIGEST_LENGTH, blank=True, db_default=""
    )
    # The file that holds it instead of the clone's own objects; "": it is in the clone.
    bundle = models.CharField(
        max_length=paths.PATH_MAX_LENGTH, blank=True, db_default=""
    )
    bundle_digest = models.CharField(
        max_length=DIGEST_LENGTH, blank=True, db_default=""
    )
    entries = models.IntegerField(db_default=0)
    size_bytes = models.BigIntegerField(db_default=0)
    # What people are shown of it: see workspaces.pruning.contents.Contents.as_data().
    contents = models.JSONField(default=dict, db_default={}, blank=True)
    conversation_ids = models.JSONField(default=list, db_default=[], blank=True)
    created_at = models.DateTimeField(db_default=Now())
    verified_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    restored_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[models.Manager[WorktreeArchive]] = models.Manager()

    class Meta:
        db_table = "worktree_archives"
        ordering = ["-id"]
        permissions = [("restore_worktreearchive", "Can restore archived worktrees")]
        indexes = [
            models.Index(fields=["worktree_id", "-id"], name="archives_worktree"),
            models.Index(
                fields=["expires_at"],
                name="archives_expiring",
                condition=models.Q(state__in=["verified", "restored"]),
            ),
        ]

    def __str__(self) -> str:
        return f"archive {self.pk} of worktree {self.worktree_id} ({seen(self.branch)})"

    @property
    def ref(self) -> str:
        return f"refs/acw/archive/{self.pk}"


class LedgerEntry(models.Model):
    """One thing that was done to a worktree's directory; only ever added. Names things by value, since they go."""

    class Action(models.TextChoices):
        """What was done."""

        PRUNED = "pruned"
        RESTORED = "restored"
        EXPIRED = "expired"
        QUARANTINED = "quarantined"
        MENDED = "mended"
        DISCARDED = "discarded"

    at = models.DateTimeField(db_default=Now())
    action = models.CharField(max_length=12, choices=Action)
    actor = models.CharField(max_length=ACTOR_MAX_LENGTH)
    host = models.CharField(max_length=HOST_MAX_LENGTH)
    workspace = models.CharField(max_length=paths.NAME_MAX_LENGTH)
    worktree_id = models.BigIntegerField(null=True, blank=True)
    branch = models.CharField(max_length=BRANCH_MAX_LENGTH, blank=True, db_default="")
    path = models.CharField(max_length=paths.PATH_MAX_LENGTH, blank=True, db_default="")
    archive_id = models.BigIntegerField(null=True, blank=True)
    commit_sha = models.CharField(max_length=COMMIT_LENGTH, blank=True, db_default="")
    manifest_digest = models.CharField(
        max_length=DIGEST_LENGTH, blank=True, db_default=""
    )
    # What the verifier found before anything was removed; "": nothing was verified.
    verified = models.TextField(blank=True, db_default="")
    data = models.JSONField(default=dict, db_default={}, blank=True)

    objects: ClassVar[models.Manager[LedgerEntry]] = models.Manager()

    class Meta:
        db_table = "worktree_ledger"
        ordering = ["-id"]
        verbose_name_plural = "ledger entries"
        indexes = [
            models.Index(fields=["worktree_id", "id"], name="ledger_worktree"),
        ]

    def __str__(self) -> str:
        return f"{self.action} worktree {self.worktree_id} of {self.workspace}"
